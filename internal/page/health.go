package page

import (
	"slices"
	"strings"

	"rdma_exporter/internal/check"
)

// Health is the state of a part of a node or fabric: its worst alert, else its state.
type Health string

// The healths, the worst first.
const (
	Critical     Health = "critical"
	Warning      Health = "warning"
	Watching     Health = "watching" // alerts of severity critical or warning are pending
	Info         Health = "info"     // also: less than expected, without an alert of its own
	NotEvaluated Health = "not_evaluated"
	Inactive     Health = "inactive" // a port without a link and without an alert of its own
	Ignored      Health = "ignored"  // by the configuration file
	OK           Health = "ok"
)

// healths are all healths, the worst first.
var healths = []Health{Critical, Warning, Watching, Info, NotEvaluated, Inactive, Ignored, OK}

// Word returns the health in words.
func (h Health) Word() string {
	if h == NotEvaluated {
		return "not evaluated"
	}
	return string(h)
}

// Heading returns the health in words, with a capital letter.
func (h Health) Heading() string {
	if h == OK {
		return "OK"
	}
	return strings.ToUpper(string(h[:1])) + h.Word()[1:]
}

// Healths returns all healths, the worst first.
func Healths() []Health { return slices.Clone(healths) }

// Compare returns a negative number if h is worse than other, a positive one if it is better, else 0.
func (h Health) Compare(other Health) int {
	return slices.Index(healths, h) - slices.Index(healths, other)
}

// Worst returns the worst of some healths, and OK if there is none.
func Worst(all ...Health) Health {
	out := OK
	for _, h := range all {
		if h.Compare(out) < 0 {
			out = h
		}
	}
	return out
}

// concerns reports whether a finding has all given labels, as names and values in turn.
func concerns(f check.Finding, labels ...string) bool {
	for i := 0; i < len(labels); i += 2 {
		if f.Labels[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}

// FindHealth returns the worst severity of the findings with some labels, and the names of their alerts. Pending alerts
// count as Watching.
func FindHealth(r *check.Report, labels ...string) (h Health, alerts []string) {
	h = OK
	if r == nil {
		return h, nil
	}
	for _, f := range r.Pending {
		if concerns(f, labels...) && (Health(f.Severity) == Critical || Health(f.Severity) == Warning) {
			h = Watching
		}
	}
	for _, f := range r.Findings {
		if concerns(f, labels...) {
			h = Worst(h, Health(f.Severity))
			if !slices.Contains(alerts, f.Alert) {
				alerts = append(alerts, f.Alert)
			}
		}
	}
	return h, alerts
}

// IsEvaluated reports whether a part without a finding is ok, because rules are evaluated, or only other objects are
// unknown.
func IsEvaluated(r *check.Report) bool {
	return r != nil && (r.ExitCode != check.ExitUnknown || r.Error == "" && r.HasUnknown())
}
