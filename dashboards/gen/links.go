package main

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
		Title: "Host " + hostLabel,
		URL: "/d/rdma-node?${datasource:queryparam}&${cluster:queryparam}" + chosenOr("job", jobLabel) +
			"&var-host=" + hostLabel + "&${__url_time_range}",
	}
	if deviceLabel != "" {
		w = way{Title: "Device " + deviceLabel + " of " + hostLabel, URL: w.URL + "&var-device=" + deviceLabel}
	}
	return w
}

// toSwitch returns a link to the dashboard of a fabric, and of one switch if it is given.
func toSwitch(jobLabel, fabric, node string) way {
	w := way{Title: "Fabric of " + fabric, URL: "/d/rdma-subnet?${datasource:queryparam}&${cluster:queryparam}" +
		chosenOr("fabric_job", jobLabel) + "&var-fabric=" + fabric + "&${__url_time_range}"}
	if node != "" {
		w = way{Title: "Switch " + node, URL: w.URL + "&var-switch=" + node}
	}
	return w
}

// toPanel returns a link to a panel of the fabric's dashboard alone: its title, which the file has as its number.
func toPanel(title string) way {
	return way{
		Title: title, URL: "/d/rdma-fabric?${datasource:queryparam}&${cluster:queryparam}&${job:queryparam}&${hosts:queryparam}&" +
			"${fabric_job:queryparam}&${__url_time_range}&viewPanel=" + title,
	}
}

// toJob returns a link to the dashboard of a job.
func toJob(jobLabel, id string) way {
	return way{
		Title: "Job " + cell, URL: "/d/rdma-job?${datasource:queryparam}&${cluster:queryparam}" + chosenOr("job", jobLabel) +
			"&var-workload=" + id + "&${__url_time_range}",
	}
}

// toBoard returns a link to another dashboard of the chosen hosts.
func toBoard(title, name string) way {
	return way{
		Title: title, URL: "/d/rdma-" + name + "?${datasource:queryparam}&${cluster:queryparam}&${job:queryparam}&${hosts:queryparam}&" +
			"${__url_time_range}",
	}
}

// ofThisHost returns a link from the dashboard of a host to another with this host alone.
func ofThisHost(title, name string) way {
	return way{
		Title: title + " of this host",
		URL: "/d/rdma-" + name + "?${datasource:queryparam}&${cluster:queryparam}&${job:queryparam}&var-hosts=${host}&" +
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
var toRunbook = way{Title: "Runbook of " + cell, URL: "http://${books}/runbooks/" + cell}

// toPage returns the page of an exporter, which has the finding with its figures, command and action.
func toPage(exporter string) way {
	return way{Title: "Findings on the page of " + exporter, URL: "http://" + exporter + "/"}
}
