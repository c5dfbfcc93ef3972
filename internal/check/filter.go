package check

import (
	"slices"

	"rdma_exporter/internal/coverage"
)

// Filter selects a part of a report.
type Filter struct {
	Only     []string // alerts; none: all
	Severity string   // at least this one; empty: all
	Strict   bool     // unknown instead of ok if a supported rule was not evaluated
}

// Apply reduces a report to what is selected, and sets the verdict again. A failed evaluation, or one without data of
// the machine, stays unknown; one with objects that are unknown does if the report is about these.
func (f Filter) Apply(r Report) Report {
	undecided := r.Error == "" && r.HasUnknown()
	r.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(x Finding) bool { return !f.wants(x.Alert, x.Severity) })
	r.Evaluated = slices.DeleteFunc(slices.Clone(r.Evaluated),
		func(x Evaluated) bool { return !f.wants(x.Alert, x.Severity) })
	r.NotEvaluated = slices.DeleteFunc(slices.Clone(r.NotEvaluated),
		func(x NotEvaluated) bool { return !f.wants(x.Alert, x.Severity) })
	r.Pending = slices.DeleteFunc(slices.Clone(r.Pending), func(x Finding) bool { return !f.wants(x.Alert, x.Severity) })
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

// named reports whether an alert is among those to report.
func (f Filter) named(alert string) bool { return len(f.Only) == 0 || slices.Contains(f.Only, alert) }

// couldBe reports whether the alert could be evaluated on this host: unsupported ones, and those that exceed the
// retention, could not.
func (n NotEvaluated) couldBe() bool {
	return n.Reason != string(coverage.NotSupported) && n.Reason != reasonHistory
}

// Alerts lists all alerts in a report.
func (r Report) Alerts() []string {
	out := slices.Clone(r.NotApplicable)
	for _, j := range r.Evaluated {
		out = append(out, j.Alert)
	}
	for _, n := range r.NotEvaluated {
		out = append(out, n.Alert)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
