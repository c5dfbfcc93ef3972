package app

import (
	"errors"
	"io"
	"sync"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/rounds"
)

// seenLast is what the last round came to. Whoever asks for it does not wait for the next one, which holds the engine while it judges: on a
// busy machine that is longer than check has patience.
type seenLast struct {
	host   string // label instance
	replay string // the capture that is judged; empty for a live host

	mu        sync.Mutex
	picture   *rounds.Picture // nil: none has ended
	concluded conclusion
	judged    bool // a round since the start
}

// note keeps what a round saw, nil if there was none, and what the engine says after it.
func (s *seenLast) note(p *rounds.Picture, c conclusion, judged bool) {
	if p == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.picture, s.concluded, s.judged = p, c, judged
}

func (s *seenLast) last() *rounds.Picture {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.picture
}

// input is not ok before a round has been judged.
func (s *seenLast) input() (in check.Input, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in = s.concluded.into(check.Input{Host: s.host, Replay: s.replay})
	if s.picture != nil {
		in.Coverage, in.Needs, in.Seen = s.picture.Coverage, s.picture.Needs, seenIn(s.picture)
	}
	return in, s.judged
}

// findings gives what GET /api/v1/findings answers; nil where nothing is judged.
func (d *daemon) findings() func(io.Writer) error {
	if d == nil {
		return nil
	}
	return func(w io.Writer) error {
		in, ok := d.input()
		if !ok {
			return errors.New("no evaluation has finished since the start: retry in a moment")
		}
		return check.JSON(w, check.New(in))
	}
}

// input is what the engine says of the last round.
func (d *daemon) input() (check.Input, bool) {
	in, ok := d.seen.input()
	in.Exporter, in.History, in.Interval = build(), d.engine.History(), d.config.interval
	var unidentified error
	in.Identities, unidentified = identitiesOf(d.engine, in.Alerts, in.To)
	discard(d.log, "cannot read what identifies the objects of alerts", unidentified)
	return in, ok
}
