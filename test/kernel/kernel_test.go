//go:build e2e

// Package kernel runs the exporter in a virtual machine with a real kernel and RDMA devices: soft-RoCE, and a test
// driver whose values can be written.
package kernel

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/test/program"
)

const (
	guestPort   = "10879"
	modulesPort = "10880"
	repository  = "../.."
	// What the kernel prints before the backtrace of a fault.
	kernelFaults = `BUG:|WARNING:|Oops|general protection fault|Call Trace|blocked for more than`
	panics       = `panic:|fatal error:|SIGSEGV|goroutine \d+ \[`
)

var (
	rxeState = `rdma_port_state_id{device="rxe0",port="1"}`
	ibState  = `rdma_port_state_id{device="mlx5_0",port="1"}`
)

func TestKernel(t *testing.T) {
	exporter := program.Exporter(t)
	g := bootGuest(t, 2, 2)
	t.Logf("kernel %s", g.must(t, "uname -r"))
	g.loadDriver(t)
	// With a reading per scrape, more readings coincide with the removal of a device.
	g.startExporter(t, exporter, "--no-alerting", "--collect.no-budget", "--collector.ebpf=off",
		"--collect.min-interval=0s", "--transceiver.interval=0s")
	g.expect(t, samples{rxeState: 4, ibState: 4})
	w := watch(t, g.url, rxeState)

	steps := []struct {
		name string
		run  func(*testing.T, *guest)
	}{
		{"soft-RoCE traffic", testTraffic},
		{"processes that hold a device", testHolders},
		{"jobs of ports", testJobs},
		{"stalled job", testStalled},
		{"management datagrams", testMAD},
		{"ports as the driver made them", testPorts},
		{"counters", testCounters},
		{"rate and width", testRate},
		{"priority flow control", testPFC},
		{"bridging", testBridging},
		{"PCIe", testPCIe},
		{"capture and replay", func(t *testing.T, g *guest) { testCapture(t, g, exporter) }},
		{"clock set", testClock},
		{"without privileges", testUnprivileged},
		{"in another network namespace", testOtherNetwork},
		{"kernel log", testKernelLog}, // after the comparisons: a program that starts later reads less of a storm
		{"ports down and up", testDownAndUp},
		{"why the link is down", testDownReason},
		{"losses between scrapes", testLosses},
		{"ethtool call that holds rtnl", testEthtoolStall},
		{"reads that do not return", testStuckReads},
		{"device renamed", testRename},
		{"device unbound from its driver", testUnbind},
		{"statistics of the netdev", testNetdev},
		{"module in the cage", testModule},
		{"device that refuses all", testRefusingDevice},
		{"driver unloaded", testUnload},
		{"rtnl is asked for again", testBackOffEnds},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			before := w.count()
			defer g.logOwn(t)
			step.run(t, g)
			// So that the watcher covers this step too.
			eventually(t, func() error {
				if n := w.count(); n < before+3 {
					return fmt.Errorf("%d scrapes since the start of the step", n-before)
				}
				return nil
			})
			w.check(t)
		})
	}

	t.Run("logs", func(t *testing.T) { testLogs(t, g) })
}

func testLogs(t *testing.T, g *guest) {
	noMatch(t, "kernel log", g.must(t, "dmesg"), kernelFaults)
	log, err := os.ReadFile(filepath.Join(g.share, "exporter.log"))
	if err != nil {
		t.Fatal(err)
	}
	noMatch(t, "exporter's log", string(log), panics)
}

// testHolders: RDMA netlink lists a process that waits for its peer.
func testHolders(t *testing.T, g *guest) {
	g.shareHostTest(t)
	eventually(t, func() error {
		return okWith(g.run("grep -q ffff /sys/class/infiniband/rxe0/ports/1/gids/1"))
	})
	g.must(t, "ibv_rc_pingpong -d rxe0 -g 1 >/tmp/holder.log 2>&1 & echo $! >/tmp/holder.pid")
	defer g.must(t, "kill $(cat /tmp/holder.pid)")
	eventually(t, func() error { // it takes a moment to create its resources
		return okWith(g.run("RDMA_HOLDER_DEVICE=rxe0 RDMA_HOLDER_PID=$(cat /tmp/holder.pid) " + shareMount +
			"/live.test -test.run TestHoldersInGuest"))
	})
}

// testMAD makes the umad requests of fabric mode, and runs it: the test driver's port answers, and nothing behind its
// link does.
func testMAD(t *testing.T, g *guest) {
	g.shareHostTest(t)
	g.must(t, "modprobe ib_umad")
	eventually(t, func() error { return okWith(g.run("test -c /dev/infiniband/umad0 -a -c /dev/infiniband/umad1")) })
	g.must(t, shareMount+"/umad.test -test.v -test.run TestUMAD.*InGuest")
	g.must(t, "/tmp/rdma_exporter fabric --state.dir=/tmp/fabric --fabric.interval=1s --fabric.timeout=200ms --web.listen-address=:"+modulesPort+
		" >"+shareMount+"/fabric.log 2>&1 & echo $! >/tmp/fabric.pid")
	defer g.must(t, "kill $(cat /tmp/fabric.pid)")
	eventually(t, func() error {
		m, err := scrape(t.Context(), g.modules)
		if err != nil {
			return err
		}
		if d := m.diff(samples{"rdma_fabric_sweep_failed{}": 1}); d != "" {
			return fmt.Errorf("%s", d)
		}
		log, err := os.ReadFile(filepath.Join(g.share, "fabric.log"))
		const alone = "the node behind the local port does not answer" // although the local one does
		if err != nil || !strings.Contains(string(log), alone) {
			return fmt.Errorf("the log does not say that %s: %v\n%s", alone, err, log)
		}
		return nil
	})
}

func testTraffic(t *testing.T, g *guest) {
	const counters = "/sys/class/infiniband/rxe0/ports/1/hw_counters/"
	g.expect(t, samples{rxeState: 4, `rdma_port_physical_state_id{device="rxe0",port="1"}`: 5})
	sent := g.number(t, counters+"sent_pkts")

	eventually(t, func() error { // the GID of an address is added some time after it
		return okWith(g.run("grep -q ffff /sys/class/infiniband/rxe0/ports/1/gids/1"))
	})
	const pingpong = "timeout 5 ibv_rc_pingpong -d rxe0 -g 1 -n 200" // a client whose peer is gone waits forever
	// The client may start before its server listens, or the server may have given up.
	eventually(t, func() error {
		return okWith(g.run(pingpong + " >/tmp/server.log 2>&1 & for i in 1 2 3 4 5; do usleep 200000; " + pingpong +
			" 127.0.0.1 && exit; done; kill $!; cat /tmp/server.log; false"))
	})

	if now := g.number(t, counters+"sent_pkts"); now < sent+400 {
		t.Errorf("200 messages each way made %v packets", now-sent)
	}
	eventually(t, func() error { // the last acknowledgements may arrive after the programs have ended
		want := samples{
			`rdma_port_transmit_packets_total{device="rxe0",port="1"}`:    g.number(t, counters+"sent_pkts"),
			`rdma_port_receive_packets_total{device="rxe0",port="1"}`:     g.number(t, counters+"rcvd_pkts"),
			`rdma_port_hw_stat{device="rxe0",port="1",stat="rdma_sends"}`: g.number(t, counters+"rdma_sends"),
		}
		return g.differs(t, want)
	})
}

func testPorts(t *testing.T, g *guest) {
	want := samples{
		`rdma_port_lid{device="mlx5_0",port="1"}`:    17,
		`rdma_port_sm_lid{device="mlx5_0",port="1"}`: 1,
	}
	for _, device := range []string{"mlx5_0", "mlx5_1"} {
		port := fmt.Sprintf("{device=%q,port=\"1\"}", device)
		want["rdma_port_state_id"+port] = 4
		want["rdma_port_physical_state_id"+port] = 5
		want["rdma_port_rate_bytes_per_second"+port] = 5e10
		want["rdma_port_width_lanes"+port] = 4
		want["rdma_port_symbol_errors_total"+port] = 0
		want["rdma_port_out_of_sequence_total"+port] = 0
	}
	g.expect(t, want)
	// Old kernels reject the request with a flag; it is repeated without.
	g.expectGone(t, `rdma_scrape_errors_total{collector="infiniband",device="mlx5_1",reason="invalid"}`)
}

func testCounters(t *testing.T, g *guest) {
	g.set(t, "mlx5_0", map[string]int{
		"counters/symbol_error":                    5,
		"counters/link_downed":                     300, // of 8 bits: stops at 255
		"counters/excessive_buffer_overrun_errors": 14,  // of 4 bits
		"counters/port_xmit_discards":              1234,
		"counters/port_rcv_data":                   99999999999, // words, more than 32 bits
		"counters/port_xmit_data":                  1000,
		"counters/port_rcv_packets":                77,
		"counters/port_xmit_wait":                  4000000000,
	})
	g.set(t, "mlx5_1", map[string]int{
		"hw_counters/out_of_buffer":         11,
		"hw_counters/out_of_sequence":       12,
		"hw_counters/local_ack_timeout_err": 13,
		"hw_counters/np_cnp_sent":           14,
		"hw_counters/rp_cnp_handled":        15,
		"hw_counters/packet_seq_err":        16,
		"hw_counters/rnr_nak_retry_err":     17,
	})
	g.expect(t, samples{
		`rdma_port_symbol_errors_total{device="mlx5_0",port="1"}`:                     5,
		`rdma_port_link_downed_total{device="mlx5_0",port="1"}`:                       255,
		`rdma_port_counter_saturated{counter="link_downed",device="mlx5_0",port="1"}`: 1,
		`rdma_port_excessive_buffer_overrun_errors_total{device="mlx5_0",port="1"}`:   14,
		`rdma_port_transmit_discards_total{device="mlx5_0",port="1"}`:                 1234,
		`rdma_port_receive_bytes_total{device="mlx5_0",port="1"}`:                     4 * 99999999999,
		`rdma_port_transmit_bytes_total{device="mlx5_0",port="1"}`:                    4000,
		`rdma_port_receive_packets_total{device="mlx5_0",port="1"}`:                   77,
		`rdma_port_transmit_wait_ticks_total{device="mlx5_0",port="1"}`:               4000000000,

		`rdma_port_receive_buffer_exhausted_total{device="mlx5_1",port="1"}`: 11,
		`rdma_port_out_of_sequence_total{device="mlx5_1",port="1"}`:          12,
		`rdma_port_ack_timeouts_total{device="mlx5_1",port="1"}`:             13,
		`rdma_port_cnp_sent_total{device="mlx5_1",port="1"}`:                 14,
		`rdma_port_cnp_handled_total{device="mlx5_1",port="1"}`:              15,
		`rdma_port_packet_sequence_errors_total{device="mlx5_1",port="1"}`:   16,
		`rdma_port_rnr_naks_received_total{device="mlx5_1",port="1"}`:        17,
		`rdma_port_symbol_errors_total{device="mlx5_1",port="1"}`:            0,
	})
}

// testNetdev: counters, pause and FEC of the netdev. The driver reports pauses of priorities with PFC only.
func testNetdev(t *testing.T, g *guest) {
	const netdev = `device="mlx5_1",%snetdev="ens0f0np0",port="1"`
	name := func(metric, labels, last string) string {
		return metric + "{" + fmt.Sprintf(netdev, labels) + last + "}"
	}
	g.set(t, "mlx5_1", map[string]int{
		"ethtool/rx_prio3_pause": 21, "ethtool/tx_prio3_pause_duration": 2_500_000, "ethtool/rx_prio5_pause": 22,
		"ethtool/rx_prio3_discards": 23, "ethtool/rx_discards_phy": 24, "ethtool/rx_crc_errors_phy": 25,
		"ethtool/rx_pcs_symbol_err_phy": 26, "ethtool/outbound_pci_stalled_wr": 27, "ethtool/module_bad_shorted": 28,
		"rx_pause_frames": 31, "tx_pause_frames": 32, "fec_corrected": 33, "fec_uncorrectable": 34,
	})
	const prio3, receive, transmit = `,priority="3"`, `direction="receive",`, `direction="transmit",`
	g.expectWithin(t, 3*patienceOfGuest, samples{
		name("rdma_port_pfc_pause_frames_total", receive, prio3):                                       21,
		name("rdma_port_pfc_pause_seconds_total", transmit, prio3):                                     2.5,
		name("rdma_port_priority_discards_total", "", prio3):                                           23,
		name("rdma_port_discards_total", receive, ""):                                                  24,
		name("rdma_port_crc_errors_total", "", ""):                                                     25,
		name("rdma_port_pcs_symbol_errors_total", "", ""):                                              26,
		name("rdma_port_pcie_stall_ratio", receive, ""):                                                0.27,
		name("rdma_module_events_total", `event="shorted",`, ""):                                       28,
		name("rdma_port_global_pause_enabled", receive, ""):                                            1,
		name("rdma_port_global_pause_frames_total", receive, ""):                                       31,
		name("rdma_port_global_pause_frames_total", transmit, ""):                                      32,
		name("rdma_port_fec_corrected_blocks_total", "", ""):                                           33,
		name("rdma_port_fec_uncorrectable_blocks_total", "", ""):                                       34,
		"rdma_port_fec_info{" + `device="mlx5_1",mode="RS(544,514)",netdev="ens0f0np0",port="1"` + "}": 1,
	})
	const moved = `,priority="5"`
	g.set(t, "mlx5_1", map[string]int{"pfc_en": 1 << 5})
	g.expect(t, samples{
		name("rdma_port_pfc_pause_frames_total", receive, moved): 22,
		name("rdma_port_priority_discards_total", "", prio3):     23,
	})
	g.expectGone(t, name("rdma_port_pfc_pause_frames_total", receive, prio3))
	g.set(t, "mlx5_1", map[string]int{"pfc_en": 1 << 3})
}

// testRate writes speeds and widths as in the kernel's enums: EDR 32, NDR 128; 1X 1, 4X 2.
func testRate(t *testing.T, g *guest) {
	for _, step := range []struct {
		speed, width int
		rate, lanes  float64
	}{
		{128, 1, 100e9 / 8, 1},
		{32, 2, 100e9 / 8, 4},
		{128, 2, 400e9 / 8, 4},
	} {
		g.set(t, "mlx5_0", map[string]int{"active_speed": step.speed, "active_width": step.width})
		g.expect(t, samples{
			`rdma_port_rate_bytes_per_second{device="mlx5_0",port="1"}`: step.rate,
			`rdma_port_width_lanes{device="mlx5_0",port="1"}`:           step.lanes,
			`rdma_port_width_lanes{device="mlx5_1",port="1"}`:           4,
		})
	}
}

// testPFC configures priorities. They are read when the carrier changes. The driver has a separate buffer for priority
// 3.
func testPFC(t *testing.T, g *guest) {
	const labels = `device="mlx5_1",netdev="ens0f0np0",port="1"`
	configure := func(values map[string]int) {
		t.Helper()
		g.set(t, "mlx5_1", values)
		g.flap(t)
	}
	on := func(priority int) string {
		return fmt.Sprintf(`rdma_port_pfc_enabled{device="mlx5_1",netdev="ens0f0np0",port="1",priority="%d"}`, priority)
	}
	frames := func(direction string, priority int) string {
		return fmt.Sprintf(`rdma_port_dcb_pfc_frames_total{device="mlx5_1",direction=%q,netdev="ens0f0np0",port="1",priority="%d"}`,
			direction, priority)
	}
	const enabled = `rdma_port_pfc_enabled_priorities{` + labels + `}`
	g.expect(t, samples{
		on(3): 1, enabled: 1, `rdma_port_pfc_capable_priorities{` + labels + `}`: 8, frames("transmit", 3): 0,
		`rdma_port_qos_info{dcbx="host,ieee",device="mlx5_1",netdev="ens0f0np0",port="1",trust="pcp"}`: 1,
		`rdma_port_buffer_bytes{buffer="0",` + labels + `}`:                                            20016,
		`rdma_port_buffer_bytes{buffer="1",` + labels + `}`:                                            156000,
		`rdma_port_priority_buffer{` + labels + `,priority="3"}`:                                       1,
		`rdma_port_traffic_class_bandwidth_ratio{` + labels + `,traffic_class="3"}`:                    0.13,
	})
	g.expectGone(t, `rdma_scrape_quarantined_items{collector="qos",device="mlx5_1"}`)
	configure(map[string]int{"pfc_en": 1<<5 | 1<<3, "pfc_requests5": 501, "pfc_indications5": 502, "pfc_requests0": 7})
	g.expect(t, samples{
		on(3): 1, on(5): 1, enabled: 2, frames("transmit", 5): 501, frames("receive", 5): 502, frames("transmit", 0): 7,
		frames("receive", 0): 0,
		`rdma_port_traffic_class_bandwidth_ratio{` + labels + `,traffic_class="5"}`: 0.12,
		`rdma_port_priority_buffer{` + labels + `,priority="5"}`:                    0,
	})
	configure(map[string]int{"pfc_en": 0})
	g.expect(t, samples{enabled: 0, frames("transmit", 5): 501})
	g.expectGone(t, on(3))
	g.expectGone(t, frames("transmit", 3))
	configure(map[string]int{"pfc_en": 1 << 3, "pfc_requests5": 0, "pfc_indications5": 0, "pfc_requests0": 0})
	g.expect(t, samples{enabled: 1, on(3): 1})
	g.expectGone(t, `rdma_port_pfc_enabled_priorities{device="mlx5_0",netdev="ens0f0np0",port="1"}`)
}

func testDownAndUp(t *testing.T, g *guest) {
	g.set(t, "mlx5_0", map[string]int{"state": 1, "phys_state": 2, "active_speed": 1})
	g.must(t, "ip link set ens0f0np0 down")
	g.expect(t, samples{
		ibState: 1,
		`rdma_port_physical_state_id{device="mlx5_0",port="1"}`: 2,
		`rdma_port_state_id{device="mlx5_1",port="1"}`:          1,
		`rdma_port_physical_state_id{device="mlx5_1",port="1"}`: 3,
	})

	g.set(t, "mlx5_0", map[string]int{"state": 4, "phys_state": 5, "active_speed": 128})
	g.must(t, "ip link set ens0f0np0 up")
	g.expect(t, samples{
		ibState: 4,
		`rdma_port_physical_state_id{device="mlx5_0",port="1"}`:     5,
		`rdma_port_rate_bytes_per_second{device="mlx5_0",port="1"}`: 5e10,
		`rdma_port_state_id{device="mlx5_1",port="1"}`:              4,
		`rdma_port_rate_bytes_per_second{device="mlx5_1",port="1"}`: 5e10,
	})
}

// testLosses removes the carrier faster than scrapes follow, by the driver and administratively.
func testLosses(t *testing.T, g *guest) {
	const (
		down  = `rdma_port_link_transitions_total{device="mlx5_1",netdev="ens0f0np0",port="1",to="down"}`
		count = `rdma_port_link_down_events_total{device="mlx5_1",netdev="ens0f0np0",port="1"}`
	)
	before, err := scrape(t.Context(), g.url)
	if err != nil {
		t.Fatal(err)
	}
	g.must(t, "cd /sys/kernel/debug/fakerdma/mlx5_1; for i in $(seq 50); do echo 0 >carrier; echo 1 >carrier; done")
	g.must(t, "ip link set ens0f0np0 down; ip link set ens0f0np0 up")
	want := samples{down: before[down] + 50}
	if g.kernelSince(t, 6, 12) {
		g.set(t, "mlx5_1", map[string]int{"link_down_events": 50})
		g.expect(t, samples{`rdma_port_state_id{device="mlx5_1",port="1"}`: 4})
		g.must(t, "ip link set ens0f0np0 down") // the count is read when the port changes
		g.expect(t, samples{count: 50})
		g.must(t, "ip link set ens0f0np0 up")
	}
	g.expect(t, want)
}

// testStuckReads blocks the reads of one device in the kernel: the other devices are exposed, and so is the fault.
func testStuckReads(t *testing.T, g *guest) {
	const stuck = `rdma_scrape_collector_stuck{collector="infiniband",device="mlx5_0"}`
	g.set(t, "mlx5_0", map[string]int{"stuck": 1})
	g.set(t, "mlx5_1", map[string]int{"hw_counters/out_of_sequence": 112})
	g.expect(t, samples{
		stuck:    1,
		rxeState: 4,
		`rdma_port_out_of_sequence_total{device="mlx5_1",port="1"}`: 112,
	})

	g.set(t, "mlx5_0", map[string]int{"stuck": 0, "counters/symbol_error": 6})
	g.expect(t, samples{`rdma_port_symbol_errors_total{device="mlx5_0",port="1"}`: 6})
	g.expectGone(t, stuck)
}

func testRename(t *testing.T, g *guest) {
	g.must(t, "rdma dev set mlx5_0 name ibp1s0")
	g.expect(t, samples{
		`rdma_port_state_id{device="ibp1s0",port="1"}`:            4,
		`rdma_port_symbol_errors_total{device="ibp1s0",port="1"}`: 6,
	})
	g.expectGone(t, ibState)
	g.must(t, "rdma dev set ibp1s0 name mlx5_0")
	g.expect(t, samples{ibState: 4, `rdma_port_symbol_errors_total{device="mlx5_0",port="1"}`: 6})
	g.expectGone(t, `rdma_port_state_id{device="ibp1s0",port="1"}`)
}

func testUnbind(t *testing.T, g *guest) {
	address := filepath.Base(g.must(t, "readlink /sys/class/infiniband/mlx5_0/device"))
	const registrations = `rdma_device_registrations_total{device="mlx5_0"}`
	counts := g.kernelSince(t, 6, 12)
	if counts {
		g.expect(t, samples{registrations: 0})
	}
	g.must(t, "echo "+address+" >/sys/bus/pci/drivers/mlx5_core/unbind")
	g.expectGone(t, ibState)
	g.expect(t, samples{`rdma_port_out_of_sequence_total{device="mlx5_1",port="1"}`: 112})
	g.must(t, "echo "+address+" >/sys/bus/pci/drivers/mlx5_core/bind")
	g.expect(t, samples{ibState: 4, `rdma_port_symbol_errors_total{device="mlx5_0",port="1"}`: 0})
	if counts {
		g.expect(t, samples{registrations: 1, `rdma_device_registrations_total{device="mlx5_1"}`: 0})
	} else {
		g.expectGone(t, registrations)
	}
}

// kernelSince reports whether the guest's kernel is of that series or later.
func (g *guest) kernelSince(t *testing.T, major, minor int) bool {
	t.Helper()
	var m, n int
	if release := g.must(t, "uname -r"); !scanned(fmt.Sscanf(release, "%d.%d", &m, &n)) {
		t.Fatalf("uname -r: %s", release)
	}
	return m > major || m == major && n >= minor
}

func scanned(_ int, err error) bool { return err == nil }

func testUnload(t *testing.T, g *guest) {
	g.set(t, "mlx5_0", map[string]int{"counters/symbol_error": 8})
	g.expect(t, samples{`rdma_port_symbol_errors_total{device="mlx5_0",port="1"}`: 8})
	g.must(t, "rmmod fakerdma")
	g.expectGone(t, ibState)
	g.expectGone(t, `rdma_port_state_id{device="mlx5_1",port="1"}`)

	g.loadDriver(t)
	for range 5 { // faster than the scrapes
		g.must(t, "rmmod fakerdma")
		g.loadDriver(t)
	}
	g.expect(t, samples{
		ibState: 4,
		`rdma_port_state_id{device="mlx5_1",port="1"}`:            4,
		`rdma_port_symbol_errors_total{device="mlx5_0",port="1"}`: 0,
	})
	g.set(t, "mlx5_0", map[string]int{"counters/symbol_error": 9})
	g.expect(t, samples{`rdma_port_symbol_errors_total{device="mlx5_0",port="1"}`: 9})
}

// loadDriver creates mlx5_0, InfiniBand, and mlx5_1, Ethernet, whose link follows its netdev.
func (g *guest) loadDriver(t *testing.T) {
	t.Helper()
	g.must(t, "modprobe fakerdma ll=ie && ip link set ens0f0np0 up")
}

func (g *guest) startExporter(t *testing.T, binary string, flags ...string) {
	t.Helper()
	data, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(g.share, "rdma_exporter"), data, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(content(filepath.Join(g.share, "exporter.log")))
		}
	})
	// Some 9p mounts do not allow execution.
	g.must(t, "cp "+shareMount+"/rdma_exporter /tmp/")
	g.startAgain(t, strings.Join(flags, " "))
}

// number returns the content of a file in the guest.
func (g *guest) number(t *testing.T, path string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(g.must(t, "cat "+path), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// tool runs a program of this machine and returns its standard output, trimmed.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", name, err, out, stderr.Bytes())
	}
	return strings.TrimSpace(string(out))
}

func okWith(output string, err error) error {
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

func noMatch(t *testing.T, name, text, pattern string) {
	t.Helper()
	if at := regexp.MustCompile(pattern).FindStringIndex(text); at != nil {
		t.Errorf("%s: %s", name, text[at[0]:])
	}
}
