package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/internal/host/umad"
	"rdma_exporter/internal/state"
)

// TestServeFabric: what fabric mode serves on a host that has no fabric, with a prefix; what may be accepted is said to
// the one that runs.
func TestServeFabric(t *testing.T) {
	dir := t.TempDir()
	s := start(t, "fabric", "--path.rootfs="+t.TempDir(), "--state.dir="+dir, "--web.route-prefix=/ib", "--web.pprof")
	s.await(t, "/ib/", "Unseen")
	for _, c := range []struct {
		name, path string
		status     int
		want       string
	}{
		{"page", "/ib/", 200, "RDMAFabricUnseen"},
		{"link to pprof", "/ib/", 200, `href="debug/pprof/"`},
		{"links", "/ib/links", 200, "0 links"},
		{"unknown switch", "/ib/switches/0002:c903:0000:0001", 404, "switch 0002:c903:0000:0001: none of that GUID is known"},
		{"path escape", "/ib/switches/..%2f..%2fetc", 404, "none of that GUID"},
		{"fabric API", "/ib/api/v1/fabric", 200, `"failed":"`},
		{"no node API", "/ib/api/v1/node", 404, "not found"},
		{"style sheet", "/ib/static/page.css", 200, "prefers-color-scheme"},
		{"runbook", "/ib/runbooks/RDMAFabricUnseen", 200, "<h2>Meaning</h2>"},
		{"former name of an alert", "/ib/runbooks/RDMAReloadFailed", 200, "<h1>RDMAExporterDegraded</h1>"},
		{"metrics of a failed sweep", "/ib/metrics", 200, "rdma_fabric_sweep_failed 1"},
		{"metrics of the interval", "/ib/metrics", 200, "rdma_fabric_sweep_interval_seconds 60"},
		{"ready", "/ib/-/ready", 200, "ready"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body, h := s.get(t, c.path)
			if status != c.status || !strings.Contains(body, c.want) {
				t.Errorf("%s: %d, want %d, %q in %.200s", c.path, status, c.status, c.want, body)
			}
			if strings.Contains(h.Get("Content-Type"), "html") &&
				!strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none';") && c.path != "/ib/metrics" {
				t.Errorf("%s: %v", c.path, h)
			}
		})
	}
	servesNoFiles(t, s, "/ib")
	st, err := os.Stat(filepath.Join(dir, "fabric", "control.sock"))
	must(t, err)
	if st.Mode() != os.ModeSocket|0o660 { // for whoever may write the directory
		t.Errorf("%s: %s", st.Name(), st.Mode())
	}
	for _, path := range []string{"/ib/", "/ib/links", "/ib/switches/x", "/ib/api/v1/fabric"} {
		if status, _, _ := s.ask(t, once(), http.MethodPost, path, nil); status != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, status)
		}
	}
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"not seen", []string{"leaf1/1"}, "rdma_exporter accept: the fabric is not reachable at present: missing links and nodes cannot be determined\n"},
		{"nothing named", nil, "rdma_exporter accept: the fabric is not reachable at present: missing links and nodes cannot be determined\n"},
		{"all and a link", []string{"--all", "leaf1/1"}, "rdma_exporter accept: NAME and --all are mutually exclusive\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if code, _, errs := run(t, append([]string{"accept", "--state.dir=" + dir}, c.args...)...); code != 2 ||
				errs != c.want {
				t.Errorf("%q: %d %s", c.args, code, errs)
			}
		})
	}
	if code, _, errs := run(t, "accept", "--state.dir="+t.TempDir(), "--all"); code != 2 ||
		!strings.Contains(errs, "no running rdma_exporter in --state.dir=") {
		t.Errorf("without an exporter: %d %s", code, errs)
	}
}

// madRoot is a host with two InfiniBand ports, each of a fabric of its own, in some states.
func madRoot(t *testing.T, states ...string) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, content string) {
		name = filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, []byte(content+"\n"), 0o644))
	}
	put("proc/version", "")
	put("sys/class/infiniband_mad/abi_version", "5")
	for i, state := range states {
		umad, device := fmt.Sprintf("sys/class/infiniband_mad/umad%d/", i), fmt.Sprintf("mlx5_%d", i)
		put(umad+"ibdev", device)
		put(umad+"port", "1")
		put("sys/class/infiniband/"+device+"/node_guid", fmt.Sprintf("0:%d", i))
		put("sys/class/infiniband/"+device+"/ports/1/link_layer", "InfiniBand")
		put("sys/class/infiniband/"+device+"/ports/1/state", state)
	}
	return dir
}

// TestFabricPortKept: a restarted exporter does not sweep another subnet than before.
func TestFabricPortKept(t *testing.T) {
	dir := t.TempDir()
	store, err := state.Open(filepath.Join(dir, "fabric"))
	must(t, err)
	must(t, store.Write(map[string]any{"from": umad.MADPort{Device: "mlx5_7", Port: 1, GUID: "0:7"}}))
	must(t, store.Close())
	s := start(t, "fabric", "--path.rootfs="+madRoot(t, "4: ACTIVE"), "--state.dir="+dir)
	const want = "mlx5_7/1 of node 0:7, the port of earlier sweeps, does not exist: there are [mlx5_0/1]; another port may be in another fabric: select the port"
	if body := s.await(t, "/", "RDMAFabricUnseen"); !strings.Contains(body, want) {
		t.Errorf("the page has %.2000s", body)
	}
	if l := s.log.String(); !strings.Contains(l, want) {
		t.Errorf("log: %s", l)
	}
}
