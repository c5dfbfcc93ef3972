package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// alertTable lists alerts of some severities, the most severe first. On a phone the first three columns are seen:
// severity, of what, alert.
func alertTable(of []scope, levels []word, where []column, labelOfDevice column, rest ...column) panel {
	var ranks, times, names []string
	for _, l := range levels {
		names = append(names, l.text)
	}
	for _, s := range of {
		for _, l := range levels {
			ranks = append(ranks, s.goes(l.value+" * "+s.alerts(`severity="`+l.text+`"`)))
		}
		times = append(times, s.goes("1000 * "+s.alerts(`severity=~"`+strings.Join(names, "|")+`"`)+
			" * ignoring (alertstate) group_left () "+s.of("ALERTS_FOR_STATE")))
	}
	rank, since := strings.Join(ranks, " or "), strings.Join(times, " or ")
	labels := perAlert
	for _, c := range slices.Concat(where, rest) {
		if c.from != "host" && !slices.Contains(strings.Split(labels, ", "), c.from) {
			labels += ", " + c.from
		}
	}
	return panel{
		title: "Alerts", unit: "none", width: grid, height: 10, view: table, sort: "Severity",
		noValue: "unknown: the rules are not loaded",
		text: "Alerts of the product that are firing or pending, the most severe first, from the series ALERTS of the Prometheus that evaluates the rules. The name links to the runbook, " +
			"the host to its dashboard and to the exporter's page, which has figures, command and action of each finding.",
		queries: []query{
			{expr: withMeaning(maxBy(labels, rank))},
			{expr: withMeaning(maxBy(labels, since))},
		},
		columns: slices.Concat([]column{
			{from: "A", title: "Severity", words: severities, width: 76},
		}, where, []column{
			{from: "alertname", title: "Alert", width: 205, ways: []way{toRunbook}},
			{from: "what", title: "Meaning", words: meanings, width: 335},
			labelOfDevice,
			{from: "where", title: "Where", width: 200},
			{from: "reason", title: "Reason", width: 130},
			{from: "B", title: "Since", unit: "dateTimeFromNow", width: 110, missing: "n/a"},
			{from: "drain", title: "Drain", words: drains, width: 65},
			{from: "alertstate", title: "State", words: alertStates, width: 70},
		}, rest, []column{
			cluster, job,
		}),
	}
}

// orNone adds a row for where there is no alert and the rules are evaluated, on as many parts as all has series.
func (p panel) orNone(text, all string) panel {
	none := fmt.Sprintf(`0 * label_replace(count_values("what", count(%s)), "what", %q, "what", "(.*)")`, all, text)
	p.queries[0].expr += " or on () " + none
	return p
}

// evaluated are the hosts that the rules are evaluated on.
func (s scope) evaluated() string { return s.of("ALERTS", `alertname="RDMAWatchdog"`) }

// withMeaning adds the name of an alert with its reason, for its meaning. Alerts without a device have no link to one.
func withMeaning(expr string) string {
	expr = fmt.Sprintf(`label_replace(%s, "device", "$$__all", "device", "")`, expr)
	return fmt.Sprintf(`label_join(%s, "what", " ", "alertname", "reason")`, expr)
}

// Addresses of the dashboards of a host and of a fabric, by job and instance.
const (
	toNodeBy   = "d/rdma-node?var-job=$1&var-host=$2"
	toFabricBy = "d/rdma-subnet?var-fabric_job=$1&var-fabric=$2"
	here       = "&var-datasource=${datasource}&from=${__from}&to=${__to}"
)

// goes adds the addresses for alerts of the fleet, which has some without a host.
func (s scope) goes(expr string) string {
	switch s {
	case fleet:
		expr = withoutHost(expr)
		return fmt.Sprintf(`label_replace(%s, "way", %q, "job_id", "(.+)")`, withWay(expr, toNodeBy),
			"d/rdma-job?var-workload=$1"+here)
	case fabrics:
		return withWay(expr, toFabricBy)
	case host:
		return withoutHost(expr)
	default:
		return expr
	}
}

// withoutHost leaves the host out of the place of an alert of a device or GPU: it is a column of its own.
func withoutHost(expr string) string {
	return fmt.Sprintf(`label_replace(label_join(%s, "at", " ", "instance", "where"), "where", "$1", "at", "[^ ]+ [^ ]+ ([^ ]+)")`, expr)
}

// withWay adds the addresses of the dashboard and of the page of a host or fabric. What has no instance has neither,
// and
// Grafana 12 leaves a link without an address out.
func withWay(expr, to string) string {
	expr = fmt.Sprintf(`label_replace(label_join(%s, "way", " ", "job", "instance"), "way", "", "way", " ")`, expr)
	expr = fmt.Sprintf(`label_replace(%s, "way", %q, "way", "(.+) (.+)")`, expr, to+here)
	return fmt.Sprintf(`label_replace(%s, "page", "http://$1/", "instance", "(.+)")`, expr)
}

// symptoms are the meanings of alerts by the symptom that they are on, and by symptom and reason.
var symptoms = bySymptom("../../rules/node/alerts.rules.yml")

// bySymptom reads the alerts of a rule file.
func bySymptom(path string) (out []word) {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`- alert: (\w+)\n +expr: .*symptom="(\w+)"`).FindAllSubmatch(text, -1) {
		for _, w := range meanings {
			if reason, ok := strings.CutPrefix(w.value, string(m[1])+" "); ok && !seen[string(m[2])+reason] {
				seen[string(m[2])+reason] = true
				out = append(out, word{string(m[2]) + " " + reason, w.text, neutral})
			}
		}
	}
	if len(out) == 0 {
		panic("no alert in " + path)
	}
	return out
}

// meanings are the first sentences of the runbooks, by alert, and for alerts with a reason what is wrong and the first
// action, by both.
var meanings = readRunbooks("../../docs/runbooks")

// ofReason is a row of the table of reasons in a runbook.
var ofReason = regexp.MustCompile("(?m)^\\| \\[`(\\w+)`\\]\\([^)]*\\) \\| ([^|]+) \\| ([^|]+) \\|$")

// markup is what a cell does not render.
var markup = regexp.MustCompile("\\[([^\\]]*)\\]\\([^)]*\\)|`")

// readRunbooks reads the line below the title of each runbook, and its reasons.
func readRunbooks(dir string) (out []word) {
	names, err := filepath.Glob(filepath.Join(dir, "RDMA*.md"))
	if err != nil || len(names) == 0 {
		panic(fmt.Sprintf("no runbooks in %s: %v", dir, err))
	}
	for _, path := range names {
		text, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		title, rest, _ := bytes.Cut(text, []byte("\n"))
		line, _, _ := bytes.Cut(bytes.TrimLeft(rest, "\n"), []byte("\n"))
		if bytes.HasPrefix(line, []byte("#")) {
			continue
		}
		alert := string(bytes.TrimPrefix(title, []byte("# ")))
		out = append(out, word{alert + " ", strings.TrimSuffix(string(line), "."), neutral})
		for _, m := range ofReason.FindAllStringSubmatch(string(text), -1) {
			meaning := markup.ReplaceAllString(m[2]+". First: "+m[3], "$1")
			out = append(out, word{alert + " " + m[1], strings.ToUpper(meaning[:1]) + meaning[1:], neutral})
		}
	}
	return out
}
