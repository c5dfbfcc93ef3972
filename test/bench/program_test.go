//go:build bench

package bench

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/port"
	"rdma_exporter/test/program"
)

// server is a running program, and one connection to it.
type server struct {
	name    string
	cmd     *exec.Cmd
	address string
	client  *http.Client
}

// command is how a program is started, without its address, the last argument.
type command struct {
	name  string
	argv  []string
	env   []string
	small string   // path of an answer without metrics
	slow  []string // flags with which it answers completely even if each system call takes a hundred times as long
}

// exporter is this program on a tree. Results are not reused, so that each scrape reads.
func exporter(name string, x *tree, flags ...string) command {
	return command{name: name, argv: append([]string{
		file("bin/rdma_exporter"), "serve", "--log.level=error", "--path.rootfs=" + x.dir,
		"--state.dir=" + filepath.Join(x.dir, "state", strings.NewReplacer(" ", "_", ":", "").Replace(name)),
		"--collect.min-interval=0s",
		"--no-web.exporter-metrics", "--web.pprof",
	}, flags...), small: "/-/healthy", slow: []string{"--collect.timeout=10m", "--collect.no-budget"}}
}

// nodeExporter is node_exporter. Its messages about interfaces unknown to the kernel are discarded.
func nodeExporter(name string, x *tree, flags ...string) command {
	return command{name: name, argv: append([]string{
		file("bin/node_exporter"), "--log.level=error", "--path.sysfs=" + filepath.Join(x.dir, "sys"),
		"--collector.disable-defaults", "--web.disable-exporter-metrics",
	}, flags...), small: "/"}
}

// floorOf reads files once per scrape.
func floorOf(t *testing.T, name string, files []string) command {
	t.Helper()
	list := filepath.Join(t.TempDir(), "files")
	must(t, os.WriteFile(list, []byte(strings.Join(files, "\n")+"\n"), 0o644))
	return command{name: name, argv: []string{os.Args[0]}, env: []string{floorVariable + "=" + list}}
}

// cmd adds a port chosen by the kernel to a command.
func (c command) cmd(t *testing.T) *exec.Cmd {
	t.Helper()
	argv := append([]string{program.Built(t, c.argv[0], "make bench-build builds it")}, c.argv[1:]...)
	if c.env != nil {
		argv = append(argv, port.Any)
	} else {
		argv = append(argv, "--web.listen-address="+port.Any)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), c.env...)
	return cmd
}

// client requests plain text: compression costs all programs the same, and hides the cost of collection.
func client() *http.Client {
	return &http.Client{Timeout: 10 * time.Minute, Transport: &http.Transport{DisableCompression: true}}
}

// start starts a program and waits until it listens.
func (c command) start(t *testing.T) *server {
	t.Helper()
	p := &server{name: c.name, client: client()}
	p.cmd = c.cmd(t)
	must(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		_ = p.cmd.Wait()
	})
	p.address = port.Of(t, p.cmd.Process.Pid)
	return p
}

// get returns a body and the duration of its request.
func (p *server) get(t *testing.T, path string) ([]byte, time.Duration) {
	t.Helper()
	start := time.Now()
	r, err := p.client.Get("http://" + p.address + path)
	must(t, err)
	b, err := io.ReadAll(r.Body)
	took := time.Since(start)
	_ = r.Body.Close()
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s, %v", p.name, path, r.Status, err)
	}
	return b, took
}

// series counts the samples of an exposition.
func series(body []byte) (n int) {
	for line := range bytes.Lines(body) {
		if line[0] != '#' {
			n++
		}
	}
	return n
}

// allocations returns the number of objects that a program has allocated, from net/http/pprof.
func (p *server) allocations(t *testing.T) (n float64) {
	t.Helper()
	b, _ := p.get(t, "/debug/pprof/allocs?debug=1")
	_, rest, found := bytes.Cut(b, []byte("\n# Mallocs = "))
	if _, err := fmt.Sscan(string(rest[:min(len(rest), 20)]), &n); !found || err != nil {
		t.Fatalf("%s does not tell its allocations: %v", p.name, err)
	}
	return n
}
