package backtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/prometheus/common/model"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/words"
)

// Report lists the alerts that would have fired.
type Report struct {
	From   time.Time         `json:"from"`
	To     time.Time         `json:"to"`
	Step   float64           `json:"step_seconds"`
	Hosts  int               `json:"hosts"` // exporters with history
	Alerts []Row             `json:"alerts"`
	Quiet  []string          `json:"did_not_fire"`
	NoData []string          `json:"no_data"` // alerts without data in the Prometheus
	Failed map[string]string `json:"failed"`  // error by alert
}

// Row is an alert of one severity that fired.
type Row struct {
	Alert    string  `json:"alert"`
	Severity string  `json:"severity"`
	Drain    string  `json:"drain"`
	Fired    int     `json:"fired"` // episodes, for each set of labels
	Hosts    int     `json:"hosts"` // 0: alert without a host
	Longest  float64 `json:"longest_seconds"`
	Firing   int     `json:"still_firing"`
	Example  Example `json:"example"` // the longest
}

// Example is one time that the alert fired.
type Example struct {
	Labels  map[string]string `json:"labels"`
	From    time.Time         `json:"from"`
	Seconds float64           `json:"seconds"`
}

func (b *backtest) report(hosts int) *Report {
	r := &Report{
		From: b.From, To: b.last, Step: b.Step.Seconds(), Hosts: hosts, Alerts: []Row{}, Quiet: []string{},
		NoData: []string{}, Failed: b.failed,
	}
	all := b.all
	slices.SortFunc(all, func(a, b *episode) int {
		return cmp.Or(a.from.Compare(b.from), strings.Compare(keyOf(a.labels), keyOf(b.labels)))
	})
	on := map[int]map[string]bool{} // hosts by row
	fired := map[string]bool{}
	for _, e := range all {
		rule := b.rules[e.rule]
		severity, drain := rule.Labels["severity"], rule.Labels["drain"]
		fired[rule.Name] = true
		if severity == "none" { // a watchdog, which always fires
			continue
		}
		i := slices.IndexFunc(r.Alerts,
			func(x Row) bool { return x.Alert == rule.Name && x.Severity == severity && x.Drain == drain })
		if i < 0 {
			i = len(r.Alerts)
			r.Alerts = append(r.Alerts, Row{Alert: rule.Name, Severity: severity, Drain: drain})
			on[i] = map[string]bool{}
		}
		x := &r.Alerts[i]
		x.Fired++
		if e.to.Equal(b.last) {
			x.Firing++
		}
		if host := e.labels["instance"]; host != "" {
			on[i][e.labels["cluster"]+"\xff"+host] = true
		}
		x.Hosts = len(on[i])
		if lasted := e.to.Sub(e.from) + b.Step; lasted.Seconds() > x.Longest {
			x.Longest = lasted.Seconds()
			x.Example = Example{e.labels, e.from, lasted.Seconds()}
		}
	}
	slices.SortStableFunc(r.Alerts, func(a, b Row) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(b.Fired, a.Fired),
			strings.Compare(a.Alert, b.Alert))
	})
	for _, rule := range b.rules {
		if fired[rule.Name] || slices.Contains(r.Quiet, rule.Name) || slices.Contains(r.NoData, rule.Name) {
			continue
		}
		data := slices.ContainsFunc(b.rules, func(other alerting.Rule) bool {
			return other.Name == rule.Name &&
				slices.ContainsFunc(other.Metrics, func(m string) bool { return b.seen[m] && !shared[m] })
		})
		if data {
			r.Quiet = append(r.Quiet, rule.Name)
		} else {
			r.NoData = append(r.NoData, rule.Name)
		}
	}
	return r
}

// shared are metrics that nearly every rule reads. They do not count as data of a rule.
var shared = map[string]bool{
	"rdma_port_ignored": true, "rdma_device_ignored": true, "rdma_gpu_ignored": true, "rdma_port_info": true,
	"rdma_device_info": true, "rdma_port_state_id": true, "rdma_host_uptime_seconds": true, "ALERTS": true,
}

func rank(severity string) int {
	return slices.Index([]string{"critical", "warning", "info"}, severity)
}

// Only leaves the alerts of these names.
func (r *Report) Only(names []string) {
	other := func(name string) bool { return !slices.Contains(names, name) }
	r.Alerts = slices.DeleteFunc(r.Alerts, func(x Row) bool { return other(x.Alert) })
	r.Quiet, r.NoData = slices.DeleteFunc(r.Quiet, other), slices.DeleteFunc(r.NoData, other)
	maps.DeleteFunc(r.Failed, func(name, _ string) bool { return other(name) })
}

// JSON writes the report as JSON.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Table writes the report as text.
func (r *Report) Table(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s to %s UTC, evaluated every %s: %s\n\n", r.From.UTC().Format("2006-01-02 15:04"),
		r.To.UTC().Format("2006-01-02 15:04"), short(seconds(r.Step)), words.Count(r.Hosts, "host"))
	if len(r.Alerts) > 0 {
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "SEVERITY\tALERT\tDRAIN\tFIRED\tHOSTS\tLONGEST\tEXAMPLE")
		for _, x := range r.Alerts {
			hosts := fmt.Sprint(x.Hosts)
			if x.Hosts == 0 {
				hosts = "-"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s, %s\n", x.Severity, x.Alert, x.Drain, x.Fired, hosts,
				short(seconds(x.Longest)), where(x.Example.Labels), x.Example.From.UTC().Format("2006-01-02 15:04"))
		}
		t.Flush() //nolint:errcheck // writes to memory
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "Did not fire: %s.\n", words.Count(len(r.Quiet), "alert"))
	if len(r.NoData) > 0 {
		fmt.Fprintf(&b, "Not evaluated (no data in this Prometheus): %s.\n", strings.Join(r.NoData, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Failed)) {
		fmt.Fprintf(&b, "Evaluation failed: %s: %s\n", name, r.Failed[name])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// where names host and object of an alert.
func where(labels map[string]string) string {
	var out []string
	if host := labels["instance"]; host != "" {
		out = append(out, words.HostName(host))
	}
	if device := labels["device"]; device != "" {
		if port := labels["port"]; port != "" {
			device += "/" + port
		}
		out = append(out, device)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		switch name {
		case "alertname", "severity", "default_severity", "drain", "instance", "device", "port", "job", "UUID":
		default:
			out = append(out, name+"="+labels[name])
		}
	}
	return cmp.Or(strings.Join(out, " "), labels["job"])
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// short returns a duration in the format of Prometheus.
func short(d time.Duration) string { return model.Duration(d.Round(time.Second)).String() }
