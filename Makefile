# Targets are described by their "##" lines; make help lists them.

GO        ?= go
BIN       := bin
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REVISION  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
V         := github.com/prometheus/common/version
LDFLAGS   := -s -w -X $(V).Version=$(VERSION) -X $(V).Revision=$(REVISION)
BUILD     := $(GO) build -trimpath -ldflags '$(LDFLAGS)'
TOOL      := $(GO) tool -modfile=tools/go.mod
FUZZTIME  ?= 10s
# The race detector needs a C compiler. Playing all recorded machines takes it many minutes, and they bring no other goroutines than
# one of them does: those tests run without it.
RACE      := $(if $(shell command -v $$($(GO) env CC)),-race)
ADDRESS   ?= :10879

# go-nvml declares functions that are deprecated, and the compiler says so at length.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/rdma_exporter
	$(BUILD) -o $(BIN)/rdma_exporter ./cmd/rdma_exporter

.PHONY: run
run: ## build and serve this host's fabric; without an RDMA device, the recorded demo node
	@demo=; if [ -z "$$(ls /sys/class/infiniband 2>/dev/null)" ]; then \
	  echo "No RDMA device on this host: this serves the recorded demo node in the binary (--replay demo)."; demo="--replay demo"; fi; \
	$(MAKE) -s build && exec $(BIN)/rdma_exporter $$demo --web.listen-address=$(ADDRESS)

.PHONY: demo
demo: build ## build and serve the recorded demo node: its page, metrics and firing alerts
	@echo "The page: http://localhost:$(lastword $(subst :, ,$(ADDRESS)))/"
	@exec $(BIN)/rdma_exporter --replay demo --web.listen-address=$(ADDRESS)

.PHONY: screenshots
screenshots: ## write the screenshots of the README again
	CGO_ENABLED=0 $(BUILD) -o $(BIN)/rdma_exporter-e2e ./cmd/rdma_exporter
	RDMA_EXPORTER=$(CURDIR)/$(BIN)/rdma_exporter-e2e $(GO) test -tags e2e -count=1 -run Screenshots ./test/page -shots $(CURDIR)/docs/img

.PHONY: test
test: ## all tests: no root, nothing outside the module cache
	$(GO) test $(RACE) -timeout 20m -skip 'Of(AllMachines|Replays)$$' ./...
	$(GO) test -timeout 20m -run 'Of(AllMachines|Replays)$$' ./internal/app ./internal/capture

.PHONY: update
update: ## write generated files and goldens again; read the diff
	$(GO) run ./fixtures/gen -dir fixtures/sysfs
	$(GO) test ./internal/app ./internal/check -update
	$(GO) run ./docs/gen
	cd dashboards/gen && $(GO) run .

.PHONY: check
check: $(BIN)/promtool $(BIN)/pint $(BIN)/amtool ## linters, promtool, pint, amtool, generated files
	$(TOOL) gofumpt -l . | (! grep .) || (echo "gofumpt: make fmt formats these" >&2; exit 1)
	CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/rdma_exporter
	$(GO) vet ./... && $(GO) vet -tags e2e ./test/... ./internal/host && $(GO) vet -tags bench ./test/...
	$(TOOL) staticcheck ./...
	$(GO) mod tidy -diff
	$(GO) run ./fixtures/gen -check
	$(GO) run ./docs/gen -check
	cd dashboards/gen && $(GO) run . -check && $(GO) vet . && $(GO) test . && $(GO) mod tidy -diff && $(GO) tool -modfile=$(CURDIR)/tools/go.mod staticcheck .
	$(BIN)/promtool check rules rules/node/*.yml rules/central/*.yml
	$(BIN)/promtool test rules rules/tests/*.test.yml
	$(BIN)/pint --offline --no-color --config .pint.hcl lint --fail-on=warning --min-severity=warning rules/node rules/central
	$(BIN)/amtool check-config packaging/alertmanager/alertmanager.yml
	for f in internal/app/testdata/metrics/*.prom; do $(BIN)/promtool check metrics <$$f || exit 1; done

.PHONY: fmt
fmt: ## format the Go code
	$(TOOL) gofumpt -w .

.PHONY: fuzz
fuzz: ## fuzz every parser for FUZZTIME (10s)
	@set -e; for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep ^Fuzz); do \
	    echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p; done; done

.PHONY: e2e
e2e: ## tests with a real kernel, in namespaces and in a virtual machine, a simulated fabric, Prometheus, Alertmanager and a browser; installs Debian packages, needs root for that
	$(GO) test -tags e2e -count=1 -parallel 8 -timeout 5m -v ./test/netns
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/rdma_exporter-e2e ./cmd/rdma_exporter
	CGO_ENABLED=0 $(GO) test -c -trimpath -tags e2e -o $(BIN)/host-e2e ./internal/host
	RDMA_EXPORTER=$(CURDIR)/$(BIN)/rdma_exporter-e2e $(GO) test -tags e2e -count=1 -parallel 8 -timeout 8m -v ./test/alerting
	test/page/packages.sh
	RDMA_EXPORTER=$(CURDIR)/$(BIN)/rdma_exporter-e2e $(GO) test -tags e2e -count=1 -timeout 5m -v ./test/page
	RDMA_EXPORTER=$(CURDIR)/$(BIN)/rdma_exporter-e2e $(GO) test -tags e2e -count=1 -timeout 5m -v ./test/dashboards
	$(GO) test -tags e2e -count=1 -timeout 6m -v ./test/fabric
	test/kernel/packages.sh
	RDMA_EXPORTER=$(CURDIR)/$(BIN)/rdma_exporter-e2e RDMA_HOST_TEST=$(CURDIR)/$(BIN)/host-e2e $(GO) test -tags e2e -count=1 -timeout 20m -v ./test/kernel

.PHONY: gpu-proof
gpu-proof: build ## on a machine with NVIDIA GPUs: compare every figure with nvidia-smi
	$(GO) test -c -tags gpu -o $(BIN)/gpu-proof ./test/gpu
	$(BIN)/gpu-proof -test.v -test.timeout 8m

.PHONY: bench
bench: build ## cost of a scrape, side by side with node_exporter
	GOBIN=$(CURDIR)/$(BIN) $(GO) install github.com/prometheus/node_exporter@v1.12.1
	$(GO) test -run '^$$' -bench . -benchmem ./...
	$(GO) test -tags bench -count=1 -timeout 20m -v ./test/bench

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BIN)

$(BIN)/promtool: tools/prometheus/go.mod
	$(GO) build -tags remove_all_sd -modfile=tools/prometheus/go.mod -o $@ github.com/prometheus/prometheus/cmd/promtool

$(BIN)/pint: tools/pint/go.mod
	$(GO) build -tags remove_all_sd -modfile=tools/pint/go.mod -o $@ github.com/cloudflare/pint/cmd/pint

$(BIN)/amtool: tools/alertmanager/go.mod
	$(GO) build -modfile=tools/alertmanager/go.mod -o $@ github.com/prometheus/alertmanager/cmd/amtool
