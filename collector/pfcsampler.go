package collector

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
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
	// forgetSamples is how long a netdev that no round reads is remembered: a driver that is loaded again takes less.
	forgetSamples = time.Hour
)

// Why a sample was not taken.
const (
	refusedBudget = "budget" // the wall time that reads may take is spent
	refusedRTNL   = "rtnl"   // a request that takes rtnl was slow, or has not returned
	refusedSlow   = "slow"   // the call took over slowSample: none for slowRest
	refusedError  = "error"  // the driver answered an error
)

// readPauses makes a reading of the pause times of a netdev, and says how long that took in the kernel.
type readPauses func(ctx context.Context, h *host.Host, n wireTarget) (r pauseReading, took time.Duration, err error)

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
	wireTarget
	pauses   *pauses
	noted    time.Time     // by a round
	interval time.Duration // in force; 0 while it is not sampled
	next     time.Time
	failed   bool // the driver refused the last sample
	refused  map[string]uint64
}

func newPFCSampler(interval time.Duration, read readPauses) *pfcSampler {
	return &pfcSampler{interval: interval, read: read, netdevs: map[string]*sampledNetdev{}}
}

// note takes the reading of a round, and gives what the samples came to so far; nil while this program takes none.
func (s *pfcSampler) note(n wireTarget, w *snapshot.Wire, now time.Time) *snapshot.PFCSamples {
	r := pausesOf(w)
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.netdevs[n.netdev]
	if known == nil || known.wireTarget != n {
		known = &sampledNetdev{wireTarget: n, pauses: newPauses(), refused: map[string]uint64{}}
		s.netdevs[n.netdev] = known
	}
	known.noted = now
	known.pauses.noteRound(r)
	if !s.running || len(r.seconds) == 0 {
		return nil
	}
	return known.samples(w)
}

// sampling says whether a netdev is being sampled.
func (s *pfcSampler) sampling(netdev string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.netdevs[netdev]
	return s.running && n != nil && n.interval > 0
}

// samples tells of the flows that the round has read, and tells of.
func (n *sampledNetdev) samples(w *snapshot.Wire) *snapshot.PFCSamples {
	out := &snapshot.PFCSamples{Sampled: n.pauses.sampled, Refused: maps.Clone(n.refused)}
	if n.interval > 0 {
		interval := n.interval.Seconds()
		out.Interval = &interval
	}
	var flows []flow
	for i := range w.Counts {
		if c := &w.Counts[i]; c.What == snapshot.PFCPauseSeconds && w.Tells(c) {
			flows = append(flows, flow{c.Label, index(c.Index)})
		}
	}
	slices.SortFunc(flows, compareFlows)
	for _, f := range flows {
		p := n.pauses.flows[f]
		out.Flows = append(out.Flows, snapshot.PFCFlow{Direction: f.direction, Priority: f.priority, Stalled: p.stalled, Ratios: slices.Clone(p.ratios[:]), RatioSum: p.sum})
	}
	return out
}

// forget drops netdevs that no round has read for long.
func (s *pfcSampler) forget(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.netdevs, func(_ string, n *sampledNetdev) bool { return now.Sub(n.noted) >= forgetSamples })
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

// end ends the sampling of a netdev until it is seen to be paused.
func (n *sampledNetdev) end() {
	n.pauses.moved, n.failed = time.Time{}, false
	n.rest(time.Time{})
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
		s.mu.Lock()
		defer s.mu.Unlock()
		n.stretch(refusedBudget, time.Now())
		return
	}
	r, took, err := s.read(ctx, h, n.wireTarget)
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case errors.Is(err, host.ErrStuck):
		n.refuse(refusedRTNL)
		n.rest(now.Add(slowRest))
	case errors.Is(err, host.ErrBackOff):
		n.stretch(refusedRTNL, now)
	case err != nil && host.Refused(err) && n.failed:
		n.refuse(refusedError)
		n.end() // until a round finds that it answers, and is paused
	case err != nil:
		n.failed = host.Refused(err)
		n.stretch(refusedError, now)
	case took > slowSample:
		n.pauses.noteSample(r)
		n.refuse(refusedSlow)
		n.rest(now.Add(slowRest))
	default:
		n.pauses.noteSample(r)
		n.failed = false
		n.interval = max(s.interval, n.interval-n.interval/4)
		n.next = now.Add(n.interval - s.interval/2) // the ticks are not to the nanosecond
	}
}

func (n *sampledNetdev) refuse(reason string) { n.refused[reason]++ }

// stretch notes a sample that could not be had. The next one takes longer, and so is worth as much.
func (n *sampledNetdev) stretch(reason string, now time.Time) {
	n.refuse(reason)
	n.interval = max(n.interval, min(2*n.interval, maxStretch))
	n.next = now.Add(n.interval)
}

// compareFlows sorts transmit before receive.
func compareFlows(a, b flow) int {
	return cmp.Or(cmp.Compare(b.direction, a.direction), cmp.Compare(a.priority, b.priority))
}
