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
	var ranks, times []string
	for _, s := range of {
		var all []string
		for _, l := range levels {
			all = append(all, folded(s, l))
			ranks = append(ranks, goes(s, l.Value+" * "+folded(s, l)))
		}
		times = append(times, goes(s, "1000 * ("+strings.Join(all, " or ")+
			") * ignoring (alertstate) group_left () "+s.Of("ALERTS_FOR_STATE")))
	}
	rank, since := strings.Join(ranks, " or "), strings.Join(times, " or ")
	labels := perAlert
	for _, c := range slices.Concat(where, rest) {
		if c.From != "host" && !slices.Contains(strings.Split(labels, ", "), c.From) {
			labels += ", " + c.From
		}
	}
	return panel{
		Title: "Alerts", Unit: "none", Width: grid, Height: 10, View: table, Sort: "Severity",
		NoValue: "unknown: the rules are not loaded",
		Text: "Alerts of the product that are firing or pending, the most severe first, from the series ALERTS of the Prometheus that evaluates the rules; pending ones of a cause that fires are left out. " +
			"The name links to the runbook, the host to its dashboard and to the exporter's page, which has figures, command and action of each finding.",
		Queries: []query{
			{Expr: withMeaning(maxBy(labels, rank))},
			{Expr: withMeaning(maxBy(labels, since))},
		},
		Columns: slices.Concat([]column{
			{From: "A", Title: "Severity", Words: severities, Width: 76},
		}, where, []column{
			{From: "alertname", Title: "Alert", Width: 222, Ways: []way{toRunbook}},
			{From: "what", Title: "Meaning", Words: meanings, Width: 280},
			{From: "first", Title: "First", Words: firsts, Width: 240},
			labelOfDevice,
			{From: "where", Title: "Where", Width: 150},
			{From: "alertstate", Title: "State", Words: alertStates, Width: 70},
			{From: "B", Title: "Since", Unit: "dateTimeFromNow", Width: 138, Missing: "n/a"},
			{From: "drain", Title: "Drain", Words: drains, Width: 65},
		}, rest, []column{
			hidden("reason"), cluster, job, // the meaning names the reason
		}),
	}
}

// folded returns the alerts of a severity without those that are pending while one at least as severe fires of the same
// cause: of the same name at the same place, or of any name at the same switch, rack or rail.
func folded(s scope, level word) string {
	var higher []string
	for _, l := range severities[:1+slices.Index(severities, level)] {
		higher = append(higher, l.Text)
	}
	const shared = `scope=~"leaf|switch|rack|rail"`
	is, atLeast := `severity="`+level.Text+`"`, strings.Join(higher, "|")
	return fmt.Sprintf("(%s unless (%s and on (%s, alertname, where) %s or %s and on (%[3]s, where) %s))",
		s.Alerts(is), s.Alerts(`alertstate="pending"`, is), perHost, s.Firing(atLeast),
		s.Alerts(`alertstate="pending"`, is, shared), s.Firing(atLeast, shared))
}

// withMeaning adds the name of an alert with its reason twice, for its meaning and its first action. Alerts without a
// device have no link to one.
func withMeaning(expr string) string {
	expr = fmt.Sprintf(`label_replace(%s, "device", "$$__all", "device", "")`, expr)
	expr = fmt.Sprintf(`label_join(%s, "what", " ", "alertname", "reason")`, expr)
	return fmt.Sprintf(`label_join(%s, "first", " ", "alertname", "reason")`, expr)
}

// Addresses of the dashboards of a host and of a fabric, by job and instance.
const (
	toNodeBy   = "d/rdma-node?var-job=$1&var-host=$2"
	toFabricBy = "d/rdma-subnet?var-fabric_job=$1&var-fabric=$2"
	here       = "&var-datasource=${datasource}&from=${__from}&to=${__to}"
)

// goes adds the addresses for alerts of the fleet, which has some without a host.
func goes(s scope, expr string) string {
	switch s {
	case fleet:
		expr = withoutHost(expr)
		return fmt.Sprintf(`label_replace(%s, "way", %q, "job_id", "(.+)")`, withWay(expr, toNodeBy),
			"d/rdma-job?var-workload=$1"+here)
	case fabrics:
		return withWay(expr, toFabricBy)
	default:
		if strings.HasPrefix(string(s), string(fabrics)) {
			return expr
		}
		return withoutHost(expr)
	}
}

// withoutHost leaves the host out of the place of an alert of a device or GPU: it is a column of its own.
func withoutHost(expr string) string {
	expr = fmt.Sprintf(`label_replace(label_join(%s, "at", " ", "instance", "where"), "where", "$1", "at", "[^ ]+ [^ ]+ ([^ ]+)")`, expr)
	return fmt.Sprintf(`label_replace(%s, "where", "GPU $1", "gpu", "(.+)")`, expr)
}

// withWay adds the addresses of the dashboard and of the page of a host or fabric. What has no instance has neither,
// and
// Grafana 12 leaves a link without an address out.
func withWay(expr, to string) string {
	expr = fmt.Sprintf(`label_replace(label_join(%s, "way", " ", "job", "instance"), "way", "", "way", " ")`, expr)
	expr = fmt.Sprintf(`label_replace(%s, "way", %q, "way", "(.+) (.+)")`, expr, to+here)
	return fmt.Sprintf(`label_replace(%s, "page", "http://$1/", "instance", "(.+)")`, expr)
}

// symptoms are the meanings of alerts by the symptom that they are on, and by symptom and reason; remedies are their
// first actions.
var (
	symptoms = bySymptom("../../rules", meanings)
	remedies = append(bySymptom("../../rules", firsts), word{Value: "[a-z_]+ ", Text: seeRunbook})
)

// seeRunbook is in place of a first action where the runbook has none in its table of reasons.
const seeRunbook = "see the runbook"

// bySymptom reads the alerts of hosts and of the fleet.
func bySymptom(dir string, texts []word) (out []word) {
	var text []byte
	for _, name := range []string{"node/alerts.rules.yml", "central/fleet_alerts.rules.yml"} {
		file, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			panic(err)
		}
		text = append(text, file...)
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`- alert: (\w+)\n +expr: .*symptom="(\w+)"`).FindAllSubmatch(text, -1) {
		for _, w := range texts {
			if reason, ok := strings.CutPrefix(w.Value, string(m[1])+" "); ok && !seen[string(m[2])+reason] {
				seen[string(m[2])+reason] = true
				out = append(out, word{Value: string(m[2]) + " " + reason, Text: w.Text})
			}
		}
	}
	if len(out) == 0 {
		panic("no alert in " + dir)
	}
	return out
}

// meanings are what is wrong, by alert and reason, and the first sentences of the runbooks by alert alone. firsts are
// the first actions, by both.
var meanings, firsts = readRunbooks("../../docs/runbooks")

// ofReason is a row of the table of reasons in a runbook, and aboutReasons the title of its second column.
var (
	ofReason = regexp.MustCompile("(?m)^\\| \\[`(\\w+)`\\]\\([^)]*\\) \\| ([^|]+) \\| " +
		`(?:(?:critical|warning|info) \| )?([^|]+) \|$`)
	aboutReasons = regexp.MustCompile(`(?m)^\| reason \| what is ([a-z]+) \|`)
)

// markup is what a cell does not render.
var markup = regexp.MustCompile("\\[([^\\]]*)\\]\\([^)]*\\)|`")

// readRunbooks reads the line below the title of each runbook, and its reasons.
func readRunbooks(dir string) (what, first []word) {
	names, err := filepath.Glob(filepath.Join(dir, "RDMA*.md"))
	if err != nil || len(names) == 0 {
		panic(fmt.Sprintf("no runbooks in %s: %v", dir, err))
	}
	plain := func(text []byte) string {
		s := markup.ReplaceAllString(string(text), "$1")
		return strings.ToUpper(s[:1]) + s[1:]
	}
	for _, path := range names {
		text, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		title, rest, _ := bytes.Cut(text, []byte("\n"))
		about, _, _ := bytes.Cut(bytes.TrimLeft(rest, "\n"), []byte("\n"))
		if bytes.HasPrefix(about, []byte("#")) {
			continue
		}
		alert := string(bytes.TrimPrefix(title, []byte("# ")))
		what = append(what, word{Value: alert + " ", Text: strings.TrimSuffix(string(about), ".")})
		lead := ""
		if m := aboutReasons.FindSubmatch(text); m != nil && string(m[1]) == "missing" {
			lead = "Missing: "
		}
		for _, m := range ofReason.FindAllSubmatch(text, -1) {
			of := alert + " " + string(m[1])
			is := plain(m[2])
			if lead != "" {
				is = lead + strings.ToLower(is[:1]) + is[1:]
			}
			what = append(what, word{Value: of, Text: is})
			first = append(first, word{Value: of, Text: plain(m[3])})
		}
	}
	return what, append(first, word{Value: "RDMA.* ", Text: seeRunbook})
}
