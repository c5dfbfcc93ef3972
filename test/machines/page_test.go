//go:build !race

package machines

import (
	"bytes"
	"encoding/json"
	"html"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/capture/replay"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/page/nodepage"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/rulefiles"
	"rdma_exporter/internal/verdict"
	"rdma_exporter/rules"
)

// newInput is the input of the page of a recorded machine after its last round.
func inputOf(t testing.TB, name string) nodepage.Input {
	t.Helper()
	m, sched := Open(t, Fixture(name))
	files, err := rulefiles.Read(nil, "")
	must(t, err)
	engine, err := alerting.New(alerting.Options{
		Scratch: replay.Scratch(), Rules: files, Files: files.Names, Instance: m.Hostname() + ":10879",
		Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	t.Cleanup(func() { must(t, engine.Close()) })
	var p *rounds.Picture
	for _, at := range m.Player.Times() {
		must(t, m.Seek(at))
		p, err = verdict.Round(t.Context(), sched, engine, 0)
		must(t, err)
	}
	report := verdict.Report(engine, check.Input{
		Host: m.Hostname() + ":10879", Interval: 15 * time.Second, Coverage: p.Coverage, Seen: verdict.Seen(p),
		Needs: p.Needs,
	})
	report.Exporter = "test"
	history, err := nodepage.ReadHistory(t.Context(), engine)
	must(t, err)
	families := slices.DeleteFunc(slices.Clone(p.Families), func(f exposition.Family) bool {
		return varying.MatchString(f.Head.Desc.Name + "\n")
	})
	return nodepage.Input{
		Exporter: "test", Machine: "a replay", Host: m.Hostname(), Now: p.Read, Read: p.Read, Interval: 15 * time.Second,
		Node: p.Node(), Families: families, Needs: p.Needs, Report: &report, Alerts: engine.Alerts(), History: history,
	}
}

func rendered(t testing.TB, in nodepage.Input) []byte {
	t.Helper()
	p, err := nodepage.NewPage([]page.Link{{Href: "metrics", Text: "Metrics"}})
	must(t, err)
	n := nodepage.New(in)
	var b bytes.Buffer
	must(t, p.Render(&b, in, &n, nodepage.Topology(in)))
	return b.Bytes()
}

// maxPage is how large the page of any recorded machine may be.
const maxPage = 200 << 10

func TestPage(t *testing.T) {
	for _, name := range []string{
		"hgx-h200-roce", "hgx-h200-roce-storm", "gdr-staging-live", "downshift-one", "no-rdma", "command-timeouts",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Golden(t, "page/"+name+".html", rendered(t, inputOf(t, name)))
		})
	}
}

// TestPageIsSmall: those with the most ports, GPUs and findings.
func TestPageIsSmall(t *testing.T) {
	for _, name := range []string{"hgx-h200-roce", "multiplane-cx8-ok", "saturated"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if n := len(rendered(t, inputOf(t, name))); n > maxPage {
				t.Errorf("%d bytes", n)
			}
		})
	}
}

// TestPageDenied: what may not be read stands there with what would permit it, and what the reads of a collector
// lacked.
func TestPageDenied(t *testing.T) {
	in := inputOf(t, "odd-files")
	text := html.UnescapeString(string(rendered(t, in)))
	if denied := nodepage.New(in).Denied; len(denied) == 0 {
		t.Error("nothing is denied")
	} else if want := "<strong>" + denied[0].Source + "</strong> requires <code>" +
		denied[0].Needs; denied[0].Needs == "" || !strings.Contains(text, want) {
		t.Errorf("without %q", want)
	}
	if !strings.Contains(text, "items no longer read") {
		t.Error("does not report items that are no longer read")
	}
}

func TestPageNode(t *testing.T) {
	b, err := json.MarshalIndent(nodepage.New(inputOf(t, "downshift-one")), "", "  ")
	must(t, err)
	Golden(t, "page/downshift-one.json", append(b, '\n'))
}

func BenchmarkPage(b *testing.B) {
	in := inputOf(b, "hgx-h200-roce")
	for b.Loop() {
		rendered(b, in)
	}
}

// BenchmarkHistory asks for two hours of the largest machine, each 15 s a round.
func BenchmarkHistory(b *testing.B) {
	m, sched := Open(b, Fixture("hgx-h200-roce"))
	fsys, files, err := rules.Node()
	must(b, err)
	engine, err := alerting.New(alerting.Options{
		Scratch: replay.Scratch(), Rules: fsys, Files: files, Instance: "gpu-1:10879",
	})
	must(b, err)
	b.Cleanup(func() { must(b, engine.Close()) })
	first := m.Player.Times()[0]
	for at := time.Duration(0); at < 2*time.Hour; at += 15 * time.Second {
		must(b, m.Seek(first.Add(at)))
		p, err := sched.CollectWithin(b.Context(), nil, 0)
		must(b, err)
		must(b, engine.Append(p.Read, exposition.DTO(p.Families)))
	}
	for b.Loop() {
		_, err := nodepage.ReadHistory(b.Context(), engine)
		must(b, err)
	}
}
