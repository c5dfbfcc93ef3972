package collector

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// A pause storm of a few seconds is a small part of a round of 15 s or a minute, and stalls all jobs on the port. So the pause time of
// ports that have just been paused, or have paused their switch, is read about each second. Each reading is a call of the kernel that
// takes rtnl and reads some forty registers on mlx5: what it costs is bounded in every way.
const (
	// slowSample is how long a call may take before the netdev is left alone for slowRest.
	slowSample = 250 * time.Millisecond
	slowRest   = 5 * time.Minute
	// maxStretch is as far as refusals stretch the interval.
	maxStretch = 30 * time.Second
)

// Why a sample was not taken.
const (
	refusedBudget = "budget" // the wall time that reads may take is spent
	refusedRTNL   = "rtnl"   // an earlier request that takes rtnl was slow, or has not returned
	refusedSlow   = "slow"   // the call took over slowSample: none for slowRest
	refusedError  = "error"  // the driver answered an error
)

// netdevOf is a netdev of a port, as the sampler knows it.
type netdevOf struct {
	device, netdev string
	index          uint64 // of the interface: one that is made again has another
}

// readPauses asks for the pause times of a netdev, in seconds. It is called under rtnl.
type readPauses func(ctx context.Context, h *host.Host, netdev string) (map[flow]float64, error)

// pfcSampler samples netdevs between the rounds.
type pfcSampler struct {
	interval time.Duration // 0: never
	read     readPauses

	mu      sync.Mutex
	running bool
	netdevs map[string]*sampledNetdev
}

// sampledNetdev is what is known of one netdev.
type sampledNetdev struct {
	netdevOf
	pauses   *pauses
	interval time.Duration // in force; 0 while it is not sampled
	next     time.Time
	refused  map[string]uint64
}

func newPFCSampler(interval time.Duration, read readPauses) *pfcSampler {
	return &pfcSampler{interval: interval, read: read, netdevs: map[string]*sampledNetdev{}}
}

// note takes the reading of a round, and gives what the samples came to so far; nil while nothing is sampled by this program.
func (s *pfcSampler) note(n netdevOf, r pauseReading) *snapshot.PFCSamples {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.netdevs[n.netdev]
	if known == nil || known.netdevOf != n {
		known = &sampledNetdev{netdevOf: n, pauses: newPauses(), refused: map[string]uint64{}}
		s.netdevs[n.netdev] = known
	}
	known.pauses.noteRound(r)
	if !s.running {
		return nil
	}
	return known.samples(r)
}

// samples tells of the flows that the round has read.
func (n *sampledNetdev) samples(r pauseReading) *snapshot.PFCSamples {
	out := &snapshot.PFCSamples{Sampled: n.pauses.sampled, Refused: maps.Clone(n.refused)}
	if n.interval > 0 {
		interval := n.interval.Seconds()
		out.Interval = &interval
	}
	for _, f := range slices.SortedFunc(maps.Keys(r.seconds), compareFlows) {
		p := n.pauses.flows[f]
		out.Flows = append(out.Flows, snapshot.PFCFlow{Direction: f.direction, Priority: f.priority, Stalled: p.stalled, Ratios: slices.Clone(p.ratios[:]), RatioSum: p.sum})
	}
	return out
}

// forget drops netdevs that the round has not read.
func (s *pfcSampler) forget(read func(netdev string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.netdevs, func(name string, _ *sampledNetdev) bool { return !read(name) })
}

// run samples until ctx ends.
func (s *pfcSampler) run(ctx context.Context, h *host.Host) error {
	if s.interval <= 0 {
		return nil
	}
	s.setRunning(true)
	defer s.setRunning(false)
	tick := time.NewTicker(s.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		for _, n := range s.due(time.Now()) {
			s.sample(ctx, h, n)
		}
	}
}

func (s *pfcSampler) setRunning(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = on
}

// due lists the netdevs whose time has come, by name, and lets those rest that have long not been paused.
func (s *pfcSampler) due(now time.Time) (out []*sampledNetdev) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.netdevs)) {
		n := s.netdevs[name]
		switch {
		case now.Before(n.next):
		case !n.pauses.wanted(now):
			n.rest(time.Time{})
		default:
			if n.interval == 0 {
				n.interval = s.interval
			}
			out = append(out, n)
		}
	}
	return out
}

// rest ends the sampling of a netdev until a moment.
func (n *sampledNetdev) rest(until time.Time) {
	n.pauses.rest()
	n.interval, n.next = 0, until
}

// sample takes one sample. It may take part of what the reads of a device are allowed only, so that the facts that can wait do not
// wait for it.
func (s *pfcSampler) sample(ctx context.Context, h *host.Host, n *sampledNetdev) {
	if !h.Budget.Spare(n.device) {
		s.refuse(n, refusedBudget)
		return
	}
	got, err := s.ask(ctx, h, n)
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if got != nil && got.err == nil {
		n.pauses.noteSample(pauseReading{at: got.at, seconds: got.seconds})
	}
	switch {
	case got != nil && got.took > slowSample, errors.Is(err, errNoAnswer):
		n.refused[refusedSlow]++
		n.rest(now.Add(slowRest))
	case err != nil:
		n.stretch(refusedRTNL, now)
	case got.err != nil:
		n.stretch(refusedError, now)
	default:
		n.interval = max(s.interval, n.interval-n.interval/4)
		n.next = now.Add(n.interval - s.interval/2) // the ticks are not to the nanosecond
	}
}

func (s *pfcSampler) refuse(n *sampledNetdev, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.stretch(reason, time.Now())
}

// stretch notes a sample that could not be had. The next one takes longer, and so is worth as much.
func (n *sampledNetdev) stretch(reason string, now time.Time) {
	n.refused[reason]++
	n.interval = min(2*n.interval, maxStretch)
	n.next = now.Add(n.interval)
}

// answer is what a call gave.
type answer struct {
	seconds map[flow]float64
	err     error
	at      time.Time
	took    time.Duration
}

// errNoAnswer is the error of a call that was made and has not returned.
var errNoAnswer = errors.New("no answer")

// ask reads under rtnl. A call that was not let through, or does not return, gives an error and no answer.
func (s *pfcSampler) ask(ctx context.Context, h *host.Host, n *sampledNetdev) (*answer, error) {
	var begun atomic.Bool
	got := &answer{}
	err := h.UnderRTNL(ctx, host.SourceNetdevStats, n.device, 1, func() {
		begun.Store(true)
		start := time.Now()
		got.seconds, got.err = s.read(ctx, h, n.netdev)
		got.took = time.Since(start)
		got.at = start.Add(got.took / 2)
	})
	switch {
	case err == nil:
		return got, nil
	case begun.Load():
		return nil, errNoAnswer
	}
	return nil, err
}

func compareFlows(a, b flow) int {
	if a.direction != b.direction {
		return strings.Compare(b.direction, a.direction) // transmit first
	}
	return strings.Compare(a.priority, b.priority)
}
