// Package check turns what the rules say about a host into a report for people, prologs and node problem detectors: findings
// worst first, what could not be judged and why, and an exit code. It decides nothing about the fabric itself.
package check

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/alerting"
)

// Version of the JSON schema. It grows when a field changes its meaning or goes, not when one is added.
const Version = 1

// Exit codes of the check command.
const (
	ExitOK       = 0
	ExitWarning  = 1
	ExitCritical = 2
	ExitUnknown  = 3 // nothing could be judged, or the look failed
)

// Report is what check says about a host. Its JSON form is a contract.
type Report struct {
	Version         int         `json:"version"`
	Host            string      `json:"host"`             // instance label of the judged series
	Time            time.Time   `json:"time"`             // of the last round
	ObservedSeconds float64     `json:"observed_seconds"` // how long rounds had come without a pause by then; 0 for a single look
	Verdict         string      `json:"verdict"`          // ok, warning, critical, unknown
	ExitCode        int         `json:"exit_code"`        // 0, 1, 2, 3 in that order
	Error           string      `json:"error,omitempty"`  // why the look failed
	Judged          int         `json:"judged"`           // alerts that could be judged
	Findings        []Finding   `json:"findings"`         // worst first
	NotJudged       []NotJudged `json:"not_judged"`       // by alert
}

// Finding is one alert that holds.
type Finding struct {
	Alert       string            `json:"alert"`
	Severity    string            `json:"severity"` // critical, warning, info
	State       string            `json:"state"`    // firing; pending where the hold time is not over
	Since       time.Time         `json:"since"`
	Value       *float64          `json:"value"` // of the rule's expression; null when not finite
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// NotJudged is an alert that nothing can be said about.
type NotJudged struct {
	Alert  string `json:"alert"`
	Reason string `json:"reason"` // not_evaluated, evaluation_failed, no_data, observed_too_short
	Detail string `json:"detail"`
}

// Input is what an engine has to say after an evaluation.
type Input struct {
	Host     string
	From, To time.Time // alerting.Engine.Observed
	Alerts   []alerting.Alert
	Rules    []alerting.Rule
	Err      error // why the look failed, when it did
}

const (
	severityCritical = "critical"
	severityWarning  = "warning"
	severityInfo     = "info"
	severityNone     = "none" // watchdogs: neither a finding nor a detection
)

// New makes the report. An alert counts when it fires, or when it is pending on a rule that looks at the present alone, since
// a single look cannot wait; not when its rule looks further back than was observed.
func New(in Input) Report {
	r := Report{
		Version: Version, Host: in.Host, Time: in.To.UTC(), ObservedSeconds: in.To.Sub(in.From).Seconds(),
		Findings: []Finding{}, NotJudged: []NotJudged{},
	}
	for _, a := range in.Alerts {
		rule := in.Rules[a.Rule]
		if a.Labels["severity"] == severityNone || rule.Reason == alerting.ReasonTooShort {
			continue
		}
		if a.State == alerting.StatePending && rule.Range > 0 {
			continue
		}
		r.Findings = append(r.Findings, finding(a))
	}
	slices.SortFunc(r.Findings, worstFirst)
	var machine bool
	r.Judged, r.NotJudged, machine = judged(in)
	r.Verdict, r.ExitCode = "ok", ExitOK
	if !machine {
		r.Verdict, r.ExitCode = "unknown", ExitUnknown
	}
	if len(r.Findings) > 0 {
		switch r.Findings[0].Severity {
		case severityCritical:
			r.Verdict, r.ExitCode = severityCritical, ExitCritical
		case severityWarning:
			r.Verdict, r.ExitCode = severityWarning, ExitWarning
		}
	}
	if in.Err != nil {
		r.Error = in.Err.Error()
		r.Verdict, r.ExitCode = "unknown", ExitUnknown
	}
	return r
}

func finding(a alerting.Alert) Finding {
	f := Finding{
		Alert: a.Name, Severity: a.Labels["severity"], State: string(a.State), Since: a.ActiveAt.UTC(),
		Labels: maps.Clone(a.Labels), Annotations: maps.Clone(a.Annotations),
	}
	delete(f.Labels, "alertname")
	delete(f.Labels, "severity")
	if !math.IsNaN(a.Value) && !math.IsInf(a.Value, 0) {
		f.Value = &a.Value
	}
	return f
}

func worstFirst(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(rank(a.Severity), rank(b.Severity)),
		cmp.Compare(a.State, b.State), // firing, pending
		cmp.Compare(a.Alert, b.Alert),
		slices.Compare(pairs(a.Labels), pairs(b.Labels)),
	)
}

func rank(severity string) int {
	if i := slices.Index([]string{severityCritical, severityWarning, severityInfo}, severity); i >= 0 {
		return i
	}
	return math.MaxInt
}

func pairs(labels map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, name+"="+labels[name])
	}
	return out
}

// judged counts the alerts of which a rule could be judged and lists what could not be. Where rules share a name, as for two
// severities, one without data is no gap as long as another was judged.
//
// machine says whether any of them speaks of the machine: that the exporter itself is well says nothing about the fabric.
func judged(in Input) (n int, not []NotJudged, machine bool) {
	ok := map[string]bool{}
	for _, rule := range in.Rules {
		if rule.Judged && rule.Labels["severity"] != severityNone {
			ok[rule.Name] = true
			machine = machine || slices.ContainsFunc(rule.Metrics, ofMachine)
		}
	}
	out := []NotJudged{}
	for _, rule := range in.Rules {
		if rule.Judged || rule.Labels["severity"] == severityNone || rule.Reason == alerting.ReasonNoData && ok[rule.Name] {
			continue
		}
		out = append(out, NotJudged{Alert: rule.Name, Reason: string(rule.Reason), Detail: detail(rule, in.To.Sub(in.From))})
	}
	slices.SortFunc(out, func(a, b NotJudged) int {
		return cmp.Or(cmp.Compare(a.Alert, b.Alert), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Detail, b.Detail))
	})
	// Rules of one name, as for two severities, share an entry.
	return len(ok), slices.CompactFunc(out, func(a, b NotJudged) bool { return a.Alert == b.Alert && a.Reason == b.Reason }), machine
}

func ofMachine(metric string) bool {
	return !strings.HasPrefix(metric, "rdma_scrape_") && !strings.HasPrefix(metric, "rdma_exporter_")
}

func detail(rule alerting.Rule, observed time.Duration) string {
	switch rule.Reason {
	case alerting.ReasonNoData:
		return "no " + strings.Join(rule.Missing, ", ")
	case alerting.ReasonTooShort:
		return fmt.Sprintf("looks back %s, observed %s", short(rule.Range), short(observed))
	case alerting.ReasonFailed:
		return fmt.Sprint(rule.Err)
	default:
		return "the rules have not been evaluated"
	}
}

// short writes a duration without the units that are zero: 5m, 1h30m, 45s.
func short(d time.Duration) string {
	if d < time.Second {
		return "0s"
	}
	s := d.Truncate(time.Second).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
