package fabric

import (
	"testing"
	"time"

	"rdma_exporter/internal/mad"
)

// TestTraffic: the average between two readings, 0 where nothing was sent; none without a reading before, without the counter, or where it was cleared.
func TestTraffic(t *testing.T) {
	start := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	e := End{1, 1}
	at := func(seconds int, words ...uint64) reading {
		c := &mad.Counters{}
		for i, w := range words {
			c.Set([]mad.Counter{mad.TransmitData, mad.ReceiveData}[i], w)
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
