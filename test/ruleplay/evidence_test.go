package ruleplay_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/evidence"
	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/test/ruleplay"
)

var update = flag.Bool("update", false, "write the texts that are wanted")

// TestEvidence: the texts that the exporter has for each fault, on the series of the tests of rules, as at the time
// when the condition of its alert was last met. Each fault that has texts is in one of the tests.
func TestEvidence(t *testing.T) {
	told := map[string]bool{}
	all := eachFile(t, func(t *testing.T, name string, u *ruleplay.File) {
		got := textsOf(t, u, told)
		golden := "testdata/" + name + ".txt"
		if *update && got != "" {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil && got != "" {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s (-update writes it):\n%s", golden, got)
		}
	})
	for _, name := range evidence.Faults() {
		if all && !told[name] {
			t.Errorf("%s: in no test of rules", name)
		}
	}
}

// eachFile runs a test of each file of tests, or of those of FILES. It reports whether it was all of them.
func eachFile(t *testing.T, play func(t *testing.T, name string, u *ruleplay.File)) (all bool) {
	t.Helper()
	files, err := filepath.Glob("../../rules/tests/*.test.yml")
	if err != nil || len(files) == 0 {
		t.Fatal("no tests of rules: ", err)
	}
	only := os.Getenv("FILES")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".test.yml")
		if only == "" || slices.Contains(strings.Split(only, ","), name) {
			t.Run(name, func(t *testing.T) { play(t, name, ruleplay.Read(t, file)) })
		}
	}
	return only == ""
}

// textsOf returns the texts of the alerts on faults that a file of tests expects, each set of texts once.
func textsOf(t *testing.T, u *ruleplay.File, told map[string]bool) string {
	var b strings.Builder
	for i := range u.Tests {
		c := &u.Tests[i]
		want := map[time.Duration][]map[string]string{}
		for _, a := range c.Alerts {
			for _, w := range a.Want {
				if w.Labels["symptom"] != "" {
					l := maps.Clone(w.Labels)
					l["alertname"] = a.Name
					want[ruleplay.Duration(t, a.At)] = append(want[ruleplay.Duration(t, a.At)], l)
				}
			}
		}
		if len(want) == 0 {
			continue
		}
		p := u.Play(t, c)
		for _, at := range slices.Sorted(maps.Keys(want)) {
			if err := p.Until(t.Context(), at, func() {}); err != nil {
				t.Fatal(err)
			}
			for _, a := range p.Alerts() {
				l := a.Labels.Map()
				if !slices.ContainsFunc(want[at], func(w map[string]string) bool { return maps.Equal(w, l) }) {
					continue
				}
				texts := evidence.Annotations(l, a.Value, asked(t, p, p.Met(a)))
				told[l["symptom"]+"/"+l["reason"]] = told[l["symptom"]+"/"+l["reason"]] || len(texts) > 0
				fmt.Fprintf(&b, "# %s, %v: %s %s %s\n", c.Name, at, l["alertname"], l["reason"], l["where"])
				for _, name := range slices.Sorted(maps.Keys(texts)) {
					fmt.Fprintf(&b, "%s: %s\n", name, strings.ReplaceAll(strings.TrimSpace(texts[name]), "\n", "\n  "))
				}
			}
		}
	}
	return b.String()
}

// asked evaluates the queries of texts at a time.
func asked(t *testing.T, p *ruleplay.Play, at time.Duration) fault.Query {
	return func(expr string) (out []fault.Sample) {
		v, err := p.Ask(t.Context(), expr, at)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
		}
		for _, s := range v {
			out = append(out, fault.Sample{Labels: s.Metric.Map(), Value: s.F})
		}
		return out
	}
}
