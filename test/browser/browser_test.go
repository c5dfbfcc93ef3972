//go:build e2e

package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestFaults: the tests of pages rely on what a tab notes: requests, and each kind of fault.
func TestFaults(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "style-src 'none'")
		fmt.Fprintf(w, "<!doctype html><title>x</title><script>%s</script>", map[string]string{
			"/console":   "console.warn('careful')",
			"/exception": "throw new Error('thrown')",
			"/policy":    "document.documentElement.setAttribute('style', 'color: red')",
			"/request":   "fetch('/other?1')",
		}[r.URL.Path])
	}))
	t.Cleanup(s.Close)
	for path, want := range map[string]string{
		"/console": "careful", "/exception": "thrown", "/policy": "Content Security Policy", "/request": "", "/": "",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			b := Start(t)
			b.Open(s.URL + path)
			if got := b.Eval("document.title + (1 + 1)"); got != "x2" {
				t.Errorf("evaluated to %q", got)
			}
			if _, err := b.eval("nothing.there"); err == nil || !strings.Contains(err.Error(), "nothing is not defined") {
				t.Errorf("error %v", err)
			}
			if got := strings.Join(b.Faults(), "\n"); !strings.Contains(got, want) || want == "" && got != "" {
				t.Errorf("faults %q, want %q", got, want)
			}
			if asked := b.Requests(); !slices.Contains(asked, s.URL+path) ||
				slices.Contains(asked, s.URL+"/other?1") != (path == "/request") {
				t.Errorf("requests %q", asked)
			}
		})
	}
}
