package cli

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"rdma_exporter/docs/runbooks"
	"rdma_exporter/test/machines"
)

// TestServePage: the page, its JSON and its files, with a prefix, for those who may ask.
func TestServePage(t *testing.T) {
	s := startProgram(t, "--replay="+machines.Fixture("downshift-one"), "--web.route-prefix=/rdma")
	s.await(t, "/rdma/", "RDMALinkDegraded")
	for _, c := range []struct{ path, contentType, want string }{
		{"/rdma/", "text/html; charset=utf-8", "mlx5_5"},
		{"/rdma/static/page.css", "text/css; charset=utf-8", "prefers-color-scheme"},
		{"/rdma/static/page.js", "text/javascript; charset=utf-8", "refresh"},
		{"/rdma/static/icon.svg", "image/svg+xml", "<svg"},
		{"/rdma/runbooks/RDMALinkDegraded", "text/html; charset=utf-8", "<h2>Meaning</h2>"},
		{"/rdma/runbooks/", "text/html; charset=utf-8", `<a href="RDMALinkDegraded">`},
		{"/rdma/runbooks/RDMAExporterDegraded", "text/html; charset=utf-8", `<h3 id="gpus_paused">gpus_paused</h3>`},
		{"/rdma/runbooks/RDMAExporterDegraded", "text/html; charset=utf-8", `<a href="#gpus_paused">`},
		{"/rdma/api/v1/node", "application/json", `"expected_rate_source": "siblings"`},
		{"/rdma/api/v1/topology", "application/json", `"lanes": 16`},
	} {
		t.Run(c.path, func(t *testing.T) {
			status, body, h := s.get(t, c.path)
			if status != http.StatusOK || h.Get("Content-Type") != c.contentType || !strings.Contains(body, c.want) {
				t.Errorf("%d %s, without %q: %.200s", status, h.Get("Content-Type"), c.want, body)
			}
			if csp := h.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none';") ||
				strings.Contains(csp, "unsafe") || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Error(h)
			}
		})
	}
	for path, want := range map[string]int{
		"/rdma/static/page.html": 404, "/rdma/static/": 404, "/rdma/runbooks/runbooks.go": 404,
		"/rdma/runbooks/..%2f..": 404, "/": 200,
	} {
		if status, _, _ := s.get(t, path); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
	_, _, h := s.get(t, "/rdma/", "Accept-Encoding", "gzip")
	if h.Get("Content-Encoding") != "gzip" {
		t.Error("not packed")
	}
	_, _, h = s.get(t, "/rdma/static/page.css")
	if status, _, _ := s.get(t, "/rdma/static/page.css", "If-None-Match",
		h.Get("Etag")); status != http.StatusNotModified {
		t.Errorf("a file that is known is sent again: %d", status)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		r, err := http.NewRequestWithContext(t.Context(), method, s.url+"/rdma/", nil)
		must(t, err)
		resp, err := http.DefaultClient.Do(r)
		must(t, err)
		must(t, resp.Body.Close())
		if resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, resp.StatusCode)
		}
	}
}

// TestFormerRunbooks: the page of a former name leads to the section of the current alert, which is there.
func TestFormerRunbooks(t *testing.T) {
	s := startProgram(t, "--replay="+machines.Fixture("no-rdma"), "--web.route-prefix=/rdma")
	for _, name := range runbooks.FormerNames() {
		now, _ := runbooks.Former(name)
		status, _, h := s.ask(t, once(), http.MethodGet, "/rdma/runbooks/"+name, nil)
		if to := h.Get("Location"); status != http.StatusMovedPermanently || to != now.Alert+now.Anchor() ||
			!strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none';") {
			t.Errorf("%s: %d, %v", name, status, h)
		}
		status, body, _ := s.get(t, "/rdma/runbooks/"+name) // follows
		if status != http.StatusOK || !strings.Contains(body, "<h1>"+now.Alert+"</h1>") ||
			now.Reason != "" && strings.Count(body, `<h3 id="`+now.Reason+`">`) != 1 {
			t.Errorf("%s leads to %d, %.200s", name, status, body)
		}
	}
	for _, name := range []string{
		"RDMANothing", "rdmareloadfailed", "RDMAReloadFailed.md", "RDMAReloadFailed/", "%2f%2fevil",
	} {
		if status, _, h := s.ask(t, once(), http.MethodGet, "/rdma/runbooks/"+name, nil); status != http.StatusNotFound ||
			h.Get("Location") != "" {
			t.Errorf("%s: %d, %v", name, status, h)
		}
	}
}

// await asks until an answer has a text.
func (s *server) await(t *testing.T, path, text string) (body string) {
	t.Helper()
	waitUntil(func() bool {
		_, body, _ = s.get(t, path)
		return strings.Contains(body, text)
	})
	return body
}

// TestPageWithoutAlerting: the state, no verdict and no history; requests do not cause more reads of the machine than
// for a scrape.
func TestPageWithoutAlerting(t *testing.T) {
	s := startProgram(t, "--replay="+machines.Fixture("downshift-one"), "--no-alerting", "--collect.min-interval=0s")
	_, body, _ := s.get(t, "/")
	for _, want := range []string{
		"Not evaluated", "--no-alerting", "mlx5_5", "200 Gb/s", "without a history", "All rules (--no-alerting).",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("without %q", want)
		}
	}
	for _, no := range []string{`class="spark"`, "api/v1/findings", `class="verdict ok"`} {
		if strings.Contains(body, no) {
			t.Errorf("has %q", no)
		}
	}
	_, again, _ := s.get(t, "/api/v1/node")
	asOf := regexp.MustCompile(`As of (\d\d:\d\d:\d\d)`).FindStringSubmatch(body)
	if asOf == nil || !strings.Contains(again, asOf[1]) || !strings.Contains(again, `"report": null`) {
		t.Errorf("read again at once: %q", asOf)
	}
}
