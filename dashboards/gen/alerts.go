package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// alertTable lists alerts of some severities, the most severe first. exporter is the address of theirs in a link. On a
// phone the first three columns are seen: severity, of what, alert.
func alertTable(of []scope, levels []word, exporter string, where []column, labelOfDevice column,
	rest ...column,
) panel {
	var ranks, times []string
	for _, s := range of {
		var names []string
		for _, l := range levels {
			ranks = append(ranks, l.value+" * "+s.alerts(`severity="`+l.text+`"`))
			names = append(names, l.text)
		}
		times = append(times, "1000 * "+s.alerts(`severity=~"`+strings.Join(names, "|")+`"`)+
			" * ignoring (alertstate) group_left () "+s.of("ALERTS_FOR_STATE"))
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
		noValue: "none firing or pending, or the rules are not loaded",
		text: "Alerts of the product that are firing or pending, the most severe first, from the series ALERTS of the Prometheus that evaluates the rules. The name links to the runbook, " +
			"the host to its dashboard and to the exporter's page, which has figures, command and action of each finding.",
		queries: []query{{expr: withMeaning(maxBy(labels, rank))}, {expr: withMeaning(maxBy(labels, since))}},
		columns: slices.Concat([]column{
			{from: "A", title: "Severity", words: severities, width: 76},
		}, where, []column{
			{from: "alertname", title: "Alert", width: 205, ways: []way{toRunbook(exporter)}},
			{from: "what", title: "Meaning", words: meanings, width: 335},
			labelOfDevice,
			{from: "where", title: "Where", width: 200},
			{from: "reason", title: "Reason", width: 130},
			{from: "B", title: "Since", unit: "dateTimeFromNow", width: 110},
			{from: "drain", title: "Drain", words: drains, width: 65},
			{from: "alertstate", title: "State", words: alertStates, width: 70},
		}, rest, []column{
			cluster, job,
		}),
	}
}

// withMeaning adds the name of an alert once more, for its meaning. Alerts without a device have no link to one.
func withMeaning(expr string) string {
	expr = fmt.Sprintf(`label_replace(%s, "device", "$$__all", "device", "")`, expr)
	return fmt.Sprintf(`label_replace(%s, "what", "$1", "alertname", "(.*)")`, expr)
}

// meanings are the first sentences of the runbooks, by alert.
var meanings = firstSentences("../../docs/runbooks")

// firstSentences reads the line below the title of each runbook.
func firstSentences(dir string) (out []word) {
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
		if !bytes.HasPrefix(line, []byte("#")) {
			out = append(out,
				word{string(bytes.TrimPrefix(title, []byte("# "))), strings.TrimSuffix(string(line), "."), neutral})
		}
	}
	return out
}
