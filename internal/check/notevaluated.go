package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/coverage"
)

// words are the reasons in words, those that the user can change first.
var words = []struct{ reason, text string }{
	{reasonFailed, "rule evaluation failed"},
	{reasonNotEvaluated, "no evaluation has finished"},
	{string(coverage.CollectorDisabled), "collector disabled"},
	{string(coverage.Limit), "devices left out by a limit, --limit.devices or --limit.series"},
	{string(coverage.Permission), "permission denied, requires"},
	{string(coverage.Failed), "read failed, see the log"},
	{string(coverage.Unknown), "state unknown"},
	{string(coverage.NotReadYet), "not read yet"},
	{reasonPending, "condition true for less than required"},
	{reasonTooShort, "more history required than observed"},
	{reasonHistory, "more history required than the exporter keeps, evaluated by a central Prometheus"},
	{string(coverage.NotSupported), "not supported by this kernel, driver or hardware"},
}

// ReasonGroup is a group of alerts that were not evaluated for one reason.
type ReasonGroup struct {
	Text   string // the reason, with the missing permission, flag or time
	Alerts []NotEvaluated
}

// Gaps groups the alerts that were not evaluated by reason, those that the user can change first.
func (r *Report) Gaps() (out []ReasonGroup) {
	all := sorted(r.NotEvaluated)
	for len(all) > 0 {
		first := all[0]
		same := func(n NotEvaluated) bool {
			return n.Reason == first.Reason && (n.Needs == first.Needs || isTime(first.Reason))
		}
		group := slices.DeleteFunc(slices.Clone(all), func(n NotEvaluated) bool { return !same(n) })
		all = slices.DeleteFunc(all, same)
		out = append(out, ReasonGroup{text(group), group})
	}
	return out
}

func sorted(all []NotEvaluated) []NotEvaluated {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b NotEvaluated) int { return cmp.Compare(order(a.Reason), order(b.Reason)) })
	return all
}

// notEvaluatedRows has a row for each reason, or for each alert.
func (r *Report) notEvaluatedRows(verbose bool) (rows [][]string) {
	if !verbose {
		for _, g := range r.Gaps() {
			rows = append(rows, []string{fmt.Sprint(len(g.Alerts)), g.Text})
		}
		return rows
	}
	for _, n := range sorted(r.NotEvaluated) {
		detail := n.Detail
		if n.Needs != "" && n.Reason == string(coverage.Permission) {
			detail += " (requires " + n.Needs + ")"
		}
		rows = append(rows, []string{n.Alert, n.Reason, detail})
	}
	return rows
}

// isTime reports whether time is missing, of which the longest counts.
func isTime(reason string) bool {
	return reason == reasonTooShort || reason == reasonHistory || reason == reasonPending
}

// order is the position of a reason in words; an unknown one is last.
func order(reason string) int {
	if i := slices.IndexFunc(words, func(w struct{ reason, text string }) bool { return w.reason == reason }); i >= 0 {
		return i
	}
	return len(words)
}

// text is the text of alerts with one reason.
func text(group []NotEvaluated) string {
	n := group[0]
	s := n.Reason
	if i := order(n.Reason); i < len(words) {
		s = words[i].text
	}
	switch {
	case n.Reason == reasonTooShort, n.Reason == reasonPending:
		return s + " (up to " + longest(group) + ")"
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
