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

// Apply reduces a report to what is selected, and sets the verdict again. A failed evaluation, or one without data of
// the machine, stays unknown; one with objects that are unknown does if the report is about these.
func (f Filter) Apply(r Report) Report {
	undecided := r.Error == "" && r.HasUnknown()
	r.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(x Finding) bool { return !f.wantsFinding(x) })
	r.Evaluated = slices.DeleteFunc(slices.Clone(r.Evaluated),
		func(x Evaluated) bool { return !f.wants(coverage.Named(x.Alert, x.Fault), x.Severity) })
	r.NotEvaluated = slices.DeleteFunc(slices.Clone(r.NotEvaluated),
		func(x NotEvaluated) bool { return !f.wants(x.Name(), x.Severity) })
	r.Pending = slices.DeleteFunc(slices.Clone(r.Pending), func(x Finding) bool { return !f.wantsFinding(x) })
	r.NotApplicable = slices.DeleteFunc(slices.Clone(r.NotApplicable), func(name string) bool { return !f.named(name) })
	r.Seen = r.Seen.of(f.named)
	r.HostVerdict = r.HostVerdict.of(f.named)
	if r.ExitCode == ExitUnknown && !undecided {
		return r
	}
	r.conclude()
	switch {
	case len(r.Evaluated) == 0 && len(r.Findings) == 0:
		r.unknown()
	case f.Strict && r.ExitCode == ExitOK &&
		(r.Failed != nil || slices.ContainsFunc(r.NotEvaluated, NotEvaluated.couldBe)):
		r.unknown()
		r.Incomplete = true
	}
	r.Severity = f.Severity
	return r
}

// wants reports whether an alert of a severity is to be reported.
func (f Filter) wants(alert, severity string) bool {
	return f.named(alert) && (f.Severity == "" || rank(severity) <= rank(f.Severity))
}

func (f Filter) wantsFinding(x Finding) bool {
	return f.wants(coverage.Named(x.Alert, x.Labels["reason"]), x.Severity)
}

// named reports whether an alert, or a fault of one, is among those to report.
func (f Filter) named(name string) bool {
	alert, _, _ := strings.Cut(name, "/")
	return len(f.Only) == 0 || slices.Contains(f.Only, name) || slices.Contains(f.Only, alert)
}

// couldBe reports whether the alert could be evaluated on this host: unsupported ones, and those that exceed the
// retention, could not.
func (n NotEvaluated) couldBe() bool {
	return n.Reason != string(coverage.NotSupported) && n.Reason != reasonHistory
}

// Alerts lists all alerts in a report, and their faults.
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
