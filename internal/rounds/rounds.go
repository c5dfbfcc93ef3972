// Package rounds collects: one collection at a time for each collector, on the program's own context, kept for whoever asks
// within the minimal interval. A request gets what is finished by its deadline; a client that goes away cancels nothing.
package rounds

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/maintenance"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/workers"
)

// Options configure a Scheduler.
type Options struct {
	Host       *host.Host
	Collectors []*collector.Collector
	// Timeout bounds a collection, and the wait of a request that names no deadline of its own.
	Timeout time.Duration
	// MinInterval is how long a result serves other requests.
	MinInterval time.Duration
	// Before is called before a collection with the time of day; a replay moves its machine there.
	Before func(time.Time) error
	// Now is the clock of intervals and of the metrics on collections.
	Now    func() time.Time
	Logger *slog.Logger
	// Tells says that whoever asks tells what is not permitted: it is not logged.
	Tells bool
	// Config says how the last reading of the configuration files went; false, or nil: there is no such file.
	Config func() (FileState, bool)
	// State says how the last writing of the state file went; false, or nil: there is no such file.
	State func() (FileState, bool)
	// Alerting says how the engine that judges the rules does; false, or nil: there is none.
	Alerting func() (AlertingState, bool)
	// Replay is the recording that is served instead of a host; nil: a host is.
	Replay *Recording
	// Maintenance returns what is announced for the host, nil for nothing; false, or nil: the state directory cannot tell.
	Maintenance func() (*maintenance.Notice, bool)
	// Incident says how the last capture of an incident was kept; false, or nil: none has been tried.
	Incident func() (FileState, bool)
	// Coverage says which alerts the rounds cannot evaluate; nil: not asked for.
	Coverage func() *coverage.Detector
}

// Recording is what a replay plays.
type Recording struct{ Hostname, Date string }

// FileState is how a file of the exporter was read or written.
type FileState struct {
	Failed bool      // the last time
	At     time.Time // of the last time that did not fail
}

// Scheduler runs collectors.
type Scheduler struct {
	Options
	ctx     context.Context
	runners []*runner
	faults  *faults
	self    *exposition.Sink
	gaps    *exposition.Sink // of what is blind; guarded by selfMu
	selfMu  sync.Mutex
	seen    map[string]bool // devices of which the metrics on the exporter tell; guarded by selfMu
	names   []string        // the same, in order
}

// runner runs one collector.
type runner struct {
	c    *collector.Collector
	sink *exposition.Sink

	mu      sync.Mutex
	running chan struct{} // closed at the end of the collection in progress; nil if none is
	end     time.Time     // when it leaves behind what has not returned
	timer   *time.Timer   // that fires then
	last    *result
}

// result is what one collection gave.
type result struct {
	at       time.Time
	duration time.Duration
	err      error
	node     snapshot.Node
	families []exposition.Family
}

// Picture is the node as a request sees it.
type Picture struct {
	At       time.Time
	Read     time.Time // when the latest of its collections began; At if there is none
	Node     snapshot.Node
	Families []exposition.Family // sorted by name
	Coverage coverage.Report     // of a picture of all collectors
	Needs    map[string]string   // what would permit each source that this process may not read
	// Maintenance is announced; nil: none is, or nobody can tell.
	Maintenance *maintenance.Notice
}

// New makes a scheduler. Collections end with ctx.
func New(ctx context.Context, o Options) *Scheduler {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Scheduler{Options: o, ctx: ctx, faults: newFaults(o.Logger), self: exposition.NewSink(Descs), gaps: exposition.NewSink([]*exposition.Desc{detectionUnavailable}), seen: map[string]bool{}}
	for _, c := range o.Collectors {
		s.runners = append(s.runners, &runner{c: c, sink: exposition.NewSink(c.Descs)})
	}
	s.faults.tells = o.Tells
	return s
}

// UnknownCollectorError says that a request named a collector that there is not, or that is switched off.
type UnknownCollectorError struct {
	Name  string
	Known []string
}

func (e *UnknownCollectorError) Error() string {
	return fmt.Sprintf("collect[]=%s: no such collector is on; there are %v", e.Name, e.Known)
}

// Check says whether all names are collectors of this scheduler.
func (s *Scheduler) Check(names []string) error {
	var known []string
	for _, r := range s.runners {
		known = append(known, r.c.Name)
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return &UnknownCollectorError{Name: n, Known: known}
		}
	}
	return nil
}

// Collect returns the picture of the named collectors, of all if none is named, by the deadline of ctx or after Timeout.
func (s *Scheduler) Collect(ctx context.Context, names []string) (*Picture, error) {
	return s.CollectWithin(ctx, names, s.MinInterval)
}

// CollectWithin is Collect for whom results will do that are younger than young.
func (s *Scheduler) CollectWithin(ctx context.Context, names []string, young time.Duration) (p *Picture, err error) {
	err = host.Guard(func() (err error) { p, err = s.collectWithin(ctx, names, young); return err })
	return p, err
}

func (s *Scheduler) collectWithin(ctx context.Context, names []string, young time.Duration) (*Picture, error) {
	if err := s.Check(names); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	var chosen []*runner
	for _, r := range s.runners {
		if len(names) == 0 || slices.Contains(names, r.c.Name) {
			chosen = append(chosen, r)
		}
	}
	if s.Before != nil {
		if err := s.Before(s.Now()); err != nil {
			return nil, err
		}
	}
	var idle []*runner // to be run for this request
	waits := make([]func() *result, len(chosen))
	for i, r := range chosen {
		var start bool
		if waits[i], start = s.join(ctx, r, young); start {
			idle = append(idle, r)
		}
	}
	s.run(ctx, idle)
	results := make([]*result, len(chosen))
	for i, wait := range waits {
		results[i] = wait()
	}
	return s.picture(chosen, results), nil
}

// run collects and waits, once for all, until each has a result or ctx ends.
func (s *Scheduler) run(ctx context.Context, idle []*runner) {
	if len(idle) == 0 {
		return
	}
	var left atomic.Int64
	left.Store(int64(len(idle)))
	all := make(chan struct{})
	h := s.Host.ForRound()
	workers.Go(s.ctx, len(idle), func(i int) {
		s.collect(h, idle[i], func() {
			if left.Add(-1) == 0 {
				close(all)
			}
		})
	})
	select {
	case <-all:
	case <-ctx.Done():
	}
}

// join takes a result that is young enough, or the collection in progress; if there is none, one has to be started. The
// function that it returns waits; nil means that there was no result in time.
func (s *Scheduler) join(ctx context.Context, r *runner, young time.Duration) (wait func() *result, start bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		if last := r.last; last != nil && s.Now().Sub(last.at) < young {
			return func() *result { return last }, false
		}
		r.running, r.end, start = make(chan struct{}), time.Time{}, true
	}
	r.endBefore(ctx)
	running := r.running
	return func() *result {
		select {
		case <-running:
		case <-ctx.Done():
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.running == running { // not finished; after the deadline of another collector this one may well be
			return nil
		}
		return r.last
	}, start
}

// endBefore makes a collection end in time for a request, however late the others would wait: devices that do not return are
// left behind, so that the request still gets all the others. r.mu is held.
func (r *runner) endBefore(ctx context.Context) {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	end := deadline.Add(-min(left/10, 200*time.Millisecond)) // the rest is for the answer
	if r.end.IsZero() || end.Before(r.end) {
		r.end = end
		if r.timer != nil {
			r.timer.Reset(time.Until(end))
		}
	}
}

// collect runs one collection and calls done when its result is there.
func (s *Scheduler) collect(h *host.Host, r *runner, done func()) {
	ctx, cancel := context.WithCancel(s.ctx)
	r.mu.Lock()
	r.timer = time.AfterFunc(time.Until(r.end), cancel)
	r.mu.Unlock()
	start := time.Now()
	res := &result{at: s.Now()}
	var once sync.Once
	end := func(err error) {
		once.Do(func() {
			res.err = err
			s.finish(r, res, start)
			cancel()
			done()
		})
	}
	if err := host.Guard(func() error { r.c.Read(ctx, h, &res.node, end); return nil }); err != nil {
		end(err)
	}
}

// finish makes metrics of what a collection gave, and hands them to whoever waits.
func (s *Scheduler) finish(r *runner, res *result, start time.Time) {
	err := host.Guard(func() error {
		r.sink.Begin()
		defer func() { res.families = r.sink.End() }()
		r.c.Emit(&res.node, r.sink)
		return nil
	})
	res.err = errors.Join(res.err, err)
	res.duration = time.Since(start)
	if err := host.Guard(func() error { s.faults.add(r.c.Name, res, r.sink.Dropped()); return nil }); err != nil {
		res.err = errors.Join(res.err, err)
		s.faults.panicked(r.c.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer.Stop()
	r.last = res
	close(r.running)
	r.running, r.timer = nil, nil
}

func (s *Scheduler) picture(runners []*runner, results []*result) *Picture {
	p := &Picture{At: s.Now(), Needs: s.faults.remedies()}
	var told bool
	if s.Maintenance != nil {
		p.Maintenance, told = s.Maintenance()
	}
	self := s.selfFamilies(runners, results, p.Maintenance, told)
	n := len(self)
	for _, res := range results {
		if res != nil {
			p.Node.Merge(&res.node)
			n += len(res.families)
			if res.at.After(p.Read) {
				p.Read = res.at
			}
		}
	}
	if p.Read.IsZero() {
		p.Read = p.At
	}
	p.Families = make([]exposition.Family, 0, n)
	for _, res := range results {
		if res != nil {
			p.Families = append(p.Families, res.families...)
		}
	}
	p.Families = exposition.Merge(append(p.Families, self...))
	if s.Coverage != nil && len(runners) == len(s.runners) {
		p.Coverage = s.Coverage().Evaluate(s.coverageInput(p.Families, runners, results))
		p.Families = exposition.Merge(append(p.Families, s.unavailable(p.Coverage.Gaps)...))
	}
	return p
}
