package cli

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/test/locked"
	"rdma_exporter/test/machines"
)

// withJob returns the tree of a machine with GPUs, NVLink switches, and a process that holds an RDMA device with a
// limit.
func withJob(t *testing.T) string {
	t.Helper()
	dir := machines.Tree(t, "hgx-b200-nvlink-functions-ok")
	process := filepath.Join(dir, "proc/4242")
	must(t, os.MkdirAll(filepath.Join(process, "fd"), 0o755))
	must(t, os.Symlink("/dev/infiniband/uverbs0", filepath.Join(process, "fd/0")))
	must(t, os.WriteFile(filepath.Join(process, "limits"),
		[]byte("Max locked memory         8388608              unlimited            bytes\n"), 0o644))
	return dir
}

// permissionDenied is the metric of the exporter itself that is compared; its costs and times differ.
const permissionDenied = "rdma_scrape_permission_denied{source="

// minutes returns the metrics of a host whose clock is a minute later in each collection.
func minutes(t *testing.T, paths rooted.Paths) (after func(minutes int) map[string]string) {
	t.Helper()
	l, err := live.Open(paths)
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	now := time.Now()
	l.Now = func() time.Time { return now }
	l.Budget = nil // its clock is the real one: a busy machine would defer reads for all the minutes of this test
	detector, err := machines.Builtin(t).Detector()
	must(t, err)
	s := rounds.New(context.WithoutCancel(t.Context()), rounds.Options{
		Host: &l.Host, Collectors: collector.All(collector.Options{}), Timeout: time.Minute,
		Logger: slog.New(slog.DiscardHandler),
		Now:    l.Now, Coverage: func() *coverage.Detector { return detector },
	})
	return func(n int) map[string]string {
		var p *rounds.Picture
		for range n {
			now = now.Add(time.Minute)
			p, err = s.Collect(t.Context(), nil)
			must(t, err)
		}
		out := map[string]string{}
		for line := range strings.Lines(string(exposition.AppendText(nil, p.Families))) {
			at := strings.LastIndexByte(line, ' ')
			name := line[:at]
			if strings.HasPrefix(name, "#") {
				continue
			}
			if ofItself := strings.HasPrefix(name, "rdma_exporter_") ||
				strings.HasPrefix(name, "rdma_scrape_"); !ofItself || strings.HasPrefix(name, permissionDenied) {
				out[name] = strings.TrimSpace(line[at:])
			}
		}
		return out
	}
}

// runHelperAt runs the helper command until stop.
func runHelperAt(t *testing.T, dir, socket string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var log locked.Buffer
	ended := make(chan int)
	go func() {
		ended <- Run(ctx, []string{"helper", "--path.rootfs=" + dir, "--helper.socket=" + socket}, &log, &log)
	}()
	waitUntil(func() bool {
		select {
		case code := <-ended:
			t.Fatalf("exit code %d: %s", code, log.String())
		default:
		}
		return strings.Contains(log.String(), "starting rdma_exporter helper")
	})
	info, err := os.Stat(socket)
	must(t, err)
	if got := info.Mode(); got != fs.ModeSocket|0o600 {
		t.Errorf("mode %s", got)
	}
	return func() {
		cancel()
		if code := <-ended; code != command.OK {
			t.Errorf("exit code %d: %s", code, log.String())
		}
	}
}

// TestHelperCommand: the metrics by the helper are those without one. Without the helper, what it reads is not
// permitted and its alerts are not evaluated; when it is back, they are.
func TestHelperCommand(t *testing.T) {
	dir, socket := withJob(t), filepath.Join(t.TempDir(), "helper.sock")
	direct := minutes(t, rooted.Paths{RootFS: dir})(1)
	if direct["rdma_gdr_locked_memory_limit_bytes"] == "" {
		t.Fatal("the limit of the process is not in the metrics")
	}
	after := minutes(t, rooted.Paths{RootFS: dir, Helper: socket})
	for _, denied := range [][]string{{"processes", "vpd"}, {"processes"}} { // vital product data is read once
		without := after(12) // processes are valid for ten minutes
		for _, source := range denied {
			if got := without[permissionDenied+`"`+source+`"}`]; got != "1" {
				t.Errorf("without the helper: permission denied for %s: %q", source, got)
			}
		}
		if got := without[`rdma_detection_unavailable{alert="RDMAHostMisconfigured",fault="locked_memory",reason="permission"}`]; got != "1" {
			t.Errorf("without the helper RDMAHostMisconfigured/locked_memory: %q", got)
		}
		stop := runHelperAt(t, dir, socket)
		by := after(7) // a denial is current for five minutes
		for name, value := range direct {
			if by[name] != value && !strings.HasPrefix(name, permissionDenied) {
				t.Errorf("%s %s, by the helper %q", name, value, by[name])
			}
		}
		for name, value := range by {
			if direct[name] == "" && value != "0" {
				t.Errorf("%s is %s by the helper only", name, value)
			}
		}
		stop()
		must(t, os.RemoveAll(socket))
	}
}

// TestHelperSocket: what cannot be listened on is one error, and a file that is no socket stays.
func TestHelperSocket(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for socket, want := range map[string]string{
		"": "no socket: set --helper.socket", file: "address already in use", dir + "/none/x": "no such file",
	} {
		var out bytes.Buffer
		if code := Run(t.Context(), []string{"helper", "--helper.socket=" + socket}, &out,
			&out); code != command.UsageError || !strings.Contains(out.String(), want) {
			t.Errorf("%q: exit code %d: %s", socket, code, out.String())
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: dir + "/s", Net: "unix"})
	must(t, err)
	left.SetUnlinkOnClose(false)
	must(t, left.Close())
	runHelperAt(t, emptyTree(t), dir+"/s")() // replaces the socket of one that was killed
}

// emptyTree returns a tree without devices.
func emptyTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"sys", "proc"} {
		must(t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	return dir
}
