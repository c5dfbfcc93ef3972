package collector

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

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// TestNetdevStatNames: one statistic of each kind of each driver, by the driver's name, and its metric.
func TestNetdevStatNames(t *testing.T) {
	tables := netdevTables()
	for _, c := range []struct {
		driver string
		stats  []host.Stat
		want   []snapshot.NetdevCount
	}{
		{
			"mlx5_core",
			[]host.Stat{
				{Name: "rx_packets", Value: 99},
				{Name: "rx_prio3_pause", Value: 5},
				{Name: "rx_prio3_pause_duration", Value: 2_500_000},
				{Name: "rx_prio3_pause_transition", Value: 4},
				{Name: "tx_pause_storm_error_events", Value: 1},
				{Name: "outbound_pci_stalled_wr", Value: 37},
				{Name: "outbound_pci_stalled_rd", Value: 120},
				{Name: "rx_err_lane_2_phy", Value: 8},
				{Name: "rx_prio8_pause", Value: 1},
				{Name: "rx3_packets", Value: 1},
				{Name: "rx_jabbers_phy", Value: 2},
				{Name: "rx_symbol_err_phy", Value: 3},
				{Name: "module_bad_shorted", Value: 6},
			},
			[]snapshot.NetdevCount{
				{What: snapshot.PFCPauseFrames, Label: receive, Index: 3, Value: 5},
				{What: snapshot.PFCPauseSeconds, Label: receive, Index: 3, Value: 2.5},
				{What: snapshot.PFCPauseTransitions, Label: receive, Index: 3, Value: 4},
				{What: snapshot.PauseStormEvents, Label: "error", Index: -1, Value: 1},
				{What: snapshot.PCIeStallRatio, Label: receive, Index: -1, Value: 0.37},
				{What: snapshot.PCIeStallRatio, Label: transmit, Index: -1, Value: 1},
				{What: snapshot.LaneErrors, Index: 2, Value: 8},
				{What: snapshot.FrameErrors, Index: -1, Value: 5},
				{What: snapshot.ModuleEvents, Label: "shorted", Index: -1, Value: 6},
			},
		},
		{
			"mlx4_core",
			[]host.Stat{{Name: "rx_pause_prio_5", Value: 5}, {Name: "tx_pause_duration_prio_5", Value: 1e6}, {Name: "tx_pause_transition_prio_5", Value: 3}, {Name: "rx_pause_duration", Value: 5e5}},
			[]snapshot.NetdevCount{
				{What: snapshot.PFCPauseFrames, Label: receive, Index: 5, Value: 5},
				{What: snapshot.PFCPauseSeconds, Label: transmit, Index: 5, Value: 1},
				{What: snapshot.PFCPauseTransitions, Label: transmit, Index: 5, Value: 3},
				{What: snapshot.GlobalPauseSeconds, Label: receive, Index: -1, Value: 0.5},
			},
		},
		{
			"bnxt_en",
			[]host.Stat{{Name: "tx_pfc_ena_frames_pri3", Value: 5}, {Name: "pfc_pri3_tx_duration_us", Value: 3e6}, {Name: "continuous_pause_events", Value: 1}, {Name: "continuous_roce_pause_events", Value: 2}, {Name: "rx_fec_uncorrectable_blocks", Value: 7}},
			[]snapshot.NetdevCount{
				{What: snapshot.PFCPauseFrames, Label: transmit, Index: 3, Value: 5},
				{What: snapshot.PFCPauseSeconds, Label: transmit, Index: 3, Value: 3},
				{What: snapshot.PauseStormEvents, Label: "warning", Index: -1, Value: 3},
				{What: snapshot.FECUncorrectableBlocks, Index: -1, Value: 7},
			},
		},
		{
			"ice",
			[]host.Stat{{Name: "rx_priority_4_xon.nic", Value: 5}, {Name: "rx_priority_4_xoff.nic", Value: 6}, {Name: "link_xoff_tx.nic", Value: 2}, {Name: "rx_crc_errors.nic", Value: 1}, {Name: "rx_crc_errors", Value: 50}},
			[]snapshot.NetdevCount{
				{What: snapshot.PFCPauseFrames, Label: receive, Index: 4, Value: 11},
				{What: snapshot.GlobalPauseFrames, Label: transmit, Index: -1, Value: 2},
				{What: snapshot.CRCErrors, Index: -1, Value: 1},
			},
		},
		{
			"i40e",
			[]host.Stat{{Name: "port.tx_priority_0_xoff_tx", Value: 5}, {Name: "port.rx_priority_0_xon_2_xoff", Value: 2}, {Name: "port.rx_discards", Value: 9}},
			[]snapshot.NetdevCount{
				{What: snapshot.PFCPauseFrames, Label: transmit, Index: 0, Value: 5},
				{What: snapshot.PFCPauseTransitions, Label: receive, Index: 0, Value: 2},
				{What: snapshot.Discards, Label: receive, Index: -1, Value: 9},
			},
		},
		{
			"i40e",
			[]host.Stat{{Name: "rx_dropped", Value: 40}, {Name: "port.rx_dropped", Value: 9}, {Name: "port.tx_priority_3_xon", Value: 5}, {Name: "port.tx_priority_3_xoff", Value: 6}, {Name: "port.rx_priority_3_xon", Value: 1}, {Name: "port.rx_priority_3_xoff", Value: 2}},
			[]snapshot.NetdevCount{
				{What: snapshot.Discards, Label: receive, Index: -1, Value: 9},
				{What: snapshot.PFCPauseFrames, Label: transmit, Index: 3, Value: 11},
				{What: snapshot.PFCPauseFrames, Label: receive, Index: 3, Value: 3},
			},
		},
		{
			"mlx5_core",
			[]host.Stat{{Name: "dev_internal_queue_oob", Value: 1}, {Name: "rx_steer_missed_packets", Value: 2}, {Name: "tx_errors_phy", Value: 3}, {Name: "link_down_events_phy", Value: 4}, {Name: "total_success_recovery_phy", Value: 5}, {Name: "rx_pci_signal_integrity", Value: 6}, {Name: "tx_pci_signal_integrity", Value: 7}},
			[]snapshot.NetdevCount{
				{What: snapshot.DeviceQueueExhausted, Index: -1, Value: 1},
				{What: snapshot.SteeringMisses, Index: -1, Value: 2},
				{What: snapshot.TransmitErrors, Index: -1, Value: 3},
				{What: snapshot.LinkDowns, Index: -1, Value: 4},
				{What: snapshot.LinkRecoveries, Index: -1, Value: 5},
				{What: snapshot.PCIeRecoveries, Label: receive, Index: -1, Value: 6},
				{What: snapshot.PCIeRecoveries, Label: transmit, Index: -1, Value: 7},
			},
		},
		{
			"bnxt_en",
			[]host.Stat{{Name: "rx_discard_packets_cos4", Value: 5}, {Name: "rx_discard_bytes_cos4", Value: 500}, {Name: "rx_total_ring_discards", Value: 2}, {Name: "link_down_events", Value: 3}},
			[]snapshot.NetdevCount{{What: snapshot.QueueDiscards, Index: 4, Value: 5}, {What: snapshot.OutOfBuffer, Index: -1, Value: 2}, {What: snapshot.LinkDowns, Index: -1, Value: 3}},
		},
		{
			"be2net",
			[]host.Stat{{Name: "rx_priority_pause_frames", Value: 5}, {Name: "rx_drops_no_pbuf", Value: 1}, {Name: "pmem_fifo_overflow_drop", Value: 2}, {Name: "rx_address_filtered", Value: 9}},
			[]snapshot.NetdevCount{{What: snapshot.PFCPauseFrames, Label: receive, Index: -1, Value: 5}, {What: snapshot.Discards, Label: receive, Index: -1, Value: 3}},
		},
		{
			"hns3",
			[]host.Stat{{Name: "mac_tx_pfc_pri7_pkt_num", Value: 5}, {Name: "mac_tx_pfc_pri7_xoff_time", Value: 5}, {Name: "mac_rx_mac_pause_num", Value: 1}},
			[]snapshot.NetdevCount{{What: snapshot.PFCPauseFrames, Label: transmit, Index: 7, Value: 5}, {What: snapshot.GlobalPauseFrames, Label: receive, Index: -1, Value: 1}},
		},
		{
			"mana",
			[]host.Stat{{Name: "hc_tc1_rx_pause_phy", Value: 5}, {Name: "hc_rx_discards_no_wqe", Value: 1}},
			[]snapshot.NetdevCount{{What: snapshot.PFCPauseFrames, Label: receive, Index: 1, Value: 5}, {What: snapshot.OutOfBuffer, Index: -1, Value: 1}},
		},
		{
			"ionic",
			[]host.Stat{{Name: "frames_rx_pripause", Value: 5}, {Name: "rx_pripause_3_1us_count", Value: 4e6}, {Name: "frames_tx_pri_3", Value: 6}},
			[]snapshot.NetdevCount{
				{What: snapshot.PFCPauseFrames, Label: receive, Index: -1, Value: 5},
				{What: snapshot.PFCPauseSeconds, Label: receive, Index: 3, Value: 4},
				{What: snapshot.PriorityPackets, Label: transmit, Index: 3, Value: 6},
			},
		},
		{
			"cxgb4",
			[]host.Stat{{Name: "tx_ppp2_frames", Value: 5}, {Name: "rx_bg0_frames_dropped", Value: 1}, {Name: "rx_bg3_frames_dropped", Value: 2}},
			[]snapshot.NetdevCount{{What: snapshot.PFCPauseFrames, Label: transmit, Index: 2, Value: 5}, {What: snapshot.Discards, Label: receive, Index: -1, Value: 3}},
		},
		{
			"qede",
			[]host.Stat{{Name: "rx_pfc_frames", Value: 5}, {Name: "brb_discards", Value: 1}, {Name: "no_buff_discards", Value: 2}},
			[]snapshot.NetdevCount{
				{What: snapshot.PFCPauseFrames, Label: receive, Index: -1, Value: 5},
				{What: snapshot.Discards, Label: receive, Index: -1, Value: 1},
				{What: snapshot.OutOfBuffer, Index: -1, Value: 2},
			},
		},
	} {
		t.Run(c.driver, func(t *testing.T) {
			if got := netdevCounts(tables[c.driver], c.stats); !slices.Equal(got, c.want) {
				t.Errorf("%v, want\n%v", got, c.want)
			}
		})
	}
	for driver := range netdevStatNames {
		seen := map[string]bool{}
		for _, n := range slices.Concat(directionsOf(netdevStatNames[driver])...) {
			m := netdevMetrics[n.what]
			if n.what == snapshot.LinkDowns {
				m.desc = portDownEvents
			}
			values := snapshot.NetdevCount{Label: "label", Index: 7}
			var given []string // values of the labels beside the netdev
			for _, name := range m.desc.Labels[3:] {
				given = append(given, labelOf(&values, name))
			}
			if seen[n.name] || slices.Contains(given, "label") != (n.label != "") ||
				strings.Contains(n.name, "{}") && !slices.Contains(given, "7") {
				t.Errorf("%s %s: there twice, or not what %s needs", driver, n.name, m.desc.Name)
			}
			seen[n.name] = true
			for _, rx := range []string{"rx_", "_rx", ".rx"} {
				if tx := strings.ReplaceAll(rx, "r", "t"); n.label == transmit && strings.Contains(n.name, rx) ||
					n.label == receive && strings.Contains(n.name, tx) {
					t.Errorf("%s %s: is it %s?", driver, n.name, n.label)
				}
			}
			want := map[string]float64{
				"rdma_port_pfc_pause_seconds_total": micro, "rdma_port_global_pause_seconds_total": micro,
				"rdma_port_pcie_stall_ratio": percent,
			}[m.desc.Name]
			if n.per != want {
				t.Errorf("%s %s: %v make the unit of %s, want %v", driver, n.name, n.per, m.desc.Name, want)
			}
		}
	}
}

// directionsOf are the rows for which each row stands.
func directionsOf(rows []netdevStatName) (out [][]netdevStatName) {
	for _, n := range rows {
		out = append(out, n.directions())
	}
	return out
}

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
		{"both", "Ethernet", n64(3), 2, 0, "3"},
		{"an old reading", "Ethernet", nil, 2, 2 * statsRetention, "<nil>"},
		{"InfiniBand", "InfiniBand", nil, 254, 0, "<nil>"},
		{"InfiniBand, full", "InfiniBand", nil, 256, 0, "256"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newNetdevStats()
			w.netdevs["eth0"] = &netdevState{
				netdevTarget: netdevTarget{device: "d", port: 1, netdev: "eth0"}, newest: &snapshot.NetdevReading{
					At: now.Add(-c.age), Counts: []snapshot.NetdevCount{{What: snapshot.LinkDowns, Index: -1, Value: c.listed}},
				},
			}
			ib := &infiniBand{stats: w, links: newLinkWatch(), registered: newDeviceWatch()}
			devices := []snapshot.Device{{Name: "d", Ports: []snapshot.Port{
				{Number: 1, LinkLayer: c.layer, Netdev: []snapshot.Netdev{{Name: "eth0", DownEvents: c.events}, {Name: "eth1"}}},
			}}}
			ib.count(devices, now)
			if got := fmt.Sprint(value(devices[0].Ports[0].Netdev[0].DownEvents)); got != c.want ||
				devices[0].Ports[0].Netdev[1].DownEvents != nil {
				t.Errorf("%q", got)
			}
		})
	}
}

// ethTree is a RoCE device of a physical function and its netdev.
func ethTree(device, netdev string) string {
	var b strings.Builder
	fn := "sys/devices/pci0000:00/0000:18:00.0"
	class := classDir + "/" + device
	for name, text := range map[string]string{
		fn + "/infiniband/" + device + "/node_type":          "1: CA",
		fn + "/infiniband/" + device + "/ports/1/link_layer": "Ethernet",
		fn + "/vendor": "0x15b3", fn + "/device": "0x1021", fn + "/class": "0x020000",
		fn + "/net/" + netdev + "/type": "1", fn + "/net/" + netdev + "/dev_port": "0",
		fn + "/net/" + netdev + "/carrier_changes": "2",
	} {
		fmt.Fprintf(&b, "-- %s --\n%s\n", name, text)
	}
	fmt.Fprintf(&b, "-- %s -> ../../devices/pci0000:00/0000:18:00.0/infiniband/%s --\n", class, device)
	fmt.Fprintf(&b, "-- %s/infiniband/%s/device -> ../../../0000:18:00.0 --\n", fn, device)
	fmt.Fprintf(&b, "-- %s/driver -> ../../../bus/pci/drivers/mlx5_core --\n", fn)
	fmt.Fprintf(&b, "-- sys/class/net/%s -> ../../devices/pci0000:00/0000:18:00.0/net/%s --\n", netdev, netdev)
	fmt.Fprintf(&b, "-- %s/net/%s/device -> ../../../0000:18:00.0 --\n", fn, netdev)
	return b.String()
}

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
	c      *Collector
	stats  *netdevStats
	driver *ethDriver
}

func newEthRig(t *testing.T, tree string) *ethRig {
	r := &ethRig{t: t, h: machine(t, tree), driver: &ethDriver{}, stats: newNetdevStats()}
	r.h.Ethtool, r.h.Now, r.h.Budget = r.driver, time.Now, host.NewBudget(time.Now)
	r.c = newEthernet(withStats(Options{}, r.stats))
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
	return samples(r.c.Descs, func(s Sink) { r.c.Emit(n, s) })
}

// eth0 is the netdev of an ethTree.
var eth0 = netdevTarget{"mlx5_0", 1, "eth0", "mlx5_core"}

func n64(v uint64) *uint64 { return &v }

func TestEthernet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newEthRig(t, ethTree("mlx5_0", "eth0"))
		r.driver.stats = []host.Stat{
			{Name: "rx_prio0_bytes", Value: 0},
			{Name: "rx_prio3_bytes", Value: 1000},
			{Name: "rx_prio3_pause", Value: 0},
			{Name: "rx_prio3_discards", Value: 0},
			{Name: "rx_prio5_discards", Value: 0},
			{Name: "rx_corrected_bits_phy", Value: 77},
		}
		r.driver.pauseHas = host.Pause{RX: n64(1), TX: n64(0), RXFrames: n64(12)}
		r.driver.fecHas = host.FEC{Active: n64(50), CorrectedBits: n64(70), Uncorrectable: n64(3)}
		want := []string{
			`rdma_port_global_pause_enabled{device="mlx5_0",direction="receive",netdev="eth0",port="1"} 1`,
			`rdma_port_global_pause_enabled{device="mlx5_0",direction="transmit",netdev="eth0",port="1"} 0`,
			`rdma_port_fec_info{device="mlx5_0",mode="RS",netdev="eth0",port="1"} 1`,
			`rdma_port_pfc_pause_frames_total{device="mlx5_0",direction="receive",netdev="eth0",port="1",priority="3"} 0`,
			`rdma_port_global_pause_frames_total{device="mlx5_0",direction="receive",netdev="eth0",port="1"} 12`,
			`rdma_port_priority_bytes_total{device="mlx5_0",direction="receive",netdev="eth0",port="1",priority="3"} 1000`,
			`rdma_port_priority_discards_total{device="mlx5_0",netdev="eth0",port="1",priority="3"} 0`,
			`rdma_port_fec_corrected_bits_total{device="mlx5_0",netdev="eth0",port="1"} 77`,
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
		if w, err := r.stats.read(t.Context(), r.h, eth0); err != nil || w.At != time.Now() {
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
		r := newEthRig(t, ethTree("mlx5_0", "eth0"))
		r.driver.stats, r.driver.pauseErr = []host.Stat{{Name: "rx_discards_phy", Value: 1}}, syscall.EOPNOTSUPP
		r.round()
		r.driver.err = &host.Error{Op: "ask", Path: "ethtool/eth0/stats", Err: syscall.EIO}
		issues := 0
		for range 20 {
			time.Sleep(15 * time.Second)
			n := r.round()
			issues += len(n.Issues)
			if w := n.Ethernet.Netdevs[0].Stats; (w == nil) != (time.Since(r.stats.last(eth0).At) > statsRetention) {
				t.Errorf("%v after %v", w, time.Since(r.stats.last(eth0).At))
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
		r := newEthRig(t, ethTree("mlx5_0", "eth0"))
		r.driver.takes = 3 * time.Second
		begun := time.Now()
		r.round()
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("the round took %s", took)
		}
		time.Sleep(5 * time.Second)
		for range 3 {
			if n := r.round(); len(n.Issues) == 0 || n.Issues[0].Reason != string(host.BackedOff) {
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
	r := newEthRig(t, ethTree("mlx5_0", "eth0")+"-- sys/devices/pci0000:00/0000:18:00.0/physfn -> ../0000:18:00.1 --\n")
	r.driver.err = errors.New("asked")
	if n := r.round(); r.driver.asked+r.driver.pause+r.driver.fec != 0 || len(n.Ethernet.Netdevs) != 0 {
		t.Errorf("asked %d times: %v", r.driver.asked, n.Ethernet)
	}
}

func FuzzNetdevCounts(f *testing.F) {
	f.Add("mlx5_core", "rx_prio3_pause", uint64(5))
	f.Add("ice", "rx_priority_9_xon.nic", uint64(1<<63))
	tables := netdevTables()
	f.Fuzz(func(t *testing.T, driver, name string, v uint64) {
		for _, c := range netdevCounts(tables[driver], []host.Stat{{Name: name, Value: v}, {Name: name, Value: v}}) {
			if c.Index < -1 || c.Index >= priorities || c.Value < 0 || c.What >= snapshot.NumNetdevStats {
				t.Fatalf("%+v", c)
			}
		}
	})
}

// BenchmarkNetdevCounts: an mlx5 with 63 channels has some 5,000 statistics, few of them of the physical port.
func BenchmarkNetdevCounts(b *testing.B) {
	table := netdevTables()["mlx5_core"]
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
		netdevCounts(table, stats)
	}
}

// withStats returns the state of collectors that share these statistics.
func withStats(o Options, stats *netdevStats) *state {
	with := newState(o)
	with.Stats = stats
	return with
}
