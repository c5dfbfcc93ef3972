#!/usr/bin/env bash
# Follows CONTRIBUTING.md in a copy of this checkout: adds a variant, a counter, a rule, a collector and a command, counts
# the manually edited files against the limits in CONTRIBUTING.md, writes the generated files and runs the gates.
#
#   test/contributing/follow.sh                    all recipes; exits 1 if a limit is exceeded or a gate fails
#   test/contributing/follow.sh --without FILE     leaves out the edits of one file: a gate has to fail. The row in DESIGN.md, a
#                                                  command's run in test/sandbox (make e2e) and the own tests of a
#                                                  collector and a command are not checked here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
export CGO_CFLAGS="${CGO_CFLAGS:--O2 -g -Wno-deprecated-declarations}"
without=
case "${1-}" in
"") ;;
--without) without=${2:?--without needs a file} ;;
*) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

# The path is always the same: the Go build cache depends on it.
copy=${TMPDIR:-/tmp}/rdma_exporter-contributing
mkdir "$copy" 2>/dev/null || { echo "$copy exists: another run uses it, or one was killed. Remove it." >&2; exit 1; }
trap 'rm -rf "$copy"' EXIT
cd "$root"
git ls-files -coz --exclude-standard | while IFS= read -rd '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done | tar --null -T - -c | tar -x -C "$copy"
if [ -x bin/promtool ]; then mkdir -p "$copy/bin" && cp bin/promtool "$copy/bin/"; fi
cd "$copy"
git() { command git -c user.name=contributing -c user.email=contributing@localhost -c gc.auto=0 -c advice.detachedHead=false "$@"; }
git init -q && git add -A && git commit -qm "as it is"
base=$(git rev-parse HEAD)

fail() { echo "contributing: $*" >&2; exit 1; }
step() { printf '%4ds  %s\n' "$SECONDS" "$*"; }

# add copies the new files of an example.
add() {
  local f
  (cd "$here/testdata/$1" && find . -type f -printf '%P\n') | sort | while read -r f; do
    if [ "$f" = "$without" ]; then continue; fi
    [ ! -e "$f" ] || fail "$f exists"
    mkdir -p "$(dirname "$f")" && cp "$here/testdata/$1/$f" "$f"
  done
}
# after FILE LINE inserts standard input after the first line that contains LINE, before FILE LINE before it.
after() { insert "$1" "$2" 1 "$(cat)"; }
before() { insert "$1" "$2" 0 "$(cat)"; }
insert() {
  if [ "$1" = "$without" ]; then return; fi
  grep -qF -- "$2" "$1" || fail "$1 has no line with: $2"
  AT=$2 BEHIND=$3 TEXT=$4 awk '
    !done && index($0, ENVIRON["AT"]) { done = 1; if (ENVIRON["BEHIND"] == 1) { print; print ENVIRON["TEXT"] } else { print ENVIRON["TEXT"]; print } next }
    { print }' "$1" >"$1.new" && cat "$1.new" >"$1" && rm "$1.new"
}
changelog() { before CHANGELOG.md "- packaging: binaries for amd64" ; }

changed() { git add -A && git diff --cached --name-only; }
# count RECIPE [NAME] compares the manually changed files with the limit, then commits. NAME is what the recipe calls NAME in paths.
count() {
  local recipe=$1 name=${2:-NAME} limit n f section
  git add -A && git diff --cached --name-only --diff-filter=d -- '*.go' | xargs -r gofmt -w # make fmt
  limit=$(sed -n "s/^| $recipe | \([0-9]*\) |.*/\1/p" CONTRIBUTING.md)
  [ -n "$limit" ] || fail "CONTRIBUTING.md has no limit for: $recipe"
  n=$(changed | wc -l)
  echo "      $recipe: $n files, limit $limit"
  changed | sed 's/^/        /'
  section=$(awk -v head="## ${recipe^}" '/^## / { on = $0 == head } on' CONTRIBUTING.md)
  changed | while read -r f; do
    case $section in
    *"$f"* | *"$(dirname "$f")/"* | *"${f//$name/NAME}"*) ;;
    *) fail "CONTRIBUTING.md, ${recipe^}: does not name $f" ;;
    esac
  done
  [ "$n" -le "$limit" ] || fail "$recipe: $n files, and CONTRIBUTING.md promises $limit"
  git commit -qm "$recipe"
}
golden() { go test ./test/machines -run "TestGoldenOfMachines/^($1)\$" -update >/dev/null; }

step "a recorded variant: PCIe drops a burst of packets"
add variant
golden pcie-burst-ok
go run ./docs/gen
count "a recorded variant"

step "a counter: tx_fifo_underruns of bnxt_en (drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c)"
after internal/snapshot/wire/ethernet.go 'PCIeBufferOverflows // packets' <<'X'
	FIFOUnderruns
X
after collector/counters/netdev_names.go 'wire.PCIeBufferOverflows:' <<'X'
	wire.FIFOUnderruns: {Desc: NetdevDesc("rdma_port_transmit_fifo_underruns_total", "Frames cut off because the host did not deliver their data in time.", StatsSource+", tx_fifo_underruns of bnxt_en")},
X
after collector/counters/netdev_names.go '{"[rt]x_stat_discard", wire.Discards' <<'X'
		{"tx_fifo_underruns", wire.FIFOUnderruns, "", 0},
X
before fixtures/gen/driver/bnxt.go 'each("tx_pfc_ena_frames_pri%d"' <<'X'
		zeros("tx_fifo_underruns"),
X
before dashboards/README.md '| driver counters without a common meaning' <<'X'
| faults of one driver | `rdma_port_transmit_fifo_underruns_total` |
X
changelog <<'X'
- collector/ethernet: `rdma_port_transmit_fifo_underruns_total` on bnxt_en.
X
count "a counter"

step "a rule: packets that PCIe does not take in time (outbound_pci_buffer_overflow of mlx5)"
add rule
after packaging/mixin/mixin.libsonnet "importstr '../../rules/node/link.rules.yml'" <<'X'
    importstr '../../rules/node/pcie_buffer.rules.yml',
X
changelog <<'X'
- rules/node: RDMAPCIeBufferOverflow.
X
count "a rule"

step "a collector: kernel.numa_balancing (Documentation/admin-guide/sysctl/kernel.rst)"
add collector
after internal/snapshot/snapshot.go '	Neighbours *Neighbours' <<'X'
	Tuning     *Tuning
X
before internal/snapshot/snapshot.go '// Merge adds the sections' <<'X'
// Tuning is what the kernel's settings say that delays RDMA.
type Tuning struct {
	NUMABalancing *uint64 // /proc/sys/kernel/numa_balancing, a bit mask: 1 normal, 2 memory tiering
}

X
before internal/snapshot/snapshot.go '	n.Issues = append(n.Issues, o.Issues...)' <<'X'
	n.Tuning = cmp.Or(o.Tuning, n.Tuning)
X
after collector/collector.go '"rdma_exporter/collector/transceivers"' <<'X'
	"rdma_exporter/collector/tuning"
X
after collector/collector.go '		gpudirect.New(with),' <<'X'
		tuning.New(with),
X
before internal/host/source/source.go '	numSources' <<'X'
	Tuning
X
after internal/host/source/source.go '	Modules:       {' <<'X'
	Tuning:        {"tuning", LockNone, needsFiles},               // proc/sys/kernel: kept by the kernel
X
if [ DESIGN.md != "$without" ]; then sed -i 's/^| none | nothing | \(.*\) |$/| none | nothing | \1, kernel settings |/' DESIGN.md; fi
after README.md '| `modules` | ' <<'X'
| `tuning` | kernel settings that delay RDMA: automatic NUMA balancing |
X
before dashboards/README.md '| driver counters without a common meaning' <<'X'
| settings of the kernel | `rdma_kernel_numa_balancing_enabled` |
X
changelog <<'X'
- collector/tuning: `rdma_kernel_numa_balancing_enabled`.
X
count "a collector" tuning

step "a command: the kernel modules that RDMA requires"
add command
after internal/cli/program.go '		o report.Optics' <<'X'
		u report.Modules
X
after internal/cli/program.go '		{"optics", "Show' <<'X'
		{"modules", "List the kernel modules that RDMA requires, with their versions.", u.Flags, u.Run},
X
after test/sandbox/sandbox_test.go '[]string{"optics"}}' <<'X'
		{[]int{0}, []string{"modules"}},
X
after docs/commands.md '| `optics [--json]`' <<'X'
| `modules [--json]` | list the kernel modules that RDMA requires, with their versions | [permissions.md](permissions.md) |
X
changelog <<'X'
- `modules`: the kernel modules that RDMA requires.
X
count "a command" modules

step "generated files"
touched="pcie-burst-ok|pcie-buffer-overflow|numa-balancing-ok|bnxt-pfc|bnxt-thor2"
go run ./fixtures/gen -dir fixtures/sysfs
golden "$touched"
go run ./docs/gen
changed | sed 's/^/        /'
git commit -qm "generated"

step "gates"
go vet ./collector/... ./internal/... ./fixtures/... ./docs/gen ./rules
go vet -tags e2e ./test/sandbox
go run ./fixtures/gen -check
go run ./docs/gen -check
go run ./packaging/changelog -since "$base"
go test ./collector/... ./internal/reading ./internal/snapshot/... ./internal/coverage ./internal/deptest ./rules ./docs/gen ./fixtures/gen/... ./dashboards
go test -run 'Source' ./internal/host/source
go test -run 'TestRuleStyle|TestAlertsAreTested|Ignored|Needs' ./internal/alerting
go test ./internal/cli ./test/machines -run "Test(Golden|Findings|Descs)OfMachines/^($touched)\$|TestEvery|TestGoldensHaveMachines|TestRulesReadMetricsThatExist|TestDocs|TestHelp|TestModules"
[ -x bin/promtool ] || make -s bin/promtool
bin/promtool check rules rules/node/pcie_buffer.rules.yml
bin/promtool test rules rules/tests/pcie_buffer.test.yml
step "done"
