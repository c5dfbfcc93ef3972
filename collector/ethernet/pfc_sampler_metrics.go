package ethernet

import (
	"context"
	"maps"
	"slices"
	"time"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot/wire"
)

const fromSamples = "the exporter, by samples of " + counters.StatsSource

var (
	pfcSampled        = counters.NetdevDesc("rdma_port_pfc_sampled_seconds_total", "Time covered by PFC samples: pause times are read every --pfc.sample-interval between the rounds, for 10m after a port was last paused or paused its switch. Each sample counts with its actual length.", fromSamples)
	pfcStalled        = counters.NetdevDesc("rdma_port_pfc_stalled_seconds_total", "Length of the samples in which the priority was paused for more than 50% of the time. Its rate divided by that of rdma_port_pfc_sampled_seconds_total is the share of time for which the priority was stalled.", fromSamples, "direction", "priority")
	pfcSampleRatio    = counters.NetdevDesc("rdma_port_pfc_paused_sample_ratio", "PFC samples by the share of their length in which the priority was paused.", fromSamples, "direction", "priority")
	pfcSampleRefusals = counters.NetdevDesc("rdma_port_pfc_samples_refused_total", "PFC samples not taken, or followed by a break of 5m. reason: budget (read time of the device used up, interval stretched), rtnl (another request under the rtnl lock was slow), slow (the call took over 250 ms), error (the driver returned an error).", "the exporter", "reason")
	pfcSampleInterval = counters.NetdevDesc("rdma_port_pfc_sample_interval_seconds", "Current time between PFC samples, longer than --pfc.sample-interval where samples cost too much. Absent while none are taken.", "the exporter")

	pfcSampleDescs = []*metric.Desc{
		besidePauses(pfcSampled), besidePauses(pfcStalled), ofRatios(pfcSampleRatio), pfcSampleRefusals, pfcSampleInterval,
	}
)

// besidePauses is for metrics that exist only for ports that were paused.
func besidePauses(d *metric.Desc) *metric.Desc {
	return counters.WhereLossless(metric.Beside("rdma_port_pfc_pause_seconds_total", d))
}

func ofRatios(d *metric.Desc) *metric.Desc {
	d.Type, d.Bounds = exposition.Histogram, pausedRatioBounds[:]
	return d
}

// pausesOf extracts the pause times of a read, as of the middle of the call.
func pausesOf(w *wire.NetdevReading) pauseReading {
	r := pauseReading{at: w.At.Add(-w.Took / 2), seconds: map[flow]float64{}}
	for i := range w.Counts {
		if c := &w.Counts[i]; c.What == wire.PFCPauseSeconds {
			r.seconds[flow{c.Label, counters.Index(c.Index)}] = c.Value
		}
	}
	return r
}

// readPauses makes a read that the next round uses as well.
func (c *ethernet) readPauses(
	ctx context.Context,
	h *host.Host,
	n counters.NetdevTarget,
) (pauseReading, time.Duration, error) {
	w, err := c.stats.Read(ctx, h, n)
	if err != nil {
		return pauseReading{}, 0, err
	}
	return pausesOf(w), w.Took, nil
}

func emitPFCSamples(s metric.Sink, p *wire.PFCSamples, at []string) {
	if p == nil {
		return
	}
	s.Emit(pfcSampled, p.Sampled, at...)
	metric.EmitNumber(s, pfcSampleInterval, p.Interval, at...)
	for _, reason := range slices.Sorted(maps.Keys(p.Refused)) {
		s.Emit(pfcSampleRefusals, float64(p.Refused[reason]), append(at[:len(at):len(at)], reason)...)
	}
	for _, f := range p.Flows {
		l := append(at[:len(at):len(at)], f.Direction, f.Priority)
		s.Emit(pfcStalled, f.Stalled, l...)
		s.EmitHistogram(pfcSampleRatio, exposition.HistogramValue{Counts: f.Ratios, Sum: f.RatioSum}, l...)
	}
}
