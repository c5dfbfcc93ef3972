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

	"rdma_exporter/internal/tune"
	"rdma_exporter/rules"
)

const alertsHead = `# Alerts

<!-- Written by go run ./docs/gen from rules/ and docs/runbooks/. -->

The rules in ` + "`rules/node`" + ` decide what is wrong, and nothing else does: a central Prometheus loads the files, and
` + "`rdma_exporter check`" + ` evaluates the same ones. Several rules of one name are one alert at several severities.

Where an alert cannot be evaluated, ` + "`rdma_detection_unavailable{alert,reason}`" + ` is 1 and ` + "`check`" + ` says so. What it needs is a collector that
is on, a kernel and a driver that report, and sometimes a permission.

| annotation | |
| --- | --- |
| summary | one line: host, object, fault, number, limit |
| description | what was measured against what, and the impact |
| evidence | lines "Name: value.": what identifies the object, what was read, what was not evaluated |
| diagnose | one read-only command |
| action | what to do |
| drain_reason | why the label drain is what it is |
| measured, limit | the figure that is compared and its limit, with the unit, where there are such |
| runbook_url | the runbook, where its address is known |

| severity | meant for |
| --- | --- |
| critical | wakes someone |
| warning | makes a ticket |
| info | is worth knowing |
| none | a sign of life, for a dead-man switch |

| drain | what the host of the alert is to do |
| --- | --- |
| no | nothing: jobs go on, or the cause is elsewhere |
| cordon | takes no new jobs; those that run may finish |
| evict | a job on this host cannot progress |

What the firing alerts of a host come to is recorded (` + "`instance:rdma_host_drain:state`" + `, ` + "`instance:rdma_host_fit:state`" + `) and what
[check --drain](check.md#drain-and-return-to-service), scripts and dashboards read.

Faults that cause one another are one alert, the worst of the object; what follows from it is listed below it in ` + "`check`" + `, in its JSON and on the
page, and recorded as ` + "`…:suspect`" + `. More than half of a host's ports of one role, or of its devices, with the same fault are one alert of the host.

`

const centralHead = `## Central rules

These are for a central Prometheus only (` + "`rules/central`" + `): what only the sight of many hosts, or of other exporters, tells.

`

const withoutAlert = `## What has no alert

| seen | why nobody is told |
| --- | --- |
| a link below what its chip is capable of (` + "`source=\"capability\"`" + `) | it knows neither the switch nor the cable; a pin, the peer, siblings or the port's own past do |
| corrected bits, however many | normal on PAM4; blocks that FEC could not correct count |
| CNPs and marks, out of sequence packets | congestion control and adaptive routing at work; RDMACongestion is for information |
| rnr_nak_retry_err and local_ack_timeout_err by themselves | they count retries that went on |
| pauses of bnxt_en and ice as shares of time | those drivers count no durations, so that source and victim cannot be told apart |
| waits for credits of a port whose counter is full | it has 32 bits on mlx5 and stays at its end; RDMACounterSaturated leaves it out, since busy ports fill it |
| light in the lanes of modules on InfiniBand ports | the kernel reads no module there; ` + "`check`" + ` and rdma_detection_unavailable say so |
| latched flags of modules | reading clears them for others |
| speed of GPUs' PCIe links | idle GPUs slow it down; their lanes count |
| distance of single pairs of GPU and NIC | eight GPUs and eight NICs have far pairs always; the best eligible NIC of each GPU counts |
| jobs with a net plugin, or on EFA | what they decide is theirs: unknown |
| thresholds of sensors and modules that make no sense | a high alarm at 0 °C, or one below its low alarm, is none |

`

const thresholdsHead = `## Thresholds

` + "`rdma_exporter rules --tune.threshold=NAME=VALUE`" + `, the chart and the mixin take other values; expression and text of the alert change
together: [Tuning](../packaging/prometheus/README.md#tuning). Limits that a transceiver or a sensor states itself are no thresholds of the rules.
Runbooks name the defaults. A ratio can be given as a percentage.

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
	alerts, recordings, err := load(rules.Node())
	if err != nil {
		return nil, err
	}
	central, steps, err := load(rules.Central())
	if err != nil {
		return nil, err
	}
	files, names, err := rules.Node()
	if err == nil {
		err = need(alerts, files, names)
	}
	if err != nil {
		return nil, err
	}
	var d document
	d.WriteString(alertsHead)
	d.list(alerts)
	d.WriteString(centralHead)
	d.list(central)
	d.WriteString(withoutAlert)
	d.WriteString(thresholdsHead)
	var limits [][]string
	for _, th := range tune.Thresholds() {
		limits = append(limits, []string{code(th.Name), fmt.Sprintf("[%s](#%s)", th.Alert, strings.ToLower(th.Alert)), code(th.Default), string(th.Unit), plain(th.Why)})
	}
	d.table([]string{"name", "alert", "default", "value", "why"}, limits)
	d.line("## What they need\n")
	var rows [][]string
	for _, a := range alerts {
		rows = append(rows, []string{a.name, codes(a.needs.collectors), plain(strings.Join(a.needs.permissions, "; "))})
	}
	d.table([]string{"alert", "collectors", "permission"}, rows)
	for _, a := range append(alerts, central...) {
		meaning, err := meaning(docs, a.name)
		if err != nil {
			return nil, err
		}
		d.alert(a, meaning)
	}
	recordings = append(recordings, steps...)
	d.line("## Recording rules\n")
	d.line("Steps of the conditions above.\n")
	for _, r := range recordings {
		d.line("`%s`\n", r.Record)
		d.comment(r)
		d.block("promql", r.Expr)
	}
	return trimmed(d), nil
}

// list writes a row for each severity of each alert. The rule of a whole host is the same alert for many of its ports or devices.
func (d *document) list(alerts []alert) {
	var rows [][]string
	for _, a := range alerts {
		for _, r := range a.rules {
			if strings.HasPrefix(r.Expr, "host:") && len(a.rules) > 1 {
				continue
			}
			rows = append(rows, []string{
				fmt.Sprintf("[%s](#%s)", a.name, strings.ToLower(a.name)), r.Labels["severity"], r.Labels["drain"],
				r.For.String(), r.KeepFiringFor.String(), fmt.Sprintf("[runbook](%s)", runbook(a.name)),
			})
		}
	}
	d.table([]string{"alert", "severity", "drain", "for", "keep_firing_for", "what to do"}, rows)
}

func (d *document) alert(a alert, meaning string) {
	d.line("## %s\n", a.name)
	d.line("%s\n", meaning)
	d.line("Runbook: [%s](%s)\n", a.name, runbook(a.name))
	var summaries []string
	for _, r := range a.rules {
		whole := ""
		if strings.HasPrefix(r.Expr, "host:") {
			whole = ", one alert for the host"
		}
		d.line("Severity **%s**%s, drain %s, for %s, keep_firing_for %s:\n", r.Labels["severity"], whole, r.Labels["drain"], r.For, r.KeepFiringFor)
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

// load reads a set of rules: alerts by name, in the order of the files, and recording rules.
func load(files fs.FS, names []string, err error) (alerts []alert, recordings []commented, _ error) {
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
	return alerts, recordings, nil
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
