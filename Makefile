# Targets are described by their "##" lines; make help lists them.

GO        ?= go
BIN       := bin
# Semantic version, also for packages and charts; a checkout without a version tag sorts before all releases.
TAG       := $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null || echo v0.0.0-0.g$$(git rev-parse --short HEAD 2>/dev/null))
VERSION   ?= $(TAG:v%=%)
REVISION  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
# All files get the commit time: builds are reproducible.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH
V         := github.com/prometheus/common/version
LDFLAGS   := -s -w -X $(V).Version=$(VERSION) -X $(V).Revision=$(REVISION) -X $(V).BuildDate=$(shell date -u -d @$(SOURCE_DATE_EPOCH) +%Y-%m-%dT%H:%M:%SZ)
BUILD     := $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)'
TOOL      := $(GO) tool -modfile=tools/go.mod
FUZZTIME  ?= 3000x
NODES     ?= 1000
# Fuzzing corpus in the Go cache.
CORPUS     = $(shell $(GO) env GOCACHE)/fuzz/rdma_exporter
# A C compiler: the race detector and NVML need one.
CC_HERE   := $(if $(shell command -v $$($(GO) env CC)),1,0)
# Tests of whole commands on many machines, and of fleets: make proofs.
PROOFS    := test/(commands|foreign|incidents|kill|place|rollup|ruleplay|scripts)
PACKAGES   = $(GO) list $(RACE) ./... | grep -vxE 'rdma_exporter/($(PROOFS))'
# The packages that make test runs without the race detector: their tests link Prometheus, which takes minutes to compile with it, or they have
# test files that say //go:build !race. make race runs them with it, without these files: a test that plays a recording or reads files in one
# goroutine would take ten times as long for nothing.
UNRACED    = $(GO) list -test -f '{{$$p := .ImportPath}}{{range .Deps}}{{if eq . "github.com/prometheus/prometheus/promql"}}{{$$p}}{{"\n"}}{{end}}{{end}}' ./... | sed '/ /d; s/\.test$$//'; \
             grep -rlx --include='*_test.go' '//go:build !race' . | sed 's|^\.|rdma_exporter|; s|/[^/]*$$||'
ADDRESS   ?= :10879

# Suppresses deprecation warnings of go-nvml.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/rdma_exporter
	$(BUILD) -o $(BIN)/rdma_exporter ./cmd/rdma_exporter

.PHONY: packages
packages: $(BIN)/nfpm ## build deb and rpm into bin/dist for this machine or ARCHES, with and without NVML; packaging/packages.sh installs compilers of the other
	ARCHES='$(if $(filter file,$(origin ARCHES)),$(shell $(GO) env GOHOSTARCH),$(ARCHES))' VERSION='$(VERSION)' SOURCE_DATE_EPOCH='$(SOURCE_DATE_EPOCH)' LDFLAGS='$(LDFLAGS)' NFPM=$(BIN)/nfpm packaging/build.sh $(BIN)/dist

.PHONY: run
run: ## build and serve this host, or the recorded demo node if it has no RDMA device
	@demo=; if [ -z "$$(ls /sys/class/infiniband 2>/dev/null)" ]; then \
	  echo "No RDMA device on this host: this serves the recorded demo node instead. If the host should have one, bin/rdma_exporter check says why it has none."; demo="--replay demo"; fi; \
	$(MAKE) -s build && exec $(BIN)/rdma_exporter $$demo --web.listen-address=$(ADDRESS)

.PHONY: demo
demo: build ## build and serve the recorded demo node: page, metrics, alerts
	@echo "The page: http://localhost:$(lastword $(subst :, ,$(ADDRESS)))/"
	@exec $(BIN)/rdma_exporter --replay demo --web.listen-address=$(ADDRESS)

.PHONY: screenshots
screenshots: ## regenerate the screenshots of the README
	CGO_ENABLED=0 $(BUILD) -o $(BIN)/rdma_exporter-e2e ./cmd/rdma_exporter
	RDMA_EXPORTER=$(CURDIR)/$(BIN)/rdma_exporter-e2e $(GO) test -tags e2e -count=1 -run Screenshots ./test/page -shots $(CURDIR)/docs/img

.PHONY: test test-raced test-others proofs race
test: ## all tests but those of make proofs, race and e2e; no root, no network
	@$(MAKE) --no-print-directory -j2 -Otarget test-raced test-others

# Many short replays: the default of 100 costs 12% more CPU time for garbage collection. make check has go vet, with all its analyses.
test-raced test-others proofs race: export GOGC = 400
test-raced: export CGO_ENABLED = $(CC_HERE)
test-others proofs: export CGO_ENABLED = 0

test-raced: RACE = $(if $(filter 1,$(CC_HERE)),-race)
race: RACE = -race

test-raced:
	$(GO) test -vet=off $(RACE) -timeout 10m $$($(PACKAGES) | grep -vxF "$$($(UNRACED))")

test-others:
	$(GO) test -vet=off -timeout 10m $$($(PACKAGES) | grep -xF "$$($(UNRACED))")

proofs: ## incidents of fleets, the series of the tests of rules, commands and scripts on recorded machines, hostile text, a sample of make kill; four minutes, no root, no network
	$(GO) test -vet=off -timeout 20m $$($(GO) list ./... | grep -xE 'rdma_exporter/($(PROOFS))')

race: ## the packages that make test runs without the race detector; ten minutes
	$(GO) test -vet=off -race -timeout 20m $$($(PACKAGES) | grep -xF "$$($(UNRACED))")

.PHONY: update
update: ## regenerate generated files and goldens; review the diff
	$(GO) run ./fixtures/gen -dir fixtures/sysfs
	$(GO) test -timeout 30m -run '^Test(GoldenOfMachines|Job|Optics|Page|PageNode|Topo|Render)$$' ./internal/cli ./internal/check ./test/commands ./test/machines -update
	$(GO) run ./docs/gen
	$(GO) run ./packaging/thirdparty -docs docs/dependencies.md
	cd dashboards/gen && $(GO) run .
	cd packaging/test && $(GO) test ./helm -run Golden -update

.PHONY: kernel-messages
kernel-messages: ## list the messages of kernel sources in KERNEL (directories, separated by commas) that internal/kernellog does not know
	$(GO) run ./internal/kernellog/sources -source $(KERNEL)

.PHONY: captures
captures: ## capture every recorded machine, all rounds, and replay the captures, also anonymised; half an hour
	$(GO) test -timeout 30m -run '^TestCaptureOfMachines$$' ./test/commands -every
	$(GO) test -timeout 30m -run '^TestFindingsOfAnonymisedMachines$$' ./test/machines -anonymise-every

.PHONY: restarts
restarts: ## restart the exporter during and after every recorded fault; an hour
	$(GO) test -timeout 3h -run '^TestRestartOfMachines$$' ./test/machines -restart-every

.PHONY: kill
kill: ## break the objects of every recorded healthy machine, one, half and all, at the first start and with history; an hour
	$(GO) test -timeout 1h ./test/kill -every

.PHONY: mutate
mutate: ## corrupt every file of three recorded machines in ten ways, at the start and during monitoring; a day, MUTATE='infiniband/mlx5_0/|net/' selects files
	$(GO) test -timeout 48h -run '^Test(Mutations|FIFOs)OfMachines$$' ./test/machines -mutations 0 -mutate-every -mutate '$(MUTATE)'

.PHONY: compare
compare: build ## compare metrics and findings of every recorded machine with revision BEFORE; ten minutes
	test/compare/run.sh '$(BEFORE)' $(BIN)/rdma_exporter

.PHONY: check check-code check-generated check-packaging check-rules
check: $(BIN)/promtool $(BIN)/pint $(BIN)/amtool $(BIN)/actionlint $(BIN)/crane ## linters, promtool, pint, amtool, Helm chart, generated files, licences, changelog, workflows
	@$(MAKE) --no-print-directory -j2 -Otarget check-code check-rules check-packaging check-generated

# One compilation, as in make test; what needs cgo is in internal/host/nvml.
check e2e kernel-proofs quickstart: export CGO_ENABLED = 0

check-code: $(BIN)/actionlint
	$(TOOL) gofumpt -l . | (! grep .) || (echo "gofumpt: make fmt formats these" >&2; exit 1)
	$(GO) build -o /dev/null ./cmd/rdma_exporter
	$(GO) vet ./... && CGO_ENABLED=$(CC_HERE) $(GO) vet ./internal/host/nvml && $(GO) vet -tags noebpf ./internal/host/live && $(GO) vet -tags e2e ./test/... ./internal/host/... && $(GO) vet -tags bench ./test/... && $(GO) vet -tags scale ./test/scale && $(GO) vet -tags soak ./test/soak && CGO_ENABLED=$(CC_HERE) $(GO) vet -tags gpu ./test/gpu
	$(TOOL) staticcheck ./... && CGO_ENABLED=$(CC_HERE) $(TOOL) staticcheck ./internal/host/nvml
	$(GO) mod tidy -diff
	$(BIN)/actionlint -shellcheck= -pyflakes=

check-generated:
	$(GO) run ./fixtures/gen -check
	$(GO) run ./docs/gen -check
	$(GO) run ./packaging/thirdparty -docs docs/dependencies.md -check
	$(GO) run ./packaging/changelog
	cd dashboards/gen && $(GO) run . -check && $(GO) vet ./... && $(GO) test ./... && $(GO) mod tidy -diff && $(GO) tool -modfile=$(CURDIR)/tools/go.mod staticcheck ./...

check-packaging: $(BIN)/amtool $(BIN)/crane
	cd packaging/test && $(GO) vet ./... && $(GO) test ./...
	$(BIN)/amtool check-config packaging/alertmanager/alertmanager.yml

check-rules: $(BIN)/promtool $(BIN)/pint
	$(BIN)/promtool check rules rules/node/*.yml rules/central/*.yml rules/compat/*.yml
	ls rules/tests/*.test.yml | GOGC=400 xargs -P 2 -n 1 $(BIN)/promtool test rules
	$(BIN)/pint --offline --no-color --config .pint.hcl lint --fail-on=warning --min-severity=warning rules/node rules/central rules/compat

.PHONY: contributing
contributing: $(BIN)/promtool ## follow CONTRIBUTING.md in a copy: add a variant, a counter, a rule, a collector and a command, and run their tests
	test/contributing/follow.sh

.PHONY: ber-week
ber-week: $(BIN)/promtool ## 64 healthy links over a week without an alert; five minutes
	$(GO) run ./test/ber -days 7 -rules ../rules/node >$(BIN)/ber-week.test.yml
	$(BIN)/promtool test rules $(BIN)/ber-week.test.yml

.PHONY: fleet
fleet: ## faults in fleets of 16 to 1,000 hosts and a healthy week, table of docs/verification.md; half an hour on 16 CPUs, four hours on two, 6 GiB
	CGO_ENABLED=0 GOGC=200 $(GO) test -count=1 -timeout 8h -parallel 2 -v -run '^Test(FaultsOfFleets|HealthyFleets)$$' ./test/incidents -every -write -workers $$(nproc)

.PHONY: place
place: ## faults between hosts in fleets of 64 to 1,000 hosts, placed by the peers that are lost, and 1,000 healthy hours; 20 minutes on two CPUs
	CGO_ENABLED=0 GOGC=400 $(GO) test -count=1 -timeout 4h -parallel 2 -v ./test/place -every -write

.PHONY: rollup
rollup: build ## two leaves of two replicas and a global pair have the alerts of one Prometheus; eight minutes, two CPUs, installs Debian packages as root
	test/alerting/packages.sh
	CGO_ENABLED=0 $(GO) test -tags e2e -count=1 -timeout 20m -v -run TestRollup ./test/rollup

.PHONY: rollup-thanos
rollup-thanos: build $(BIN)/thanos ## make rollup with Receive, Query and Rule of Thanos in place of the pair; 40 minutes, of which half an hour builds Thanos
	test/alerting/packages.sh
	PATH=$(CURDIR)/$(BIN):$$PATH CGO_ENABLED=0 $(GO) test -tags e2e -count=1 -timeout 20m -v -run TestThanos ./test/rollup

# In a copy of its module, whose go.mod replaces others. Without slicelabels the first request by gRPC panics.
$(BIN)/thanos:
	set -e; source=$$(mktemp -d); \
	cp -r "$$($(GO) mod download -json github.com/thanos-io/thanos@v0.42.4 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')/." $$source; \
	chmod -R u+w $$source; \
	(cd $$source && CGO_ENABLED=0 $(GO) build -tags slicelabels -o $(CURDIR)/$@ ./cmd/thanos); \
	rm -rf $$source

.PHONY: fmt
fmt: ## format the Go code
	$(TOOL) gofumpt -w .

.PHONY: fuzz
fuzz: ## fuzz every parser for FUZZTIME (3000x executions; or 60s) each, starting from the corpus in test/fuzz; FUZZ='lldp|pci' selects
	test/fuzz/run.sh $(FUZZTIME) '$(FUZZ)'

.PHONY: fuzz-corpus
fuzz-corpus: ## store the corpus found by make fuzz on this machine
	tar -C $(CORPUS) --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime=@0 -c . | gzip -9n >test/fuzz/corpus.tar.gz

.PHONY: e2e e2e-programs e2e-page e2e-servers e2e-fabric kernel-proofs quickstart
e2e: e2e-programs ## tests with network namespaces, a simulated fabric, Prometheus, Alertmanager and a browser; ten minutes, installs Debian packages as root
	@$(MAKE) --no-print-directory -j3 -Oline e2e-page e2e-servers e2e-fabric

# Parts that run at the same time cannot both install packages.
e2e-programs:
	set -e; for p in alerting page fabric sandbox; do test/$$p/packages.sh; done
	$(GO) build -o $(BIN)/rdma_exporter-e2e ./cmd/rdma_exporter
	$(GO) test -c -tags e2e -o $(BIN)/host-e2e/ ./internal/host/live ./internal/host/netlink ./internal/host/umad

e2e-page e2e-servers e2e-fabric kernel-proofs quickstart: export RDMA_EXPORTER = $(CURDIR)/$(BIN)/rdma_exporter-e2e
kernel-proofs: export RDMA_HOST_TEST = $(CURDIR)/$(BIN)/host-e2e

e2e-page:
	$(GO) test -tags e2e -count=1 -timeout 10m ./test/browser ./test/page

e2e-servers:
	$(GO) test -tags e2e -count=1 -parallel 8 -timeout 8m ./test/alerting
	$(GO) test -tags e2e -count=1 -timeout 15m ./test/dashboards

e2e-fabric:
	$(GO) test -tags e2e -count=1 -parallel 8 -timeout 5m ./test/netns
	$(GO) test -tags e2e -count=1 -timeout 5m ./test/connections
	$(GO) test -tags e2e -count=1 -timeout 10m ./test/fabric
	$(GO) test -tags e2e -count=1 -timeout 5m ./test/sandbox

kernel-proofs: e2e-programs ## a virtual machine with a real kernel: the exporter in it, eBPF programs, alerts of faults; twenty minutes, installs Debian packages as root
	test/kernel/packages.sh
	$(GO) test -tags e2e -count=1 -timeout 45m ./test/kernel

quickstart: e2e-programs ## follow docs/quickstart.md to the letter; six minutes, installs Debian packages as root
	$(GO) test -tags e2e -count=1 -timeout 15m ./test/quickstart

.PHONY: release-test
release-test: $(BIN)/nfpm ## test release artefacts: deb and rpm on a clean Debian with systemd, container image, amd64 and arm64 binaries; 15 minutes, installs Debian packages as root
	$(MAKE) dist-test FLAVOURS='amd64-nogpu arm64-nogpu' # cgo flavours take minutes to compile
	test/packages/packages.sh
	NFPM=$(CURDIR)/$(BIN)/nfpm $(GO) test -tags e2e -count=1 -timeout 15m ./test/packages
	test/container/packages.sh
	$(GO) test -tags e2e -count=1 -timeout 15m ./test/container

.PHONY: gpu-proof
gpu-proof: build ## on a machine with NVIDIA GPUs: compare every value with nvidia-smi
	$(GO) test -c -tags gpu -o $(BIN)/gpu-proof ./test/gpu
	$(BIN)/gpu-proof -test.v -test.timeout 8m

.PHONY: bench
bench: bench-build ## cost of a scrape and of a rule evaluation round, compared with node_exporter; writes docs/performance.md; ten minutes
	$(BIN)/bench.test -test.v -test.timeout 40m -repository $(CURDIR) $(BENCH)

.PHONY: bench-build
bench-build: build # binaries of make bench, for machines without Go: copy the checkout with bin, run the command above
	GOBIN=$(CURDIR)/$(BIN) $(GO) install github.com/prometheus/node_exporter@v1.12.1
	$(GO) test -c -o $(BIN)/bench-alerting.test ./internal/alerting
	$(GO) test -c -o $(BIN)/bench-page.test ./test/machines
	$(GO) test -c -tags bench -o $(BIN)/bench.test ./test/bench

.PHONY: soak
soak: build ## soak test: a day on a virtual clock and 30 minutes in real time; 45 minutes, SOAK='-for 10m -day 6h' is the minimum
	$(GO) test -tags soak -count=1 -timeout 3h -v ./test/soak $(SOAK)

.PHONY: scale
scale: ## cost of a fleet of NODES (1000) for a central Prometheus; 30 minutes, two CPUs, 12 GiB
	test/alerting/packages.sh
	CGO_ENABLED=0 $(GO) build -o $(BIN)/rdma_exporter-e2e ./cmd/rdma_exporter
	RDMA_EXPORTER=$(BIN)/rdma_exporter-e2e $(GO) test -tags scale -count=1 -timeout 2h -v -run TestScale ./test/scale -nodes $(NODES)

.PHONY: memory
memory: ## memory by number of functions of a host, table of docs/install.md; 30 minutes, 4 GiB of memory, 2 million inodes
	CGO_ENABLED=0 $(GO) build -o $(BIN)/rdma_exporter-e2e ./cmd/rdma_exporter
	RDMA_EXPORTER=$(BIN)/rdma_exporter-e2e $(GO) test -tags scale -count=1 -timeout 2h -v -run TestFunctions ./test/scale

.PHONY: dist
dist: ## build all release artefacts into bin/dist, with SHA256SUMS
	rm -rf $(DIST)
	$(MAKE) $(ARTEFACTS) ARCHES='$(ARCHES)'
	cd $(DIST) && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS

.PHONY: dist-test
dist-test: ## build and run the binaries of all architectures and flavours (arm64 emulated), test man page and completions; installs Debian packages
	test/dist/packages.sh
	$(MAKE) binaries $(SBOMS)
	RDMA_DIST=$(CURDIR)/$(DIST)/build RDMA_FLAVOURS='$(FLAVOURS)' RDMA_VERSION=$(VERSION) RDMA_REVISION=$(REVISION) $(GO) test -tags e2e -count=1 -timeout 10m ./test/dist

.PHONY: dist-check
dist-check: ## rebuild make dist elsewhere from an empty cache and compare checksums
	packaging/dist/reproduce.sh $(DIST) VERSION=$(VERSION) REVISION=$(REVISION) SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH)

.PHONY: images
images: $(BIN)/crane ## pin the current digests of base images, images of workflows and the Compose setup; fails if one changed
	packaging/dist/images.sh $(BIN)/crane

JITTER ?= -for 1m -blocks 3
.PHONY: jitter
jitter: build ## measure OS noise with and without the exporter; JITTER: flags of test/noise
	@machine=; if [ -z "$$(ls /sys/class/infiniband 2>/dev/null)" ]; then \
	  echo "No RDMA device on this host: the exporter reads the files of a recorded DGX H100."; machine="-machine fixtures/sysfs/dgx-h100-ib.txtar"; fi; \
	$(GO) run ./test/noise -exporter $(BIN)/rdma_exporter $$machine $(JITTER)

.PHONY: clean
clean: ## remove build outputs
	rm -rf $(BIN)

# Release artefacts. Add targets that put files into $(DIST) to ARTEFACTS.
DIST      := $(BIN)/dist
ARCHES    ?= amd64 arm64
FLAVOURS  := $(ARCHES) $(ARCHES:%=%-nogpu)
SBOMS     := $(FLAVOURS:%=$(DIST)/rdma_exporter-$(VERSION).linux-%.cdx.json)
ARTEFACTS := $(FLAVOURS:%=$(DIST)/rdma_exporter-$(VERSION).linux-%.tar.gz) $(SBOMS) \
             $(DIST)/rdma_exporter-rules-$(VERSION).tar.gz $(DIST)/rdma_exporter-dashboards-$(VERSION).tar.gz \
             $(DIST)/rdma-exporter-$(VERSION).tgz packages
GCC_amd64 := x86_64-linux-gnu-gcc
GCC_arm64 := aarch64-linux-gnu-gcc
arch      = $(firstword $(subst -, ,$*))
cgo       = $(if $(findstring nogpu,$*),0,1)
# tarball packs the folder $(2) of $(1).
tarball   = tar -C $(1) --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r-w,a+X --mtime=@$(SOURCE_DATE_EPOCH) -c $(2) | gzip -9n >$@

# The binary of a flavour and its third-party licences: $(DIST)/build/linux-arm64-nogpu/rdma_exporter.
.PRECIOUS: $(DIST)/build/linux-%/rdma_exporter $(DIST)/build/linux-%/THIRD_PARTY
.PHONY: binaries
binaries: $(FLAVOURS:%=$(DIST)/build/linux-%/rdma_exporter) $(FLAVOURS:%=$(DIST)/build/linux-%/THIRD_PARTY)

$(DIST)/build/linux-%/rdma_exporter: FORCE
	GOOS=linux GOARCH=$(arch) CGO_ENABLED=$(cgo) CC=$(GCC_$(arch)) $(BUILD) -o $@ ./cmd/rdma_exporter

$(DIST)/build/linux-%/THIRD_PARTY: FORCE
	mkdir -p $(@D)
	$(GO) run ./packaging/thirdparty -arch $(arch) -cgo=$(cgo) -o $@

$(DIST)/rdma_exporter-$(VERSION).linux-%.tar.gz: $(DIST)/build/linux-%/rdma_exporter $(DIST)/build/linux-%/THIRD_PARTY
	packaging/dist/stage.sh $(@D)/build/$(@F:.tar.gz=) $^ LICENSE CHANGELOG.md packaging/rdma_exporter.yml packaging/systemd packaging/slurm packaging/man packaging/completions
	$(call tarball,$(@D)/build,$(@F:.tar.gz=))

# Without serial number and timestamp: builds are reproducible.
$(DIST)/rdma_exporter-$(VERSION).linux-%.cdx.json: $(DIST)/build/linux-%/rdma_exporter $(BIN)/cyclonedx-gomod
	$(BIN)/cyclonedx-gomod bin -json -noserial -notimestamp -std -version $(VERSION) -output $@ $<

$(DIST)/rdma_exporter-rules-$(VERSION).tar.gz: FORCE
	packaging/dist/stage.sh $(@D)/build/$(@F:.tar.gz=) LICENSE rules/node rules/central rules/compat
	sed -i '/^ *runbook_url: docs\/runbooks\//d' $(@D)/build/$(@F:.tar.gz=)/*/*.rules.yml # repository paths are no URLs
	$(call tarball,$(@D)/build,$(@F:.tar.gz=))

$(DIST)/rdma_exporter-dashboards-$(VERSION).tar.gz: FORCE
	packaging/dist/stage.sh $(@D)/build/$(@F:.tar.gz=) LICENSE dashboards/*.json
	$(call tarball,$(@D)/build,$(@F:.tar.gz=))

$(DIST)/rdma-exporter-$(VERSION).tgz: FORCE
	packaging/dist/chart.sh $(@D)/build/chart $(VERSION)
	$(call tarball,$(@D)/build/chart,rdma-exporter)

.PHONY: FORCE
FORCE:

$(BIN)/promtool: tools/prometheus/go.mod
	$(GO) build -tags remove_all_sd -modfile=tools/prometheus/go.mod -o $@ github.com/prometheus/prometheus/cmd/promtool

$(BIN)/pint: tools/pint/go.mod
	$(GO) build -tags remove_all_sd -modfile=tools/pint/go.mod -o $@ github.com/cloudflare/pint/cmd/pint

$(BIN)/amtool: tools/alertmanager/go.mod
	$(GO) build -modfile=tools/alertmanager/go.mod -o $@ github.com/prometheus/alertmanager/cmd/amtool

$(BIN)/actionlint: tools/actionlint/go.mod
	$(GO) build -modfile=tools/actionlint/go.mod -o $@ github.com/rhysd/actionlint/cmd/actionlint

$(BIN)/nfpm: tools/nfpm/go.mod
	$(GO) build -modfile=tools/nfpm/go.mod -o $@ github.com/goreleaser/nfpm/v2/cmd/nfpm

$(BIN)/crane: tools/crane/go.mod
	CGO_ENABLED=0 $(GO) build -modfile=tools/crane/go.mod -o $@ github.com/google/go-containerregistry/cmd/crane

# Its checksum is part of the SBOM.
$(BIN)/cyclonedx-gomod: tools/cyclonedx/go.mod
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -modfile=tools/cyclonedx/go.mod -o $@ github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
