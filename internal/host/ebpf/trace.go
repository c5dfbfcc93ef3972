// Package ebpf observes registrations of memory, and peers of queue pairs, by eBPF programs.
package ebpf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/qp"
)

const (
	// traceInterval is the time between two reads of the ring buffer.
	traceInterval = 500 * time.Millisecond
	// maxTraceRate is the number of events per second above which the programs are detached for tracePause: jobs register
	// memory and connect when they start, and not in a loop.
	maxTraceRate = 10_000
	tracePause   = 5 * time.Minute
	// traceModules is how often it is checked whether modules were loaded or unloaded.
	traceModules = 10 * time.Second
)

// tracer observes the kernel that it runs on.
type tracer struct {
	tree    *rooted.Tree
	now     func() time.Time
	maxRate int
	pause   time.Duration // after an overload

	mu      sync.Mutex
	table   *traceTable
	err     error // why nothing is observed
	state   accel.Trace
	pairs   pairLog
	paired  bool       // queue pairs are observed
	drained sync.Mutex // one reader of the ring buffer
	drain   func()
}

// NewTracer returns a tracer that has attached nothing yet.
func NewTracer(t *rooted.Tree) *tracer {
	return &tracer{tree: t, now: time.Now, maxRate: maxTraceRate, pause: tracePause, err: host.ErrNotTracing}
}

// MayTrace reports whether CAP_BPF and CAP_PERFMON are effective. CAP_SYS_ADMIN includes both, but is granted for other
// purposes.
func (t *tracer) MayTrace() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return false
	}
	const want = 1<<(unix.CAP_PERFMON-32) | 1<<(unix.CAP_BPF-32)
	return data[1].Effective&want == want
}

// errModules ends an observation: functions in unloaded modules are not observed any more, those in loaded ones not
// yet.
var errModules = errors.New("modules have changed")

func (t *tracer) Trace(ctx context.Context) error {
	for {
		err := t.observe(ctx)
		switch {
		case errors.Is(err, errModules):
			continue
		case errors.Is(err, access.ErrOverloaded):
			t.end(&access.Error{Op: "observe", Path: tracedPath, Err: err})
			select {
			case <-time.After(t.pause):
				continue
			case <-ctx.Done():
				err = nil
			}
		case err != nil:
			errno := syscall.EOPNOTSUPP // whatever the kernel has returned: a privilege would not help
			if !t.MayTrace() {
				errno = syscall.EPERM
			}
			err = host.LastingError{Err: &access.Error{Op: "observe", Path: tracedPath, Err: err}, Errno: errno}
		}
		t.end(err)
		return err
	}
}

// tracedPath names what is observed in errors.
const tracedPath = "registrations by eBPF"

// end notes why nothing is observed; nil: the observation was ended.
func (t *tracer) end(err error) {
	if err == nil {
		err = host.ErrNotTracing
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
}

// observe attaches the programs and takes up their records until ctx ends.
func (t *tracer) observe(ctx context.Context) (err error) {
	modules := t.modules()
	attached, err := attachTrace()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, attached.close()) }()
	ring, err := ringbuf.NewReader(attached.maps.ring)
	if err != nil {
		return err
	}
	defer ring.Close()
	t.begin(attached)
	r := traceReader{tracer: t, ring: ring, trace: attached}
	t.setDrain(r.drain)
	defer t.setDrain(nil)

	tick := time.NewTicker(traceInterval)
	defer tick.Stop()
	checked := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := r.rate(time.Now()); err != nil {
			return err
		}
		if time.Since(checked) >= traceModules {
			checked = time.Now()
			if t.modules() != modules {
				return errModules
			}
			t.prune()
		}
	}
}

// begin starts an empty table.
func (t *tracer) begin(attached *trace) {
	facts := attached.facts
	t.mu.Lock()
	defer t.mu.Unlock()
	t.table, t.err = newTraceTable(), nil
	t.state = accel.Trace{
		Host: facts.host, Peermem: facts.peermem, Events: facts.events, QPEvents: facts.qpEvents, Missing: attached.missing,
	}
	t.paired = facts.pairs
	t.incomplete()
}

// incomplete notes that nothing before now is complete.
func (t *tracer) incomplete() {
	t.state.Complete, t.state.Since = sinceBoot(), t.now()
}

// sinceBoot returns the time of the start times of processes.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

func (t *tracer) setDrain(f func()) {
	t.drained.Lock()
	defer t.drained.Unlock()
	t.drain = f
}

// Traced takes up what is in the ring buffer first.
func (t *tracer) Traced(context.Context) (accel.Trace, error) {
	t.drained.Lock()
	if t.drain != nil {
		t.drain()
	}
	t.drained.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return accel.Trace{}, t.err
	}
	out := t.state
	t.table.fill(&out)
	if !t.ownsPIDs() {
		for i := range out.Registrations {
			out.Registrations[i].PID = 0
		}
		for i := range out.Recent {
			out.Recent[i].PID = 0
		}
	}
	return out, nil
}

// Pairs takes up what is in the ring buffer first.
func (t *tracer) Pairs(_ context.Context, after uint64) (qp.Pairs, error) {
	t.drained.Lock()
	if t.drain != nil {
		t.drain()
	}
	t.drained.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.err != nil:
		return qp.Pairs{}, t.err
	case !t.paired:
		return qp.Pairs{}, host.ErrNotTracing
	}
	out := qp.Pairs{Since: t.state.Since, Lost: t.state.Lost, Events: t.pairs.after(after)}
	if !t.ownsPIDs() {
		for i := range out.Events {
			out.Events[i].PID = 0
		}
	}
	return out, nil
}

// initialPIDs is the inode of the initial PID namespace (PROC_PID_INIT_INO, include/linux/proc_ns.h): the programs
// report PIDs of it.
const initialPIDs = "pid:[4026531836]"

// ownsPIDs reports whether processes have the same PIDs in this process's namespace.
func (t *tracer) ownsPIDs() bool {
	name, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && name == initialPIDs
}

// modules identifies the loaded modules with observed functions.
func (t *tracer) modules() string {
	var b strings.Builder
	for _, name := range modulesTraced {
		if id, err := t.tree.Identity("sys/module/" + name); err == nil {
			fmt.Fprintf(&b, "%s %d\n", name, id)
		}
	}
	return b.String()
}

// prune removes registrations of processes that have ended, if their ends may have been lost.
func (t *tracer) prune() {
	t.mu.Lock()
	lossy := t.state.Lost > 0
	t.mu.Unlock()
	if !lossy || !t.ownsPIDs() {
		return
	}
	pids, err := t.tree.Pids()
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.table.prune(func(pid int) bool {
		_, there := slices.BinarySearch(pids, pid)
		return pid > 0 && !there
	})
}

// traceReader reads the ring buffer of attached programs.
type traceReader struct {
	*tracer
	ring   *ringbuf.Reader
	trace  *trace
	rec    ringbuf.Record
	lost   uint64 // by the programs, so far
	events int    // since the rate was checked
	at     time.Time
}

// drain takes up all records. One caller at a time.
func (r *traceReader) drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	var lost uint64
	if r.trace.maps.lost.Lookup(uint32(0), &lost) == nil && lost > r.lost {
		r.events += int(lost - r.lost)
		r.lose(lost - r.lost)
		r.lost = lost
	}
	if r.ring.AvailableBytes() == 0 {
		return
	}
	r.ring.SetDeadline(time.Unix(1, 0)) // what is there, without waiting
	for r.ring.ReadInto(&r.rec) == nil {
		r.events++
		if event, ok := decodeTrace(r.rec.RawSample); ok {
			r.table.add(event, now)
			r.pairs.add(&event, now)
		}
	}
	if r.table.lost > 0 {
		r.lose(r.table.lost)
		r.table.lost = 0
	}
}

func (r *traceReader) lose(n uint64) {
	r.state.Lost += n
	r.incomplete()
}

// rate takes up all records, and returns an error if they are too many, over a second at least.
func (r *traceReader) rate(now time.Time) error {
	r.drained.Lock()
	r.drain()
	r.drained.Unlock()
	if r.at.IsZero() {
		r.at, r.events = now, 0
		return nil
	}
	took := now.Sub(r.at)
	if took < time.Second {
		return nil
	}
	events := r.events
	r.at, r.events = now, 0
	if float64(events) > float64(r.maxRate)*took.Seconds() {
		return fmt.Errorf("%w, detached for %v: %.0f events per second, the limit is %d",
			access.ErrOverloaded, r.pause, float64(events)/took.Seconds(), r.maxRate)
	}
	return nil
}
