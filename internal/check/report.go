// Package check turns the alerts of a host into a report for users, prologs and node problem detectors: findings (worst
// first), rules that were not evaluated, with the reason, and an exit code. Only the rules decide what is a fault.
package check

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/coverage"
)

// Version of the JSON schema. It changes when a field is removed or changes its meaning, not when one is added.
const Version = 2

// Exit codes of the check command.
const (
	ExitOK       = 0
	ExitWarning  = 1
	ExitCritical = 2
	ExitUnknown  = 3 // nothing was evaluated, the evaluation failed, or the command line is wrong
)

// Verdicts, as the exit codes.
const (
	verdictOK      = "ok"
	verdictUnknown = "unknown"

	headlineWatching = "watching"

	// alertReplay marks the series of a replay for a central Prometheus.
	alertReplay = "RDMAReplay"
)

// Report is the result of check. Its JSON form is a contract: docs/check.md.
type Report struct {
	Version         int       `json:"version"`
	Exporter        string    `json:"exporter"`         // version of the program that evaluated
	Source          *Source   `json:"source,omitempty"` // nil: of the exporter that made the report
	Replay          string    `json:"replay,omitempty"` // the replay that was evaluated
	Host            string    `json:"host"`             // instance label of the series
	Time            time.Time `json:"time"`             // of the last round
	IntervalSeconds float64   `json:"interval_seconds"` // between the rounds of a daemon; 0: a one-off evaluation
	ObservedSeconds float64   `json:"observed_seconds"` // time of rounds without a gap; 0 for a single round
	Verdict         string    `json:"verdict"`          // ok, warning, critical, unknown
	ExitCode        int       `json:"exit_code"`        // 0, 1, 2, 3 in that order
	Error           string    `json:"error,omitempty"`  // why the evaluation failed
	// --strict: unknown because a supported rule was not evaluated.
	Incomplete    bool           `json:"incomplete,omitempty"`
	Findings      []Finding      `json:"findings"`       // worst first
	Evaluated     []Evaluated    `json:"evaluated"`      // by alert
	NotEvaluated  []NotEvaluated `json:"not_evaluated"`  // by alert
	NotApplicable []string       `json:"not_applicable"` // alerts on hardware or software that this host does not have
	// Headline is the verdict, or watching if the verdict is ok and alerts of severity critical or warning are pending.
	Headline string    `json:"headline"`
	Pending  []Finding `json:"pending"` // worst first; no findings yet: they change neither verdict nor exit code
	Seen
	HostVerdict
	Severity string `json:"-"` // minimum severity of the report
}

// Finding is a firing or pending alert, with the remedy.
type Finding struct {
	Alert    string `json:"alert"`
	Severity string `json:"severity"` // critical, warning, info
	Drain    string `json:"drain"`    // no, cordon, evict
	State    string `json:"state"`    // firing, or pending
	// Waits is set for a pending alert on a host that was observed for longer than its `for`: the fault is new and may
	// pass, so it is a warning at most.
	Waits      bool      `json:"waits,omitempty"`
	Since      time.Time `json:"since"`
	ForSeconds float64   `json:"for_seconds,omitempty"` // pending: the `for` of its rule
	// Value is the compared value in Unit, or without a limit the value of the expression; null if not finite.
	Value    *float64          `json:"value"`
	Limit    *float64          `json:"limit,omitempty"` // the limit
	Unit     string            `json:"unit,omitempty"`  // of both
	Labels   map[string]string `json:"labels"`
	Identity Identity          `json:"identity,omitempty"` // of the object, by kind
	// Jobs are the workloads that use the object: those of the host, or the busiest of the port.
	Jobs        []Job       `json:"jobs,omitempty"`
	Summary     string      `json:"summary"`
	Description string      `json:"description"` // measurement and impact
	Evidence    []Fact      `json:"evidence"`
	Diagnose    string      `json:"diagnose"` // a command that changes nothing
	Action      string      `json:"action"`
	DrainReason string      `json:"drain_reason"`
	RunbookURL  string      `json:"runbook_url,omitempty"`
	Explains    []Explained `json:"explains,omitempty"`
}

// Fact is a line of evidence.
type Fact struct {
	Name  string `json:"name"` // may be empty
	Value string `json:"value"`
}

// Identity identifies an object, by kind (rules/identity): "device" has pci_address, "module" has serial_number.
// Unknown kinds are absent.
type Identity map[string][]map[string]string

// Input is the result of an evaluation.
type Input struct {
	Exporter string
	Replay   string
	Host     string
	Interval time.Duration
	History  time.Duration // retention of the samples
	alerting.Judgement
	Coverage coverage.Report
	Seen
	Recorded
	Symptoms
	Identities []Identity        // of the alerts, in their order; none: unknown
	Needs      map[string]string // required permission by source that cannot be read
	NCCL       map[string]string // what NCCL itself reports, by job: slurm/77
	Err        error             // why the evaluation failed
}

const (
	severityCritical = "critical"
	severityWarning  = "warning"
	severityInfo     = "info"
	severityNone     = "none" // watchdogs: neither a finding nor a detection
)

// Severities returns the severities, the worst first.
func Severities() []string { return []string{severityCritical, severityWarning, severityInfo} }

// New returns the report of an evaluation. Firing alerts are findings. Alerts pending on a rule without a range are
// findings too, since a one-off evaluation cannot wait. If the host was observed for longer than the `for` of such a
// rule, the fault is new and may pass, so it is a warning at most.
func New(in Input) Report {
	r := Report{
		Version: Version, Exporter: in.Exporter, Replay: in.Replay, Host: in.Host, Time: in.To.UTC(),
		IntervalSeconds: in.Interval.Seconds(), ObservedSeconds: in.To.Sub(in.From).Seconds(),
		Findings: []Finding{}, Evaluated: []Evaluated{}, NotEvaluated: []NotEvaluated{}, NotApplicable: []string{},
		Pending: []Finding{},
		Seen:    in.Seen,
	}
	for i, a := range in.Alerts {
		if a.Labels["severity"] == severityNone || a.Name == alertReplay { // the report names the replay itself
			continue
		}
		f := findingOf(a)
		if i < len(in.Identities) {
			f.Identity, f.Jobs = in.Identities[i].withoutJobs()
			f.addNCCL(in.NCCL)
		}
		if rule := in.Rules[a.Rule]; a.State == alerting.StatePending {
			f.ForSeconds = rule.For.Seconds()
			f.Waits = rule.Range == 0 && rule.For > 0 && in.To.Sub(in.From) >= rule.For
			if rule.Range > 0 {
				r.Pending = append(r.Pending, f)
				continue
			}
		}
		r.Findings = append(r.Findings, f)
	}
	slices.SortFunc(r.Findings, worstFirst)
	slices.SortFunc(r.Pending, worstFirst)
	r.Findings, r.Pending = worstOfEach(r.Findings), worstOfEach(r.Pending)
	machine := r.cover(in)
	r.Objects = account.Judge(in.Objects, r.listFaults(in))
	r.conclude()
	if !machine && r.ExitCode == ExitOK {
		r.setUnknown()
	}
	if in.Err != nil {
		r.Error = in.Err.Error()
		r.setUnknown()
	}
	r.setHostVerdict(in)
	r.explain(in)
	return r
}

// countWatching returns the number of pending alerts of severity critical and warning: "1 pending critical, 2 pending
// warnings".
func (r *Report) countWatching() string {
	return strings.Join(Tally(r.Pending, "%d pending %s", severityCritical, severityWarning), ", ")
}

// HeadlineWord returns the headline as a reader sees it: in place of watching what is pending.
func (r *Report) HeadlineWord() string {
	word := cmp.Or(r.Headline, r.Verdict) // a report of an earlier version has no headline
	if word != headlineWatching {
		return word
	}
	for _, s := range []string{severityCritical, severityWarning} {
		if slices.ContainsFunc(r.Pending, func(f Finding) bool { return f.Severity == s }) {
			return "pending " + s
		}
	}
	return word
}

// Tally returns the number of findings by severity in a format with number and severity. Severities without findings
// are left out.
func Tally(findings []Finding, format string, severities ...string) (out []string) {
	for _, s := range severities {
		n := 0
		for _, f := range findings {
			if f.Severity == s {
				n++
			}
		}
		if n > 1 && s == severityWarning { // the others are adjectives
			s += "s"
		}
		if n > 0 {
			out = append(out, fmt.Sprintf(format, n, s))
		}
	}
	return out
}

// Watching returns a sentence on the pending alerts of severity critical and warning; empty if there are none.
func (r *Report) Watching() string {
	if w := r.countWatching(); w != "" {
		return "Watching: " + w + "."
	}
	return ""
}

// conclude sets the verdict to that of the worst finding. A host without RDMA devices is not ok by the rules on GPUs
// and the host alone.
func (r *Report) conclude() {
	r.Verdict, r.ExitCode = verdictOK, ExitOK
	for _, f := range r.Findings {
		switch {
		case f.Severity == severityCritical && !f.Waits:
			r.Verdict, r.ExitCode = severityCritical, ExitCritical
		case r.ExitCode == ExitOK && (f.Severity == severityCritical || f.Severity == severityWarning):
			r.Verdict, r.ExitCode = severityWarning, ExitWarning
		}
	}
	if r.ExitCode == ExitOK && (r.NoDevice != nil || r.HasUnknown()) {
		r.setUnknown()
	}
	r.Headline = r.Verdict
	if r.Verdict == verdictOK && r.countWatching() != "" {
		r.Headline = headlineWatching
	}
}

// listFaults returns the findings and pending alerts of severity critical and warning, and the symptoms of their parts.
// The worst comes last: it is the reason shown for its object.
func (r *Report) listFaults(in Input) (out []account.Fault) {
	for _, f := range slices.Concat(r.Findings, r.Pending) {
		if f.Severity == severityCritical || f.Severity == severityWarning {
			out = append(out, account.Fault{Alert: f.Alert, Labels: f.Labels})
		}
	}
	if len(out) == 0 {
		return nil
	}
	names := alertsOf(in.Rules)
	for _, labels := range slices.Concat(in.Symptoms.Explained, in.Symptoms.Faulty) {
		alert := names[labels["symptom"]]
		if alert != "" && (labels["severity"] == severityCritical || labels["severity"] == severityWarning) {
			out = append(out, account.Fault{Alert: alert, Labels: labels})
		}
	}
	slices.Reverse(out)
	return out
}

func (r *Report) setUnknown() {
	r.Verdict, r.ExitCode = verdictUnknown, ExitUnknown
	r.Headline = r.Verdict
}

func findingOf(a alerting.Alert) Finding {
	text := a.Annotations
	f := Finding{
		Alert: a.Name, Severity: a.Labels["severity"], Drain: a.Labels["drain"], State: string(a.State),
		Since: a.ActiveAt.UTC(), Labels: maps.Clone(a.Labels),
		Summary: text["summary"], Description: text["description"], Evidence: parseEvidence(text["evidence"]),
		Diagnose: text["diagnose"], Action: text["action"], DrainReason: text["drain_reason"],
		RunbookURL: text["runbook_url"],
	}
	delete(f.Labels, "alertname")
	delete(f.Labels, "severity")
	delete(f.Labels, "drain")
	value, limit := parseFigure(text["measured"]), parseFigure(text["limit"])
	switch {
	case value != nil && limit != nil && value.unit == limit.unit:
		f.Value, f.Limit, f.Unit = &value.number, &limit.number, value.unit
	case !math.IsNaN(a.Value) && !math.IsInf(a.Value, 0):
		f.Value = &a.Value
	}
	return f
}

// Lost returns the peers that queue pairs have lost, which evidence/port writes with their certainty.
func (f *Finding) Lost() (out []string) {
	for _, e := range f.Evidence {
		if e.Name == "Lost" {
			out = append(out, e.Value)
		}
	}
	return out
}

// parseEvidence parses an annotation with lines "Name: value".
func parseEvidence(text string) []Fact {
	out := []Fact{}
	for line := range strings.Lines(text) {
		f := Fact{Value: strings.TrimSpace(line)}
		if name, value, ok := strings.Cut(f.Value, ": "); ok && len(name) <= longestName {
			f = Fact{name, value}
		}
		if f.Value != "" {
			out = append(out, f)
		}
	}
	return out
}

// longestName is the maximum length of a fact name in bytes.
const longestName = 32

// quantity is a number with its unit: 400 Gb/s, 97%, 3.
type quantity struct {
	number float64
	unit   string
}

var quantityText = regexp.MustCompile(`^(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?) ?(.*)$`)

// parseFigure parses the annotations measured and limit; nil if there is none.
func parseFigure(text string) *quantity {
	m := quantityText.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return nil
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil || math.IsInf(n, 0) {
		return nil
	}
	return &quantity{n, m[2]}
}

// worstOfEach keeps the first of sorted findings for each alert and object: when an alert gets worse, it still fires at
// the lower severity for some minutes.
func worstOfEach(findings []Finding) []Finding {
	seen := map[string]bool{}
	return slices.DeleteFunc(findings, func(f Finding) bool {
		key := fmt.Sprint(f.Alert, listPairs(f.Labels))
		again := seen[key]
		seen[key] = true
		return again
	})
}

func worstFirst(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(severityRank(a.Severity), severityRank(b.Severity)),
		cmp.Compare(a.State, b.State), // firing, pending
		cmp.Compare(a.Alert, b.Alert),
		slices.Compare(listPairs(a.Labels), listPairs(b.Labels)),
	)
}

func severityRank(severity string) int {
	if i := slices.Index(Severities(), severity); i >= 0 {
		return i
	}
	return math.MaxInt
}

func listPairs(labels map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, name+"="+labels[name])
	}
	return out
}
