package foreign_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/control"
	"rdma_exporter/internal/maintenance"
	"rdma_exporter/internal/snapshot/accel"
)

// controlled are the commands that ask a running exporter.
var controlled = []string{
	"accept", "accept --dry-run", "accept mlx5_0", "accept --all", "maintenance status", "maintenance start --for=2h",
	"maintenance end", "gpu status", "gpu release --for=30m", "gpu resume", "reload",
}

// TestControl: nothing that another process answers on the control socket is obeyed by a terminal, in an answer or in
// an error.
func TestControl(t *testing.T) {
	m := newMarks()
	filled := func(v any, name string) any {
		m.fillAll(reflect.ValueOf(v).Elem(), name, nil)
		return v
	}
	end := time.Now().Add(time.Hour)
	answers := map[string]any{
		control.AcceptPath: filled(&control.Accepted{
			Forgets: []string{"link"}, Unknown: map[string]string{"mlx5_7": "unknown"},
		}, "accepted"),
		"/maintenance": filled(&maintenance.Notice{Until: end}, "maintenance"),
		"/gpu":         filled(&accel.GPURelease{Until: end, By: "x"}, "release"),
		"/reload":      filled(new(string), "reload"),
	}
	for _, refuses := range []bool{false, true} {
		dir, err := os.MkdirTemp("", "") // the path of a socket is short
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		s, err := control.Listen(dir, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if refuses {
				http.Error(w, m.payload("error of the control socket"), http.StatusInternalServerError)
				return
			}
			for path, answer := range answers {
				if strings.HasPrefix(r.URL.Path, path) {
					_ = json.NewEncoder(w).Encode(answer)
				}
			}
		}), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range controlled {
			out, errs := m.run(t, append([]string{"--state.dir=" + dir}, strings.Fields(line)...)...)
			m.scanOutput(t, line, out)
			m.scan(t, line+", errors", errs)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"accepted.Forgets[]", "release.By", "error of the control socket"} {
		if !m.seen[name] {
			t.Errorf("%s: not shown (%v)", name, m.names)
		}
	}
}

// TestConfig: what a configuration file says of itself is shown as text.
func TestConfig(t *testing.T) {
	m := newMarks()
	invalid := "pins:\n  - match: {device: " + strings.Repeat("\"\\e[8m\\u202e\" ", 2) + "}\n"
	for _, text := range []string{m.config(), invalid} {
		file := filepath.Join(t.TempDir(), "rdma.yml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs := m.run(t, "check-config", file)
		m.scan(t, "check-config", out+errs)
	}
}
