package ethernet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
	"rdma_exporter/test/played"
)

// ethDriver is a driver that counts its requests.
type ethDriver struct {
	host.Ethtool
	stats, standard   []host.Stat
	err               error
	asked, pause, fec int
	takes             time.Duration
	pauseErr          error
	pauseHas          host.Pause
	fecHas            host.FEC
	modes             int
	modesHas          host.LinkModes
}

func (d *ethDriver) NetdevStats(context.Context, string) ([]host.Stat, error) {
	d.asked++
	time.Sleep(d.takes)
	return d.stats, d.err
}

func (d *ethDriver) StandardStats(context.Context, string) ([]host.Stat, error) {
	d.asked++
	return d.standard, d.err
}

func (d *ethDriver) Pause(context.Context, string) (host.Pause, error) {
	d.pause++
	return d.pauseHas, d.pauseErr
}

func (d *ethDriver) FEC(context.Context, string) (host.FEC, error) {
	d.fec++
	return d.fecHas, nil
}

func (d *ethDriver) LinkModes(context.Context, string) (host.LinkModes, error) {
	d.modes++
	return d.modesHas, nil
}

// ethRig is a collector on a machine with a clock of its own.
type ethRig struct {
	t      *testing.T
	h      *host.Host
	c      *shared.Collector
	stats  *counters.NetdevStats
	driver *ethDriver
}

func newEthRig(t *testing.T, tree string) *ethRig {
	r := &ethRig{t: t, h: played.Machine(t, tree), driver: &ethDriver{}, stats: counters.NewNetdevStats()}
	r.h.Ethtool, r.h.Now, r.h.Budget = r.driver, time.Now, access.NewBudget(time.Now)
	r.c = New(withStats(shared.Options{}, r.stats))
	return r
}

func (r *ethRig) round() *snapshot.Node {
	r.t.Helper()
	var n snapshot.Node
	done := make(chan error, 1)
	r.c.Read(r.t.Context(), r.h, &n, func(err error) { done <- err })
	if err := <-done; err != nil {
		r.t.Fatal(err)
	}
	return &n
}

func (r *ethRig) lines() []string {
	n := r.round()
	return collectortest.Samples(r.c.Descs, func(s metric.Sink) { r.c.Emit(n, s) })
}

// eth0 is the netdev of an EthTree.
var eth0 = counters.NetdevTarget{Device: "mlx5_0", Port: 1, Netdev: "eth0", Driver: "mlx5_core"}

func TestEthernet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newEthRig(t, collectortest.EthTree("mlx5_0", "eth0"))
		r.driver.stats = []host.Stat{
			{Name: "rx_prio0_bytes", Value: 0},
			{Name: "rx_prio3_bytes", Value: 1000},
			{Name: "rx_prio3_pause", Value: 0},
			{Name: "rx_prio3_discards", Value: 0},
			{Name: "rx_prio5_discards", Value: 0},
			{Name: "rx_corrected_bits_phy", Value: 77},
		}
		r.driver.pauseHas = host.Pause{RX: collectortest.N64(1), TX: collectortest.N64(0), RXFrames: collectortest.N64(12)}
		r.driver.fecHas = host.FEC{
			Active:        collectortest.N64(50),
			CorrectedBits: collectortest.N64(70),
			Uncorrectable: collectortest.N64(3),
		}
		want := []string{
			`rdma_port_global_pause_enabled{device="mlx5_0",direction="receive",netdev="eth0",port="1"} 1`,
			`rdma_port_global_pause_enabled{device="mlx5_0",direction="transmit",netdev="eth0",port="1"} 0`,
			`rdma_port_fec_info{device="mlx5_0",mode="RS",netdev="eth0",port="1"} 1`,
			`rdma_port_pfc_pause_frames_total{device="mlx5_0",direction="receive",netdev="eth0",port="1",priority="3"} 0`,
			`rdma_port_global_pause_frames_total{device="mlx5_0",direction="receive",netdev="eth0",port="1"} 12`,
			`rdma_port_priority_bytes_total{device="mlx5_0",direction="receive",netdev="eth0",port="1",priority="3"} 1000`,
			`rdma_port_priority_discards_total{device="mlx5_0",netdev="eth0",port="1",priority="3"} 0`,
			`rdma_port_fec_corrected_bit_errors_total{device="mlx5_0",netdev="eth0",port="1"} 77`,
			`rdma_port_fec_uncorrectable_blocks_total{device="mlx5_0",netdev="eth0",port="1"} 3`,
		}
		if got := r.lines(); !slices.Equal(got, want) {
			t.Errorf("%s", strings.Join(got, "\n"))
		}
		if r.round(); r.driver.asked != 1 || r.driver.pause != 1 || r.driver.fec != 1 {
			t.Errorf("asked %d, %d, %d times", r.driver.asked, r.driver.pause, r.driver.fec)
		}
		time.Sleep(15 * time.Second)
		if r.round(); r.driver.asked != 2 || r.driver.pause != 1 {
			t.Errorf("asked %d, %d times", r.driver.asked, r.driver.pause)
		}
		time.Sleep(10 * time.Second)
		if w, err := r.stats.Read(t.Context(), r.h, eth0); err != nil || w.At != time.Now() {
			t.Errorf("%v, %v", w, err)
		}
		time.Sleep(10 * time.Second)
		if n := r.round(); r.driver.asked != 3 || time.Since(n.Ethernet.Netdevs[0].Stats.At) != 10*time.Second {
			t.Errorf("asked %d times: somebody else's reading is fresh enough", r.driver.asked)
		}
		r.driver.stats = []host.Stat{{Name: "rx_prio3_bytes", Value: 0}, {Name: "rx_prio4_pause", Value: 2}}
		time.Sleep(time.Minute)
		got := strings.Join(r.lines(), "\n")
		if !strings.Contains(got, `priority_bytes_total{device="mlx5_0",direction="receive",netdev="eth0",port="1",priority="3"} 0`) ||
			!strings.Contains(got, `priority="4"} 2`) || strings.Contains(got, "discards") {
			t.Errorf("another set of statistics:\n%s", got)
		}
	})
}

// TestEthernetLeavesFailuresAlone: a request that failed twice is not repeated until the carrier changes; the last
// values are served for a minute.
func TestEthernetLeavesFailuresAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newEthRig(t, collectortest.EthTree("mlx5_0", "eth0"))
		r.driver.stats, r.driver.pauseErr = []host.Stat{{Name: "rx_discards_phy", Value: 1}}, syscall.EOPNOTSUPP
		r.round()
		r.driver.err = &access.Error{Op: "ask", Path: "ethtool/eth0/stats", Err: syscall.EIO}
		issues := 0
		for range 20 {
			time.Sleep(15 * time.Second)
			n := r.round()
			issues += len(n.Issues)
			if w := n.Ethernet.Netdevs[0].Stats; (w == nil) != (time.Since(r.stats.Last(eth0).At) > counters.StatsRetention) {
				t.Errorf("%v after %v", w, time.Since(r.stats.Last(eth0).At))
			}
		}
		if r.driver.asked != 3 || issues != 2 || r.driver.pause != 2 {
			t.Errorf("asked %d times, %d for pause, %d issues", r.driver.asked, r.driver.pause, issues)
		}
	})
}

// TestEthernetWhileRTNLIsHeld: a read of over a second delays no round for longer, and none is made for a minute; each
// round reports it.
func TestEthernetWhileRTNLIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newEthRig(t, collectortest.EthTree("mlx5_0", "eth0"))
		r.driver.takes = 3 * time.Second
		begun := time.Now()
		r.round()
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("the round took %s", took)
		}
		time.Sleep(5 * time.Second)
		for range 3 {
			if n := r.round(); len(n.Issues) == 0 || n.Issues[0].Reason != string(access.BackedOff) {
				t.Errorf("%+v", n.Issues)
			}
			time.Sleep(15 * time.Second)
		}
		if r.driver.asked != 1 || r.driver.pause != 0 {
			t.Errorf("asked %d times, %d for pause", r.driver.asked, r.driver.pause)
		}
		r.driver.takes = 0
		time.Sleep(15 * time.Second)
		if n := r.round(); len(n.Issues) != 0 || n.Ethernet.Netdevs[0].Stats == nil || n.Ethernet.Netdevs[0].Pause == nil {
			t.Errorf("%+v, %+v", n.Issues, n.Ethernet.Netdevs[0])
		}
	})
}

func TestEthernetOfVirtualFunctions(t *testing.T) {
	r := newEthRig(
		t,
		collectortest.EthTree("mlx5_0", "eth0")+"-- sys/devices/pci0000:00/0000:18:00.0/physfn -> ../0000:18:00.1 --\n",
	)
	r.driver.err = errors.New("asked")
	if n := r.round(); r.driver.asked+r.driver.pause+r.driver.fec != 0 || len(n.Ethernet.Netdevs) != 0 {
		t.Errorf("asked %d times: %v", r.driver.asked, n.Ethernet)
	}
}

func FuzzNetdevCounts(f *testing.F) {
	f.Add("mlx5_core", "rx_prio3_pause", uint64(5))
	f.Add("ice", "rx_priority_9_xon.nic", uint64(1<<63))
	tables := counters.NetdevTables()
	f.Fuzz(func(t *testing.T, driver, name string, v uint64) {
		for _, c := range counters.NetdevCounts(tables[driver], []host.Stat{{Name: name, Value: v}, {Name: name, Value: v}}) {
			if c.Index < -1 || c.Index >= counters.Priorities || c.Value < 0 || c.What >= wire.NumNetdevStats {
				t.Fatalf("%+v", c)
			}
		}
	})
}

// BenchmarkNetdevCounts: an mlx5 with 63 channels has some 5,000 statistics, few of them of the physical port.
func BenchmarkNetdevCounts(b *testing.B) {
	table := counters.NetdevTables()["mlx5_core"]
	var stats []host.Stat
	for i := range 63 {
		for j := range 75 {
			stats = append(stats, host.Stat{Name: fmt.Sprintf("rx%d_statistic_%d", i, j)})
		}
	}
	for name := range table {
		stats = append(stats, host.Stat{Name: name, Value: 1})
	}
	b.ReportAllocs()
	for b.Loop() {
		counters.NetdevCounts(table, stats)
	}
}

// withStats returns the state of collectors that share these statistics.
func withStats(o shared.Options, stats *counters.NetdevStats) *shared.State {
	with := shared.NewState(o)
	with.Stats = stats
	return with
}
