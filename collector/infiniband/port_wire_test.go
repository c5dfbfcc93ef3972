package infiniband

import (
	"slices"
	"testing"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

func TestWireOf(t *testing.T) {
	const guid = "4cbb:4703:002e:91a0"
	for _, c := range []struct {
		name    string
		port    physicalPort
		system  string
		address string
		want    string
	}{
		{"a port id", physicalPort{"0002c903000e0b72", "a0912e000347bb4c", "p1"}, guid, "0000:01:00.1", "0002c903000e0b72"},
		{"switch and port", physicalPort{"", "b49691ffffc7a158", "p1"}, guid, "0000:01:00.1", "b49691ffffc7a158/p1"},
		{"a switch called by the GUID, as it lies in memory", physicalPort{"", "a0912e000347bb4c", "p1"}, guid, "0000:01:00.1", guid + "/p1"},
		{"a switch called by the GUID", physicalPort{"", "4cbb4703002e91a0", "p1"}, guid, "0000:01:00.1", guid + "/p1"},
		{"a split cage", physicalPort{"", "", "p0s1"}, guid, "0000:01:00.0", guid + "/p0s1"},
		{"a representor is no port", physicalPort{"", "a0912e000347bb4c", "pf0vf1"}, guid, "0000:01:00.0", guid + "/f0/1"},
		{"no port reported", physicalPort{}, guid, "0002:01:00.1", guid + "/f1/1"},
		{"switch without GUID", physicalPort{"", "b49691ffffc7a158", "p1"}, "0000:0000:0000:0000", "0000:01:00.1", "b49691ffffc7a158/p1"},
		{"no GUID", physicalPort{"", "", "p0"}, "0000:0000:0000:0000", "0000:01:00.0", ""},
		{"no GUID reported", physicalPort{}, "", "0000:01:00.0", ""},
		{"no PCI function", physicalPort{}, guid, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.port.wireOf(c.system, c.address, 1); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// The names are read once an hour, and when the netdevs change. A driver without names is no failure.
func TestNetdevStatsAreKept(t *testing.T) {
	r := collectortest.ReaderOf(t,
		"-- sys/class/net/eth0/phys_port_id !EOPNOTSUPP --\n-- sys/class/net/eth0/phys_switch_id !EOPNOTSUPP --\n-- sys/class/net/eth0/phys_port_name --\np0\n")
	now := time.Unix(0, 0)
	h := *r.Host
	h.Now, h.RTNL, h.Meter = func() time.Time { return now }, access.NewRTNL(), &source.Meter{}
	asked := func() (n uint64) {
		for _, c := range h.Meter.Costs() {
			n += c.Requests
		}
		return n
	}
	r.Host = &h
	d := &snapshot.Device{
		Name: "mlx5_0", SystemGUID: "4cbb:4703:002e:91a0", PCIAddress: "0000:01:00.0", FunctionType: snapshot.Physical,
	}
	var w portWires
	for _, c := range []struct {
		after    time.Duration
		netdev   string
		requests uint64
		want     string
	}{
		{0, "eth0", 3, "4cbb:4703:002e:91a0/p0"},
		{time.Minute, "eth0", 3, "4cbb:4703:002e:91a0/p0"},
		{time.Hour, "eth0", 6, "4cbb:4703:002e:91a0/p0"},
		{time.Minute, "eth1", 9, "4cbb:4703:002e:91a0/f0/1"},
	} {
		now = now.Add(c.after)
		r = reading.New(r.Ctx, r.Host, r.Device) // of another round
		p := snapshot.Port{LinkLayer: "Ethernet", Netdev: []snapshot.Netdev{{Name: c.netdev}}}
		w.read(r, d, 1, &p, true)
		if p.Netdev[0].Wire != c.want || asked() != c.requests {
			t.Errorf("%s: %q after %d requests, want %q after %d", c.netdev, p.Netdev[0].Wire, asked(), c.want, c.requests)
		}
	}
	if len(r.Issues) != 0 {
		t.Error(r.Issues)
	}
	d.FunctionType = snapshot.Virtual
	p := snapshot.Port{LinkLayer: "Ethernet", Netdev: []snapshot.Netdev{{Name: "eth0"}}}
	if w.read(r, d, 1, &p, true); p.Netdev[0].Wire != "" {
		t.Error("a virtual function has a physical port")
	}
}

// An InfiniBand port without a netdev has a physical port if another function reports it as well.
func TestSharedWires(t *testing.T) {
	port := func(wire string, netdevs ...snapshot.Netdev) []snapshot.Port {
		return []snapshot.Port{{Number: 1, Wire: wire, Netdev: netdevs}}
	}
	devices := []snapshot.Device{
		{Name: "a", Ports: port("card/f0/1")},
		{Name: "b", Ports: port("card/f0/1")},
		{Name: "c", Ports: port("other/f0/1")},
		{Name: "d", Ports: port("", snapshot.Netdev{Name: "eth0", Wire: "x"}, snapshot.Netdev{Name: "eth1", Wire: "x"})},
		{Name: "e", Ports: port("", snapshot.Netdev{Name: "eth2", Wire: "y"})},
		{Name: "f", Ports: port("", snapshot.Netdev{Name: "eth3", Wire: "y"})},
		{Name: "g", Ports: port("", snapshot.Netdev{Name: "eth4"})},
	}
	got := collectortest.Samples([]*metric.Desc{wireInfo, wireDuplicate}, func(s metric.Sink) { emitWires(s, devices) })
	want := []string{
		`rdma_wire_info{device="a",port="1",shared="true",wire="card/f0/1"} 1`,
		`rdma_wire_info{device="b",port="1",shared="true",wire="card/f0/1"} 1`,
		`rdma_wire_info{device="d",netdev="eth0",port="1",shared="false",wire="x"} 1`,
		`rdma_wire_info{device="d",netdev="eth1",port="1",shared="false",wire="x"} 1`,
		`rdma_wire_info{device="e",netdev="eth2",port="1",shared="true",wire="y"} 1`,
		`rdma_wire_info{device="f",netdev="eth3",port="1",shared="true",wire="y"} 1`,
		`rdma_wire_duplicate_info{device="b",first="a",port="1"} 1`,
		`rdma_wire_duplicate_info{device="f",first="e",netdev="eth3",port="1"} 1`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestNetdevCountOfAllOnes: a device that is gone reads all ones, which is no count.
func TestNetdevCountOfAllOnes(t *testing.T) {
	table := map[string]counters.NetdevEntry{"gone": {}, "there": {}}
	if got := counters.NetdevCounts(table, []host.Stat{
		{Name: "gone", Value: counters.AllOnes}, {Name: "there", Value: 7},
	}); len(got) != 1 || got[0].Value != 7 {
		t.Errorf("%+v", got)
	}
}
