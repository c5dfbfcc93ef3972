// Package rounds schedules collections: at most one at a time per collector, independent of requests, with results
// reused within the minimum interval. A request returns the collections that have finished by its deadline. A
// disconnected client cancels nothing.
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
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/maintenance"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/words"
	"rdma_exporter/internal/workers"
)

// Options configure a Scheduler.
type Options struct {
	Host       *host.Host
	Collectors []*collector.Collector
	// Timeout is the limit of a collection, and the wait of a request without a deadline.
	Timeout time.Duration
	// MinInterval is the time for which a result is reused.
	MinInterval time.Duration
	// Before is called with the current time before each collection; a replay seeks to that time.
	Before func(time.Time) error
	// Now is the clock of intervals and of the metrics about collections.
	Now    func() time.Time
	Logger *slog.Logger
	// ReportsDenied means that the caller reports denied sources, so that they are not logged.
	ReportsDenied bool
	// Config is the result of the last load of the configuration files; false or nil: there are none.
	Config func() (FileState, bool)
	// State is the result of the last write of the state file; false or nil: there is no state file.
	State func() (FileState, bool)
	// Alerting is the state of the alerting engine; false or nil: there is none.
	Alerting func() (AlertingState, bool)
	// Replay is the recording that is served; nil for a live host.
	Replay *Recording
	// Maintenance is the announced maintenance of the host, nil for none; false or nil func: unknown, without a state
	// directory.
	Maintenance func() (*maintenance.Notice, bool)
	// Incident is the result of the last capture of an incident; false or nil: there was none.
	Incident func() (FileState, bool)
	// Coverage finds alerts that cannot be evaluated; nil: disabled.
	Coverage func() *coverage.Detector
	// Limits bound the data. The limit of devices is applied by the collectors.
	Limits Limits
}

// Recording is the recording of a replay.
type Recording struct{ Hostname, Date string }

// FileState is the result of reading or writing a file of the exporter.
type FileState struct {
	Failed bool      // the last time
	At     time.Time // time of the last success
}

// Scheduler runs collectors.
type Scheduler struct {
	Options
	ctx     context.Context
	runners []*runner
	faults  *faults
	self    *exposition.Sink
	last    covered // guarded by selfMu
	selfMu  sync.Mutex
	seen    map[string]bool // devices in the metrics about the exporter; guarded by selfMu
	names   []string        // the same, sorted
}

// runner runs one collector.
type runner struct {
	c    *collector.Collector
	sink *exposition.Sink
	// derived receives the samples of Derive. One picture uses it at a time.
	derived   *exposition.Sink
	derivedMu sync.Mutex

	mu      sync.Mutex
	running chan struct{} // closed at the end of the collection in progress; nil if there is none
	end     time.Time     // of the wait for blocked reads
	timer   *time.Timer   // fires then
	last    *result
}

// result is the result of one collection.
type result struct {
	at       time.Time
	duration time.Duration
	err      error
	node     snapshot.Node
	families []exposition.Family
}

// Picture is the state of the node for one request.
type Picture struct {
	At       time.Time
	Read     time.Time           // start of the latest of its collections; At if there is none
	Families []exposition.Family // sorted by name
	Coverage coverage.Report     // set if all collectors are included
	Needs    map[string]string   // the permission required by each denied source
	// Maintenance is the announced maintenance; nil: none or unknown.
	Maintenance *maintenance.Notice
	LeftOut     LeftOut
	Failures    []Failure // of the last collection of each collector
	// Unread holds the metrics of collectors that failed, have not finished, or wait for a source: missing series of
	// these metrics have not necessarily ended. nil: none.
	Unread map[string]bool

	node  snapshot.Node // as read, with names for paths and settings for comparison
	gate  sync.Once
	shown snapshot.Node
}

// Node returns the state of the node for output: its texts have passed through words.AllForeign, which happens at the
// first call, since a scrape needs none of them. The node is shared and must not be modified. It is nil without a
// picture.
func (p *Picture) Node() *snapshot.Node {
	if p == nil {
		return nil
	}
	p.gate.Do(func() { p.shown = words.AllForeign(p.node) })
	return &p.shown
}

// New returns a scheduler. Collections end when ctx ends.
func New(ctx context.Context, o Options) *Scheduler {
	if o.Now == nil {
		o.Now = time.Now
	}
	descs := [][]*exposition.Desc{Descs, {detectionUnavailable}}
	for _, c := range o.Collectors {
		descs = append(descs, c.Descs, c.Descs)
	}
	sinks := exposition.NewSinks(descs...)
	s := &Scheduler{
		Options: o, ctx: ctx, faults: newFaults(o.Logger), self: sinks[0], last: covered{sink: sinks[1]},
		seen: map[string]bool{},
	}
	for i, c := range o.Collectors {
		s.runners = append(s.runners, &runner{c: c, sink: sinks[2*i+2], derived: sinks[2*i+3]})
	}
	s.faults.reportsDenied = o.ReportsDenied
	return s
}

// UnknownCollectorError is the error of a request for an unknown or disabled collector.
type UnknownCollectorError struct {
	Name  string
	Known []string
}

func (e *UnknownCollectorError) Error() string {
	return fmt.Sprintf("collect[]=%s: unknown or disabled collector, enabled are %v", e.Name, e.Known)
}

// Check returns an error if one of the names is not a collector of this scheduler.
func (s *Scheduler) Check(names []string) error {
	if len(names) == 0 {
		return nil
	}
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

// Collect returns the picture of the named collectors (all if none is named), at the latest at the deadline of ctx or
// after Timeout.
func (s *Scheduler) Collect(ctx context.Context, names []string) (*Picture, error) {
	return s.CollectWithin(ctx, names, s.MinInterval)
}

// CollectWithin collects as Collect does, reusing results younger than young.
func (s *Scheduler) CollectWithin(ctx context.Context, names []string, young time.Duration) (p *Picture, err error) {
	err = access.Guard(func() (err error) { p, err = s.collectWithin(ctx, names, young); return err })
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
	if err := s.checkCancelled(); err != nil {
		return nil, err
	}
	return s.newPicture(chosen, results), nil
}

// checkCancelled returns an error if the program is stopping or its start was cancelled: missing data is then no
// failure. At a deadline of the program there are partial results.
func (s *Scheduler) checkCancelled() error {
	if access.Cancelled(s.ctx) {
		return fmt.Errorf("collection cancelled: %w", context.Cause(s.ctx))
	}
	return nil
}

// run starts collections, and waits until all have a result or ctx ends.
func (s *Scheduler) run(ctx context.Context, idle []*runner) {
	if len(idle) == 0 {
		return
	}
	var left atomic.Int64
	left.Store(int64(len(idle)))
	all := make(chan struct{})
	s.Host.CPU.Read()
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

// join returns a function that waits for a result of the collector: a recent one, or that of the collection in
// progress. The result is nil on timeout. If start is true, the caller has to start a collection.
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
		if r.running == running { // in progress; it may have ended while other collectors were waited for
			return nil
		}
		return r.last
	}, start
}

// endBefore makes a collection end in time for a request, even if other requests would wait longer: blocked devices are
// left out, so that the request gets the rest. r.mu is held.
func (r *runner) endBefore(ctx context.Context) {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	end := deadline.Add(-min(left/10, 200*time.Millisecond)) // the rest is for the response
	if r.end.IsZero() || end.Before(r.end) {
		r.end = end
		if r.timer != nil {
			r.timer.Reset(time.Until(end))
		}
	}
}

// collect runs one collection, and calls done when its result is available.
func (s *Scheduler) collect(h *host.Host, r *runner, done func()) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	r.mu.Lock()
	r.timer = time.AfterFunc(time.Until(r.end), func() { cancel(context.DeadlineExceeded) })
	r.mu.Unlock()
	start := time.Now()
	res := &result{at: s.Now()}
	var once sync.Once
	end := func(err error) {
		once.Do(func() {
			res.err = err
			s.finish(r, res, start)
			cancel(nil)
			done()
		})
	}
	if err := access.Guard(func() error { r.c.Read(ctx, h, &res.node, end); return nil }); err != nil {
		end(err)
	}
}

// finish ends a collection. The result of a cancelled one is discarded.
func (s *Scheduler) finish(r *runner, res *result, start time.Time) {
	if s.checkCancelled() == nil {
		s.publish(r, res, start)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer.Stop()
	close(r.running)
	r.running, r.timer = nil, nil
}

// publish converts a result to metrics, counts its failures, and makes it available to requests.
func (s *Scheduler) publish(r *runner, res *result, start time.Time) {
	err := access.Guard(func() error {
		r.sink.Begin()
		if res.node.Reduced.Reduces() {
			r.sink.Omit(res.node.Reduced.LeavesOut)
		}
		defer func() { res.families = r.sink.End() }()
		r.c.Emit(&res.node, r.sink)
		return nil
	})
	res.err = errors.Join(res.err, err)
	res.duration = time.Since(start)
	if err := access.Guard(func() error { s.faults.add(r.c.Name, res, r.sink.Dropped()); return nil }); err != nil {
		res.err = errors.Join(res.err, err)
		s.faults.countPanic(r.c.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = res
}

// derive returns the families that a collector derives from the complete node. A panic costs these families, and is
// counted.
func (s *Scheduler) derive(r *runner, n *snapshot.Node) (families []exposition.Family) {
	r.derivedMu.Lock()
	defer r.derivedMu.Unlock()
	err := access.Guard(func() error {
		r.derived.Begin()
		defer func() { families = r.derived.End() }()
		r.c.Derive(n, r.derived)
		return nil
	})
	if err != nil {
		s.faults.countPanic(r.c.Name, err)
	}
	return families
}

// unreadMetrics returns the metrics of collectors whose result is incomplete.
func unreadMetrics(runners []*runner, results []*result) (out map[string]bool) {
	for i, res := range results {
		if res != nil && res.err == nil && len(res.node.Pending) == 0 && !slices.ContainsFunc(res.node.Issues, isStuck) {
			continue
		}
		if out == nil {
			out = map[string]bool{}
		}
		for _, d := range runners[i].c.Descs {
			out[d.Name] = true
		}
	}
	return out
}

func isStuck(i snapshot.Issue) bool {
	return i.Reason == string(access.Stuck) || i.Reason == string(access.Late)
}

func (s *Scheduler) newPicture(runners []*runner, results []*result) *Picture {
	p := &Picture{At: s.Now(), Needs: s.faults.listRemedies(), Failures: s.faults.listFailures()}
	var known bool
	if s.Maintenance != nil {
		p.Maintenance, known = s.Maintenance()
	}
	n := 0
	for _, res := range results {
		if res != nil {
			p.node.Merge(&res.node)
			n += len(res.families)
			if res.at.After(p.Read) {
				p.Read = res.at
			}
		}
	}
	if p.Read.IsZero() {
		p.Read = p.At
	}
	p.Families = make([]exposition.Family, 0, n+len(Descs))
	for _, res := range results {
		if res != nil {
			p.Families = append(p.Families, res.families...)
		}
	}
	p.Unread = unreadMetrics(runners, results)
	for i, r := range runners {
		if r.c.Derive != nil && results[i] != nil {
			p.Families = append(p.Families, s.derive(r, &p.node)...)
		}
	}
	p.Failures = words.AllForeign(p.Failures)
	p.LeftOut = LeftOut{Series: s.Limits.limit(p.Families, p.node.Reduced)}
	if r := p.node.Reduced; r != nil {
		p.LeftOut.Devices = len(r.LeftOut)
	}
	p.Families = exposition.Merge(append(p.Families, s.selfFamilies(runners, results, p, known)...))
	if s.Coverage != nil && len(runners) == len(s.runners) {
		var gaps []exposition.Family
		p.Coverage, gaps = s.evaluateCoverage(s.coverageInput(p, runners, results))
		for _, f := range gaps { // the only family that needs the others
			i, _ := slices.BinarySearchFunc(p.Families, f, exposition.Family.Compare)
			p.Families = slices.Insert(p.Families, i, f)
		}
	}
	return p
}
