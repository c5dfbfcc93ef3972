package check

import (
	"slices"
	"strings"

	"rdma_exporter/internal/coverage"
)

// Filter selects a part of a report.
type Filter struct {
	Only     []string // alerts, or faults of them (NAME/REASON); none: all
	Severity string   // at least this one; empty: all
	Strict   bool     // unknown instead of ok if a supported rule was not evaluated
}

// Apply reduces a report to the selected alerts, and sets the verdict again. The verdict of a failed evaluation, or of
// one without data of the machine, stays unknown. That of a host with unknown objects stays unknown if the report is
// about these objects.
func (f Filter) Apply(r Report) Report {
	undecided := r.Error == "" && r.HasUnknown()
	r.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(x Finding) bool { return !f.wantsFinding(x) })
	r.Evaluated = slices.DeleteFunc(slices.Clone(r.Evaluated),
		func(x Evaluated) bool { return !f.wants(coverage.Named(x.Alert, x.Fault), x.Severity) })
	r.NotEvaluated = slices.DeleteFunc(slices.Clone(r.NotEvaluated),
		func(x NotEvaluated) bool { return !f.wants(x.Name(), x.Severity) })
	r.Pending = slices.DeleteFunc(slices.Clone(r.Pending), func(x Finding) bool { return !f.wantsFinding(x) })
	r.NotApplicable = slices.DeleteFunc(slices.Clone(r.NotApplicable), func(name string) bool { return !f.matches(name) })
	r.Seen = r.Seen.filter(f.matches)
	r.HostVerdict = r.HostVerdict.filter(f.matches)
	if r.ExitCode == ExitUnknown && !undecided {
		return r
	}
	r.conclude()
	switch {
	case len(r.Evaluated) == 0 && len(r.Findings) == 0:
		r.setUnknown()
	case f.Strict && r.ExitCode == ExitOK &&
		(r.Failed != nil || slices.ContainsFunc(r.NotEvaluated, NotEvaluated.isSupported)):
		r.setUnknown()
		r.Incomplete = true
	}
	r.Severity = f.Severity
	return r
}

// wants reports whether an alert of a severity is to be reported.
func (f Filter) wants(alert, severity string) bool {
	return f.matches(alert) && (f.Severity == "" || severityRank(severity) <= severityRank(f.Severity))
}

func (f Filter) wantsFinding(x Finding) bool {
	return f.wants(coverage.Named(x.Alert, x.Labels["reason"]), x.Severity)
}

// matches reports whether an alert, or a fault of an alert, is to be reported.
func (f Filter) matches(name string) bool {
	alert, _, _ := strings.Cut(name, "/")
	return len(f.Only) == 0 || slices.Contains(f.Only, name) || slices.Contains(f.Only, alert)
}

// isSupported reports whether the alert could be evaluated on this host: its data is supported, and its history does
// not exceed the retention.
func (n NotEvaluated) isSupported() bool {
	return n.Reason != string(coverage.NotSupported) && n.Reason != reasonHistory
}

// Alerts returns all alerts in a report, and their faults.
func (r Report) Alerts() []string {
	names := slices.Clone(r.NotApplicable)
	for _, j := range r.Evaluated {
		names = append(names, coverage.Named(j.Alert, j.Fault))
	}
	for _, n := range r.NotEvaluated {
		names = append(names, n.Name())
	}
	out := names
	for _, name := range names {
		if alert, _, fault := strings.Cut(name, "/"); fault {
			out = append(out, alert)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
