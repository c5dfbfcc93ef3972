package infiniband

import (
	"fmt"
	"testing"
	"time"

	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
	"rdma_exporter/internal/transceiver"
)

// BenchmarkDeriveBaselines: cost in a scrape of 8 Ethernet links with transceivers of 8 lanes, whose baselines are
// complete.
func BenchmarkDeriveBaselines(b *testing.B) {
	const devices, lanes = 8, 8
	rate, power, bias, state, bits := 400e9, -1.5, 0.008, uint64(sysfs.StateActive), uint64(1)
	n := &snapshot.Node{InfiniBand: &snapshot.InfiniBand{}, Ethernet: &wire.Ethernet{}, Optics: &wire.Optics{}}
	for i := range devices {
		d, netdev := fmt.Sprintf("mlx5_%d", i), fmt.Sprintf("eth%d", i)
		n.InfiniBand.Devices = append(n.InfiniBand.Devices, snapshot.Device{
			Name: d, NodeGUID: fmt.Sprintf("b83f:d203:0050:a1c%d", i), PCIAddress: fmt.Sprintf("0000:%d8:00.0", i),
			FunctionType: snapshot.Physical,
			Ports:        []snapshot.Port{{Number: 1, LinkLayer: "Ethernet", State: &state, Rate: &rate}},
		})
		n.Ethernet.Netdevs = append(n.Ethernet.Netdevs, wire.NetdevCounters{
			Device: d, Port: 1, LinkLayer: "Ethernet", Netdev: netdev, FEC: &wire.FEC{CorrectedBits: &bits},
		})
		m := &transceiver.Module{SerialNumber: fmt.Sprintf("MT%d", i)}
		for lane := range lanes {
			m.Lanes = append(m.Lanes, transceiver.Lane{Number: lane + 1, RxPower: &power, Bias: &bias})
		}
		n.Optics.Cages = append(n.Optics.Cages,
			wire.Cage{Device: d, Port: 1, Netdev: netdev, State: wire.CagePresent, Module: m})
	}
	c := &infiniBand{memory: expect.NewMemory(expect.Data{})}
	s := exposition.NewSink(baselineDescs)
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	for range 6 * 60 {
		now = now.Add(time.Minute)
		bits += perMinute
		c.baselines.setNow(now)
		s.Begin()
		c.deriveBaselines(n, s)
		s.End()
	}
	if len(c.memory.Data().Baselines) != devices*(1+2*lanes) {
		b.Fatalf("%d baselines", len(c.memory.Data().Baselines))
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Begin()
		c.deriveBaselines(n, s)
		s.End()
	}
}
