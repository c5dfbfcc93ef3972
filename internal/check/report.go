// Package check turns what the rules say about a host into a report for people, prologs and node problem detectors: findings
// worst first, what could not be judged and why, and an exit code. It decides nothing about the fabric itself.
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

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/coverage"
)

// Version of the JSON schema. It grows when a field changes its meaning or goes, not when one is added.
const Version = 2

// Exit codes of the check command.
const (
	ExitOK       = 0
	ExitWarning  = 1
	ExitCritical = 2
	ExitUnknown  = 3 // nothing could be judged, the look failed, or the command line is wrong
)

// Verdicts, as the exit codes.
const (
	verdictOK      = "ok"
	verdictUnknown = "unknown"

	headlineWatching = "watching"

	// alertReplay marks the series of a recording for a Prometheus that takes them for those of a host.
	alertReplay = "RDMAReplay"
)

// Report is what check says about a host. Its JSON form is a contract: docs/check.md.
type Report struct {
	Version         int            `json:"version"`
	Exporter        string         `json:"exporter"`             // version of the program that looked
	Replay          string         `json:"replay,omitempty"`     // the capture that was judged, no host
	Host            string         `json:"host"`                 // instance label of the judged series
	Time            time.Time      `json:"time"`                 // of the last round
	IntervalSeconds float64        `json:"interval_seconds"`     // between the rounds of a daemon; 0: there is no other round to come
	ObservedSeconds float64        `json:"observed_seconds"`     // how long rounds had come without a pause by then; 0 for a single look
	Verdict         string         `json:"verdict"`              // ok, warning, critical, unknown
	ExitCode        int            `json:"exit_code"`            // 0, 1, 2, 3 in that order
	Error           string         `json:"error,omitempty"`      // why the look failed
	Incomplete      bool           `json:"incomplete,omitempty"` // --strict: unknown because not all was judged that could have been
	Findings        []Finding      `json:"findings"`             // worst first
	Evaluated       []Evaluated    `json:"evaluated"`            // by alert
	NotEvaluated    []NotEvaluated `json:"not_evaluated"`        // by alert
	NotApplicable   []string       `json:"not_applicable"`       // alerts on what this host does not have
	// Headline is the worst of firing and pending: the verdict, or watching where the verdict is ok and alerts of severity critical or
	// warning are pending.
	Headline string    `json:"headline"`
	Pending  []Finding `json:"pending"` // worst first; they hold and are no findings yet, and change neither verdict nor exit code
	Seen
	HostVerdict
	Severity string `json:"-"` // the least that was asked for
}

// Finding is one alert that holds, and what to do about it.
type Finding struct {
	Alert       string            `json:"alert"`
	Severity    string            `json:"severity"`        // critical, warning, info
	Drain       string            `json:"drain"`           // no, cordon, evict: what the alert asks for
	State       string            `json:"state"`           // firing; pending where the hold time is not over
	Waits       bool              `json:"waits,omitempty"` // pending, and observed for so long that it would fire if it had lasted: a warning at most
	Since       time.Time         `json:"since"`
	Value       *float64          `json:"value"`           // what the alert compares, in Unit; without a limit that of the rule's expression; null when not finite
	Limit       *float64          `json:"limit,omitempty"` // what it is compared with
	Unit        string            `json:"unit,omitempty"`  // of both
	Labels      map[string]string `json:"labels"`
	Identity    Identity          `json:"identity,omitempty"` // of the object, by kind
	Summary     string            `json:"summary"`
	Description string            `json:"description"` // what was measured, and the impact
	Evidence    []Fact            `json:"evidence"`
	Diagnose    string            `json:"diagnose"` // a read-only command
	Action      string            `json:"action"`
	DrainReason string            `json:"drain_reason"`
	RunbookURL  string            `json:"runbook_url,omitempty"`
	Suspects    []Suspect         `json:"suspects,omitempty"` // what follows from it, and has no alert while it holds
	chained     bool              // its alert is of a cause chain
}

// Fact is a line of evidence.
type Fact struct {
	Name  string `json:"name"` // empty where the line has none
	Value string `json:"value"`
}

// Identity is what identifies an object, by kind of fact (rules/identity): "device" has pci_address, "module" has serial_number. A kind that is not
// known is absent.
type Identity map[string][]map[string]string

// Input is what an engine and the rounds have to say after an evaluation.
type Input struct {
	Exporter string
	Replay   string
	Host     string
	Interval time.Duration
	History  time.Duration // the longest that can be observed
	alerting.Judgement
	Coverage coverage.Report
	Seen
	Recorded
	Suspects
	Identities []Identity        // of the alerts, in their order; none: not known
	Needs      map[string]string // what would permit each source that may not be read
	Err        error             // why the look failed, when it did
}

const (
	severityCritical = "critical"
	severityWarning  = "warning"
	severityInfo     = "info"
	severityNone     = "none" // watchdogs: neither a finding nor a detection
)

// Severities lists them, the worst first.
func Severities() []string { return []string{severityCritical, severityWarning, severityInfo} }

// New makes the report. An alert counts when it fires, however little was observed, or when it is pending on a rule that looks at the
// present alone, since a single look cannot wait. What was observed for as long as such a rule waits may yet pass: that warns at most.
func New(in Input) Report {
	r := Report{
		Version: Version, Exporter: in.Exporter, Replay: in.Replay, Host: in.Host, Time: in.To.UTC(),
		IntervalSeconds: in.Interval.Seconds(), ObservedSeconds: in.To.Sub(in.From).Seconds(),
		Findings: []Finding{}, Evaluated: []Evaluated{}, NotEvaluated: []NotEvaluated{}, NotApplicable: []string{}, Pending: []Finding{},
		Seen: in.Seen,
	}
	r.NotExpected = append([]Port{}, in.NotExpected...)
	for i, a := range in.Alerts {
		if a.Labels["severity"] == severityNone || a.Name == alertReplay { // the report says itself that it is of a replay
			continue
		}
		f := finding(a)
		if i < len(in.Identities) {
			f.Identity = in.Identities[i]
		}
		if a.State == alerting.StatePending && in.Rules[a.Rule].Range > 0 {
			r.Pending = append(r.Pending, f)
			continue
		}
		wait := in.Rules[a.Rule].For
		f.Waits = a.State == alerting.StatePending && wait > 0 && in.To.Sub(in.From) >= wait
		r.Findings = append(r.Findings, f)
	}
	slices.SortFunc(r.Findings, worstFirst)
	slices.SortFunc(r.Pending, worstFirst)
	r.Findings = worstOfEach(r.Findings)
	machine := r.cover(in)
	r.conclude()
	if !machine {
		r.unknown()
	}
	if in.Err != nil {
		r.Error = in.Err.Error()
		r.unknown()
	}
	r.judgeHost(in)
	r.fold(in)
	return r
}

// watching counts the pending alerts of severity critical and warning: "1 pending critical, 2 pending warning".
func (r *Report) watching() string {
	return strings.Join(Tally(r.Pending, "%d pending %s", severityCritical, severityWarning), ", ")
}

// Tally counts findings by severity in the words of a format of number and severity, without those of which there are none.
func Tally(findings []Finding, format string, severities ...string) (out []string) {
	for _, s := range severities {
		n := 0
		for _, f := range findings {
			if f.Severity == s {
				n++
			}
		}
		if n > 0 {
			out = append(out, fmt.Sprintf(format, n, s))
		}
	}
	return out
}

// Watching says what is pending, as a sentence; empty where nothing of severity critical or warning is.
func (r *Report) Watching() string {
	if w := r.watching(); w != "" {
		return "Watching: " + w + "."
	}
	return ""
}

// conclude sets the verdict by the worst finding.
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
	r.Headline = r.Verdict
	if r.Verdict == verdictOK && r.watching() != "" {
		r.Headline = headlineWatching
	}
}

func (r *Report) unknown() {
	r.Verdict, r.ExitCode = verdictUnknown, ExitUnknown
	r.Headline = r.Verdict
}

func finding(a alerting.Alert) Finding {
	text := a.Annotations
	f := Finding{
		Alert: a.Name, Severity: a.Labels["severity"], Drain: a.Labels["drain"], State: string(a.State), Since: a.ActiveAt.UTC(), Labels: maps.Clone(a.Labels),
		Summary: text["summary"], Description: text["description"], Evidence: evidence(text["evidence"]),
		Diagnose: text["diagnose"], Action: text["action"], DrainReason: text["drain_reason"], RunbookURL: text["runbook_url"],
	}
	delete(f.Labels, "alertname")
	delete(f.Labels, "severity")
	delete(f.Labels, "drain")
	value, limit := figure(text["measured"]), figure(text["limit"])
	switch {
	case value != nil && limit != nil && value.unit == limit.unit:
		f.Value, f.Limit, f.Unit = &value.number, &limit.number, value.unit
	case !math.IsNaN(a.Value) && !math.IsInf(a.Value, 0):
		f.Value = &a.Value
	}
	return f
}

// evidence is an annotation of lines "Name: value".
func evidence(text string) []Fact {
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

// longestName is how long the name of a fact may be, in bytes.
const longestName = 32

// quantity is a number with its unit: 400 Gb/s, 97%, 3.
type quantity struct {
	number float64
	unit   string
}

var quantityText = regexp.MustCompile(`^(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?) ?(.*)$`)

// figure reads the annotations measured and limit; nil where there is none.
func figure(text string) *quantity {
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

// worstOfEach leaves one finding of an alert and an object, the first: while an alert gets worse, its lesser severity fires for some minutes more.
func worstOfEach(findings []Finding) []Finding {
	seen := map[string]bool{}
	return slices.DeleteFunc(findings, func(f Finding) bool {
		key := fmt.Sprint(f.Alert, pairs(f.Labels))
		told := seen[key]
		seen[key] = true
		return told
	})
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
	if i := slices.Index(Severities(), severity); i >= 0 {
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
