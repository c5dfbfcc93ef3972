package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// way is a link to a dashboard, or to a page of an exporter.
type way struct{ title, url string }

func (w way) link() dashboard.DashboardLink {
	return dashboard.DashboardLink{
		Title: w.title, Type: dashboard.DashboardLinkTypeLink, Tags: []string{}, Url: &w.url,
		TargetBlank: strings.HasPrefix(w.url, "http"),
	}
}

// linksOf returns the Grafana links for ways; nil if there are none.
func linksOf(ways ...way) (out []dashboard.DashboardLink) {
	for _, w := range ways {
		out = append(out, w.link())
	}
	return out
}

// sameJob passes the choice of jobs on, which may be several.
const sameJob = ""

// chosenOr sets a variable to a value, or passes its choice on.
func chosenOr(name, value string) string {
	if value == sameJob {
		return "&${" + name + ":queryparam}"
	}
	return "&var-" + name + "=" + value
}

// toNode returns a link to the dashboard of a host, and of one device if it is given.
func toNode(jobLabel, hostLabel, deviceLabel string) way {
	w := way{
		"Host " + hostLabel,
		"/d/rdma-node?${datasource:queryparam}&${cluster:queryparam}" + chosenOr("job", jobLabel) +
			"&var-host=" + hostLabel + "&${__url_time_range}",
	}
	if deviceLabel != "" {
		w = way{"Device " + deviceLabel + " of " + hostLabel, w.url + "&var-device=" + deviceLabel}
	}
	return w
}

// toSwitch returns a link to the dashboard of a fabric, and of one switch if it is given.
func toSwitch(jobLabel, fabric, node string) way {
	w := way{"Fabric of " + fabric, "/d/rdma-subnet?${datasource:queryparam}&${cluster:queryparam}" +
		chosenOr("fabric_job", jobLabel) + "&var-fabric=" + fabric + "&${__url_time_range}"}
	if node != "" {
		w = way{"Switch " + node, w.url + "&var-switch=" + node}
	}
	return w
}

// toPanel returns a link to a panel of the fabric's dashboard alone: its title, which the file has as its number.
func toPanel(title string) way {
	return way{
		title, "/d/rdma-fabric?${datasource:queryparam}&${cluster:queryparam}&${job:queryparam}&${hosts:queryparam}&" +
			"${fabric_job:queryparam}&${__url_time_range}&viewPanel=" + title,
	}
}

// toJob returns a link to the dashboard of a job.
func toJob(jobLabel, id string) way {
	return way{
		"Job " + cell, "/d/rdma-job?${datasource:queryparam}&${cluster:queryparam}" + chosenOr("job", jobLabel) +
			"&var-workload=" + id + "&${__url_time_range}",
	}
}

// toBoard returns a link to another dashboard of the chosen hosts.
func toBoard(title, name string) way {
	return way{
		title, "/d/rdma-" + name + "?${datasource:queryparam}&${cluster:queryparam}&${job:queryparam}&${hosts:queryparam}&" +
			"${__url_time_range}",
	}
}

// ofThisHost returns a link from the dashboard of a host to another with this host alone.
func ofThisHost(title, name string) way {
	return way{
		title + " of this host", "/d/rdma-" + name + "?${datasource:queryparam}&${cluster:queryparam}&${job:queryparam}&var-hosts=${host}&" +
			"${__url_time_range}",
	}
}

// What links in a table are filled with: the cell, and cells of other columns in its row.
const (
	cell       = "${__value.raw}"
	jobCell    = "${__data.fields.Job}"
	targetCell = "${__data.fields.Target}"
)

// Links of series: to the dashboard of their host, or of their switch.
var (
	ofHost   = []way{toNode("${__field.labels.job}", "${__field.labels.instance}", "")}
	ofSwitch = []way{toSwitch(sameJob, "${fabric}", "${__field.labels.node}")}
)

// toRunbook is a link to the runbook as served by an exporter that answers: that of the alert may be gone, and
// alerts of
// a cluster have none. rdma_exporter dashboards --runbook-url replaces the address.
var toRunbook = way{"Runbook of " + cell, "http://${books}/runbooks/" + cell}

// toPage returns the page of an exporter, which has the finding with its figures, command and action.
func toPage(exporter string) way {
	return way{"Findings on the page of " + exporter, "http://" + exporter + "/"}
}

// header are the links at the top of a dashboard: one menu of the product's dashboards, which gets the variables that
// both have, and those of other exporters, which are found by tag if they are installed.
func header() (out []dashboard.DashboardLink) {
	for _, of := range []struct{ tag, title, icon string }{
		{"rdma", "RDMA", "dashboard"},
		{"node-exporter-mixin", "node-exporter-mixin", "external link"},
		{"dcgm", "dcgm", "external link"},
	} {
		menu := of.tag == "rdma"
		out = append(out, dashboard.DashboardLink{
			Title: of.title, Type: dashboard.DashboardLinkTypeDashboards, Icon: of.icon, Tags: []string{of.tag},
			AsDropdown: menu, IncludeVars: menu, KeepTime: true,
		})
	}
	return out
}

// marks show when alerts of the dashboard's topic began to fire, with a link to the host, once they are switched on.
func marks(alerts string) dashboard.AnnotationQuery {
	return dashboard.AnnotationQuery{
		Name: "Alerts", Enable: false, IconColor: warning, Datasource: &source,
		Expr:        cog.ToPtr(withHost(alerts)),
		Step:        cog.ToPtr("60s"),
		TitleFormat: cog.ToPtr("{{alertname}}"),
		TextFormat:  cog.ToPtr(`<a href="d/rdma-node?var-job={{job}}&var-host={{instance}}">{{host}}</a> {{device}} {{port}} {{gpu}}`),
		TagKeys:     cog.ToPtr("severity"),
	}
}
