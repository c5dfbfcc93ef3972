package main

import (
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/dashboards/gen/runbooks"
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
			{From: "first", Title: "First", Words: append(firsts, shared), Width: 240},
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
	const wide = `scope=~"leaf|switch|rack|rail|common"`
	is, atLeast := `severity="`+level.Text+`"`, strings.Join(higher, "|")
	return fmt.Sprintf("(%s unless (%s and on (%s, alertname, where) %s or %s and on (%[3]s, where) %s))",
		s.Alerts(is), s.Alerts(`alertstate="pending"`, is), perHost, s.Firing(atLeast),
		s.Alerts(`alertstate="pending"`, is, wide), s.Firing(atLeast, wide))
}

// withMeaning adds the name of an alert with its reason twice, for its meaning and its first action, which is another
// if hosts share the cause. Alerts without a device have no link to one.
func withMeaning(expr string) string {
	for _, format := range []string{
		`label_replace(%s, "device", "$$__all", "device", "")`,
		`label_join(%s, "what", " ", "alertname", "where")`,
		`label_join(%s, "first", " ", "alertname", "reason")`,
		`label_replace(%s, "first", "` + sharedCause + `", "what", "RDMA(PortDown|Link.*|Transceiver.*) (switch|rack|rail) .+")`,
		`label_join(%s, "what", " ", "alertname", "reason")`,
	} {
		expr = fmt.Sprintf(format, expr)
	}
	return expr
}

// sharedCause is in place of the alert whose first action is on a host: it would drain all of them.
const sharedCause = "shared"

var shared = word{Value: sharedCause, Text: "Repair what the ports share (switch, power), not each host"}

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
// and Grafana 12 leaves a link without an address out.
func withWay(expr, to string) string {
	expr = fmt.Sprintf(`label_replace(label_join(%s, "way", " ", "job", "instance"), "way", "", "way", " ")`, expr)
	expr = fmt.Sprintf(`label_replace(%s, "way", %q, "way", "(.+) (.+)")`, expr, to+here)
	return fmt.Sprintf(`label_replace(%s, "page", "http://$1/", "instance", "(.+)")`, expr)
}

// meanings are what is wrong, by alert and reason, and the first sentences of the runbooks by alert alone. firsts are
// the first actions, by both. symptoms and remedies are the same by the symptom that an alert is on.
var (
	meanings, firsts = runbooks.Read("../../docs/runbooks")
	symptoms         = runbooks.BySymptom("../../rules", meanings)
	remedies         = append(runbooks.BySymptom("../../rules", firsts), word{Value: "[a-z_]+ ", Text: runbooks.None})
)
