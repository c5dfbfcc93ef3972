package fabric

import (
	"testing"
	"time"

	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/mad/perf"
)

// TestTraffic: the average between two readings, 0 where nothing was sent; none without a reading before, without the
// counter, or where it was cleared.
func TestTraffic(t *testing.T) {
	start := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	e := End{1, 1}
	at := func(seconds int, words ...uint64) reading {
		c := &perf.Counters{}
		for i, w := range words {
			c.Set([]perf.Counter{perf.TransmitData, perf.ReceiveData}[i], w)
		}
		return reading{counters: map[End]*Port{e: {Counters: c, Read: start.Add(time.Duration(seconds) * time.Second)}}}
	}
	for name, c := range map[string]struct {
		before, now reading
		want        Traffic
		none        bool
	}{
		"busy":       {at(0, 1000, 5000), at(60, 1000+60e9/32, 5000), Traffic{Transmit: 1e9}, false},
		"idle":       {at(0, 7, 7), at(60, 7, 7), Traffic{}, false},
		"first":      {reading{}, at(60, 7, 7), Traffic{}, true},
		"cleared":    {at(0, 7, 9), at(60, 7, 8), Traffic{}, true},
		"32 bits":    {at(0), at(60), Traffic{}, true},
		"same again": {at(0, 1, 1), at(0, 1, 1), Traffic{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := c.now.traffic(c.before)[e]
			if got != c.want || ok == c.none {
				t.Errorf("%+v %v, want %+v", got, ok, c.want)
			}
		})
	}
}

// TestWaits: ticks of PortXmitWait as a share of the time that the data which was not sent takes. A tick is 8 bytes of
// the port on Quantum, 32 bytes of a lane on Switch-IB.
func TestWaits(t *testing.T) {
	start := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	e := End{1, 1}
	rate400, edr := mad.Link{Widths: 2, Speeds: 1 << 6}, mad.Link{Widths: 2, Speeds: 1 << 4}
	at := func(seconds int, l mad.Link, tick perf.Tick, ticks ...uint64) reading {
		c := &perf.Counters{}
		for _, w := range ticks {
			c.Set(perf.TransmitWait, w)
		}
		p := &Port{
			Counters: c, Read: start.Add(time.Duration(seconds) * time.Second), TickBytes: tick.Bytes(l.Widths.Lanes()),
		}
		p.Info.Active = l
		return reading{counters: map[End]*Port{e: p}}
	}
	for name, c := range map[string]struct {
		before, now reading
		want        float64
		none        bool
	}{
		"Quantum-2, half":  {at(0, rate400, 8, 1000), at(60, rate400, 8, 1000+60*50e9/8/2), 0.5, false},
		"Switch-IB, all":   {at(0, edr, 32, 0), at(60, edr, 32, 60*12.5e9/128), 1, false},
		"more than all":    {at(0, edr, 32, 0), at(60, edr, 32, 60*12.5e9/100), 1, false},
		"does not wait":    {at(0, rate400, 8, 7), at(60, rate400, 8, 7), 0, false},
		"tick unknown":     {at(0, rate400, 0, 0), at(60, rate400, 0, 1e9), 0, true},
		"first":            {reading{}, at(60, rate400, 8, 7), 0, true},
		"cleared":          {at(0, rate400, 8, 9), at(60, rate400, 8, 7), 0, true},
		"no counter":       {at(0, rate400, 8), at(60, rate400, 8), 0, true},
		"same time":        {at(0, rate400, 8, 1), at(0, rate400, 8, 2), 0, true},
		"rate is unknown ": {at(0, mad.Link{}, 8, 1), at(60, mad.Link{}, 8, 2), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := c.now.waits(c.before)[e]
			if got != c.want || ok == c.none {
				t.Errorf("%v %v, want %v", got, ok, c.want)
			}
		})
	}
}
