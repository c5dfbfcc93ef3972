package check

import (
	"slices"

	"rdma_exporter/internal/coverage"
)

// Filter says which part of a report is asked for.
type Filter struct {
	Only     []string // alerts; none: all
	Severity string   // at least this one; empty: all
	Strict   bool     // what could not be judged, and could have been, is no ok
}

// Apply leaves what is asked for, and concludes anew. A look that failed, or saw nothing of the machine, stays unknown.
func (f Filter) Apply(r Report) Report {
	r.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(x Finding) bool { return !f.wants(x.Alert, x.Severity) })
	r.Evaluated = slices.DeleteFunc(slices.Clone(r.Evaluated), func(x Evaluated) bool { return !f.wants(x.Alert, x.Severity) })
	r.NotEvaluated = slices.DeleteFunc(slices.Clone(r.NotEvaluated), func(x NotEvaluated) bool { return !f.wants(x.Alert, x.Severity) })
	r.Pending = slices.DeleteFunc(slices.Clone(r.Pending), func(x Finding) bool { return !f.wants(x.Alert, x.Severity) })
	r.NotApplicable = slices.DeleteFunc(slices.Clone(r.NotApplicable), func(name string) bool { return !f.named(name) })
	r.Seen = r.Seen.of(f.named)
	r.HostVerdict = r.HostVerdict.of(f.named)
	if r.ExitCode == ExitUnknown {
		return r
	}
	r.conclude()
	switch {
	case len(r.Evaluated) == 0 && len(r.Findings) == 0:
		r.unknown()
	case f.Strict && r.ExitCode == ExitOK && slices.ContainsFunc(r.NotEvaluated, NotEvaluated.couldBe):
		r.unknown()
		r.Incomplete = true
	}
	r.Severity = f.Severity
	return r
}

func (f Filter) wants(alert, severity string) bool {
	return f.named(alert) && (f.Severity == "" || rank(severity) <= rank(f.Severity))
}

func (f Filter) named(alert string) bool { return len(f.Only) == 0 || slices.Contains(f.Only, alert) }

// couldBe says whether somebody could have it judged: not what the host does not tell, nor what only a longer history shows.
func (n NotEvaluated) couldBe() bool {
	return n.Reason != string(coverage.NotSupported) && n.Reason != reasonHistory
}

// Alerts lists the alerts that a report speaks of.
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
