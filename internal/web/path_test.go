package web

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"
	"testing/fstest"

	"rdma_exporter/internal/rounds"
)

// empty has no metrics.
type empty struct{}

func (empty) Collect(context.Context, []string) (*rounds.Picture, error) {
	return &rounds.Picture{}, nil
}

// TestMetricsPath: metrics are served wherever nothing else is; at / in the place of the page.
func TestMetricsPath(t *testing.T) {
	view := View{ContentType: HTML, Write: func(_ *http.Request, w io.Writer) error {
		_, err := io.WriteString(w, "page")
		return err
	}}
	for _, prefix := range []string{"/", "/ib"} {
		for metrics, taken := range map[string]bool{
			"/metrics": false, "/": false, "/m/": false, "/switches": false, "/links/all": false, "/debug/vars": false,
			"/links": true, "/links/": true, "//x/../links": true, "/switches/any": true, "/api/v1/fabric": true,
			"/api/v1/rules": true, "/static/page.css": true,
			"/runbooks/x": true, "/runbooks": true, "/-/healthy": true, "/-/ready": true, "/-/reload": true,
			"/debug/pprof": true, "/debug/pprof/heap": true,
		} {
			t.Run(metrics+" below "+prefix, func(t *testing.T) {
				h, err := New(Options{
					Rounds: empty{}, MetricsPath: metrics,
					RoutePrefix: prefix, MaxRequests: 1, Pprof: true, Alerting: none{}, Reload: func() error { return nil },
					Page: &Page{Views: map[string]View{
						"{$}": view, "links": view, "switches/{guid}": view, "api/v1/fabric": view, "runbooks/{$}": view,
						"runbooks/{name}": view,
					}, Static: fstest.MapFS{}},
				})
				if (err != nil) != taken {
					t.Error(err)
				}
				if err != nil {
					return
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path.Join(prefix, metrics), nil))
				if w.Code != http.StatusOK || w.Body.String() != "" {
					t.Errorf("%d %q", w.Code, w.Body)
				}
			})
		}
	}
}
