//go:build e2e

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/cli"
	"rdma_exporter/test/port"
)

// programVariable marks the process that is rdma_exporter; forbidden one that makes a call outside the filter.
const (
	programVariable = "RDMA_EXPORTER_TEST_PROGRAM"
	forbidden       = "forbidden"
)

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) == "" {
		cmd := exec.Command("./packages.sh")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "packages.sh:", err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	if err := Enter(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(100)
	}
	if os.Getenv(programVariable) == forbidden {
		_, _, e := unix.RawSyscall(unix.SYS_PTRACE, 0, 0, 0)
		fmt.Println("ptrace:", e)
		os.Exit(101)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const (
	units    = "../../packaging/systemd/"
	node     = units + "rdma_exporter.service"
	fabric   = units + "rdma_exporter-fabric.service"
	helper   = units + "rdma_exporter-helper.service"
	patience = 20 * time.Second
)

// process is a program under the filter of a unit.
type process struct {
	*exec.Cmd
	out *buffer
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var environ sync.Map // of units

func start(t *testing.T, unit string, args ...string) process {
	t.Helper()
	known, ok := environ.Load(unit)
	if !ok {
		entry, err := Environ(unit)
		if err != nil {
			t.Fatal(err)
		}
		known, _ = environ.LoadOrStore(unit, entry)
	}
	p := process{exec.Command("/proc/self/exe", args...), &buffer{}}
	p.Env = append(os.Environ(), programVariable+"=1", known.(string), "TMPDIR="+t.TempDir())
	if len(args) == 0 {
		p.Env = append(p.Env, programVariable+"="+forbidden)
	}
	p.Stdout, p.Stderr = p.out, p.out
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// end waits for the program, and fails unless it has exited with one of these codes.
func (p process) end(t *testing.T, codes ...int) {
	t.Helper()
	err := p.Wait()
	if status := p.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		t.Errorf("%s: killed by %s, a call outside the filter\n%s", p.Args[1:], status.Signal(), p.out)
	} else if !slices.Contains(codes, p.ProcessState.ExitCode()) {
		t.Errorf("%s: %v\n%s", p.Args[1:], err, p.out)
	}
}

// stop ends a daemon as systemd does.
func (p process) stop(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	p.end(t, 0)
}

// says waits for a line of the log.
func (p process) says(t *testing.T, what *regexp.Regexp) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if what.MatchString(p.out.String()) {
			return
		}
		if err := syscall.Kill(p.Process.Pid, 0); err != nil {
			break
		}
	}
	t.Fatalf("%s does not log %s:\n%s", p.Args[1:], what, p.out)
}

// TestForbidden: the filter of each unit kills a program that traces another.
func TestForbidden(t *testing.T) {
	for _, unit := range []string{node, fabric, helper} {
		p := start(t, unit)
		var failed *exec.ExitError
		if err := p.Wait(); !errors.As(err, &failed) || failed.Sys().(syscall.WaitStatus).Signal() != syscall.SIGSYS {
			t.Errorf("%s: %v, want SIGSYS\n%s", unit, err, p.out)
		}
	}
}

// TestFilters: what the capabilities would make dangerous is outside the filters.
func TestFilters(t *testing.T) {
	for _, unit := range []string{node, fabric, helper} {
		calls, err := Calls(unit)
		if err != nil || !slices.Contains(calls, "openat2") {
			t.Fatalf("%s: %v %v", unit, calls, err)
		}
		for _, call := range []string{
			"ptrace", "open_by_handle_at", "pidfd_getfd", "bpf", "perf_event_open", "mount", "chroot",
			"init_module", "kexec_load",
		} {
			if slices.Contains(calls, call) {
				t.Errorf("%s permits %s", unit, call)
			}
		}
		if unit == helper && slices.Contains(calls, "process_vm_readv") {
			t.Errorf("%s permits process_vm_readv", unit)
		}
	}
}

// TestServe: the exporter with its helper, and each request that it answers, on this machine and on a replay with
// alerts that fire.
func TestServe(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
	}{
		{"live", nil},
		{"demo", []string{"--replay=demo", "--replay.send-alerts"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			socket := filepath.Join(dir, "helper.sock")
			h := start(t, helper, "helper", "--helper.socket="+socket)
			h.says(t, regexp.MustCompile("starting rdma_exporter helper"))
			config := filepath.Join(dir, "rdma_exporter.yml")
			if err := os.WriteFile(config, []byte("ignore: []\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			received := make(chan string, 100)
			alertmanager := receive(t, received)
			s := start(t, node, append(c.args, "--helper.socket="+socket, "--state.dir="+filepath.Join(dir, "state"),
				"--config.file="+config,
				"--web.listen-address="+port.Any, "--web.pprof", "--alerting.interval=1s",
				"--alerting.alertmanager-url="+alertmanager)...)
			url := "http://" + port.Of(t, s.Process.Pid)
			for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
				if get(t, url+"/-/ready") == http.StatusOK {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("not ready\n%s", s.out)
				}
			}
			for _, path := range []string{
				"/metrics", "/", "/-/healthy", "/api/v1/alerts", "/api/v1/rules", "/api/v1/findings", "/api/v1/topology",
				"/debug/pprof/goroutine", "/debug/pprof/profile?seconds=1",
			} {
				if code := get(t, url+path); code != http.StatusOK {
					t.Errorf("%s: %d", path, code)
				}
			}
			if err := s.Process.Signal(syscall.SIGHUP); err != nil {
				t.Error(err)
			}
			s.says(t, regexp.MustCompile("reload"))
			for _, args := range [][]string{
				{"maintenance", "start", "--for=1h"},
				{"maintenance", "status"},
				{"maintenance", "end"},
				{"gpu", "release", "--for=30m"},
				{"gpu", "status"},
				{"gpu", "resume"},
				{"reload"},
				{"accept"},
				{"check", "--daemon=" + url},
				{"healthy", "--url=" + url},
			} {
				start(t, node, append([]string{"--state.dir=" + filepath.Join(dir, "state")}, args...)...).end(t, 0, 1, 2, 3)
			}
			if c.args != nil {
				select {
				case <-received:
				case <-time.After(patience):
					t.Errorf("no alert is sent\n%s", s.out)
				}
			}
			s.stop(t)
			h.stop(t)
		})
	}
}

// receive returns a listener for alerts: it answers every request, and reports the path.
func receive(t *testing.T, paths chan<- string) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case paths <- r.URL.Path:
		default:
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func get(t *testing.T, url string) int {
	t.Helper()
	client := http.Client{Timeout: patience}
	resp, err := client.Get(url)
	if err != nil {
		t.Log(err)
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// TestCommands: every command of the program runs under the filter of the exporter.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "rdma_exporter.yml")
	if err := os.WriteFile(config, []byte("ignore: []\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	prometheus := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(prometheus.Close)
	ran := map[string]bool{"serve": true, "helper": true} // in TestServe
	for _, c := range []struct {
		codes []int
		args  []string
	}{
		{[]int{0, 1, 2, 3}, []string{"check", "--no-daemon", "--replay=demo"}},
		{[]int{0, 1, 2, 3}, []string{"check", "--no-daemon"}},
		{[]int{1}, []string{"healthy", "--url=http://127.0.0.1:1"}},
		{[]int{0}, []string{"topo", "--replay=demo"}},
		{[]int{0}, []string{"topo"}},
		{[]int{0}, []string{"job", "--no-daemon", "--replay=demo"}},
		{[]int{0}, []string{"job", "--no-daemon", "--nccl-dumps=" + dir}},
		{[]int{0}, []string{"optics", "--replay=demo"}},
		{[]int{0}, []string{"optics"}},
		{[]int{0}, []string{"expect", "list", "--replay=demo"}},
		{[]int{0}, []string{"inventory", "list", "--replay=demo"}},
		{[]int{0, 2}, []string{"accept", "--state.dir=" + dir}},
		{[]int{2}, []string{"maintenance", "start", "--for=1h", "--state.dir=" + dir}},
		{[]int{0, 2}, []string{"maintenance", "status", "--state.dir=" + dir}},
		{[]int{2}, []string{"maintenance", "end", "--state.dir=" + dir}},
		{[]int{2}, []string{"gpu", "release", "--for=30m", "--state.dir=" + dir}},
		{[]int{2}, []string{"gpu", "resume", "--state.dir=" + dir}},
		{[]int{2}, []string{"gpu", "status", "--state.dir=" + dir}},
		{[]int{2}, []string{"reload", "--state.dir=" + dir}},
		{[]int{0}, []string{"capture", "-o", filepath.Join(dir, "node.txtar")}},
		{[]int{0}, []string{"compare", filepath.Join(dir, "node.txtar")}},
		{[]int{0}, []string{"check-config", config}},
		{[]int{0}, []string{"rules", "--set=node", "-o", filepath.Join(dir, "rules")}},
		{[]int{2}, []string{"backtest", "--prometheus=" + prometheus.URL}},
		{[]int{0}, []string{"runbook", "RDMAPortDown"}},
		{[]int{0}, []string{"dashboards", "-o", filepath.Join(dir, "dashboards")}},
		{[]int{0}, []string{"fabric", "--fabric.device=none", "--web.listen-address=" + port.Any}}, // on a fabric: test/fabric
	} {
		name := c.args[0]
		if !strings.HasPrefix(c.args[1%len(c.args)], "-") && len(c.args) > 1 {
			ran[name+" "+c.args[1]] = true
		}
		ran[name] = true
		p := start(t, node, c.args...)
		late := time.AfterFunc(patience, func() { _ = p.Process.Signal(syscall.SIGTERM) })
		p.end(t, c.codes...)
		late.Stop()
	}
	for _, command := range cli.CommandLine().FlattenedCommands() {
		if !ran[command.FullCommand] {
			t.Errorf("%s did not run", command.FullCommand)
		}
	}
}

// TestExposure: systemd's figure for each unit is not above that in packaging/README.md.
func TestExposure(t *testing.T) {
	readme, err := os.ReadFile("../../packaging/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range []string{node, fabric, helper} {
		recorded := regexp.MustCompile("(?m)^\\| `" + filepath.Base(unit) + "` \\| ([0-9]\\.[0-9]) \\|").FindSubmatch(readme)
		if recorded == nil {
			t.Errorf("packaging/README.md has no exposure of %s", filepath.Base(unit))
			continue
		}
		tenths := strings.Replace(string(recorded[1]), ".", "", 1)
		if tenths > "30" {
			t.Errorf("%s: an exposure of %s, above 3.0", unit, recorded[1])
		}
		out, err := exec.Command("systemd-analyze", "--no-pager", "security", "--offline=true", "--threshold="+tenths, unit).
			CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}
