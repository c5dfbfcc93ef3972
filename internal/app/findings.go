package app

import (
	"errors"
	"io"
	"sync"

	"rdma_exporter/internal/blind"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/rounds"
)

// seenLast is what findings need of the last round, besides the engine.
type seenLast struct {
	host   string // label instance
	replay string // the capture that is judged; empty for a live host

	mu    sync.Mutex
	blind blind.Report
}

// note keeps what a round left blind; nil: there was none.
func (s *seenLast) note(p *rounds.Picture) {
	if p == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blind = p.Blind
}

func (s *seenLast) input() check.Input {
	s.mu.Lock()
	defer s.mu.Unlock()
	return check.Input{Host: s.host, Replay: s.replay, Blind: s.blind}
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
		in := d.seen.input()
		in.Interval = d.config.interval
		return check.JSON(w, reportOf(d.engine, in))
	}
}
