package check

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/words"
)

// Values of the label drain: what to do with a host.
const (
	DrainNo      = "no"     // jobs go on, or the cause is elsewhere
	DrainCordon  = "cordon" // no new jobs; those that run may finish
	DrainEvict   = "evict"  // a job on this host cannot progress
	drainUnknown = "unknown"
)

// drains are the names of the values of instance:rdma_host_drain:state.
var drains = []string{DrainNo, DrainCordon, DrainEvict}

// meanings explains the states that drain a host. The scripts in packaging read lines that start with a state and a
// blank.
var meanings = map[string]string{
	DrainCordon: "cordon: no new jobs, running jobs may finish.",
	DrainEvict:  "evict: no new jobs, and a running job on this host cannot progress: stop it.",
}

// CleanFor is the time that the links of a repaired host must be free of errors before it takes jobs. NVIDIA UFM ends
// the isolation of a link (packet drop and error rate isolation) after the same time.
const CleanFor = 126 * time.Minute

// HostVerdict says whether a host is fit for jobs and whether to drain it.
type HostVerdict struct {
	Fit          *bool        `json:"fit"`                 // for jobs; null: unknown
	Drain        string       `json:"drain"`               // no, cordon, evict, unknown
	DrainAlerts  []DrainAlert `json:"drain_alerts"`        // that drain it
	CleanSeconds *float64     `json:"links_clean_seconds"` // since the last error of a link of this host; null: unknown
}

// DrainAlert is an alert that drains a host.
type DrainAlert struct {
	Alert string `json:"alert"`
	Drain string `json:"drain"` // cordon, evict
}

// Recorded is the verdict recorded by rules/node/verdict.rules.yml. Values that are not recorded are nil.
type Recorded struct {
	Fit, Drain, CleanSeconds *float64
	Draining                 map[string]float64 // alert:rdma_host_drain:state by alertname
}

// setHostVerdict sets the recorded verdict. A one-off evaluation (no interval) cannot wait: a pending rule on the
// present state counts as firing, and cordons the host. It never evicts, since the cause may be a leaf switch that is
// restarting.
func (r *Report) setHostVerdict(in Input) {
	alerts := map[string]float64{}
	maps.Copy(alerts, in.Recorded.Draining)
	r.Drain, r.CleanSeconds = drainUnknown, in.Recorded.CleanSeconds
	if in.Recorded.Drain != nil {
		r.Drain = drainOf(*in.Recorded.Drain)
	}
	if in.Recorded.Fit != nil {
		fit := *in.Recorded.Fit == 1
		r.Fit = &fit
	}
	if r.Drain == DrainNo && r.HasUnknown() {
		r.Drain, r.Fit = drainUnknown, nil
	}
	if in.Interval == 0 && r.Drain != drainUnknown {
		for _, f := range r.Findings {
			if f.State != string(alerting.StatePending) || f.Waits || slices.Index(drains, f.Drain) <= 0 {
				continue
			}
			cordon := slices.Index(drains, DrainCordon)
			alerts[f.Alert] = max(alerts[f.Alert], float64(cordon))
			r.Drain = drains[max(cordon, slices.Index(drains, r.Drain))]
			r.Fit = new(bool)
		}
	}
	r.DrainAlerts = []DrainAlert{}
	for _, name := range slices.Sorted(maps.Keys(alerts)) {
		r.DrainAlerts = append(r.DrainAlerts, DrainAlert{name, drainOf(alerts[name])})
	}
}

func drainOf(state float64) string {
	if i := int(state); i >= 0 && i < len(drains) {
		return drains[i]
	}
	return drainUnknown
}

// filter returns the verdict based on the wanted alerts only.
func (v HostVerdict) filter(wanted func(alert string) bool) HostVerdict {
	v.DrainAlerts = slices.DeleteFunc(slices.Clone(v.DrainAlerts), func(a DrainAlert) bool { return !wanted(a.Alert) })
	if v.Drain != DrainCordon && v.Drain != DrainEvict {
		return v
	}
	worst := 0
	for _, a := range v.DrainAlerts {
		worst = max(worst, slices.Index(drains, a.Drain))
	}
	v.Drain = drains[worst]
	return v
}

// DrainExitCode returns the exit code of check --drain: ExitCritical if the host is to be drained. An unknown verdict
// does not drain it.
func (v HostVerdict) DrainExitCode() int {
	switch v.Drain {
	case DrainNo:
		return ExitOK
	case DrainCordon, DrainEvict:
		return ExitCritical
	}
	return ExitUnknown
}

// Drain writes the verdict ("HOST: evict"), a line for each finding that drains the host, and a line that explains the
// states.
func Drain(w io.Writer, r Report, dryRun bool) error {
	var text strings.Builder
	what := r.Drain
	switch {
	case what == drainUnknown:
		what = "drain unknown, do not drain: " + r.Why()
	case what == DrainNo && len(r.DrainAlerts) > 0:
		what = "no drain, maintenance is announced"
	case what == DrainNo:
		what = "no drain"
	case dryRun:
		what = "would drain: " + what
	}
	fmt.Fprintf(&text, "%s: %s\n", words.OneLine(words.HostName(r.Host)), what)
	rows := r.listDraining()
	text.WriteString(alignColumns(rows, ""))
	if legend := explainStates(rows); legend != "" {
		fmt.Fprintln(&text, legend)
	}
	return writeText(w, text.String(), "report")
}

// explainStates returns one line that explains the states at the beginning of rows.
func explainStates(rows [][]string) string {
	var out []string
	for _, state := range []string{DrainEvict, DrainCordon} {
		if slices.ContainsFunc(rows, func(row []string) bool { return row[0] == state }) {
			out = append(out, meanings[state])
		}
	}
	return strings.Join(out, " ")
}

// DrainNote returns a sentence for a host to drain: "To be drained (cordon): RDMALinkDegraded."; empty for other hosts.
func (v HostVerdict) DrainNote() string {
	if v.Drain != DrainCordon && v.Drain != DrainEvict {
		return ""
	}
	names := words.Map(v.DrainAlerts, func(a DrainAlert) string { return a.Alert })
	return fmt.Sprintf("To be drained (%s): %s.", v.Drain, strings.Join(names, ", "))
}

// listDraining returns a row for each finding that drains the host.
func (r *Report) listDraining() (rows [][]string) {
	for _, a := range r.DrainAlerts {
		found := false
		for _, f := range r.Findings {
			if f.Alert == a.Alert && f.Drain != DrainNo {
				rows, found = append(rows, []string{f.Drain, f.Alert, Where(f.Labels), f.Summary}), true
			}
		}
		if !found { // left out by --severity
			rows = append(rows, []string{a.Drain, a.Alert, "", ""})
		}
	}
	return rows
}

// Why returns the reason of an unknown verdict, for a headline.
func (r *Report) Why() string {
	switch {
	case r.Error != "":
		return words.OneLine(r.Error)
	case r.NoDevice != nil:
		return noDeviceText
	case len(r.Evaluated) == 0 && len(r.NotEvaluated)+len(r.NotApplicable) > 0:
		return "no rule was evaluated"
	case r.HasUnknown():
		return account.Line(r.Objects)
	case r.ExitCode != ExitUnknown:
		return "no verdict is recorded for these alerts"
	}
	return "no RDMA device was read"
}

// Return writes whether the host may take jobs again, and if not, the reasons.
func Return(w io.Writer, r Report) (code int, err error) {
	reasons, code := r.listUnfit()
	text := fmt.Sprintf("%s: fit for service: no alert drains it, links without errors for %s\n",
		words.OneLine(words.HostName(r.Host)), formatDuration(r.linksCleanFor()))
	if len(reasons) > 0 {
		text = fmt.Sprintf("%s: not fit for service\n", words.OneLine(words.HostName(r.Host)))
		for _, m := range reasons {
			text += "reason: " + words.OneLine(m) + "\n"
		}
	}
	if err := writeText(w, text, "report"); err != nil {
		return ExitUnknown, err
	}
	return code, nil
}

func (r *Report) linksCleanFor() time.Duration {
	if r.CleanSeconds == nil {
		return 0
	}
	return time.Duration(*r.CleanSeconds * float64(time.Second))
}

// listUnfit returns the reasons why a host may not take jobs.
func (r *Report) listUnfit() (out []string, code int) {
	if r.Drain == drainUnknown {
		return []string{"state unknown: " + r.Why()}, ExitUnknown
	}
	for _, row := range r.listDraining() {
		out = append(out, "not repaired: "+strings.Join(row[1:], " "))
	}
	switch {
	case r.Fit == nil && len(out) == 0:
		out = append(out, r.listUndecided()...)
	case r.Fit != nil && !*r.Fit && len(out) == 0:
		out = append(out, "maintenance is announced")
	}
	if r.CleanSeconds == nil {
		out = append(out, "links not observed: no port of this host is in use")
	} else if r.linksCleanFor() < CleanFor {
		out = append(out, fmt.Sprintf("links without errors for %s, required %s",
			formatDuration(r.linksCleanFor()), formatDuration(CleanFor)))
	}
	if len(out) > 0 {
		return out, ExitCritical
	}
	return nil, ExitOK
}

// listUndecided returns the reasons why it is unknown whether a host that nothing drains is fit for jobs: alerts that
// would drain it are pending, or a state could not be read.
func (r *Report) listUndecided() (out []string) {
	for _, f := range slices.Concat(r.Findings, r.Pending) {
		if f.State == string(alerting.StatePending) && slices.Index(drains, f.Drain) > 0 {
			out = append(out, fmt.Sprintf("pending, drains the host when it fires: %s %s %s",
				f.Alert, Where(f.Labels), f.Summary))
		}
	}
	if len(out) == 0 {
		out = append(out, "state incomplete: a read is stuck, or a port cannot be read. See rdma_exporter check --verbose")
	}
	return out
}
