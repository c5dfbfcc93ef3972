package main

import (
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"rdma_exporter/rules"
)

const alertsHead = `# Alerts

<!-- Written by go run ./docs/gen from rules/ and docs/runbooks/. -->

The rules in ` + "`rules/node`" + ` decide what is wrong, and nothing else does: a central Prometheus loads the files, and
` + "`rdma_exporter check`" + ` judges with the same ones. Several rules of one name are one alert at several severities.

Where an alert cannot be judged, ` + "`rdma_detection_unavailable{alert,reason}`" + ` is 1 and ` + "`check`" + ` says so. What it needs is a collector that
is on, a kernel and a driver that tell, and sometimes a permission.

| severity | meant for |
| --- | --- |
| critical | wakes someone |
| warning | makes a ticket |
| info | is worth knowing |
| none | a sign of life, for a dead-man switch |

`

// alert is the rules of one name.
type alert struct {
	name  string
	rules []commented
	needs needs
}

// commented is a rule with its comment in the file, which gives the reasons.
type commented struct {
	rulefmt.Rule
	comment string
}

func alertsPage(docs fs.FS) ([]byte, error) {
	alerts, recordings, err := load()
	if err != nil {
		return nil, err
	}
	var d document
	d.WriteString(alertsHead)
	var rows [][]string
	for _, a := range alerts {
		for _, r := range a.rules {
			rows = append(rows, []string{
				fmt.Sprintf("[%s](#%s)", a.name, strings.ToLower(a.name)), r.Labels["severity"],
				r.For.String(), r.KeepFiringFor.String(), fmt.Sprintf("[runbook](%s)", runbook(a.name)),
			})
		}
	}
	d.table([]string{"alert", "severity", "for", "keep_firing_for", "what to do"}, rows)
	d.line("## What they need\n")
	rows = nil
	for _, a := range alerts {
		rows = append(rows, []string{a.name, codes(a.needs.collectors), plain(strings.Join(a.needs.permissions, "; "))})
	}
	d.table([]string{"alert", "collectors", "permission"}, rows)
	for _, a := range alerts {
		meaning, err := meaning(docs, a.name)
		if err != nil {
			return nil, err
		}
		d.alert(a, meaning)
	}
	d.line("## Recording rules\n")
	d.line("Steps of the conditions above.\n")
	for _, r := range recordings {
		d.line("`%s`\n", r.Record)
		d.comment(r)
		d.block("promql", r.Expr)
	}
	return trimmed(d), nil
}

func (d *document) alert(a alert, meaning string) {
	d.line("## %s\n", a.name)
	d.line("%s\n", meaning)
	d.line("Runbook: [%s](%s)\n", a.name, runbook(a.name))
	var summaries []string
	for _, r := range a.rules {
		d.line("Severity **%s**, for %s, keep_firing_for %s:\n", r.Labels["severity"], r.For, r.KeepFiringFor)
		d.comment(r)
		d.block("promql", r.Expr)
		if s := r.Annotations["summary"]; !slices.Contains(summaries, s) {
			summaries = append(summaries, s)
		}
	}
	d.line("Summary:\n")
	d.block("text", strings.Join(summaries, "\n"))
}

// comment writes what the file says of a rule.
func (d *document) comment(r commented) {
	if r.comment != "" {
		d.line("%s\n", plain(r.comment))
	}
}

// load reads the rules: alerts by name, in the order of the files, and recording rules.
func load() (alerts []alert, recordings []commented, err error) {
	files, names, err := rules.Node()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, nil, fmt.Errorf("read rules: %w", err)
		}
		groups, errs := rulefmt.Parse(text, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
		if len(errs) > 0 {
			return nil, nil, fmt.Errorf("read rules: %s: %w", name, errs[0])
		}
		said := comments(string(text))
		for _, g := range groups.Groups {
			for _, rule := range g.Rules {
				r := commented{rule, said[0]}
				said = said[1:]
				if r.Alert == "" {
					recordings = append(recordings, r)
					continue
				}
				i := slices.IndexFunc(alerts, func(a alert) bool { return a.name == r.Alert })
				if i < 0 {
					i, alerts = len(alerts), append(alerts, alert{name: r.Alert})
				}
				alerts[i].rules = append(alerts[i].rules, r)
			}
		}
	}
	return alerts, recordings, need(alerts, files, names)
}

// comments are those right above the rules of a file, each as one paragraph, in the order of the rules.
func comments(text string) (out []string) {
	var before []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		comment, ok := strings.CutPrefix(line, "#")
		switch {
		case ok:
			before = append(before, strings.TrimSpace(comment))
			continue
		case strings.HasPrefix(line, "- alert:"), strings.HasPrefix(line, "- record:"):
			out = append(out, strings.Join(before, " "))
		}
		before = nil
	}
	return out
}

func runbook(name string) string { return "runbooks/" + name + ".md" }

// meaning is the section of that name of an alert's runbook, as one paragraph with links that lead from here.
func meaning(docs fs.FS, name string) (string, error) {
	b, err := fs.ReadFile(docs, runbook(name))
	if err != nil {
		return "", fmt.Errorf("alert %s has no runbook: %w", name, err)
	}
	_, text, ok := strings.Cut(string(b), "## Meaning\n")
	if !ok {
		return "", fmt.Errorf("%s: no section Meaning", runbook(name))
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return strings.ReplaceAll(strings.TrimSpace(text), "](RDMA", "](runbooks/RDMA"), nil
}
