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

// lastResult is the result of the last round. Readers do not wait for the next one, which locks the engine during
// evaluation: on a busy machine that is longer than the timeout of check.
type lastResult struct {
	host   string // label instance
	replay string // the replay that is evaluated; empty for a live host
	// report returns the state of a round that is reported although it has no alert.
	report func(*rounds.Picture) check.Seen

	mu        sync.Mutex
	picture   *rounds.Picture // nil: none has ended
	concluded verdict.Conclusion
	evaluated bool // a round since the start
}

// keep keeps the result of a round. A nil picture changes nothing.
func (s *lastResult) keep(p *rounds.Picture, c verdict.Conclusion, evaluated bool) {
	if p == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.picture, s.concluded, s.evaluated = p, c, evaluated
}

// lastPicture returns the last round; nil before the first.
func (s *lastResult) lastPicture() *rounds.Picture {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.picture
}

// input returns the last result; false before the first evaluation.
func (s *lastResult) input() (in check.Input, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in = s.concluded.Into(check.Input{Host: s.host, Replay: s.replay})
	if s.picture != nil {
		in.Coverage, in.Needs, in.Seen = s.picture.Coverage, s.picture.Needs, s.report(s.picture)
	}
	return in, s.evaluated
}

// FindingsWriter returns the function that writes the response of GET /api/v1/findings; nil without alerting.
func (d *Daemon) FindingsWriter() func(io.Writer) error {
	if d == nil {
		return nil
	}
	return func(w io.Writer) error {
		in, ok := d.Input()
		if !ok {
			return errors.New("no evaluation has finished since the start, retry in a few seconds")
		}
		return check.JSON(w, check.New(in))
	}
}

// LastRound returns the last round that was evaluated; nil before the first.
func (d *Daemon) LastRound() *rounds.Picture { return d.seen.lastPicture() }

// Input returns the result of the last round; false before the first evaluation.
func (d *Daemon) Input() (check.Input, bool) {
	in, ok := d.seen.input()
	in.Exporter, in.History, in.Interval = verdict.Build(), d.Engine.History(), d.config.Interval
	var unidentified error
	in.Identities, unidentified = verdict.Identities(d.Engine, in.Alerts, in.To)
	command.LogError(d.log, "cannot read what identifies the objects of alerts", unidentified)
	if d.Hooks.Input != nil {
		d.Hooks.Input(&in)
	}
	return in, ok
}
