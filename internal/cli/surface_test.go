package cli

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"rdma_exporter/internal/command"
	"rdma_exporter/test/machines"
)

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

// once is a client that keeps no connection and follows nothing.
func once() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// TestSurface: what a client may ask for, and what it gets of all else.
func TestSurface(t *testing.T) {
	s := start(t, "--replay="+machines.Fixture("no-rdma"))
	for _, path := range []string{
		"/", "/metrics", "/-/healthy", "/api/v1/alerts", "/api/v1/rules", "/api/v1/findings", "/api/v1/node",
		"/api/v1/topology", "/static/page.css", "/runbooks/RDMAPortDown", "/runbooks/",
	} {
		for method, want := range map[string]int{
			"GET": 200, "HEAD": 200, "POST": 405, "PUT": 405, "PATCH": 405, "DELETE": 405, "OPTIONS": 405,
			"TRACE": 405, "PROPFIND": 405,
		} {
			if status, body, _ := s.ask(t, once(), method, path, nil); status != want || method == "HEAD" && body != "" {
				t.Errorf("%s %s: %d, want %d", method, path, status, want)
			}
		}
	}
	servesNoFiles(t, s, "")
	for _, query := range []string{
		"/metrics?collect[]=%3Cscript%3Ealert(1)%3C/script%3E", "/api/v1/rules?type=%3Cscript%3E",
		"/metrics?collect[]=%0d%0aX-Evil:%201",
	} {
		status, _, h := s.ask(t, once(), "GET", query, nil)
		if kind := h.Get("Content-Type"); status != http.StatusBadRequest || strings.Contains(kind, "html") ||
			h.Get("X-Evil") != "" {
			t.Errorf("%s: %d, %v", query, status, h)
		}
	}
}

// TestLifecycle: a client that may scrape controls nothing, whatever its password; with --web.enable-lifecycle it does,
// but not the page of another site.
func TestLifecycle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "web.yml")
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	must(t, err)
	put(t, file, "basic_auth_users: {prometheus: "+string(hash)+"}\n")
	login := []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("prometheus:secret"))}
	// A recording without files has nothing to reload and no GPU, and reports it.
	allowed := map[string]int{"/-/reload": 400, "/-/gpu/release?for=0s": 503}
	commands := map[string]string{
		"/-/reload": "rdma_exporter reload", "/-/gpu/release?for=0s": "rdma_exporter gpu release",
	}
	for name, c := range map[string]struct {
		flags, header []string
		enabled       bool
	}{
		"default":                 {},
		"with passwords":          {flags: []string{"--web.config.file=" + file}, header: login},
		"enabled":                 {flags: []string{"--web.enable-lifecycle"}, enabled: true},
		"enabled, with passwords": {flags: []string{"--web.enable-lifecycle", "--web.config.file=" + file}, header: login, enabled: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, append(c.flags, "--replay="+machines.Fixture("no-rdma"))...)
			if status, _, _ := s.ask(t, once(), "GET", "/metrics", nil, c.header...); status != http.StatusOK {
				t.Fatalf("scrape: %d", status)
			}
			if status, _, _ := s.ask(t, once(), "POST", "/-/reload", nil); len(c.header) > 0 &&
				status != http.StatusUnauthorized {
				t.Errorf("without a password: %d", status)
			}
			for path, want := range allowed {
				for _, method := range []string{"GET", "HEAD", "PUT"} {
					if status, _, _ := s.ask(t, once(), method, path, nil, c.header...); status != http.StatusMethodNotAllowed {
						t.Errorf("%s %s: %d", method, path, status)
					}
				}
				status, body, _ := s.ask(t, once(), "POST", path, nil, c.header...)
				text := "lifecycle API is not enabled (--web.enable-lifecycle): run " + commands[path] + " on the host\n"
				if c.enabled && status != want || !c.enabled && (status != http.StatusForbidden || body != text) {
					t.Errorf("POST %s: %d %s", path, status, body)
				}
				for _, foreign := range [][]string{
					{"Origin", "http://elsewhere.example"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
				} {
					if status, _, _ := s.ask(t, once(), "POST", path, nil,
						append(foreign, c.header...)...); status != http.StatusForbidden {
						t.Errorf("POST %s from a page of another site (%v): %d", path, foreign, status)
					}
				}
			}
		})
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

// endless counts what is taken of a body. The client may go on taking after it has an answer.
type endless struct {
	taken atomic.Int64
	left  int
}

func (e *endless) Read(b []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(b), e.left)
	e.taken.Add(int64(n))
	e.left -= n
	return n, nil
}

// TestOversized: what is too large is refused, or not read.
func TestOversized(t *testing.T) {
	s := start(t, "--replay="+machines.Fixture("no-rdma"), "--web.enable-lifecycle")
	long := strings.Repeat("x", 128<<10)
	for name, c := range map[string]struct {
		path   string
		header []string
		want   int
	}{
		"path":     {"/" + long, nil, http.StatusRequestHeaderFieldsTooLarge},
		"query":    {"/metrics?collect[]=" + long, nil, http.StatusRequestHeaderFieldsTooLarge},
		"header":   {"/metrics", []string{"X-Long", long}, http.StatusRequestHeaderFieldsTooLarge},
		"timeout":  {"/metrics", []string{"X-Prometheus-Scrape-Timeout-Seconds", "1e309"}, http.StatusOK},
		"negative": {"/metrics", []string{"X-Prometheus-Scrape-Timeout-Seconds", "-1"}, http.StatusOK},
		"no time":  {"/metrics", []string{"X-Prometheus-Scrape-Timeout-Seconds", "NaN"}, http.StatusOK},
		"accept":   {"/metrics", []string{"Accept", strings.Repeat("text/plain;q=0.1,", 400)}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			if status, _, _ := s.ask(t, once(), "GET", c.path, nil, c.header...); status != c.want {
				t.Errorf("%d, want %d", status, c.want)
			}
		})
	}
	// The server takes as much of a body as its buffers hold, and closes the connection; the client may see that as an
	// error.
	body := &endless{left: 1 << 30}
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/-/reload", body)
	must(t, err)
	r.ContentLength = 1 << 30
	if resp, err := once().Do(r); err == nil {
		must(t, resp.Body.Close())
	}
	if n := body.taken.Load(); n > 64<<20 {
		t.Errorf("%d bytes of a body are taken", n)
	}
	if status, _, _ := s.get(t, "/-/healthy"); status != http.StatusOK {
		t.Errorf("afterwards: %d", status)
	}
}

// TestManyScrapes: each of a thousand at once gets all metrics, or 503.
func TestManyScrapes(t *testing.T) {
	s := start(t, "--replay="+machines.Fixture("dgx-h100-ib"), "--no-alerting", "--web.max-requests=100",
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

// TestNothingWithoutPassword: with TLS and users, no path answers without them, and no old protocol is spoken.
func TestNothingWithoutPassword(t *testing.T) {
	dir := t.TempDir()
	pool := certificate(t, dir)
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	must(t, err)
	config := filepath.Join(dir, "web.yml")
	must(t, os.WriteFile(config,
		fmt.Appendf(nil, "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\nbasic_auth_users:\n  prom: %s\n", hash), 0o600))
	for name, args := range map[string][]string{
		"serve":  {"--replay=" + machines.Fixture("no-rdma")},
		"fabric": {"fabric", "--path.rootfs=" + madRoot(t), "--state.dir=" + t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, append(args, "--web.config.file="+config, "--web.pprof")...)
			plain := s.url
			s.url = strings.Replace(s.url, "http:", "https:", 1)
			client := once()
			client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool}
			for _, path := range []string{
				"/", "/metrics", "/-/healthy", "/-/ready", "/-/reload", "/-/gpu/release?for=1h", "/api/v1/alerts", "/api/v1/node",
				"/debug/pprof/", "/static/page.css", "/nope",
			} {
				for _, method := range []string{"GET", "POST"} {
					for _, header := range [][]string{
						nil,
						{"Authorization", "Basic cHJvbTo="},
						{"Authorization", "Basic cHJvbTp3cm9uZw=="},
						{"Authorization", "Basic !"},
						{"Authorization", "Bearer x"},
					} {
						status, body, _ := s.ask(t, client, method, path, nil, header...)
						if status != http.StatusUnauthorized || strings.Contains(body, "rdma_") {
							t.Errorf("%s %s %v: %d", method, path, header, status)
						}
					}
				}
			}
			// prom:secret
			if status, _, _ := s.ask(t, client, "GET", "/metrics", nil, "Authorization",
				"Basic cHJvbTpzZWNyZXQ="); status != http.StatusOK {
				t.Errorf("with the password: %d", status)
			}
			if code, out, errs := run(t, "healthy", "--url="+s.url); code != command.OK ||
				!strings.Contains(out, "requires a password") {
				t.Errorf("healthy: exit %d, %s%s", code, out, errs)
			}
			s.url = plain
			if status, body, _ := s.ask(t, once(), "GET", "/metrics", nil); status != http.StatusBadRequest ||
				strings.Contains(body, "rdma_") {
				t.Errorf("without TLS: %d", status)
			}
			for version, ok := range map[uint16]bool{
				tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true,
			} {
				t.Run(tls.VersionName(version), func(t *testing.T) {
					c, err := tls.Dial("tcp", strings.TrimPrefix(plain, "http://"),
						&tls.Config{RootCAs: pool, MinVersion: version, MaxVersion: version})
					if (err == nil) != ok {
						t.Error(err)
					}
					if err == nil {
						if weak := slices.ContainsFunc(tls.InsecureCipherSuites(), func(s *tls.CipherSuite) bool {
							return s.ID == c.ConnectionState().CipherSuite
						}); weak {
							t.Error("a weak cipher")
						}
						must(t, c.Close())
					}
				})
			}
		})
	}
}
