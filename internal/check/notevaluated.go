package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/coverage"
)

// words say why something was not judged, in the order in which somebody can do something about it.
var words = []struct{ reason, text string }{
	{reasonFailed, "the rules failed"},
	{reasonNotEvaluated, "the rules have not been evaluated"},
	{string(coverage.CollectorDisabled), "the collector is off"},
	{string(coverage.Permission), "not permitted, needs"},
	{string(coverage.Failed), "reading fails; the log says what"},
	{string(coverage.Unknown), "the fact that decides could not be read"},
	{string(coverage.NotReadYet), "not read yet"},
	{reasonPending, "hold, not yet for as long as they have to, up to"},
	{reasonTooShort, "look back further than was observed, up to"},
	{reasonHistory, "look back further than the exporter keeps; a central Prometheus evaluates them"},
	{string(coverage.NotSupported), "not supported by the kernel, the driver or the hardware"},
}

// Unjudged is some alerts that were not judged for one reason.
type Unjudged struct {
	Text   string // the reason, and what would help
	Alerts []NotEvaluated
}

// Gaps groups what was not judged, what somebody can do something about first.
func (r *Report) Gaps() (out []Unjudged) {
	all := sorted(r.NotEvaluated)
	for len(all) > 0 {
		first := all[0]
		same := func(n NotEvaluated) bool {
			return n.Reason == first.Reason && (n.Needs == first.Needs || isTime(first.Reason))
		}
		group := slices.DeleteFunc(slices.Clone(all), func(n NotEvaluated) bool { return !same(n) })
		all = slices.DeleteFunc(all, same)
		out = append(out, Unjudged{text(group), group})
	}
	return out
}

func sorted(all []NotEvaluated) []NotEvaluated {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b NotEvaluated) int { return cmp.Compare(order(a.Reason), order(b.Reason)) })
	return all
}

// unjudged are the rows on what was not judged: one for each reason and what would help, or each alert.
func (r *Report) unjudged(verbose bool) (rows [][]string) {
	if !verbose {
		for _, g := range r.Gaps() {
			rows = append(rows, []string{fmt.Sprint(len(g.Alerts)), g.Text})
		}
		return rows
	}
	for _, n := range sorted(r.NotEvaluated) {
		detail := n.Detail
		if n.Needs != "" && n.Reason == string(coverage.Permission) {
			detail += " (needs " + n.Needs + ")"
		}
		rows = append(rows, []string{n.Alert, n.Reason, detail})
	}
	return rows
}

// isTime says whether what is needed is time, of which the longest counts.
func isTime(reason string) bool {
	return reason == reasonTooShort || reason == reasonHistory || reason == reasonPending
}

// order is where a reason stands in words; one of another version comes last.
func order(reason string) int {
	if i := slices.IndexFunc(words, func(w struct{ reason, text string }) bool { return w.reason == reason }); i >= 0 {
		return i
	}
	return len(words)
}

// text says what some alerts of one reason lack.
func text(group []NotEvaluated) string {
	n := group[0]
	s := n.Reason
	if i := order(n.Reason); i < len(words) {
		s = words[i].text
	}
	switch {
	case n.Reason == reasonTooShort, n.Reason == reasonPending:
		return s + " " + longest(group)
	case n.Reason == string(coverage.Permission):
		return strings.TrimSpace(s + " " + n.Needs)
	case n.Reason == string(coverage.CollectorDisabled):
		return s + ": " + n.Needs
	}
	return s
}

func longest(group []NotEvaluated) string {
	var out time.Duration
	for _, n := range group {
		if d, err := time.ParseDuration(n.Needs); err == nil {
			out = max(out, d)
		}
	}
	return short(out)
}
