package infiniband

import (
	"fmt"
	"testing"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/counters"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
)

// TestLinkDowns: link-down counts come from LINKSTATE_GET, else from the driver's own statistics; on an InfiniBand port
// only where its own counter may be saturated.
func TestLinkDowns(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name, layer string
		events      *uint64
		listed      float64
		age         time.Duration
		want        string
	}{
		{"the driver lists them", "Ethernet", nil, 2, 0, "2"},
		{"both", "Ethernet", collectortest.N64(3), 2, 0, "3"},
		{"an old reading", "Ethernet", nil, 2, 2 * counters.StatsRetention, "<nil>"},
		{"InfiniBand", "InfiniBand", nil, 254, 0, "<nil>"},
		{"InfiniBand, full", "InfiniBand", nil, 256, 0, "256"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := counters.NewNetdevStats()
			w.Netdevs["eth0"] = &counters.NetdevState{
				NetdevTarget: counters.NetdevTarget{Device: "d", Port: 1, Netdev: "eth0"}, Newest: &wire.NetdevReading{
					At: now.Add(-c.age), Counts: []wire.NetdevCount{{What: wire.LinkDowns, Index: -1, Value: c.listed}},
				},
			}
			ib := &infiniBand{stats: w, links: newLinkWatch(), registered: newDeviceWatch()}
			devices := []snapshot.Device{{Name: "d", Ports: []snapshot.Port{
				{Number: 1, LinkLayer: c.layer, Netdev: []snapshot.Netdev{{Name: "eth0", DownEvents: c.events}, {Name: "eth1"}}},
			}}}
			ib.count(devices, now)
			if got := fmt.Sprint(collectortest.Value(devices[0].Ports[0].Netdev[0].DownEvents)); got != c.want ||
				devices[0].Ports[0].Netdev[1].DownEvents != nil {
				t.Errorf("%q", got)
			}
		})
	}
}
