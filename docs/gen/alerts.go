package main

import (
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"rdma_exporter/docs/runbooks"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/rules"
)

const alertsHead = `# Alerts

<!-- Written by go run ./docs/gen from rules/ and docs/runbooks/. -->

Alerting rules decide what is a fault. A central Prometheus, the exporter and ` + "`rdma_exporter check`" + ` evaluate the same files.
` + "`rdma_exporter rules`" + ` prints them.

One alert is one cause, at its place (labels ` + "`scope`" + ` and ` + "`where`" + `). The label ` + "`reason`" + ` names the symptom, which has a section in the runbook:

- [symptoms](../rules/node/symptoms.rules.yml): a part of a host and what is wrong with it.
- [faults](../rules/node/faults.rules.yml): a table of which symptom explains which. Symptoms that are not explained and began together are one
  fault of the smallest place that holds them: port, device, card, PCIe switch, host; in a central Prometheus also leaf, rack, rail, subnet,
  cluster.
- [alerts](../rules/node/alerts.rules.yml) on these faults, with the waiting time of each. ` + "`check`" + `, its JSON and the page list the symptoms that a
  fault explains.

An alert is not evaluated if its collector is disabled, the kernel or driver does not report the data, or a permission is missing
([permissions.md](permissions.md)). ` + "`rdma_detection_unavailable{alert,fault,reason}`" + ` is then 1, and ` + "`check`" + ` lists the alert.

| label | meaning |
| --- | --- |
| ` + "`severity`" + ` | critical: page. warning: ticket. info: information. none: heartbeat for a dead man's switch |
| ` + "`drain`" + ` | action for the host. no: none, jobs continue or the cause is elsewhere. cordon: no new jobs. evict: a job on this host cannot progress; it is ` + "`cordon`" + ` in the first 5m, and for hosts of a leaf or wider |

The combined verdict of a host is recorded as ` + "`instance:rdma_host_drain:state`" + ` and ` + "`instance:rdma_host_fit:state`" + `
([check --drain](check.md#drain-and-return-to-service)).

| annotation | content |
| --- | --- |
| summary | one line: host, object, fault, measured value, limit. A count fires above its limit: 3 in 1h (limit 2) fires, 2 does not |
| description | measurement, expected value, impact |
| evidence | lines "Name: value.": identity of the object, readings, data not evaluated |
| diagnose, action | one read-only command; the remedy |
| drain_reason | reason for the label ` + "`drain`" + ` |
| measured, limit | value and limit, with unit; only where there is a limit |
| runbook_url | address of the runbook, if configured |

## The alerts

Each leads to its runbook, with what to do first and what each reason is. The waiting time of a reason, and why it is that, are in
[alerts.rules.yml](../rules/node/alerts.rules.yml) and in ` + "`rules/central`" + ` for those that an exporter of a host cannot evaluate (central): they need
several hosts, other exporters or a sweep of the fabric, of which [fabric mode](fabric.md) evaluates its own. Without one of its collectors an alert, or a reason of it, is not evaluated;
[permissions.md](permissions.md) has what those need. By host: by its exporter, and by a central Prometheus.

`

const withoutAlert = `## Conditions without an alert

| condition | reason |
| --- | --- |
| link below the capability of its chip (` + "`source=\"capability\"`" + `) | capability ignores switch and cable; a pin, the neighbour, sibling ports or the port's own history define the expected rate |
| corrected FEC bits | normal on PAM4; only uncorrectable blocks count |
| CNPs, ECN marks, out-of-sequence packets | normal with congestion control and adaptive routing; the dashboards show them |
| credit waits, receivers that are not ready, counters at their maximum, messages of a stuck kernel | nobody acts on one: metrics and panels |
| uneven load of uplinks, suspected credit loops, nodes without a name, settings that differ at the ends of a link | the page of the fabric and its dashboard show them |
| rnr_nak_retry_err and local_ack_timeout_err alone | they count retries that succeeded |
| pause time of bnxt_en and ice | no pause duration counters: source and victim cannot be distinguished |
| credit waits (xmit_wait) of a saturated counter | the counter has 32 bits on mlx5 and saturates |
| lane power of transceivers on InfiniBand ports | not exposed by the kernel; ` + "`check`" + ` and rdma_detection_unavailable report it |
| latched flags of transceivers | cleared on read, for every other reader |
| speed of GPU PCIe links | idle GPUs reduce it; their width is evaluated |
| distance of single GPU and NIC pairs | 8 GPUs and 8 NICs always have distant pairs; the best eligible NIC of each GPU is evaluated |
| jobs with an NCCL net plugin or on EFA | the plugin decides: unknown |
| implausible thresholds of sensors and transceivers | for example a high alarm of 0 °C, or below the low alarm: ignored |

`

const thresholdsHead = `## Thresholds

Limits in which sites differ; limits of standards and of the hardware are constants. The rules read them as ` + "`rdma:threshold{name=\"NAME\"}`" + ` and have the
default where nothing records one. One small file has those of a site, for Prometheus and for ` + "`--alerting.rule-files`" + ` of the exporter, whose evidence
names them as well:

` + "```yaml" + `
groups:
- name: rdma-thresholds
  rules:
  - record: rdma:threshold
    labels: {name: flaps-per-hour}
    expr: vector(5)
` + "```" + `

` + "`rdma_exporter rules --tune.threshold=NAME=VALUE`" + `, the chart and the mixin write it: [Tuning](../packaging/prometheus/README.md#tuning).

`

const formerHead = `## Former names

Links to the runbook page of a former name, and ` + "`rdma_exporter runbook`" + ` with it, lead to the current alert. A silence matches only what it names:
replace it by one of the alert with its label ` + "`reason`" + `.

`

// formerNames has a row for each alert that has taken over others, with their names and reasons.
func formerNames() (rows [][]string) {
	of := map[string][]string{}
	for _, name := range runbooks.FormerNames() {
		now, _ := runbooks.Former(name)
		if now.Reason != "" {
			name = fmt.Sprintf("%s (%s)", name, now.Reason)
		}
		of[now.Alert] = append(of[now.Alert], name)
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		rows = append(rows, []string{section(name), strings.Join(of[name], ", ")})
	}
	return rows
}

// alert is the rules of one name, an alert on faults once for each symptom.
type alert struct {
	name       string
	rules      []ruleOfSet
	collectors []string
}

// ruleOfSet is one of a set: node or central.
type ruleOfSet struct {
	rulefmt.Rule
	set string
}

func (r ruleOfSet) label(name string) string { return r.Labels[name] }

func alertsPage() ([]byte, error) {
	alerts, err := load(rules.Both())
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
	rows, err := rowsOf(alerts)
	if err != nil {
		return nil, err
	}
	d.table([]string{"alert", "meaning", "severity", "drain", "collectors"}, rows)
	d.WriteString(withoutAlert)
	d.WriteString(thresholdsHead)
	var limits [][]string
	for _, th := range rules.Thresholds() {
		value := strconv.FormatFloat(th.Default, 'f', -1, 64)
		limits = append(limits, []string{code(th.Name), th.Alert, value, plain(th.Why)})
	}
	d.table([]string{"name", "alert", "default", "reason"}, limits)
	d.WriteString(formerHead)
	d.table([]string{"alert", "former names (reason)"}, formerNames())
	return trimmed(d), nil
}

// section links to the runbook of an alert.
func section(name string) string { return fmt.Sprintf("[%s](%s)", name, runbook(name)) }

// rowsOf has a row for each alert; what pages comes first.
func rowsOf(alerts []alert) (rows [][]string, err error) {
	rank := func(a alert) int {
		return slices.IndexFunc([]string{"critical", "warning", "info", ""}, func(s string) bool {
			return s == "" || slices.ContainsFunc(a.rules, func(r ruleOfSet) bool { return severity(r) == s })
		})
	}
	slices.SortStableFunc(alerts, func(a, b alert) int { return rank(a) - rank(b) })
	for _, a := range alerts {
		meaning, ok := runbooks.Meaning(a.name)
		if !ok {
			return nil, fmt.Errorf("alert %s has no runbook", a.name)
		}
		needs := codes(a.collectors)
		if a.central() {
			needs = strings.TrimPrefix(needs+", central", ", ")
		}
		rows = append(rows, []string{section(a.name), plain(meaning), a.values(severity), a.values(drain), needs})
	}
	return rows, nil
}

func severity(r ruleOfSet) string { return r.Labels["severity"] }
func drain(r ruleOfSet) string    { return r.Labels["drain"] }

// central reports whether only a central Prometheus evaluates one of the rules.
func (a alert) central() bool {
	return slices.ContainsFunc(a.rules, func(r ruleOfSet) bool { return r.set != "node" })
}

// values returns the different values of the rules of an alert.
func (a alert) values(of func(ruleOfSet) string) string {
	var out []string
	for _, r := range a.rules {
		if v := of(r); v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return strings.Join(out, ", ")
}

// load reads the alerts of rule files by name, in the order of the files.
func load(files fs.FS, names []string, err error) (alerts []alert, _ error) {
	if err != nil {
		return nil, err
	}
	var all, symptoms []ruleOfSet
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("read rules: %w", err)
		}
		groups, errs := rulefmt.Parse(text, false, model.LegacyValidation, parser.NewParser(parser.Options{}),
			slog.New(slog.DiscardHandler))
		if len(errs) > 0 {
			return nil, fmt.Errorf("read rules: %s: %w", name, errs[0])
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				switch r := (ruleOfSet{r, path.Dir(name)}); {
				case r.Alert != "":
					all = append(all, r)
				case r.Record == "rdma:finding":
					symptoms = append(symptoms, r)
				}
			}
		}
	}
	for _, r := range all {
		i := slices.IndexFunc(alerts, func(a alert) bool { return a.name == r.Alert })
		if i < 0 {
			i, alerts = len(alerts), append(alerts, alert{name: r.Alert})
		}
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.Alert, err)
		}
		of := alerting.SymptomsOf(expr, symptoms, ruleOfSet.label)
		for _, symptom := range of {
			each := r
			each.Labels = maps.Clone(symptom.Labels)
			maps.Copy(each.Labels, r.Labels)
			alerts[i].rules = append(alerts[i].rules, each)
		}
		if of == nil {
			alerts[i].rules = append(alerts[i].rules, r)
		}
	}
	return alerts, nil
}

func runbook(name string) string { return "runbooks/" + name + ".md" }
