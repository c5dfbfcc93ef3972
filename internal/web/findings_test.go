package web

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestFindings: as they are written, or why there are none; no such path where nothing is judged.
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
