//go:build !race

package serve

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/machine"
)

// TestBooks: alerts of a daemon link to its own pages only if their address is known.
func TestBooks(t *testing.T) {
	const demo = "--replay=demo"
	root := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(root, "proc/sys/kernel"), 0o755))
	must(t, os.Mkdir(filepath.Join(root, "sys"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "proc/sys/kernel/hostname"), []byte("gpu-7\n"), 0o644))
	for _, c := range []struct {
		want string
		args []string
	}{
		{"", []string{demo}}, // the name is that of the recorded host
		{"http://gpu-1:10879/runbooks", []string{demo, "--alerting.instance=gpu-1:10879"}},
		{"http://gpu-1:10879/rdma/runbooks", []string{demo, "--alerting.instance=gpu-1:10879", "--web.route-prefix=/rdma"}},
		{"https://proxy.example/gpu-1/runbooks", []string{demo, "--web.external-url=https://proxy.example/gpu-1/"}},
		{"https://wiki.example", []string{demo, "--web.external-url=https://proxy.example/", "--runbook-url=https://wiki.example"}},
		{"", []string{demo, "--alerting.instance=gpu-1:10879", "--web.telemetry-path=/"}},    // no page
		{"", []string{demo, "--alerting.instance=gpu-1:10879", "--web.config.file=web.yml"}}, // TLS, or none
		{"http://gpu-7:10879/runbooks", nil},
		{"http://gpu-7:9999/runbooks", []string{"--web.listen-address=0.0.0.0:9999"}},
		{"", []string{"--web.listen-address=127.0.0.1:10879"}},
		{"", []string{"--web.listen-address=[::1]:10879"}},
		{"", []string{"--web.listen-address=:0"}},
	} {
		a := kingpin.New("rdma_exporter", "").Terminate(nil)
		var cfg machine.Config
		cfg.Flags(a)
		var w Web
		var rules Alerting
		clause := a.Command("serve", "").Default()
		w.Flags(clause, machine.DefaultPort)
		rules.Flags(clause, "rdma_exporter", "15s")
		_, err := a.Parse(append([]string{"--path.rootfs=" + root}, c.args...))
		must(t, err)
		must(t, w.Check())
		m, err := cfg.Open(time.Time{})
		must(t, err)
		if got := (Address{&w, &rules, m}).runbookURL(); string(got) != c.want {
			t.Errorf("%q: %q, want %q", c.args, got, c.want)
		}
		must(t, m.Close())
	}
}
