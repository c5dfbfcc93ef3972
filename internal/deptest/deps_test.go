//go:build !race

// Package deptest enforces the direction of imports: each ban with its reason.
package deptest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layers, from the program to the basic packages. A package imports only packages to its right.
var layers = [][]string{
	{"cmd/rdma_exporter"},
	{"internal/cli"},
	{"internal/cli/author", "internal/cli/operate", "internal/cli/report"}, // commands
	{"internal/serve/"}, // daemons
	{"internal/serve"},
	{"internal/job"},
	{"internal/verdict"},
	{"internal/machine"},
	{"internal/page/"}, // of a node, of a fabric
	{"internal/page", "internal/rulefiles", "internal/control"},
	{"internal/command"},
	{"internal/web", "internal/check", "internal/topo", "internal/tune", "internal/backtest"},
	{"internal/alerting", "internal/rounds"},
	{"internal/alerting/"},
	{"collector", "internal/fabric"},
	{"collector/"}, // a domain each
	{"collector/infiniband/pma"},
	{"collector/shared"},
	{"collector/counters"},
	{"collector/metric", "collector/sysfs"},
	{"internal/expect", "internal/traits", "internal/coverage", "internal/reading", "internal/account", "internal/evidence", "internal/capture/replay", "internal/capture/anonymise"},
	{"internal/evidence/"}, // a domain each
	{"internal/evidence/fault"},
	{"internal/capture", "internal/exposition", "internal/workers", "internal/role", "internal/site", "internal/state"},
	{"internal/setup", "internal/capture/answer"},
	{"internal/setup/"}, // settings in files and texts
	{"internal/host/live"},
	{"internal/host/"}, // a source each
	{"internal/host/rooted"},
	{"internal/gdr/library"},
	{"internal/host", "internal/gdr/transport"},
	{"internal/gdr"},
	{"internal/host/source", "internal/host/own"},
	{"internal/host/access", "internal/host/dcb"},
	{"internal/nccl"},
	{"internal/kernellog", "internal/linkmode", "internal/lldp", "internal/mad", "internal/maintenance", "internal/pci", "internal/peers", "internal/snapshot", "rules", "rules/identity", "fixtures", "dashboards", "docs/runbooks"},
	{"internal/snapshot/accel", "internal/snapshot/hostdata", "internal/snapshot/qp"},
	{"internal/snapshot/wire"},
	{"internal/mad/perf", "internal/transceiver", "internal/transceiver/dump"},
	{"internal/lazy", "internal/terminal", "internal/words"},
}

// bans are imports that only some packages may have.
var bans = []struct {
	what   string   // import path or prefix
	only   []string // packages, or with a final / all below
	reason string
}{
	{"github.com/prometheus/prometheus/", []string{"internal/alerting", "internal/alerting/"}, "rule evaluation is confined to the engine"},
	{"github.com/prometheus/client_golang/", []string{"internal/web"}, "collectors emit plain samples without a registry"},
	{"github.com/prometheus/exporter-toolkit/", []string{"internal/serve"}, "only the program listens on sockets"},
	{"github.com/alecthomas/kingpin/", []string{"internal/machine", "internal/serve", "internal/serve/", "internal/cli", "internal/cli/"}, "flags belong to commands"},
	{"go.yaml.in/yaml/", []string{"internal/site", "internal/tune", "internal/alerting/switches"}, "the site configuration, the rule tuning and the counters of switches are the only YAML files of the program"},
	{"github.com/clipperhouse/", []string{"internal/terminal"}, "one package lays out text"},
	{"golang.org/x/term", []string{"internal/command"}, "commands ask for a terminal"},
	{"github.com/vishvananda/", []string{"internal/host/"}, "internal/host is the only access to the kernel"},
	{"github.com/cilium/", []string{"internal/host/"}, "internal/host is the only access to the kernel"},
	{"github.com/safchain/", []string{"internal/host/"}, "internal/host is the only access to the kernel"},
	{"google.golang.org/grpc", []string{"internal/host/"}, "internal/host is the only access to the kubelet"},
	{"k8s.io/", []string{"internal/host/"}, "internal/host is the only access to the kubelet"},
	{"golang.org/x/sys/unix", []string{"internal/host/", "internal/capture", "internal/capture/replay", "internal/machine", "internal/serve", "internal/cli/report"}, "internal/host is the only access to the kernel; the others use errnos, names of capabilities and signals"},
	{"syscall", []string{"internal/host", "internal/host/", "internal/capture", "internal/capture/replay", "internal/state", "internal/alerting/store", "cmd/rdma_exporter"}, "internal/host is the only access to the kernel; captures and replays use errnos, state locks its directory, alerting checks the owner of a directory, the command handles signals"},
	{"os", []string{"internal/host/", "internal/capture", "internal/capture/replay", "internal/state", "internal/command", "internal/control", "internal/serve", "internal/serve/", "internal/cli/", "internal/alerting/store", "cmd/rdma_exporter"}, "internal/host opens files of the machine; the others open their own"},
	{"os/exec", nil, "the program runs no other program"},
	{"unsafe", []string{"internal/host/"}, "for ioctls that libraries lack or implement differently"},
}

// imports lists the imports of all packages of the program, except tests and generators.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`,
		"rdma_exporter/...").Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	m := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		name := strings.TrimPrefix(f[0], "rdma_exporter/")
		if strings.HasSuffix(name, "/gen") || strings.HasPrefix(name, "fixtures/") || strings.HasPrefix(name, "test/") ||
			strings.HasPrefix(name, "packaging/") || forTests(name) {
			continue
		}
		m[name] = f[1:]
	}
	return m
}

// forTests reports whether a package beside those it serves is for tests or developers only.
func forTests(name string) bool {
	return slices.Contains(
		[]string{
			"collector/collectortest", "internal/deptest", "internal/host/hosttest", "internal/kernellog/sources",
			"internal/page/pagetest",
		},
		name,
	)
}

// layer returns the layer of a package: that of its name or else of its directory with a final /; -1 if it is not part
// of the program.
func layer(name string) int {
	if forTests(name) {
		return -1
	}
	in := func(name string) int {
		return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, name) })
	}
	if n := in(name); n >= 0 {
		return n
	}
	return in(name[:strings.LastIndexByte(name, '/')+1])
}

func TestImportsPointOneWay(t *testing.T) {
	for name, list := range imports(t) {
		if layer(name) < 0 {
			t.Errorf("%s has no place in the layers: give it one in deps_test.go and in DESIGN.md", name)
			continue
		}
		for _, i := range list {
			if other, ours := strings.CutPrefix(i, "rdma_exporter/"); ours && layer(other) <= layer(name) {
				t.Errorf("%s imports %s, which is not below it", name, other)
			}
		}
	}
}

// among reports whether a package is the named one, or below a name with a final /.
func among(name, of string) bool {
	return name == of || strings.HasSuffix(of, "/") && strings.HasPrefix(name, of)
}

func TestBannedImports(t *testing.T) {
	for name, list := range imports(t) {
		for _, i := range list {
			for _, ban := range bans {
				if among(i, ban.what) && !slices.ContainsFunc(ban.only, func(p string) bool { return among(name, p) }) {
					t.Errorf("%s imports %s: %s", name, i, ban.reason)
				}
			}
		}
	}
}

// TestBuildWithoutEBPF: the build tag noebpf leaves the library of eBPF out of the program.
func TestBuildWithoutEBPF(t *testing.T) {
	for tag, want := range map[string]bool{"": true, "noebpf": false} {
		out, err := exec.Command("go", "list", "-tags="+tag, "-deps", "rdma_exporter/cmd/rdma_exporter").Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(out), "github.com/cilium/ebpf"); got != want {
			t.Errorf("tag %q: eBPF in the program: %v", tag, got)
		}
	}
}
