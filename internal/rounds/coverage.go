package rounds

import (
	"cmp"
	"slices"

	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// coverageInput is the result of a round, and the reasons for missing data.
func (s *Scheduler) coverageInput(p *Picture, runners []*runner, results []*result) coverage.Round {
	denials := s.faults.denials()
	return coverage.Round{
		Families: p.Families, LeftOut: p.LeftOut != LeftOut{},
		Collector: func(name string) coverage.Reason {
			i := slices.IndexFunc(runners, func(r *runner) bool { return r.c.Name == name })
			switch {
			case i < 0:
				return coverage.CollectorDisabled
			case results[i] == nil:
				return runners[i].unread()
			case results[i].err != nil:
				return coverage.Failed
			}
			return ""
		},
		Source: func(name string) coverage.Reason {
			if denials[name] {
				return coverage.Permission
			}
			return failure(results, name)
		},
	}
}

// unread is why a collector has no result: its first collection is in progress, or it did not end in time.
func (r *runner) unread() coverage.Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		return coverage.NotReadYet
	}
	return coverage.Failed
}

// failure is how reading a source failed in this round. Unsupported and absent data is not a failure. Empty: none.
func failure(results []*result, source string) (why coverage.Reason) {
	for _, res := range results {
		if res == nil {
			continue
		}
		if source == host.SourceNVML.Name() && res.node.GPUs != nil && res.node.GPUs.Released != nil {
			return coverage.Paused
		}
		for _, i := range res.node.Issues {
			if i.Source == source {
				why = cmp.Or(reasonOf(i), why)
			}
		}
		if slices.Contains(res.node.Pending, source) {
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

// isFailure reports whether a reason means that data which may exist was not read. Drivers answer EINVAL for what the firmware lacks.
func isFailure(reason string) bool {
	switch host.Reason(reason) {
	case host.Absent, host.Unsupported, host.Invalid:
		return false
	}
	return true
}
