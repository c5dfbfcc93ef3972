//go:build !race

package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/host/hosttest"
	"rdma_exporter/test/machines"
)

// TestSurface: what a client may ask for, and what it gets of all else.
func TestSurface(t *testing.T) {
	s := startProgram(t, "--replay="+machines.Fixture("no-rdma"))
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

// secretHash is bcrypt of the password "secret", of the lowest cost.
const secretHash = "$2a$04$MA.6qpFwMWIiwR5qAq2yGeixQITfhIwbJo1AboJWbbSV4.rJOOWQO"

// TestLifecycle: a client that may scrape controls nothing, whatever its password; with --web.enable-lifecycle it does,
// but not the page of another site.
func TestLifecycle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "web.yml")
	put(t, file, "basic_auth_users: {prometheus: "+secretHash+"}\n")
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
			s := startProgram(t, append(c.flags, "--replay="+machines.Fixture("no-rdma"))...)
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
	s := startProgram(t, "--replay="+machines.Fixture("no-rdma"), "--web.enable-lifecycle")
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

// TestNothingWithoutPassword: with TLS and users, no path answers without them, and no old protocol is spoken.
func TestNothingWithoutPassword(t *testing.T) {
	dir := t.TempDir()
	pool := certificate(t, dir)
	config := filepath.Join(dir, "web.yml")
	must(t, os.WriteFile(config,
		fmt.Appendf(nil, "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\nbasic_auth_users:\n  prom: %s\n", secretHash), 0o600))
	for name, args := range map[string][]string{
		"serve":  {"--replay=" + machines.Fixture("no-rdma")},
		"fabric": {"fabric", "--path.rootfs=" + hosttest.InfiniBandPorts(t), "--state.dir=" + t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			s := startProgram(t, append(args, "--web.config.file="+config, "--web.pprof")...)
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
			if code, out, errs := runProgram(t, "healthy", "--url="+s.url); code != command.OK ||
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

// certificate writes a self-signed one for 127.0.0.1.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	must(t, os.WriteFile(filepath.Join(dir, "cert.pem"), cert, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "key.pem"),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}
