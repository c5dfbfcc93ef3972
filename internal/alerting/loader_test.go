package alerting

import (
	"log/slog"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// TestParsedOnce: a text is parsed once in 10s, whoever loads it, and one that leaves out annotations leaves them
// to others.
func TestParsedOnce(t *testing.T) {
	const text = "groups:\n  - {name: g, rules: [{alert: A, expr: once, annotations: {summary: s}}]}\n"
	load := func(bare bool, file string) map[string]string {
		t.Helper()
		l := fsLoader{
			files:  fstest.MapFS{"r.yml": {Data: []byte(file)}},
			logger: slog.New(slog.DiscardHandler), bare: bare,
		}
		got, errs := l.Load("r.yml", false, model.LegacyValidation)
		if len(errs) > 0 || len(l.groups) != 1 || l.groups[0] != "g" {
			t.Fatalf("%v, groups %q", errs, l.groups)
		}
		return got.Groups[0].Rules[0].Annotations
	}
	parsed := func() parser.Expr {
		t.Helper()
		expr, err := (&fsLoader{}).Parse("once")
		if err != nil {
			t.Fatal(err)
		}
		return expr
	}
	recent.forget()
	synctest.Test(t, func(t *testing.T) {
		first := load(false, text)
		if first["summary"] != "s" || len(load(true, text)) > 0 {
			t.Errorf("annotations: %v", first)
		}
		first["summary"] = "parsed before"
		if again := load(false, text); again["summary"] != "parsed before" {
			t.Error("parsed again")
		}
		if other := load(false, text+"# other\n"); other["summary"] != "s" {
			t.Error("another text is not parsed")
		}
		expr := parsed()
		if again := parsed(); again != expr {
			t.Error("expression parsed again")
		}
		time.Sleep(ParsedKept)
		synctest.Wait()
		if later := parsed(); later == expr {
			t.Error("expression kept for longer")
		}
		if later := load(false, text); later["summary"] != "s" {
			t.Error("kept for longer")
		}
	})
	recent.forget()
}
