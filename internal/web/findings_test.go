package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/rounds"
)

// TestFindings: as they are written, or why there are none; no such path where nothing is evaluated.
func TestFindings(t *testing.T) {
	ask := func(findings func(io.Writer) error) *httptest.ResponseRecorder {
		h, err := New(Options{MetricsPath: "/metrics", RoutePrefix: "/rdma", MaxRequests: 1, Findings: findings})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/rdma/api/v1/findings", nil))
		return w
	}
	w := ask(func(w io.Writer) error { _, err := io.WriteString(w, "{}\n"); return err })
	if w.Code != http.StatusOK || w.Body.String() != "{}\n" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
	}
	w = ask(func(w io.Writer) error { _, _ = io.WriteString(w, "{"); return errors.New("no round yet") })
	if w.Code != http.StatusServiceUnavailable || w.Body.String() != "no round yet\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	if w = ask(nil); w.Code != http.StatusNotFound {
		t.Errorf("%d", w.Code)
	}
}

// TestBusy: while so many requests as are allowed wait for the engine, others are refused, whatever they ask for, and
// scrapes are not.
func TestBusy(t *testing.T) {
	in, out := make(chan struct{}), make(chan struct{})
	h, err := New(Options{
		Rounds: unread{}, MetricsPath: "/metrics", RoutePrefix: "/", MaxRequests: 2, Alerting: none{},
		Findings: func(io.Writer) error {
			in <- struct{}{}
			<-out
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	var waiting sync.WaitGroup
	for range 2 {
		waiting.Go(func() { ask("/api/v1/findings") })
		<-in
	}
	for _, path := range []string{"/api/v1/findings", "/api/v1/alerts", "/api/v1/rules"} {
		if code := ask(path); code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", path, code)
		}
	}
	if code := ask("/metrics"); code != http.StatusInternalServerError { // none of its places is taken
		t.Errorf("/metrics: %d", code)
	}
	close(out)
	waiting.Wait()
	if code := ask("/api/v1/alerts"); code != http.StatusOK {
		t.Errorf("later: %d", code)
	}
}

// none is an engine without rules.
type none struct{}

func (none) Alerts() []alerting.Alert { return nil }
func (none) Groups() []alerting.Group { return nil }

// unread is a machine that cannot be read.
type unread struct{}

func (unread) Collect(context.Context, []string) (*rounds.Picture, error) {
	return nil, errors.New("not read")
}
