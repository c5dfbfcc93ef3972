package cli

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/locked"
	"rdma_exporter/test/machines"
	"rdma_exporter/test/port"
)

// server is the whole program, serving on a port of the loopback interface.
type server struct {
	url string
	log *locked.Buffer
}

// listeningOn is what the program logs of the port that the kernel has chosen.
var listeningOn = regexp.MustCompile(`msg="Listening on" address=(\S+)`)

// startProgram starts the program and waits until it accepts connections.
func startProgram(t *testing.T, args ...string) *server {
	t.Helper()
	return startOn(t, Outside{}, args...)
}

// startOn starts the program as startProgram does, with another Outside.
func startOn(t *testing.T, o Outside, args ...string) *server {
	t.Helper()
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--state.dir") }) {
		args = append(args, "--state.dir="+t.TempDir())
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &server{log: &locked.Buffer{}}
	ended := make(chan int, 1)
	go func() {
		ended <- RunOn(ctx, o, append(args, "--web.listen-address="+port.Any), io.Discard, s.log)
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("exit code %d\n%s", code, s.log)
		}
	})
	waitUntil(func() bool {
		select {
		case code := <-ended:
			ended <- code
			t.Fatalf("exit code %d\n%s", code, s.log)
		default:
		}
		at := listeningOn.FindStringSubmatch(s.log.String())
		if at != nil {
			s.url = "http://" + at[1]
		}
		return at != nil
	})
	return s
}

func (s *server) get(t *testing.T, path string, header ...string) (status int, body string, h http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
	must(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}).Do(r)
	must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(b), resp.Header
}

func TestServe(t *testing.T) {
	s := startProgram(t, "--replay="+machines.Fixture("dgx-h100-ib"))
	if first, _, _ := strings.Cut(s.log.String(), "\n"); !strings.Contains(first, "a replay of") ||
		!strings.Contains(first, "dgx-h100-01") {
		t.Errorf("the first line does not say that this is a replay: %s", first)
	}
	for _, c := range []struct {
		name, path string
		status     int
		want       string
	}{
		{"port metrics", "/metrics", 200, `rdma_port_state_id{device="mlx5_bond_1",port="1"} 4`},
		{"process metrics", "/metrics", 200, "process_resident_memory_bytes"},
		{"one collector", "/metrics?collect[]=modules", 200, `rdma_kernel_module_loaded{module="ib_core"} 1`},
		{"unknown collector", "/metrics?collect[]=modules&collect[]=nope", 400, "nope"},
		{"healthy", "/-/healthy", 200, "healthy"},
		{"page", "/", 200, "mlx5_bond_1"},
		{"no pprof", "/debug/pprof/", 404, ""},
		{"not found", "/nope", 404, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if status, body, _ := s.get(t, c.path); status != c.status || !strings.Contains(body, c.want) {
				t.Errorf("%s: status %d, want %d with %q\n%.300s", c.path, status, c.status, c.want, body)
			}
		})
	}
	if _, body, _ := s.get(t, "/metrics?collect[]=modules"); strings.Contains(body, "rdma_port_") {
		t.Error("collect[]=modules serves ports")
	}
	waitUntil(func() bool {
		status, _, _ := s.get(t, "/-/ready")
		return status == 200
	})
}

// TestScrapeDeadline: the scraper's own time-out bounds the answer while a device hangs.
func TestScrapeDeadline(t *testing.T) {
	dir := machines.Tree(t, "dgx-h100-ib")
	fifo := filepath.Join(dir, port0+"state")
	must(t, os.Remove(fifo))
	mkfifo(t, fifo)
	defer release(t, fifo)
	var took time.Duration
	for range 3 { // a busy machine may be late, once
		s := startProgram(t, "--path.rootfs="+dir, "--collect.timeout=1h", "--collect.min-interval=0s")
		start := time.Now()
		_, body, _ := s.get(t, "/metrics", "X-Prometheus-Scrape-Timeout-Seconds", "5")
		if !strings.Contains(body, `rdma_port_state_id{device="mlx5_3",port="1"} 4`) {
			t.Errorf("the other devices are not there:\n%.500s", body)
		}
		if took = time.Since(start); took <= 5*time.Second {
			return
		}
	}
	t.Errorf("took %s", took)
}

// TestNoRDMAIsWatched: a host without a device says so, stays up, and serves the device that comes.
func TestNoRDMAIsWatched(t *testing.T) {
	dir := machines.Tree(t, "dgx-h100-ib")
	class := filepath.Join(dir, "sys/class/infiniband")
	must(t, os.Rename(class, class+".later"))
	s := startProgram(t, "--path.rootfs="+dir, "--collect.min-interval=0s")
	if status, body, _ := s.get(t, "/metrics"); status != 200 || strings.Contains(body, "rdma_port_") ||
		!strings.Contains(body, `rdma_scrape_collector_success{collector="infiniband"} 1`) {
		t.Errorf("status %d\n%.500s", status, body)
	}
	if !strings.Contains(s.log.String(), "no RDMA devices on this host") {
		t.Errorf("does not say so: %s", s.log)
	}
	must(t, os.Rename(class+".later", class))
	if _, body, _ := s.get(t, "/metrics"); !strings.Contains(body, `rdma_port_state_id{device="mlx5_3",port="1"} 4`) {
		t.Error("the device that came is not served")
	}
}

// TestManyScrapes: each of a thousand at once gets all metrics, or 503.
func TestManyScrapes(t *testing.T) {
	s := startProgram(t, "--replay="+machines.Fixture("dgx-h100-ib"), "--no-alerting", "--web.max-requests=100",
		"--web.max-connections=0", "--web.max-connections-per-address=0")
	_, whole, _ := s.get(t, "/metrics?collect[]=infiniband")
	lines := strings.Count(whole, "\nrdma_port_")
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	clients := int(min(1000, limit.Cur/3)) // both ends of a connection are files of this process
	var wg sync.WaitGroup
	var mu sync.Mutex
	count := map[int]int{}
	begin := make(chan struct{})
	for range clients {
		wg.Go(func() {
			<-begin
			start := time.Now()
			resp, err := once().Get(s.url + "/metrics?collect[]=infiniband")
			var body []byte
			if err == nil {
				body, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil && time.Since(start) > time.Second: // not taken within a second, with others waiting: ended
				count[0]++
			case err != nil:
				t.Error(err)
			default:
				count[resp.StatusCode]++
				if n := strings.Count(string(body), "\nrdma_port_"); resp.StatusCode == http.StatusOK && n != lines {
					t.Errorf("%d of %d series", n, lines)
				}
			}
		})
	}
	close(begin)
	wg.Wait()
	if count[http.StatusOK] < 100 || count[http.StatusOK]+count[http.StatusServiceUnavailable]+count[0] != clients {
		t.Errorf("by status: %v", count)
	}
	if status, _, _ := s.get(t, "/metrics"); status != http.StatusOK {
		t.Errorf("afterwards: %d", status)
	}
}

// ask makes a request of which the path goes out as it is written.
func (s *server) ask(
	t *testing.T, client *http.Client, method, path string, body io.Reader, header ...string,
) (status int, text string, h http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url, body)
	must(t, err)
	r.URL.Opaque = path
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(r)
	must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(b), resp.Header
}

// once returns a client that keeps no connection and follows nothing.
func once() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// servesNoFiles: no path leads to a file of the host or of the program, nor to another site.
func servesNoFiles(t *testing.T, s *server, prefix string) {
	t.Helper()
	for _, path := range []string{
		"/static/../../../../etc/passwd", "/static/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/static/..%2fpage.go",
		"/static/%00", "/static/page.html",
		"/runbooks/..%2f..%2frules%2frules.go", "/runbooks/%2fetc%2fpasswd", "//etc/passwd", "/metrics/../../etc/passwd",
		"/metrics/", "/-/", "/debug/pprof/cmdline",
		"/static/..\\..\\etc\\passwd", "/%2e%2e/%2e%2e/etc/passwd",
	} {
		status, body, h := s.ask(t, once(), "GET", prefix+path, nil)
		if status == http.StatusOK || strings.Contains(body, "root:") || strings.Contains(body, "package ") {
			t.Errorf("%s: %d, %.100q", path, status, body)
		}
		if to := h.Get("Location"); strings.HasPrefix(to, "//") || strings.Contains(to, ":") {
			t.Errorf("%s leads to %s", path, to)
		}
	}
}
