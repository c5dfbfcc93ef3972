package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/words"
)

// reasonWords are the texts and remedies of the reasons, those that the user can change first. NEEDS stands for the
// missing permission, flag or time.
var reasonWords = []struct{ reason, text, remedy string }{
	{reasonFailed, "rule evaluation failed", ""},
	{reasonNotEvaluated, "no evaluation has finished", "Run check again"},
	{string(coverage.Paused), pausedText, "Resume: rdma_exporter gpu resume"},
	{string(coverage.CollectorDisabled), "collector disabled", "Enable it: NEEDS"},
	{string(coverage.Limit), "devices left out by a limit", "Raise --limit.devices or --limit.series with the memory limit"},
	{string(coverage.Permission), "permission denied", "Grant NEEDS"},
	{string(coverage.Failed), "read failed", "Read the error in the log"},
	{string(coverage.Unknown), "state on which the rule depends is unknown", ""},
	{string(coverage.NotReadYet), "first read in progress", "Run check again"},
	{reasonTooShort, "NEEDS of history required", ""}, // remedy: observeLonger
	{reasonHistory, "NEEDS of history required, as in a central Prometheus (rdma_exporter rules)", ""},
	{string(coverage.NotSupported), "not supported by this kernel, driver or hardware", ""},
}

const pausedText = "GPU monitoring paused on request"

// ReasonGroup is a group of alerts that were not evaluated for one reason.
type ReasonGroup struct {
	Reason string // with the remedy, without a final full stop
	InPart bool   // evaluated for a part of the host
	Stands bool   // no setting of this host changes it: hardware without the data, a history that is too short
	Alerts []NotEvaluated
}

// Gaps groups the alerts that were not evaluated by reason, those that the user can change first. Pending alerts were
// evaluated.
func (r *Report) Gaps() (out []ReasonGroup) {
	inPart := func(n NotEvaluated) bool { return r.isEvaluated(n) }
	var all, part []NotEvaluated
	for _, n := range r.NotEvaluated {
		switch {
		case inPart(n):
			part = append(part, n)
		case n.Reason != reasonPending:
			all = append(all, n)
		}
	}
	all = append(all, part...)
	slices.SortStableFunc(all, func(a, b NotEvaluated) int {
		return cmp.Compare(reasonRank(a.Reason), reasonRank(b.Reason))
	})
	for len(all) > 0 {
		first := all[0]
		same := func(n NotEvaluated) bool {
			return n.Reason == first.Reason && (n.Needs == first.Needs || isTime(first.Reason)) && inPart(n) == inPart(first)
		}
		group := slices.DeleteFunc(slices.Clone(all), func(n NotEvaluated) bool { return !same(n) })
		all = slices.DeleteFunc(all, same)
		out = append(out, ReasonGroup{r.describeReason(group), inPart(first), stands(first.Reason), group})
	}
	return out
}

// isEvaluated reports whether an alert was evaluated, at least for a part of the host.
func (r *Report) isEvaluated(n NotEvaluated) bool {
	return slices.ContainsFunc(r.Evaluated, func(e Evaluated) bool { return e.Alert == n.Alert && e.Fault == n.Fault })
}

// Name returns the name of the alert, with its fault if it is about one.
func (n NotEvaluated) Name() string { return coverage.Named(n.Alert, n.Fault) }

// describe returns the group in words: "7 rules not evaluated: collector disabled. Enable it: --collector.pcie".
func (g ReasonGroup) describe() string {
	what := "not evaluated"
	if g.InPart {
		what = "evaluated in part"
	}
	return fmt.Sprintf("%s %s: %s", words.Count(len(g.Alerts), "rule"), what, g.Reason)
}

// listRows returns a row for each alert.
func (g ReasonGroup) listRows() (rows [][]string) {
	for _, n := range g.Alerts {
		rows = append(rows, []string{n.Name(), n.Reason, n.Detail})
	}
	return rows
}

// isTime reports whether a reason is a lack of history. The longest time that rules of the group need is then shown.
func isTime(reason string) bool { return reason == reasonTooShort || reason == reasonHistory }

// stands reports whether a reason is one of most healthy hosts.
func stands(reason string) bool { return isTime(reason) || reason == string(coverage.NotSupported) }

// reasonRank returns the position of a reason in reasonWords; an unknown one is last.
func reasonRank(reason string) int {
	if i := slices.IndexFunc(reasonWords, func(w struct{ reason, text, remedy string }) bool {
		return w.reason == reason
	}); i >= 0 {
		return i
	}
	return len(reasonWords)
}

// describeReason returns the text and the remedy of the reason that a group of alerts shares.
func (r *Report) describeReason(group []NotEvaluated) string {
	n := group[0]
	i := reasonRank(n.Reason)
	if i == len(reasonWords) {
		return n.Reason
	}
	text, remedy, needs := reasonWords[i].text, reasonWords[i].remedy, n.Needs
	if n.Reason == string(coverage.Paused) && n.Detail != "" {
		text = n.Detail
	}
	if isTime(n.Reason) {
		needs = longestNeed(group)
	}
	if len(group) > 1 {
		text = strings.ReplaceAll(text, "NEEDS", "up to NEEDS")
	}
	if n.Reason == reasonTooShort {
		remedy = r.observeLonger()
	}
	if needs == "" && strings.Contains(remedy, "NEEDS") {
		remedy = ""
	}
	return strings.ReplaceAll(words.Join(". ", text, remedy), "NEEDS", needs)
}

// observeLonger returns the remedy for a history that is too short; for a capture there is none.
func (r *Report) observeLonger() string {
	switch {
	case r.Replay != "":
		return ""
	case r.IntervalSeconds > 0:
		return "Wait until the exporter has run for NEEDS"
	}
	return "Run the exporter, which keeps a history, or observe for longer: check --for NEEDS"
}

func longestNeed(group []NotEvaluated) string {
	var out time.Duration
	for _, n := range group {
		if d, err := time.ParseDuration(n.Needs); err == nil {
			out = max(out, d)
		}
	}
	return formatDuration(out)
}

// Coverage returns a summary of the rules on which the verdict is based: "49 of 81 rules evaluated over 2h by the
// running exporter (6 in part), 18 not evaluated, 14 not applicable". Each rule of the total is counted in one of the
// parts. Rules of the same name count as one.
func (r *Report) Coverage() string {
	part, pending, not := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, n := range r.NotEvaluated {
		switch {
		case r.isEvaluated(n):
			part[n.Name()] = true
		case n.Reason == reasonPending:
			pending[n.Name()] = true
		default:
			not[n.Name()] = true
		}
	}
	for name := range pending {
		delete(not, name) // in part
	}
	total := len(r.Evaluated) + len(pending) + len(not) + len(r.NotApplicable)
	s := fmt.Sprintf("%d of %s evaluated %s", len(r.Evaluated), words.Count(total, "rule"), r.describeBasis())
	for _, p := range []struct {
		n      int
		format string
	}{
		{len(part), " (%d in part)"},
		{len(pending), ", %d pending"},
		{len(not), ", %d not evaluated"},
		{len(r.NotApplicable), ", %d not applicable"},
	} {
		if p.n > 0 {
			s += fmt.Sprintf(p.format, p.n)
		}
	}
	return s
}

// Measured returns whether all was measured that the host reports: "Everything measured so far, over 12m of the
// capture: 55 rules evaluated, 11 more not supported here, 18 more need a longer history". A report on some alerts only
// returns its coverage.
func (r *Report) Measured() string {
	if len(r.Objects) == 0 {
		return r.Coverage()
	}
	everything := r.Failed == nil && !r.HasUnknown()
	left := map[string]map[string]bool{} // names of rules that were not evaluated, by reason
	for _, g := range r.Gaps() {
		everything = everything && g.Stands
		for _, n := range g.Alerts {
			if left[n.Reason] == nil {
				left[n.Reason] = map[string]bool{}
			}
			if !g.InPart {
				left[n.Reason][n.Name()] = true
			}
		}
	}
	short := len(left[reasonTooShort])
	what := "Everything measured"
	switch {
	case !everything:
		what = "Not everything measured"
	case short > 0:
		what = "Everything measured so far,"
	}
	rules := words.Count(len(r.Evaluated), "rule") + " evaluated"
	if n := len(left[string(coverage.NotSupported)]); n > 0 {
		rules += fmt.Sprintf(", %d more not supported here", n)
	}
	if short > 0 {
		rules += fmt.Sprintf(", %d more need a longer history", short)
	}
	return fmt.Sprintf("%s %s: %s", what, r.describeBasis(), rules)
}

// describeBasis returns the source of the samples and the time that they cover.
func (r *Report) describeBasis() string {
	d := time.Duration(r.ObservedSeconds * float64(time.Second))
	switch past := d >= time.Second; {
	case r.Replay != "" && past:
		return "over " + formatDuration(d) + " of the capture"
	case r.Replay != "":
		return "on the capture"
	case r.IntervalSeconds > 0 && past:
		return "over " + formatDuration(d) + " by the running exporter"
	case r.IntervalSeconds > 0:
		return "by the running exporter"
	case past:
		return "over " + formatDuration(d) + " by a one-off evaluation"
	}
	return "on the present state by a one-off evaluation"
}
