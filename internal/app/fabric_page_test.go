package app

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/mad"
)

// TestServeFabric: what fabric mode serves on a host that has no fabric, with a prefix; what may be accepted is said to the one that runs.
func TestServeFabric(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, "fabric", "--path.rootfs="+t.TempDir(), "--state.dir="+dir, "--web.route-prefix=/ib", "--web.pprof")
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
		{"metrics of a failed sweep", "/ib/metrics", 200, "rdma_fabric_sweep_failed 1"},
		{"metrics of the interval", "/ib/metrics", 200, "rdma_fabric_sweep_interval_seconds 60"},
		{"ready", "/ib/-/ready", 200, "ready"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body, h := s.get(t, c.path)
			if status != c.status || !strings.Contains(body, c.want) {
				t.Errorf("%s: %d, want %d, %q in %.200s", c.path, status, c.status, c.want, body)
			}
			if strings.Contains(h.Get("Content-Type"), "html") && !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none';") && c.path != "/ib/metrics" {
				t.Errorf("%s: %v", c.path, h)
			}
		})
	}
	servesNoFiles(t, s, "/ib")
	st, err := os.Stat(filepath.Join(dir, fabricState, controlSocket))
	must(t, err)
	if st.Mode() != os.ModeSocket|controlMode { // for whoever may write the directory
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
			if code, _, errs := command(t, append([]string{"accept", "--state.dir=" + dir}, c.args...)...); code != 2 || errs != c.want {
				t.Errorf("%q: %d %s", c.args, code, errs)
			}
		})
	}
	if code, _, errs := command(t, "accept", "--state.dir="+t.TempDir(), "--all"); code != 2 || !strings.Contains(errs, "no running rdma_exporter in --state.dir=") {
		t.Errorf("without an exporter: %d %s", code, errs)
	}
}

// TestFabricShown: what is shown is made once of each sweep, and kept no longer than it is the last.
func TestFabricShown(t *testing.T) {
	m := &fabric.Monitor{
		Open:   func() (mad.Transport, error) { return nil, errors.New("no device") },
		Memory: fabric.NewMemory(fabric.Data{}), Logger: slog.New(slog.DiscardHandler),
	}
	c := fabricConfig{interval: time.Minute}
	x, pages, err := c.page(m)
	must(t, err)
	m.Run(t.Context(), func(sweep func()) {
		for range 2 {
			shown, links, whole := x.fabric(), pages.Views["links"].Of(), pages.Views["api/v1/fabric"].Of()
			if x.fabric() != shown || pages.Views["links"].Of() != links || pages.Views["api/v1/fabric"].Of() != whole {
				t.Error("is made again without a sweep")
			}
			x.forget()
			if x.kept == nil {
				t.Error("the last sweep is forgotten")
			}
			sweep()
			if x.fabric() == shown || pages.Views["links"].Of() == links || pages.Views["api/v1/fabric"].Of() == whole {
				t.Error("shows the sweep before")
			}
			sweep()
			x.forget()
			if x.kept != nil || x.of.Picture != nil {
				t.Error("keeps a sweep that is not the last")
			}
		}
	})
}
