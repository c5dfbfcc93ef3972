package collector

import (
	"slices"
	"time"
)

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

// pauses accumulates the samples of one netdev. Its sums only increase while the netdev is the same, also across counter resets of the
// driver.
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

// noteRound records the reading of a round. It is no sample (a storm of seconds is not visible over that time) but starts the sampling.
func (p *pauses) noteRound(r pauseReading) {
	p.noteFlows(r)
	if moved(p.round, r) {
		p.moved = r.at
	}
	p.round = r
}

// noteSample records a sample of the time since the previous one, whatever its length; the first one has none. A flow whose counter was
// reset, or is new, is left out of this sample.
func (p *pauses) noteSample(r pauseReading) {
	p.noteFlows(r)
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
			p.flows[f].add(min((now-then)/length, 1), length)
		}
	}
}

func (p *pauses) noteFlows(r pauseReading) {
	for f := range r.seconds {
		if p.flows[f] == nil {
			p.flows[f] = &flowPauses{}
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
