//go:build e2e

// Package connections attacks the HTTP server with many connections, within the limits of the systemd unit.
package connections

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/port"
	"rdma_exporter/test/process"
	"rdma_exporter/test/program"
)

const (
	recording    = "../../fixtures/sysfs/hgx-h200-roce.txtar"
	memoryMax    = 128 << 20 // MemoryMax of the unit
	goMemLimit   = "GOMEMLIMIT=102MiB"
	attackTime   = 10 * time.Second
	startTime    = 3 * time.Second        // in which the clients connect
	againTime    = 3 * time.Second        // after a client was disconnected
	between      = 200 * time.Millisecond // scrapes
	longest      = time.Second            // of a scrape
	mostOpen     = 512
	clientsFiles = 12000
)

// attacks are clients by what they send after connecting, and then never read.
var attacks = []struct {
	name      string
	clients   int
	addresses int  // of the clients: 127.0.FROM.1, …
	from      byte // 0: the first is that of the scrapes
	sends     string
}{
	{"unfinished headers", 2000, 40, 1, "GET /metrics HTTP/1.1\r\nHost: x\r\nX-A: " + strings.Repeat("a", 60000)},
	{"slow headers", 2000, 40, 1, "GET /metrics HTTP/1.1\r\nHost: x\r\nX-A: "},
	{"slow headers of the address of the scrape", 2000, 1, 0, "GET /metrics HTTP/1.1\r\nHost: x\r\nX-A: "},
	{"idle", 10000, 200, 0, "GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"silent", 10000, 200, 0, ""},
	{"pipelined scrapes", 1000, 20, 1, strings.Repeat("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 500)},
	{"pipelined pages", 1000, 20, 1, strings.Repeat("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 500)},
	{"pipelined API requests", 1000, 20, 1, strings.Repeat("GET /api/v1/rules HTTP/1.1\r\nHost: x\r\n\r\n", 500)},
	{"bodies", 2000, 40, 1, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"},
}

// TestAttacks: the exporter stays below the memory limit of the unit, and answers every scrape within a second.
func TestAttacks(t *testing.T) {
	needFiles(t)
	group := newCgroup(t, memoryMax)
	e := start(t, group.command(program.Exporter(t),
		"serve", "--replay="+recording, "--state.dir="+t.TempDir(), "--web.listen-address="+port.Any, "--log.level=error"))
	before, err := process.Resident(e.pid)
	must(t, err)
	t.Logf("private memory before: %.1f MiB", mib(before.Anon))
	for i, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			clients := exec.Command("nice", os.Args[0])
			clients.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", variable, i, e.address))
			clients.Stderr = os.Stderr
			clients.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			must(t, clients.Start())
			e.scrapeAllTheWhile(t, group)
			must(t, clients.Wait())
		})
		if n := group.killed(t); n != 0 {
			t.Fatalf("killed by the memory limit during %s", a.name)
		}
	}
	body, _, err := e.scrape(once())
	must(t, err)
	if m := regexp.MustCompile(`rdma_exporter_connections_evicted_total\{limit="total"\} [1-9]`); !m.Match(body) {
		t.Errorf("no connection gave way: %s", regexp.MustCompile(`(?m)^rdma_exporter_conn.*`).FindAll(body, -1))
	}
}

// variable has the attack of this process and the address of the exporter. Clients in the process of the scrapes would
// delay those.
const variable = "RDMA_EXPORTER_TEST_ATTACK"

func TestMain(m *testing.M) {
	var i int
	var address string
	if _, err := fmt.Sscan(os.Getenv(variable), &i, &address); err != nil {
		os.Exit(m.Run())
	}
	ctx, stop := context.WithTimeout(context.Background(), attackTime)
	defer stop()
	a := attacks[i]
	var clients sync.WaitGroup
	for n := range a.clients {
		clients.Go(func() {
			wait(ctx, startTime*time.Duration(n)/time.Duration(a.clients))
			attack(ctx, address, net.IPv4(127, 0, a.from, byte(1+n%a.addresses)), a.sends)
		})
	}
	clients.Wait()
}

// attack connects again when it was disconnected.
func attack(ctx context.Context, address string, from net.IP, sends string) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}
	for ctx.Err() == nil {
		if c, err := d.DialContext(ctx, "tcp", address); err == nil {
			send(ctx, c, sends)
		}
		wait(ctx, againTime)
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// send sends the text, then a byte each second until the connection or ctx ends.
func send(ctx context.Context, c net.Conn, text string) {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	for b := []byte(text); ; b = []byte("a") {
		if _, err := c.Write(b); err != nil {
			return
		}
		if len(text) == 0 || strings.HasSuffix(text, "\r\n\r\n") { // complete requests
			<-ctx.Done()
		}
		wait(ctx, time.Second)
	}
}

type exporter struct {
	address string
	pid     int
}

func start(t *testing.T, cmd *exec.Cmd) exporter {
	t.Helper()
	cmd.Env = append(os.Environ(), goMemLimit)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	e := exporter{port.Of(t, cmd.Process.Pid), cmd.Process.Pid}
	for range 300 {
		if _, _, err := e.scrape(once()); err == nil {
			return e
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("does not answer")
	return e
}

// scrapeAllTheWhile scrapes for attackTime, in turn by a new connection and by one that is kept open.
func (e exporter) scrapeAllTheWhile(t *testing.T, group cgroup) {
	t.Helper()
	kept := &http.Client{Timeout: longest, Transport: &http.Transport{}}
	defer kept.CloseIdleConnections()
	var private, sockets int64
	var slowest time.Duration
	scrapes := 0
	for began := time.Now(); time.Since(began) < attackTime; scrapes++ {
		client := once()
		if scrapes%2 == 1 {
			client = kept
		}
		_, took, err := e.scrape(client)
		if err != nil {
			t.Errorf("scrape %d, after %s: %v", scrapes, took, err)
		}
		memory, err := process.Resident(e.pid)
		must(t, err)
		slowest, private, sockets = max(slowest, took), max(private, memory.Anon), max(sockets, group.socketMemory(t))
		time.Sleep(between)
	}
	t.Logf("%d scrapes, the slowest in %s; private memory %.1f MiB, sockets %.1f MiB", scrapes,
		slowest.Round(time.Millisecond), mib(private), mib(sockets))
	if private+sockets > memoryMax {
		t.Errorf("%.1f MiB of memory, limit %.1f MiB", mib(private+sockets), mib(memoryMax))
	}
	if files, err := process.Files(e.pid); err != nil || files > mostOpen+1000 {
		t.Errorf("%d descriptors, %v", files, err)
	}
}

func (e exporter) scrape(client *http.Client) ([]byte, time.Duration, error) {
	began := time.Now()
	resp, err := client.Get("http://" + e.address + "/metrics")
	if err != nil {
		return nil, time.Since(began), err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || !bytes.Contains(body, []byte("\nrdma_port_state_id{"))) {
		err = fmt.Errorf("%s: %.200s", resp.Status, body)
	}
	return body, time.Since(began), err
}

// once returns a client that connects for each request.
func once() *http.Client {
	return &http.Client{Timeout: longest, Transport: &http.Transport{DisableKeepAlives: true}}
}

// TestTooFewDescriptors: with a limit of 24 open files the exporter names the limit and what it needs, and ends.
func TestTooFewDescriptors(t *testing.T) {
	for _, command := range []string{"serve", "fabric"} {
		cmd := exec.Command("sh", "-c", `ulimit -n 24; exec "$@"`, "sh",
			program.Exporter(t), command, "--state.dir="+t.TempDir(), "--web.listen-address="+port.Any)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != 2 ||
			!strings.Contains(string(out), "limit of open files (RLIMIT_NOFILE) is 24, need 768") {
			t.Errorf("%s: exit code %d: %s", command, code, out)
		}
	}
}

// needFiles requires enough descriptors for the clients.
func needFiles(t *testing.T) {
	t.Helper()
	var l syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l))
	if l.Max < clientsFiles {
		t.Fatalf("limit of open files is %d, need %d: ulimit -Hn %d", l.Max, clientsFiles, clientsFiles)
	}
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
