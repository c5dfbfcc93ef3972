package app

import (
	"bytes"
	"encoding/json"
	"html"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/rules"
)

// looked is what the page shows of a recorded machine after its last round.
func looked(t testing.TB, name string) page.Input {
	t.Helper()
	m, sched := open(t, fixture(name))
	files, names, err := readRules(nil, "")
	must(t, err)
	engine, err := alerting.New(alerting.Options{Scratch: capture.Scratch(), Rules: files, Files: names, Instance: m.hostname() + ":10879", Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(func() { must(t, engine.Close()) })
	var p *rounds.Picture
	for _, at := range m.player.Times() {
		must(t, m.seek(at))
		p, err = evaluateRound(t.Context(), sched, engine, 0)
		must(t, err)
	}
	report := check.New(check.Input{Exporter: "test", Host: m.hostname() + ":10879", Interval: 15 * time.Second, History: engine.History(), Judgement: engine.Judgement(), Coverage: p.Coverage, Seen: seenIn(p), Needs: p.Needs})
	history, err := page.ReadHistory(t.Context(), engine)
	must(t, err)
	families := slices.DeleteFunc(slices.Clone(p.Families), func(f exposition.Family) bool {
		return varying.MatchString(f.Head.Desc.Name + "\n")
	})
	return page.Input{
		Exporter: "test", Machine: "a replay", Host: m.hostname(), Now: p.Read, Read: p.Read, Interval: 15 * time.Second,
		Node: &p.Node, Families: families, Needs: p.Needs, Report: &report, Alerts: engine.Alerts(), History: history,
	}
}

func rendered(t testing.TB, in page.Input) []byte {
	t.Helper()
	p, err := page.NewPage([]page.Link{{Href: "metrics", Text: "Metrics"}})
	must(t, err)
	n := page.New(in)
	var b bytes.Buffer
	must(t, p.Render(&b, in, &n, page.Topology(in)))
	return b.Bytes()
}

// maxPage is how large the page of any recorded machine may be.
const maxPage = 200 << 10

func TestPage(t *testing.T) {
	for _, name := range []string{"hgx-h200-roce", "hgx-h200-roce-storm", "gdr-staging-live", "downshift-one", "no-rdma"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, "page/"+name+".html", rendered(t, looked(t, name)))
		})
	}
}

// TestPageIsSmall: those with the most ports, GPUs and findings.
func TestPageIsSmall(t *testing.T) {
	for _, name := range []string{"hgx-h200-roce", "multiplane-cx8-ok", "saturated"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if n := len(rendered(t, looked(t, name))); n > maxPage {
				t.Errorf("%d bytes", n)
			}
		})
	}
}

// TestPageDenied: what may not be read stands there with what would permit it, and what the reads of a collector lacked.
func TestPageDenied(t *testing.T) {
	in := looked(t, "odd-files")
	text := html.UnescapeString(string(rendered(t, in)))
	if denied := page.New(in).Denied; len(denied) == 0 {
		t.Error("nothing is denied")
	} else if want := "<strong>" + denied[0].Source + "</strong> requires <code>" + denied[0].Needs; denied[0].Needs == "" || !strings.Contains(text, want) {
		t.Errorf("without %q", want)
	}
	if !strings.Contains(text, "items no longer read") {
		t.Error("does not report items that are no longer read")
	}
}

func TestPageNode(t *testing.T) {
	b, err := json.MarshalIndent(page.New(looked(t, "downshift-one")), "", "  ")
	must(t, err)
	golden(t, "page/downshift-one.json", append(b, '\n'))
}

func BenchmarkPage(b *testing.B) {
	in := looked(b, "hgx-h200-roce")
	for b.Loop() {
		rendered(b, in)
	}
}

// BenchmarkHistory asks for two hours of the largest machine, each 15 s a round.
func BenchmarkHistory(b *testing.B) {
	m, sched := open(b, fixture("hgx-h200-roce"))
	fsys, files, err := rules.Node()
	must(b, err)
	engine, err := alerting.New(alerting.Options{Scratch: capture.Scratch(), Rules: fsys, Files: files, Instance: "gpu-1:10879"})
	must(b, err)
	b.Cleanup(func() { must(b, engine.Close()) })
	first := m.player.Times()[0]
	for at := time.Duration(0); at < 2*time.Hour; at += 15 * time.Second {
		must(b, m.seek(first.Add(at)))
		p, err := sched.CollectWithin(b.Context(), nil, 0)
		must(b, err)
		must(b, engine.Append(p.Read, exposition.DTO(p.Families)))
	}
	for b.Loop() {
		_, err := page.ReadHistory(b.Context(), engine)
		must(b, err)
	}
}

// TestServePage: the page, its JSON and its files, with a prefix, for those who may ask.
func TestServePage(t *testing.T) {
	s := serve(t, "--replay="+fixture("downshift-one"), "--web.route-prefix=/rdma")
	s.await(t, "/rdma/", "RDMALinkDownshifted")
	for _, c := range []struct{ path, contentType, want string }{
		{"/rdma/", "text/html; charset=utf-8", "mlx5_5"},
		{"/rdma/static/page.css", "text/css; charset=utf-8", "prefers-color-scheme"},
		{"/rdma/static/page.js", "text/javascript; charset=utf-8", "refresh"},
		{"/rdma/static/icon.svg", "image/svg+xml", "<svg"},
		{"/rdma/runbooks/RDMALinkDownshifted", "text/html; charset=utf-8", "<h2>Meaning</h2>"},
		{"/rdma/runbooks/", "text/html; charset=utf-8", `<a href="RDMALinkDownshifted">`},
		{"/rdma/api/v1/node", "application/json", `"expected_rate_source": "siblings"`},
		{"/rdma/api/v1/topology", "application/json", `"lanes": 16`},
	} {
		t.Run(c.path, func(t *testing.T) {
			status, body, h := s.get(t, c.path)
			if status != http.StatusOK || h.Get("Content-Type") != c.contentType || !strings.Contains(body, c.want) {
				t.Errorf("%d %s, without %q: %.200s", status, h.Get("Content-Type"), c.want, body)
			}
			if csp := h.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none';") || strings.Contains(csp, "unsafe") || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Error(h)
			}
		})
	}
	for path, want := range map[string]int{"/rdma/static/page.html": 404, "/rdma/static/": 404, "/rdma/runbooks/runbooks.go": 404, "/rdma/runbooks/..%2f..": 404, "/": 200} {
		if status, _, _ := s.get(t, path); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
	_, _, h := s.get(t, "/rdma/", "Accept-Encoding", "gzip")
	if h.Get("Content-Encoding") != "gzip" {
		t.Error("not packed")
	}
	_, _, h = s.get(t, "/rdma/static/page.css")
	if status, _, _ := s.get(t, "/rdma/static/page.css", "If-None-Match", h.Get("Etag")); status != http.StatusNotModified {
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

// await asks until an answer has a text.
func (s *server) await(t *testing.T, path, text string) (body string) {
	t.Helper()
	for {
		if _, body, _ = s.get(t, path); strings.Contains(body, text) {
			return body
		}
		if t.Context().Err() != nil {
			t.Fatalf("%s never has %q", path, text)
		}
	}
}

// TestPageReadsNothing: while rules are evaluated the page shows the round that they saw, and asks for no other.
func TestPageReadsNothing(t *testing.T) {
	d := &daemon{}
	x := &shown{daemon: d} // without a scheduler that could collect
	if p, err := x.picture(t.Context()); p != nil || err != nil {
		t.Errorf("before the first round: %v, %v", p, err)
	}
	round := &rounds.Picture{}
	d.seen.note(round, conclusion{}, true)
	d.seen.note(nil, conclusion{}, false)
	if p, err := x.picture(t.Context()); p != round || err != nil {
		t.Errorf("%v, %v", p, err)
	}
}

// TestPageWithoutAlerting: the state, no verdict and no history; whoever looks does not make the machine be read more often than for
// a scrape.
func TestPageWithoutAlerting(t *testing.T) {
	s := serve(t, "--replay="+fixture("downshift-one"), "--no-alerting", "--collect.min-interval=0s")
	_, body, _ := s.get(t, "/")
	for _, want := range []string{"Not evaluated", "--no-alerting", "mlx5_5", "200 Gb/s", "without a history", "All rules (--no-alerting)."} {
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
