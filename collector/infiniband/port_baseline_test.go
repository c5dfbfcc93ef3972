package infiniband

import (
	"testing"
	"time"

	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
	"rdma_exporter/internal/transceiver"
)

// baselineLink is an Ethernet link with a transceiver.
type baselineLink struct {
	t      *testing.T
	b      *baselines
	m      *expect.Memory
	now    time.Time
	bits   uint64
	state  uint64
	serial string
	cage   wire.CageState
}

func newBaselineLink(t *testing.T) *baselineLink {
	return &baselineLink{
		t: t, b: &baselines{}, m: expect.NewMemory(expect.Data{}), now: time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC),
		state: 4, serial: "A",
		cage: wire.CagePresent,
	}
}

func (l *baselineLink) node() *snapshot.Node {
	rate, power, bias, bits := 400e9, -1.5, 0.008, l.bits
	cage := wire.Cage{Device: "d", Port: 1, Netdev: "eth0", State: l.cage}
	if l.cage == wire.CagePresent {
		cage.Module = &transceiver.Module{
			SerialNumber: l.serial, Lanes: []transceiver.Lane{{Number: 1, RxPower: &power, Bias: &bias}},
		}
	}
	return &snapshot.Node{
		InfiniBand: &snapshot.InfiniBand{Devices: []snapshot.Device{{
			Name: "d", PCIAddress: "0000:18:00.0", NodeGUID: "b83f:d203:0050:a1c0", FunctionType: snapshot.Physical,
			Ports: []snapshot.Port{{Number: 1, LinkLayer: "Ethernet", State: &l.state, Rate: &rate}},
		}}},
		Ethernet: &wire.Ethernet{Netdevs: []wire.NetdevCounters{
			{Device: "d", Port: 1, LinkLayer: "Ethernet", Netdev: "eth0", FEC: &wire.FEC{CorrectedBits: &bits}},
		}},
		Optics: &wire.Optics{Cages: []wire.Cage{cage}},
	}
}

// run passes time in readings a minute apart.
func (l *baselineLink) run(d time.Duration, bitsPerMinute uint64) {
	for end := l.now.Add(d); l.now.Before(end); {
		l.now = l.now.Add(time.Minute)
		l.bits += bitsPerMinute
		l.b.now = l.now
		l.b.learn(l.m, l.node())
	}
}

// formed reports whether the link's baselines are complete; their number, with those that form.
func (l *baselineLink) formed() (complete, all int) {
	for _, b := range l.m.Data().Baselines {
		all++
		if b.Formed() {
			complete++
		}
	}
	return complete, all
}

func (l *baselineLink) want(when string, complete, all int) {
	l.t.Helper()
	if c, a := l.formed(); c != complete || a != all {
		l.t.Errorf("%s: %d of %d baselines complete, want %d of %d", when, c, a, complete, all)
	}
}

func (l *baselineLink) ratio() float64 {
	for id, b := range l.m.Data().Baselines {
		if id == "guid/b83f:d203:0050:a1c0/1/eth0#own" {
			return b.Ratio()
		}
	}
	return 0
}

const perMinute = 24_000 // 1e-9 at 400 Gb/s

func TestBaselineOfALink(t *testing.T) {
	l := newBaselineLink(t)
	l.run(time.Hour, 1e9)
	l.want("settling", 0, 0)
	l.run(2*time.Hour, perMinute)
	l.want("forming", 0, 3)
	l.run(3*time.Hour, perMinute)
	l.want("formed", 3, 3)
	if got := l.ratio(); got < 0.99e-9 || got > 1.01e-9 {
		t.Errorf("ratio %g, want 1e-9 without the errors of the first hour", got)
	}
	l.run(time.Hour, 1e9)
	if got := l.ratio(); got > 1.01e-9 {
		t.Errorf("ratio %g: not fixed", got)
	}
	l.b = &baselines{} // a restart
	l.run(10*time.Minute, perMinute)
	l.want("after a restart", 3, 3)
	l.serial = "B"
	l.run(2*time.Hour, perMinute)
	l.want("another transceiver", 0, 3)
	l.run(4*time.Hour, perMinute)
	l.want("formed again", 3, 3)
	l.cage, l.state = wire.CageEmpty, 1
	l.run(2*time.Minute, 0)
	l.want("unplugged", 0, 0)
}

func TestBaselineWaitsForTheLink(t *testing.T) {
	l := newBaselineLink(t)
	l.run(55*time.Minute, perMinute)
	l.state = 1
	l.run(time.Minute, 0)
	l.state = 4
	l.run(59*time.Minute, perMinute)
	l.want("down in between", 0, 0)
	l.run(3*time.Minute, perMinute)
	l.want("settled", 0, 3)
	l.cage = wire.CageUnreadable
	l.run(time.Hour, perMinute)
	l.want("unreadable for an hour: unknown is no change", 0, 3)
}
