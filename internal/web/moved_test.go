package web

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"
)

// TestMoved: a view that is elsewhere answers with an address relative to that of the request, which leads there also
// below a prefix.
func TestMoved(t *testing.T) {
	write := func(r *http.Request, w io.Writer) error {
		switch name := r.PathValue("name"); name {
		case "Old":
			return fmt.Errorf("render: %w", MovedError("New#part"))
		case "New":
			_, err := io.WriteString(w, name)
			return err
		}
		return fs.ErrNotExist
	}
	for _, prefix := range []string{"", "/ib"} {
		h, err := New(Options{MetricsPath: "/metrics", RoutePrefix: prefix + "/", MaxRequests: 1, Page: &Page{
			Static: fstest.MapFS{},
			Views: map[string]View{
				"books/{name}": {ContentType: HTML, Write: write},
				"kept/{name}":  {ContentType: HTML, Write: write, Of: func() any { return 0 }},
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			method, path string
			status       int
			to           string
		}{
			{http.MethodGet, "/books/Old", http.StatusMovedPermanently, "/books/New"},
			{http.MethodHead, "/books/Old", http.StatusMovedPermanently, "/books/New"},
			{http.MethodGet, "/kept/Old", http.StatusMovedPermanently, "/kept/New"},
			{http.MethodGet, "/books/New", http.StatusOK, ""},
			{http.MethodGet, "/books/Other", http.StatusNotFound, ""},
			{http.MethodPost, "/books/Old", http.StatusMethodNotAllowed, ""},
		} {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(c.method, prefix+c.path, nil)
			h.ServeHTTP(w, r)
			if w.Code != c.status {
				t.Errorf("%s %s: %d, want %d", c.method, r.URL, w.Code, c.status)
			}
			to := w.Header().Get("Location")
			if c.to == "" {
				if to != "" {
					t.Errorf("%s %s leads to %s", c.method, r.URL, to)
				}
				continue
			}
			u, err := r.URL.Parse(to)
			if err != nil || to != "New#part" || u.Path != prefix+c.to || u.Fragment != "part" {
				t.Errorf("%s %s leads to %q: %v, %v", c.method, r.URL, to, u, err)
			}
			if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Content-Security-Policy") == "" {
				t.Errorf("%s %s: %v", c.method, r.URL, w.Header())
			}
		}
	}
}
