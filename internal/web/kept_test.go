package web

import (
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
)

// TestKept: a response is rendered once for many requests, and rendered again after a failure.
func TestKept(t *testing.T) {
	var of, writes atomic.Int64
	var fails atomic.Bool
	h, err := New(Options{MetricsPath: "/metrics", RoutePrefix: "/", MaxRequests: 50, Page: &Page{
		Static: fstest.MapFS{},
		Views: map[string]View{
			"links": {ContentType: HTML, Of: func() any { return of.Load() }, Write: func(_ *http.Request, w io.Writer) error {
				writes.Add(1)
				fmt.Fprintf(w, "sweep %d", of.Load())
				if fails.Load() {
					return fs.ErrNotExist
				}
				return nil
			}},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	get := func(encoding string, status int, want string) {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/links", nil)
		r.Header.Set("Accept-Encoding", encoding)
		h.ServeHTTP(w, r)
		body := io.Reader(w.Body)
		if w.Header().Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(w.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		b, err := io.ReadAll(body)
		if packed := w.Header().Get("Content-Encoding") == "gzip"; err != nil || w.Code != status || string(b) != want ||
			packed != (encoding == "gzip" && status == http.StatusOK) {
			t.Errorf("%d %q %v %v, want %d %q", w.Code, b, w.Header(), err, status, want)
		}
	}
	for sweep, want := range []string{"sweep 0", "sweep 1"} {
		of.Store(int64(sweep))
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() { get([]string{"gzip", ""}[i%2], http.StatusOK, want) })
		}
		all.Wait()
		if n := writes.Load(); n != int64(sweep)+1 {
			t.Errorf("written %d times for %d sweeps", n, sweep+1)
		}
	}
	of.Store(2)
	fails.Store(true)
	get("gzip", http.StatusNotFound, "file does not exist\n")
	fails.Store(false)
	get("gzip", http.StatusOK, "sweep 2")
}

// TestKeptQueries: an answer to a query is its own, and leaves what is kept as it is; other views ignore queries.
func TestKeptQueries(t *testing.T) {
	var writes int
	view := func(queries bool) View {
		return View{
			ContentType: HTML, Queries: queries, Of: func() any { return 1 }, Write: func(r *http.Request, w io.Writer) error {
				writes++
				_, err := io.WriteString(w, "q="+r.URL.Query().Get("q"))
				return err
			},
		}
	}
	h, err := New(Options{
		MetricsPath: "/metrics", RoutePrefix: "/", MaxRequests: 50,
		Page: &Page{Static: fstest.MapFS{}, Views: map[string]View{"links": view(true), "all": view(false)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, want string }{
		{"/links", "q="}, {"/links?q=a", "q=a"}, {"/links?q=b", "q=b"}, {"/links", "q="}, {"/all", "q="}, {"/all?q=a", "q="},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, nil))
		if w.Body.String() != c.want {
			t.Errorf("%s: %q, want %q", c.path, w.Body, c.want)
		}
	}
	if writes != 4 {
		t.Errorf("written %d times", writes)
	}
}
