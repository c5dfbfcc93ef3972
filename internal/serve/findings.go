package serve

import (
	"errors"
	"io"
	"sync"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/verdict"
)

// seenLast is the result of the last round. Readers do not wait for the next one, which locks the engine during
// evaluation: on a busy machine that is longer than the timeout of check.
type seenLast struct {
	host   string // label instance
	replay string // the replay that is evaluated; empty for a live host
	// of returns what is reported of a round without an alert; nil: verdict.Seen.
	of func(*rounds.Picture) check.Seen

	mu        sync.Mutex
	picture   *rounds.Picture // nil: none has ended
	concluded verdict.Conclusion
	evaluated bool // a round since the start
}

// note keeps the result of a round. A nil picture changes nothing.
func (s *seenLast) note(p *rounds.Picture, c verdict.Conclusion, evaluated bool) {
	if p == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.picture, s.concluded, s.evaluated = p, c, evaluated
}

func (s *seenLast) last() *rounds.Picture {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.picture
}

// input is not ok before the first evaluation.
func (s *seenLast) input() (in check.Input, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in = s.concluded.Into(check.Input{Host: s.host, Replay: s.replay})
	if s.picture != nil {
		of := s.of
		if of == nil {
			of = verdict.Seen
		}
		in.Coverage, in.Needs, in.Seen = s.picture.Coverage, s.picture.Needs, of(s.picture)
	}
	return in, s.evaluated
}

// findings writes the response of GET /api/v1/findings; nil without alerting.
func (d *daemon) findings() func(io.Writer) error {
	if d == nil {
		return nil
	}
	return func(w io.Writer) error {
		in, ok := d.input()
		if !ok {
			return errors.New("no evaluation has finished since the start, retry in a few seconds")
		}
		return check.JSON(w, check.New(in))
	}
}

// input is the result of the last round.
func (d *daemon) input() (check.Input, bool) {
	in, ok := d.seen.input()
	in.Exporter, in.History, in.Interval = verdict.Build(), d.engine.History(), d.config.interval
	var unidentified error
	in.Identities, unidentified = verdict.Identities(d.engine, in.Alerts, in.To)
	command.LogError(d.log, "cannot read what identifies the objects of alerts", unidentified)
	d.nccl.Input(&in)
	return in, ok
}
