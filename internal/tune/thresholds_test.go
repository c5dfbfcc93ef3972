package tune

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/rules"
)

// shippedFiles are the files of both sets.
func shippedFiles(t *testing.T) (out []File) {
	t.Helper()
	for _, set := range []func() (fs.FS, []string, error){rules.Node, rules.Central} {
		fsys, names, err := set()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := fs.ReadFile(fsys, name)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, File{name, text})
		}
	}
	return out
}

// TestThresholdsInRules: each threshold stands in the rules as the table says, with its default, and nowhere half.
func TestThresholdsInRules(t *testing.T) {
	shipped, err := shippedRules()
	if err != nil || len(shipped) < 100 {
		t.Fatalf("%d rules, %v", len(shipped), err)
	}
	var names []string
	for _, th := range Thresholds() {
		if slices.Contains(names, th.Name) {
			t.Errorf("%s stands in the table twice", th.Name)
		}
		names = append(names, th.Name)
		if v, err := th.Unit.parse(th.Default); err != nil || th.Why == "" || len(th.Places) == 0 ||
			v != th.Default && v != "0.0001" {
			t.Errorf("%s: default %s is %s, %v", th.Name, th.Default, v, err)
		}
		if !slices.ContainsFunc(shipped, func(r *rule) bool { return r.alert && r.name == th.Alert }) {
			t.Errorf("%s: no alert %s", th.Name, th.Alert)
		}
		for _, p := range th.Places {
			old, found := p.with(th.Default), 0
			if p.Text == forText {
				old = "\n        " + old + "\n"
			}
			for _, r := range shipped {
				if r.name == p.Rule {
					found += strings.Count(r.text, old)
					if regexp.MustCompile(regexp.QuoteMeta(old) + `\.?[0-9]`).MatchString(r.text) {
						t.Errorf("%s: %q of %s is the beginning of another number", th.Name, old, p.Rule)
					}
				}
			}
			if found != p.Times {
				t.Errorf("%s: %q stands in %s %d times, want %d", th.Name, old, p.Rule, found, p.Times)
			}
		}
	}
}

// TestThresholdChanges: another value stands in expression and text, the default nowhere that the table names, and all
// else stays.
func TestThresholdChanges(t *testing.T) {
	files := shippedFiles(t)
	other := map[Unit]string{Duration: "17m", Ratio: "0.27", Count: "7", Number: "71.5"}
	for _, th := range Thresholds() {
		got, err := Tuning{Thresholds: map[string]string{th.Name: other[th.Unit]}}.Apply(files)
		if err != nil {
			t.Fatal(err)
		}
		changed, want := 0, 0
		for i, f := range got {
			was, is := strings.Split(string(files[i].Text), "\n"),
				slices.DeleteFunc(strings.Split(string(f.Text), "\n"), func(line string) bool {
					return strings.HasPrefix(line, "      # "+th.Name+" is "+other[th.Unit]+", default ")
				})
			if len(was) != len(is) {
				t.Fatalf("%s: %s has %d lines, want %d", th.Name, f.Name, len(is), len(was))
			}
			for n := range was {
				if was[n] != is[n] {
					changed++
				}
			}
		}
		for _, p := range th.Places {
			want += p.Times
		}
		if th.Name == "link-integrity-events" || th.Name == "subnet-manager-changes" { // two of the places are on one line
			want--
		}
		if th.Name == "fabric-symbol-errors" { // two lines have two of the places
			want -= 2
		}
		if changed != want {
			t.Errorf("%s: %d lines changed, want %d", th.Name, changed, want)
		}
	}
	got, err := Tuning{Thresholds: map[string]string{"storm-source-ratio": "40%", "flaps-per-hour": "6"}}.Apply(files)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range got {
		all.Write(f.Text)
	}
	for _, want := range []string{
		"      # storm-source-ratio is 0.4, default 0.5.\n      - record: port:rdma_pfc_storm_source:critical\n",
		`ratio{direction="transmit"} > 0.4` + "\n", "of last 90s (limit 40%) on priority",
		"port:rdma_port_link_losses:count1h >= 6\n", `(limit 5). Each loss`, "          limit: \"5\"\n",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestThresholdValues(t *testing.T) {
	for _, c := range []struct {
		name, value, want string
	}{
		{"port-down-for", "90", "duration such as"},
		{"port-down-for", "", "duration such as"},
		{"flaps-per-hour", "0", "integer"},
		{"flaps-per-hour", "2.5", "integer"},
		{"storm-source-ratio", "50", "at most 1"},
		{"storm-source-ratio", "x", "must be a number"},
		{"lane-dark-dbm", "NaN", "must be a number"},
		{"port-down", "2m", "unknown threshold port-down"},
	} {
		if _, err := (Tuning{Thresholds: map[string]string{c.name: c.value}}).Apply(nil); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: %v, want %s", c.name, c.value, err, c.want)
		}
	}
	if v, err := Ratio.parse("7%"); v != "0.07" || err != nil {
		t.Errorf("7%% is %s, %v", v, err)
	}
}
