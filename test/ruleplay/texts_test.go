package ruleplay_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/evidence"
	"rdma_exporter/test/ruleplay"
)

// TestTexts: the texts in Go are those of the rules, on the series of the tests of rules. FILES=link_rate limits it to
// files with a name, ALERTS=RDMALinkDownshifted to some alerts.
func TestTexts(t *testing.T) {
	seen := map[string]int{}
	all := eachFile(t, func(t *testing.T, _ string, u *ruleplay.File) { compareFile(t, u, seen) })
	for _, alert := range evidence.Alerts() {
		if seen[alert] == 0 && all && !strings.Contains(alert, "/") {
			t.Errorf("%s: no test of rules has its text", alert)
		}
		if seen[alert] > 0 {
			t.Logf("%s: %d compared", alert, seen[alert])
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

func compareFile(t *testing.T, u *ruleplay.File, seen map[string]int) {
	for i := range u.Tests {
		c := &u.Tests[i]
		var want []wanted
		for _, a := range c.Alerts {
			if only := os.Getenv("ALERTS"); !slices.Contains(evidence.Alerts(), a.Name) ||
				only != "" && !slices.Contains(strings.Split(only, ","), a.Name) {
				continue
			}
			for _, w := range a.Want {
				if len(w.Annotations) > 0 && !ofWholeHost(a.Name, w.Labels) {
					want = append(want, wanted{ruleplay.Duration(t, a.At), a.Name, w.Labels, w.Annotations})
				}
			}
		}
		if len(want) == 0 {
			continue
		}
		slices.SortStableFunc(want, func(a, b wanted) int { return int(a.at - b.at) })
		p := u.Play(t, c)
		for _, w := range want {
			if err := p.Until(t.Context(), w.at, func() {}); err != nil {
				t.Fatal(err)
			}
			compare(t, p, w)
			seen[w.name]++
		}
	}
}

type wanted struct {
	at          time.Duration
	name        string
	labels      map[string]string
	annotations map[string]string
}

// ofWholeHost: the alert of a host for several of its parts has texts of its own.
func ofWholeHost(name string, l map[string]string) bool {
	b, err := os.ReadFile("../../rules/node/whole_host.rules.yml")
	return err == nil && strings.Contains(string(b), "alert: "+name+"\n") &&
		l["device"] == "" && l["gpu"] == "" && l["port"] == ""
}

func compare(t *testing.T, p *ruleplay.Play, w wanted) {
	t.Helper()
	value, ok, at := 0., false, time.Duration(0)
	for _, a := range p.Alerts() {
		l := a.Labels.Map()
		delete(l, "alertname")
		if a.Labels.Get("alertname") == w.name && maps.Equal(l, w.labels) {
			value, ok, at = a.Value, true, p.Met(a)
		}
	}
	if !ok {
		t.Errorf("%s %v at %v: does not fire", w.name, w.labels, w.at)
		return
	}
	got, _ := evidence.Of(w.name, w.labels, value, asked(t, p, at))
	lines := ""
	for _, l := range got.Evidence {
		lines += l.Name + ": " + l.Text + "\n"
	}
	for key, pair := range map[string][2]string{
		"summary":      {got.Summary, w.annotations["summary"]},
		"description":  {got.Description, w.annotations["description"]},
		"measured":     {got.Measured, w.annotations["measured"]},
		"limit":        {got.Limit, w.annotations["limit"]},
		"diagnose":     {got.Diagnose, w.annotations["diagnose"]},
		"action":       {got.Action, w.annotations["action"]},
		"drain_reason": {got.DrainReason, w.annotations["drain_reason"]},
	} {
		if a, b := strings.Join(strings.Fields(pair[0]), " "), strings.Join(strings.Fields(pair[1]), " "); a != b {
			t.Errorf("%s %v at %v: %s:\n got  %s\n want %s", w.name, w.labels, w.at, key, a, b)
		}
	}
	if a, b := clean(lines), clean(w.annotations["evidence"]); !strings.HasSuffix(b, a) || a == "" && !onlyIdentity(b) {
		t.Errorf("%s %v at %v: evidence:\n got\n%s\n want, after the identity of the object\n%s",
			w.name, w.labels, w.at, a, b)
	} else if rest := strings.TrimSuffix(b, a); !onlyIdentity(rest) {
		t.Errorf("%s %v at %v: evidence is missing, of\n%s", w.name, w.labels, w.at, rest)
	}
}

// identityLines are the first lines of evidence: what identifies the object.
var identityLines = []string{
	"Host", "Since", "Port", "Same link", "Device", "Missing device", "Neighbour", "Transceiver", "Same transceiver",
	"GPU", "Impact", "Kernel log", "Fabric", "Link", "Node", "Switch", "Job", "Prometheus job",
}

func onlyIdentity(text string) bool {
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, ":")
		if strings.TrimSpace(line) != "" && !slices.Contains(identityLines, name) {
			return false
		}
	}
	return true
}

func clean(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
