package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/rounds"
)

// silent is an engine without rules.
type silent struct{}

func (silent) Alerts() []alerting.Alert { return nil }
func (silent) Groups() []alerting.Group { return []alerting.Group{{Name: "g", File: "f"}} }

// FuzzRequest: any query and any headers are answered, with a status that says whose fault it is.
func FuzzRequest(f *testing.F) {
	h, err := New(Options{
		Rounds:      rounds.New(context.Background(), rounds.Options{Host: &host.Host{Now: time.Now}, Timeout: time.Second}),
		MetricsPath: "/metrics", RoutePrefix: "/", MaxRequests: 1,
		Alerting: silent{}, ReleaseGPUs: func(context.Context, time.Duration, string) error { return nil }, Lifecycle: true,
		Reload: func() error { return nil }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		f.Fatal(err)
	}
	h.Ready()
	f.Add("/metrics", "collect[]=infiniband", "gzip;q=0.5, *;q=0", "application/openmetrics-text;version=1.0.0", "10")
	f.Add("/api/v1/rules", "type=alert&rule_name[]=x&file[]=", "", "", "-1")
	f.Add("/-/gpu/release", "for=30m", "identity", "*/*", "NaN")
	f.Add("/../etc/passwd", "%zz;&=", "gzip;;", "\x00", "1e400")
	f.Fuzz(func(t *testing.T, path, query, encoding, accept, timeout string) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r := &http.Request{
				Method: method, URL: &url.URL{Path: path, RawQuery: query}, Header: http.Header{}, Host: "gpu-1:10879",
			}
			r.Header.Set("Accept-Encoding", encoding)
			r.Header.Set("Accept", accept)
			r.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", timeout)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code >= http.StatusInternalServerError || w.Code == 0 {
				t.Errorf("%s %q?%q: %d %s", method, path, query, w.Code, w.Body)
			}
			if kind := w.Header().Get("Content-Type"); w.Code >= 400 && strings.Contains(kind, "html") {
				t.Errorf("%s %q?%q: an error as %s", method, path, query, kind)
			}
		}
	})
}
