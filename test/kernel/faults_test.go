//go:build e2e

package kernel

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/program"
)

// faultTimeout is for data that is read within a minute and a half: PCIe every minute, sensors every half minute.
// Modules are read less often the longer it takes: on a busy host every eight minutes.
const faultTimeout = 15 * time.Minute

// fault is one injected fault. Commands run in the directory of the device in the test driver. A fault without mend
// ends by itself. It may end before a busy guest has two rounds in the few seconds that the shortened rules look back,
// so it is repeated until its alert fires. n in its command is the repetition, and shows is the expected increase each
// time.
type fault struct {
	device, inject, mend string
	alert, severity      string
	shows                samples // while present
}

// anew is how long to wait for the alert of a fault that ends by itself. All windows have passed by then.
const anew = 90 * time.Second

// faults are all present at the same time, so that each alert has to identify its device.
var faults = []fault{
	{"mlx5_0", "echo 1 >state; echo 2 >phys_state", "echo 4 >state; echo 5 >phys_state", "RDMAPortDown", "critical", samples{
		`rdma_port_state_id{device="mlx5_0",port="1"}`: 1, `rdma_port_physical_state_id{device="mlx5_0",port="1"}`: 2,
	}},
	{"mlx5_0", "echo 1 >fw_fatal", "", "RDMADeviceFailed", "warning", samples{
		`rdma_device_health_errors_total{device="mlx5_0",reporter="fw_fatal"}`:        1,
		`rdma_device_health_recoveries_total{device="mlx5_0",reporter="fw_fatal"}`:    1,
		`rdma_device_health_state{device="mlx5_0",reporter="fw_fatal",state="error"}`: 0,
		`rdma_device_health_errors_total{device="mlx5_0",reporter="fw"}`:              0,
	}},
	{"mlx5_1", "echo 64 >active_speed", "echo 128 >active_speed", "RDMALinkDegraded", "warning", samples{ // HDR instead of NDR
		`rdma_port_rate_bytes_per_second{device="mlx5_1",port="1"}`:          25e9,
		`rdma_port_expected_rate_bytes_per_second{device="mlx5_1",port="1"}`: 50e9,
	}},
	{"mlx5_1", "echo 110000 >temperature", "echo 55000 >temperature", "RDMADeviceHot", "warning", samples{
		`rdma_device_temperature_celsius{device="mlx5_1",sensor="asic"}`: 110,
	}},
	{"mlx5_1", aerOf(2, completionTimeout, 0), "", "RDMAPCIeErrors", "warning", samples{aer("0000:02:00.0", "nonfatal"): 1}},
	{"mlx5_2", "echo $((500 * n)) >counters/symbol_error", "", "RDMALinkErrors", "warning", samples{
		`rdma_port_symbol_errors_total{device="mlx5_2",port="1"}`: 500,
	}},
	// The link may be down: then the kernel cannot read the status of the function, and counts only at the root port.
	{"mlx5_2", aerOf(3, dataLinkProtocol, 0), "", "RDMAPCIeErrors", "critical", samples{aer("0000:03:00.0", "fatal"): 0, aer("0000:00:05.0", "fatal"): 1}},
	{"mlx5_3", "echo $((3 * n)) >counters/link_downed", "", "RDMALinkFlapping", "warning", samples{
		`rdma_port_link_downed_total{device="mlx5_3",port="1"}`: 3,
	}},
	{"mlx5_3", "echo 1 >active_width", "echo 2 >active_width", "RDMALinkDegraded", "warning", samples{
		`rdma_port_width_lanes{device="mlx5_3",port="1"}`: 1, `rdma_port_expected_width_lanes{device="mlx5_3",port="1"}`: 4,
	}},
	{"mlx5_4", "echo 1 >stuck", "echo 0 >stuck", "RDMADeviceFailed", "critical", samples{
		`rdma_scrape_collector_stuck{collector="infiniband",device="mlx5_4"}`: 1,
	}},
	{"mlx5_5", "echo 1 >/sys/bus/pci/devices/0000:06:00.0/remove", "echo 1 >/sys/bus/pci/rescan", "RDMADeviceMissing", "critical", samples{
		`rdma_device_present{device="mlx5_5",pci_address="0000:06:00.0"}`: 0,
	}},
	// The port pauses its switch permanently and receives nothing.
	{
		"mlx5_6",
		"(while read up _ </proc/uptime; do echo ${up%.*}${up#*.}0000; usleep 200000; done >ethtool/tx_prio3_pause_duration) & echo $! >/tmp/pauses",
		"kill $(cat /tmp/pauses)", "RDMAPFCStormSource", "critical", nil,
	},
	{"mlx5_6", "echo 1 >fw_error", "echo 0 >fw_error", "RDMADeviceFailed", "critical", samples{
		`rdma_device_health_state{device="mlx5_6",reporter="fw",state="error"}`: 1,
		`rdma_device_health_errors_total{device="mlx5_6",reporter="fw"}`:        1,
	}},
	{"mlx5_7", poke(lower, 14, "4c 00"), poke(lower, 14, "3c 00"), "RDMATransceiverHot", "warning", samples{
		`rdma_transceiver_temperature_celsius{device="mlx5_7",netdev="ens1f0np0",port="1"}`: 76,
	}},
	{"mlx5_8", poke(0x11, 186, "02 00"), poke(0x11, 186, "2e e0"), "RDMATransceiverOutOfRange", "warning", nil},
	{"mlx5_8", "echo 8 >pcie/width", "echo 16 >pcie/width", "RDMAPCIeDegraded", "critical", samples{
		`rdma_pcie_link_width_lanes{pci_address="0000:09:00.0"}`:                8,
		`rdma_pcie_link_max_width_lanes{pci_address="0000:09:00.0"}`:            16,
		`rdma_pcie_link_speed_transfers_per_second{pci_address="0000:09:00.0"}`: 32e9,
	}},
}

// linkLayers are those of mlx5_0 and so on. Their functions are behind root ports 0000:00:03.0 and so on, on the buses
// 1 and so on.
const linkLayers = "iiiiiieee"

// TestFaults breaks all devices at the same time. The exporter's own engine has to fire exactly the expected alerts,
// and resolve them when everything is repaired. It has its own virtual machine.
func TestFaults(t *testing.T) {
	exporter := program.Exporter(t)
	g := bootGuest(t, 2, len(linkLayers))
	// 16 lanes at 32 GT/s exceed the requirement of a 400 Gb/s port.
	g.must(t, "modprobe fakerdma ll="+linkLayers+" link_speed=5 link_width=16 && for n in 0 1 2; do ip link set ens${n}f0np0 mtu 9000 up; done")
	g.plug(t, "mlx5_7", "osfp-2xdr4")
	g.plug(t, "mlx5_8", "qsfpdd-dr4")
	g.must(t, "cd /sys/kernel/debug/fakerdma/mlx5_8 && "+poke(0x11, 188, "2a f8")) // a dark lane in the recorded module
	g.startExporter(t, exporter, "--alerting.interval=3s", "--alerting.rule-files="+g.quickRules(t), "--collect.no-budget",
		"--transceiver.interval=5s")

	steps := []struct {
		name string
		run  func(*testing.T, *guest)
	}{
		{"nothing fires", testQuiet},
		{"each fault has its alert", testFaulty},
		{"check says so", testFindings},
		{"mended", testMended},
		{"logs", testLogs},
	}
	for _, step := range steps {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, g) }) {
			g.logOwn(t)
			return
		}
	}
}

// testQuiet waits until the rules have the history that they need.
func testQuiet(t *testing.T, g *guest) {
	within(t, faultTimeout, func() error {
		m, err := scrape(t.Context(), g.url)
		if err != nil {
			return err
		}
		if n := m["rdma_alerting_rounds_total{}"]; n < 10 {
			return fmt.Errorf("%v rounds", n)
		}
		if d := m.diff(samples{
			`rdma_alerting_rule_failures_total{}`:                                                       0,
			`rdma_transceiver_temperature_celsius{device="mlx5_7",netdev="ens1f0np0",port="1"}`:         60,
			`rdma_transceiver_temperature_celsius{device="mlx5_8",netdev="ens2f0np0",port="1"}`:         52.6015625,
			`rdma_device_temperature_celsius{device="mlx5_0",sensor="asic"}`:                            55,
			`rdma_device_temperature_threshold_celsius{device="mlx5_0",level="critical",sensor="asic"}`: 105,
			`rdma_device_pcie_available_bytes_per_second{device="mlx5_0"}`:                              16 * 31507e6 / 8,
		}); d != "" {
			return fmt.Errorf("%s", d)
		}
		now, err := g.firing(t)
		if len(now) > 0 {
			t.Fatalf("fires on a machine without a fault: %q", now)
		}
		return err
	})
}

func testFaulty(t *testing.T, g *guest) {
	start := time.Now()
	var want []string
	g.correctable(t, 5, 3)
	shows := samples{aer("0000:05:00.0", "correctable"): 3, aer("0000:00:07.0", "correctable"): 0} // a few are normal
	inject := func(f fault, n int) {
		g.must(t, fmt.Sprintf("n=%d; cd /sys/kernel/debug/fakerdma/%s && %s", n, f.device, f.inject))
		for key, each := range f.shows {
			if shows[key] = each; f.mend == "" {
				shows[key] *= float64(n)
			}
		}
	}
	for _, f := range faults {
		inject(f, 1)
		want = append(want, alertName(f.alert, f.device, f.severity))
	}
	// Faults that have ended resolve while others are still expected.
	seen := map[string]bool{}
	come, next := 1, time.Now().Add(anew)
	within(t, faultTimeout, func() error {
		now, err := g.firing(t)
		if err != nil {
			return err
		}
		for _, a := range now {
			seen[a] = true
		}
		if time.Now().After(next) {
			come, next = come+1, time.Now().Add(anew)
			for i, f := range faults {
				if f.mend == "" && !seen[want[i]] {
					t.Logf("time %d of %s of %s", come, f.alert, f.device)
					inject(f, come)
				}
			}
		}
		for _, w := range want {
			if !seen[w] {
				return fmt.Errorf("%s does not fire; these do: %q", w, slices.Sorted(maps.Keys(seen)))
			}
		}
		return g.differs(t, shows)
	})
	for a := range seen {
		if !slices.Contains(want, a) {
			t.Errorf("%s fires, and nothing of the kind was broken", a)
		}
	}
	t.Logf("%d alerts in %s", len(want), time.Since(start).Round(time.Second))
}

// testFindings runs the check command against the running exporter. It collects itself if that does not answer within a
// second.
func testFindings(t *testing.T, g *guest) {
	within(t, faultTimeout, func() error {
		out, err := g.run("/tmp/rdma_exporter check --json --timeout=1s 2>/tmp/check.log")
		if err == nil || err.Error() != "exit code 2" { // of the most severe finding
			return fmt.Errorf("check: %v\n%s", err, out)
		}
		var report struct {
			Findings []struct {
				Alert, Severity string
				Labels          map[string]string
			}
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			return fmt.Errorf("%v\n%s", err, out)
		}
		found := map[string]bool{}
		for _, f := range report.Findings {
			found[alertName(f.Alert, f.Labels["device"], f.Severity)] = true
		}
		for _, f := range faults {
			if f.mend != "" && !found[alertName(f.alert, f.device, f.severity)] { // others may have resolved
				return fmt.Errorf("check does not say %s of %s", f.alert, f.device)
			}
		}
		return nil
	})
}

func testMended(t *testing.T, g *guest) {
	start := time.Now()
	for _, f := range faults {
		if f.mend != "" {
			// A missing device has no directory.
			g.must(t, "cd /sys/kernel/debug/fakerdma && cd ./"+f.device+" 2>/dev/null; "+f.mend)
		}
	}
	within(t, faultTimeout, func() error {
		if now, err := g.firing(t); err != nil || len(now) > 0 {
			return fmt.Errorf("still fire: %q, %v", now, err)
		}
		return g.differs(t, samples{
			`rdma_port_state_id{device="mlx5_0",port="1"}`: 4, `rdma_port_state_id{device="mlx5_4",port="1"}`: 4,
			`rdma_port_state_id{device="mlx5_5",port="1"}`:                          4,
			`rdma_device_present{device="mlx5_5",pci_address="0000:06:00.0"}`:       1,
			`rdma_pcie_link_width_lanes{pci_address="0000:09:00.0"}`:                16,
			`rdma_device_temperature_celsius{device="mlx5_1",sensor="asic"}`:        55,
			`rdma_device_health_state{device="mlx5_6",reporter="fw",state="error"}`: 0,
		})
	})
	t.Logf("all over in %s", time.Since(start).Round(time.Second))
}

// firing returns the firing alerts of the exporter's own engine, except the one that always fires.
func (g *guest) firing(t *testing.T) (out []string, err error) {
	t.Helper()
	body, err := get(t.Context(), g.url+"/api/v1/alerts")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			Alerts []struct {
				Labels map[string]string
				State  string
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" && a.Labels["alertname"] != "RDMAWatchdog" {
			out = append(out, alertName(a.Labels["alertname"], a.Labels["device"], a.Labels["severity"]))
		}
	}
	return out, nil
}

func alertName(alert, device, severity string) string { return alert + " " + device + " " + severity }

func aer(address, severity string) string {
	return fmt.Sprintf("rdma_pcie_aer_errors_total{pci_address=%q,severity=%q}", address, severity)
}

// Bits of the status registers of AER (PCIe base specification, 7.8.4).
const (
	badTLP            = 1 << 6
	dataLinkProtocol  = 1 << 4 // fatal
	completionTimeout = 1 << 14
)

// correctable makes the function of a bus report correctable errors one by one: the kernel counts simultaneous ones
// once.
func (g *guest) correctable(t *testing.T, bus byte, n int) {
	t.Helper()
	for i := range n {
		g.must(t, aerOf(bus, 0, badTLP))
		eventually(t, func() error {
			return okWith(g.run(fmt.Sprintf("grep 'TOTAL_ERR_COR %d' /sys/bus/pci/devices/0000:%02x:00.0/aer_dev_correctable", i+1, bus)))
		})
	}
}

// aerOf returns a command that makes the function of a bus report errors: struct aer_error_inj of
// drivers/pci/pcie/aer_inject.c.
func aerOf(bus byte, uncorrectable, correctable uint32) string {
	b := []byte{bus, 0, 0, 0}
	for _, word := range []uint32{uncorrectable, correctable, 0, 0, 0, 0, 0} { // the header's four words, the domain
		b = binary.LittleEndian.AppendUint32(b, word)
	}
	return printf(b) + " >/dev/aer_inject"
}

// lower is the lower half of a module's memory.
const lower = -1

// poke returns a command that writes bytes of a page of the module.
func poke(page, at int, text string) string {
	var b []byte
	for digits := range strings.FieldsSeq(text) {
		var n byte
		if _, err := fmt.Sscanf(digits, "%x", &n); err != nil {
			panic(err)
		}
		b = append(b, n)
	}
	if page != lower {
		at += page * 128
	}
	return fmt.Sprintf("%s | dd of=eeprom bs=1 seek=%d conv=notrunc 2>/dev/null", printf(b), at)
}

func printf(b []byte) string {
	var out strings.Builder
	for _, n := range b {
		fmt.Fprintf(&out, `\%03o`, n)
	}
	return "printf '" + out.String() + "'"
}
