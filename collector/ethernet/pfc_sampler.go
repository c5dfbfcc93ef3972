package ethernet

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rdma_exporter/collector/counters"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/wire"
)

// A pause storm of a few seconds is a small part of a round of 15 s or 1m, and stalls all jobs on the port. The pause
// time of ports that were just paused, or paused their switch, is therefore read about every second. Each read is a
// system call that takes rtnl and reads some forty registers on mlx5: its cost is bounded.
const (
	// slowSample is the duration of a call above which the netdev is not sampled for slowRest.
	slowSample = 250 * time.Millisecond
	slowRest   = 5 * time.Minute
	// maxStretch is the longest interval after refusals.
	maxStretch = 30 * time.Second
	// sampleRetention is how long a netdev is kept that no round reads: a driver reload is shorter.
	sampleRetention = time.Hour
)

// Reasons for which a sample was not taken.
const (
	refusedBudget = "budget" // the wall time that reads may take is spent
	refusedRTNL   = "rtnl"   // another request under rtnl was slow, or has not returned
	refusedSlow   = "slow"   // the call took over slowSample: none for slowRest
	refusedError  = "error"  // the driver returned an error
)

// readPauses reads the pause times of a netdev, and returns the time in the kernel.
type readPauses func(
	ctx context.Context, h *host.Host, n counters.NetdevTarget,
) (r pauseReading, took time.Duration, err error)

// pfcSampler samples netdevs between the rounds.
type pfcSampler struct {
	interval time.Duration // 0: never
	read     readPauses
	running  atomic.Bool

	mu      sync.Mutex
	netdevs map[string]*sampledNetdev
}

// sampledNetdev is the state of one netdev.
type sampledNetdev struct {
	counters.NetdevTarget
	pauses   *pauses
	noted    time.Time     // by a round
	interval time.Duration // in force; 0 while it is not sampled
	next     time.Time
	failed   bool // the driver returned an error for the last sample
	refused  map[string]uint64
}

func newPFCSampler(interval time.Duration, read readPauses) *pfcSampler {
	return &pfcSampler{interval: interval, read: read, netdevs: map[string]*sampledNetdev{}}
}

// note records the reading of a round, and returns the totals of the samples; nil while this program takes none.
func (s *pfcSampler) note(n counters.NetdevTarget, w *wire.NetdevReading, now time.Time) *wire.PFCSamples {
	r := pausesOf(w)
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.netdevs[n.Netdev]
	if known == nil || known.NetdevTarget != n {
		known = &sampledNetdev{NetdevTarget: n, pauses: newPauses(), refused: map[string]uint64{}}
		s.netdevs[n.Netdev] = known
	}
	known.noted = now
	known.pauses.noteRound(r)
	if !s.running.Load() || len(r.seconds) == 0 {
		return nil
	}
	return known.samples(w)
}

// sampling reports whether a netdev is being sampled.
func (s *pfcSampler) sampling(netdev string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.netdevs[netdev]
	return s.running.Load() && n != nil && n.interval > 0
}

// samples returns the totals of the flows in the reading of the round.
func (n *sampledNetdev) samples(w *wire.NetdevReading) *wire.PFCSamples {
	out := &wire.PFCSamples{Sampled: n.pauses.sampled, Refused: maps.Clone(n.refused)}
	if n.interval > 0 {
		out.Interval = new(n.interval.Seconds())
	}
	var flows []flow
	for i := range w.Counts {
		if c := &w.Counts[i]; c.What == wire.PFCPauseSeconds && w.Exposes(c) {
			flows = append(flows, flow{c.Label, counters.Index(c.Index)})
		}
	}
	slices.SortFunc(flows, compareFlows)
	for _, f := range flows {
		p := counters.Entry(n.pauses.flows, f)
		out.Flows = append(out.Flows, wire.PFCFlow{
			Direction: f.direction, Priority: f.priority, Stalled: p.stalled, Ratios: slices.Clone(p.ratios[:]), RatioSum: p.sum,
		})
	}
	return out
}

// drop removes netdevs that no round has read for sampleRetention.
func (s *pfcSampler) drop(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.netdevs, func(_ string, n *sampledNetdev) bool { return now.Sub(n.noted) >= sampleRetention })
}

// run samples until ctx ends.
func (s *pfcSampler) run(ctx context.Context, h *host.Host) error {
	if s.interval <= 0 {
		return nil
	}
	s.running.Store(true)
	defer s.running.Store(false)
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

// due lists the netdevs to sample now, by name, and stops those that have not been paused recently.
func (s *pfcSampler) due(now time.Time) (out []*sampledNetdev) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.netdevs)) {
		n := s.netdevs[name]
		switch {
		case now.Before(n.next):
		case !n.pauses.wanted(now):
			n.suspend(time.Time{})
		default:
			if n.interval == 0 {
				n.interval = s.interval
			}
			out = append(out, n)
		}
	}
	return out
}

// stop stops the sampling of a netdev until it is paused again.
func (n *sampledNetdev) stop() {
	n.pauses.moved, n.failed = time.Time{}, false
	n.suspend(time.Time{})
}

// suspend stops the sampling of a netdev until a given time.
func (n *sampledNetdev) suspend(until time.Time) {
	n.pauses.interrupt()
	n.interval, n.next = 0, until
}

// sample takes one sample. It may use only part of the device's time budget, so that slow facts are not delayed by it.
func (s *pfcSampler) sample(ctx context.Context, h *host.Host, n *sampledNetdev) {
	if !h.Budget.Spare(n.Device) {
		s.mu.Lock()
		defer s.mu.Unlock()
		n.stretch(refusedBudget, time.Now())
		return
	}
	r, took, err := s.read(ctx, h, n.NetdevTarget)
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case errors.Is(err, access.ErrStuck):
		n.refuse(refusedRTNL)
		n.suspend(now.Add(slowRest))
	case errors.Is(err, access.ErrBackOff), errors.Is(err, access.ErrLate):
		n.stretch(refusedRTNL, now)
	case err != nil && access.Refused(err) && n.failed:
		n.refuse(refusedError)
		n.stop() // until a round reads it successfully, and it is paused
	case err != nil:
		n.failed = access.Refused(err)
		n.stretch(refusedError, now)
	case took > slowSample:
		n.pauses.noteSample(r)
		n.refuse(refusedSlow)
		n.suspend(now.Add(slowRest))
	default:
		n.pauses.noteSample(r)
		n.failed = false
		n.interval = max(s.interval, n.interval-n.interval/4)
		n.next = now.Add(n.interval - s.interval/2) // ticks jitter
	}
}

func (n *sampledNetdev) refuse(reason string) { n.refused[reason]++ }

// stretch records a missed sample. The next one covers a longer time.
func (n *sampledNetdev) stretch(reason string, now time.Time) {
	n.refuse(reason)
	n.interval = max(n.interval, min(2*n.interval, maxStretch))
	n.next = now.Add(n.interval)
}

// compareFlows sorts transmit before receive.
func compareFlows(a, b flow) int {
	return cmp.Or(cmp.Compare(b.direction, a.direction), cmp.Compare(a.priority, b.priority))
}

// flow is a direction and a priority of a port.
type flow struct{ direction, priority string }

// pauseReading is the accumulated pause time of flows in seconds, at one moment.
type pauseReading struct {
	at      time.Time
	seconds map[flow]float64
}

const (
	// stalledRatio is the share of a sample above which a flow counts as stalled.
	stalledRatio = 0.5
	// sampledAfterPause is how long a port is sampled after its pause time last increased.
	sampledAfterPause = 10 * time.Minute
)

// pausedRatioBounds are the bounds of the histogram of paused ratios, which has one bucket more.
var pausedRatioBounds = [...]float64{0.01, 0.05, 0.1, 0.25, 0.5, 0.9}

// pauses accumulates the samples of one netdev. Its sums only increase while the netdev is the same, also across
// counter resets of the driver.
type pauses struct {
	sampled float64 // seconds
	flows   map[flow]*flowPauses
	last    pauseReading // latest sample; none after a break in the sampling
	round   pauseReading // latest reading of a round
	moved   time.Time    // last increase of pause time
}

// flowPauses are the samples of one flow.
type flowPauses struct {
	stalled float64 // seconds in samples that were paused for more than stalledRatio
	ratios  [len(pausedRatioBounds) + 1]uint64
	sum     float64 // of the ratios
}

func newPauses() *pauses { return &pauses{flows: map[flow]*flowPauses{}} }

// noteRound records the reading of a round. It is no sample (a storm of seconds is not visible over that time) but
// starts the sampling.
func (p *pauses) noteRound(r pauseReading) {
	if moved(p.round, r) {
		p.moved = r.at
	}
	p.round = r
}

// noteSample records a sample of the time since the previous one, whatever its length; the first one has none. A flow
// whose counter was reset, or is new, is left out of this sample.
func (p *pauses) noteSample(r pauseReading) {
	before := p.last
	length := r.at.Sub(before.at).Seconds()
	if !before.at.IsZero() && length <= 0 {
		return
	}
	p.last = r
	if before.at.IsZero() {
		return
	}
	if moved(before, r) {
		p.moved = r.at
	}
	p.sampled += length
	for f, now := range r.seconds {
		if then, known := before.seconds[f]; known && now >= then {
			counters.Entry(p.flows, f).add(min((now-then)/length, 1), length)
		}
	}
}

func (f *flowPauses) add(ratio, length float64) {
	if ratio > stalledRatio {
		f.stalled += length
	}
	i, _ := slices.BinarySearch(pausedRatioBounds[:], ratio)
	f.ratios[i]++
	f.sum += ratio
}

// interrupt interrupts the sampling: the time until the next reading is no sample.
func (p *pauses) interrupt() { p.last = pauseReading{} }

// wanted reports whether pause time has increased recently enough to sample the netdev.
func (p *pauses) wanted(now time.Time) bool {
	return !p.moved.IsZero() && now.Sub(p.moved) < sampledAfterPause
}

// moved reports whether a flow was paused between two readings.
func moved(before, now pauseReading) bool {
	for f, s := range now.seconds {
		if then, known := before.seconds[f]; known && s > then {
			return true
		}
	}
	return false
}
