package rounds

import (
	"cmp"
	"slices"

	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/snapshot"
)

// covered is the coverage of the last round. It depends on the series and on the reasons for missing data, not on the
// values.
type covered struct {
	sink                *exposition.Sink // of the alerts that are not evaluated
	detector            *coverage.Detector
	round               coverage.Round
	collectors, sources map[string]coverage.Reason // the answers of the round
	report              coverage.Report
	gaps                []exposition.Family
}

// answersAlike reports whether a round gives the same answers as the last one.
func (c *covered) answersAlike(r coverage.Round) bool {
	for name, reason := range c.collectors {
		if r.Collector(name) != reason {
			return false
		}
	}
	for name, reason := range c.sources {
		if r.Source(name) != reason {
			return false
		}
	}
	return true
}

// evaluateCoverage returns the coverage of a round. That of the last round is reused if nothing has changed.
func (s *Scheduler) evaluateCoverage(r coverage.Round) (coverage.Report, []exposition.Family) {
	s.selfMu.Lock()
	defer s.selfMu.Unlock()
	c, detector := &s.last, s.Coverage()
	if c.detector == detector && c.round.LeftOut == r.LeftOut &&
		exposition.SameSeries(c.round.Families, r.Families) && c.answersAlike(r) {
		return c.report, c.gaps
	}
	// The caller appends to its own slice.
	c.detector, c.round = detector, coverage.Round{Families: slices.Clone(r.Families), LeftOut: r.LeftOut}
	c.collectors, c.sources = map[string]coverage.Reason{}, map[string]coverage.Reason{}
	c.report = detector.Evaluate(coverage.Round{
		Families: r.Families, LeftOut: r.LeftOut, Collector: rememberAnswers(r.Collector, c.collectors),
		Source: rememberAnswers(r.Source, c.sources),
	})
	c.sink.Begin()
	for _, g := range c.report.Gaps {
		c.sink.Emit(detectionUnavailable, 1, g.Alert, g.Fault, string(g.Reason))
	}
	c.gaps = c.sink.End()
	return c.report, c.gaps
}

// rememberAnswers returns a function that records the answers of ask.
func rememberAnswers(
	ask func(string) coverage.Reason, answers map[string]coverage.Reason,
) func(string) coverage.Reason {
	return func(name string) coverage.Reason {
		answers[name] = ask(name)
		return answers[name]
	}
}

// coverageInput returns the result of a round with the reasons for missing data.
func (s *Scheduler) coverageInput(p *Picture, runners []*runner, results []*result) coverage.Round {
	denials := s.faults.listDenials()
	return coverage.Round{
		Families: p.Families, LeftOut: p.LeftOut != LeftOut{},
		Collector: func(name string) coverage.Reason {
			i := slices.IndexFunc(runners, func(r *runner) bool { return r.c.Name == name })
			switch {
			case i < 0:
				return coverage.CollectorDisabled
			case results[i] == nil:
				return runners[i].findUnreadReason()
			case results[i].err != nil:
				return coverage.Failed
			}
			return ""
		},
		Source: func(name string) coverage.Reason {
			if denials[name] {
				return coverage.Permission
			}
			return findFailure(results, name)
		},
	}
}

// findUnreadReason returns the reason why a collector has no result: its first collection is in progress, or it did not
// end in time.
func (r *runner) findUnreadReason() coverage.Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		return coverage.NotReadYet
	}
	return coverage.Failed
}

// findFailure returns the reason why reading a source failed in this round; empty if it did not. Unsupported and absent
// data is not a failure.
func findFailure(results []*result, origin string) (why coverage.Reason) {
	for _, res := range results {
		if res == nil {
			continue
		}
		if origin == source.NVML.Name() && res.node.GPUs != nil && res.node.GPUs.Released != nil {
			return coverage.Paused
		}
		for _, i := range res.node.Issues {
			if i.Source == origin {
				why = cmp.Or(reasonOf(i), why)
			}
		}
		if slices.Contains(res.node.Pending, origin) {
			return coverage.NotReadYet
		}
	}
	return why
}

func reasonOf(i snapshot.Issue) coverage.Reason {
	if isFailure(i.Reason) {
		return coverage.Failed
	}
	return ""
}

// isFailure reports whether a reason means that data which may exist was not read. Drivers answer EINVAL for what the
// firmware lacks.
func isFailure(reason string) bool {
	switch access.Reason(reason) {
	case access.Absent, access.Unsupported, access.Invalid:
		return false
	}
	return true
}
