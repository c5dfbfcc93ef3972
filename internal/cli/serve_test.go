package cli

import (
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

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

// start starts the program and waits until it accepts connections.
func start(t *testing.T, args ...string) *server {
	t.Helper()
	return startOn(t, Outside{}, args...)
}

// startOn is start with another Outside.
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
	until(func() bool {
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
	s := start(t, "--replay="+machines.Fixture("dgx-h100-ib"))
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
	until(func() bool {
		status, _, _ := s.get(t, "/-/ready")
		return status == 200
	})
}

// TestFormats: what the text writers serve is what Prometheus' own parser and encoder make of it, with gzip and
// without.
func TestFormats(t *testing.T) {
	s := start(t, "--replay="+machines.Fixture("hgx-h200-roce"))
	for accept, contentType := range map[string]string{
		"": "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
		"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5":                  "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited": "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=underscores",
	} {
		t.Run(strings.Split(contentType, ";")[0], func(t *testing.T) {
			status, body, h := s.get(t, "/metrics", "Accept", accept)
			if status != 200 || h.Get("Content-Type") != contentType {
				t.Errorf("Accept %q: status %d, Content-Type %q, want %q", accept, status, h.Get("Content-Type"), contentType)
			}
			if strings.Contains(contentType, "openmetrics") {
				if !strings.HasSuffix(body, "\n# EOF\n") || strings.Count(body, "# EOF") != 1 {
					t.Error("OpenMetrics does not end with one # EOF")
				}
			} else {
				families := 0
				d := expfmt.NewDecoder(strings.NewReader(body), expfmt.ResponseFormat(h))
				samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.Now()}, decodeAll(t, d)...)
				must(t, err)
				for range samples {
					families++
				}
				if families < 700 {
					t.Errorf("Accept %q: %d samples", accept, families)
				}
			}
			_, packed, h := s.get(t, "/metrics", "Accept", accept, "Accept-Encoding", "gzip")
			if h.Get("Content-Encoding") != "gzip" {
				t.Fatalf("not compressed: %v", h)
			}
			z, err := gzip.NewReader(strings.NewReader(packed))
			must(t, err)
			plain, err := io.ReadAll(z)
			must(t, err)
			if len(plain) < len(body)/2 || len(packed) > len(plain)/3 {
				t.Errorf("%d bytes packed, %d unpacked, %d plain", len(packed), len(plain), len(body))
			}
		})
	}
}

func TestRoutePrefix(t *testing.T) {
	s := start(t, "--replay="+machines.Fixture("no-rdma"), "--web.external-url=http://example.org/rdma/",
		"--web.telemetry-path=/m", "--web.pprof", "--no-web.exporter-metrics")
	for path, want := range map[string]int{
		"/rdma/m": 200, "/rdma/": 200, "/rdma/-/healthy": 200, "/rdma/debug/pprof/": 200, "/rdma/debug/pprof/nothing": 404,
		"/metrics": 404, "/m": 404,
	} {
		if status, _, _ := s.get(t, path); status != want {
			t.Errorf("%s: status %d, want %d", path, status, want)
		}
	}
	if _, body, _ := s.get(t, "/rdma/m"); strings.Contains(body, "process_") {
		t.Error("--no-web.exporter-metrics serves process_*")
	}
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
		s := start(t, "--path.rootfs="+dir, "--collect.timeout=1h", "--collect.min-interval=0s")
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
	s := start(t, "--path.rootfs="+dir, "--collect.min-interval=0s")
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
