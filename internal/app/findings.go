package app

import (
	"errors"
	"io"
	"sync"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/rounds"
)

// seenLast is what findings need of the last round, besides the engine.
type seenLast struct {
	host   string // label instance
	replay string // the capture that is judged; empty for a live host

	mu      sync.Mutex
	picture *rounds.Picture // nil: none has ended
}

// note keeps what a round saw; nil: there was none.
func (s *seenLast) note(p *rounds.Picture) {
	if p == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.picture = p
}

func (s *seenLast) last() *rounds.Picture {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.picture
}

func (s *seenLast) input() check.Input {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := check.Input{Host: s.host, Replay: s.replay}
	if s.picture != nil {
		in.Blind, in.Needs = s.picture.Blind, s.picture.Needs
	}
	return in
}

// findings gives what GET /api/v1/findings answers; nil where nothing is judged.
func (d *daemon) findings() func(io.Writer) error {
	if d == nil {
		return nil
	}
	return func(w io.Writer) error {
		if d.engine.Stats().Rounds == 0 {
			return errors.New("no round has been judged since the start: ask again in a moment")
		}
		return check.JSON(w, d.report())
	}
}

// report is what the engine says of the last round.
func (d *daemon) report() check.Report {
	in := d.seen.input()
	in.Interval = d.config.interval
	return reportOf(d.engine, in)
}
