package kernellog

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/kernellog"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/test/played"
)

// written is a kernel log of lines that are recognised as the live reader does.
type written struct {
	reading host.KernelLogReading
	join    kernellog.Joiner
	err     error
}

func (w *written) KernelLog(context.Context) (host.KernelLogReading, error) { return w.reading, w.err }

func (w *written) print(at time.Duration, lines ...string) {
	for _, line := range lines {
		if e, ok := w.join.Line(at, line); ok {
			w.reading.Events = append(w.reading.Events,
				host.KernelEvent{Seq: uint64(len(w.reading.Events) + 1), At: at, Event: e})
		}
	}
}

const kernelLogFiles = `-- proc/uptime --
7200.00 100.00
-- sys/devices/pci0000:15/0000:15:01.0/0000:4d:00.0/vendor --
0x15b3
-- sys/bus/pci/devices/0000:4d:00.0 -> ../../../devices/pci0000:15/0000:15:01.0/0000:4d:00.0 --
-- sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0/vendor --
0x8086
-- sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0/device --
0x1592
-- sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0/class --
0x020000
-- sys/bus/pci/devices/0000:21:00.0 -> ../../../devices/pci0000:20/0000:20:01.0/0000:21:00.0 --
-- sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0/driver -> ../../../../bus/pci/drivers/ice --
-- sys/devices/pci0000:20/0000:20:01.0/0000:22:00.0/vendor --
0x8086
-- sys/devices/pci0000:20/0000:20:01.0/0000:22:00.0/device --
0x1592
-- sys/devices/pci0000:20/0000:20:01.0/0000:22:00.0/class --
0x020000
-- sys/bus/pci/devices/0000:22:00.0 -> ../../../devices/pci0000:20/0000:20:01.0/0000:22:00.0 --
-- sys/devices/pci0000:20/0000:20:01.0/0000:22:00.1/vendor --
0x8086
-- sys/devices/pci0000:20/0000:20:01.0/0000:22:00.1/device --
0x1592
-- sys/devices/pci0000:20/0000:20:01.0/0000:22:00.1/class --
0x020000
-- sys/bus/pci/devices/0000:22:00.1 -> ../../../devices/pci0000:20/0000:20:01.0/0000:22:00.1 --
-- sys/devices/pci0000:20/0000:20:01.0/0000:22:00.1/physfn -> ../0000:22:00.0 --
-- sys/module/mlx5_ib/initstate --
live
-- sys/class/net/ib0/device -> ../../../devices/pci0000:15/0000:15:01.0/0000:4d:00.0 --
`

// kernelLogOf returns a collector that knows mlx5_0 at 4d:00.0 below the port 15:01.0, two devices below 3a:01.0, and a
// GPU.
func kernelLogOf(log *written) (*kernelLog, func(t *testing.T) *snapshot.Node) {
	last := &shared.LastRound{}
	last.Begin()
	last.Publish(time.Unix(0, 0), []snapshot.Device{
		{Name: "mlx5_0", PCIAddress: "0000:4d:00.0", Path: "sys/devices/pci0000:15/0000:15:01.0/0000:4d:00.0", FunctionType: snapshot.Physical},
		{Name: "mlx5_1", PCIAddress: "0000:3b:00.0", Path: "sys/devices/pci0000:3a/0000:3a:01.0/0000:3b:00.0", FunctionType: snapshot.Physical},
		{Name: "mlx5_2", PCIAddress: "0000:3b:00.1", Path: "sys/devices/pci0000:3a/0000:3a:01.0/0000:3b:00.1", FunctionType: snapshot.Physical},
		{Name: "mlx5_3", PCIAddress: "0000:4d:00.2", Path: "sys/devices/pci0000:15/0000:15:01.0/0000:4d:00.2", FunctionType: snapshot.Virtual},
		{Name: "mlx5_4", PCIAddress: "0000:4d:00.0", Path: "sys/devices/pci0000:15/0000:15:01.0/0000:4d:00.0", FunctionType: snapshot.SubFunction},
		{Name: "rxe0", FunctionType: snapshot.Software},
	}, []string{"sys/devices/pci0000:1a/0000:1a:01.0/0000:1b:00.0"})
	last.PublishJob([]accel.Process{{PID: 4242, Verbs: []string{"uverbs0"}}, {PID: 77}}, time.Unix(0, 0))
	c := newKernelLog(last)
	return c, func(t *testing.T) *snapshot.Node {
		h, n := played.Machine(t, kernelLogFiles), &snapshot.Node{}
		h.KernelLog = log
		c.read(t.Context(), h, n, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
		return n
	}
}

func counted(n *snapshot.Node) string {
	var out []string
	for _, k := range n.KernelLog.Counts {
		out = append(out, fmt.Sprintf("%s|%s|%s|%s %d", k.Device, k.PCIAddress, k.Driver, k.Kind, k.Count))
	}
	return strings.Join(out, "\n")
}

func TestKernelLogCounts(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"a device":                    {"mlx5_core 0000:4d:00.0: poll_health:801:(pid 0): device's health compromised - reached miss count", "mlx5_0|0000:4d:00.0|mlx5_core|firmware_stopped 1"},
		"a virtual function":          {"mlx5_core 0000:4d:00.2: poll_health:801:(pid 0): device's health compromised - reached miss count", "mlx5_3|0000:4d:00.2|mlx5_core|firmware_stopped 1"},
		"a device that is gone":       {"mlx5_core 0000:aa:00.0: poll_health:801:(pid 0): device's health compromised - reached miss count", "|0000:aa:00.0|mlx5_core|firmware_stopped 1"},
		"the port above a device":     {"pcieport 0000:15:01.0: DPC: unmasked uncorrectable error detected", "mlx5_0|0000:15:01.0|pcieport|pcie_contained 1"},
		"the port above two":          {"pcieport 0000:3a:01.0: DPC: unmasked uncorrectable error detected", "|0000:3a:01.0|pcieport|pcie_contained 1"},
		"the port above a GPU":        {"pcieport 0000:1a:01.0: pciehp: Slot(4): Link Down", "|0000:1a:01.0|pcieport|slot_link_down 1"},
		"another port":                {"pcieport 0000:00:01.0: pciehp: Slot(4): Link Down", ""},
		"another device's IOMMU":      {"DMAR: [DMA Read NO_PASID] Request device [00:1f.2] fault addr 0x2410000", ""},
		"the IOMMU":                   {"DMAR: [DMA Read NO_PASID] Request device [4d:00.0] fault addr 0x2410000", "mlx5_0|0000:4d:00.0||iommu_fault 1"},
		"an Ethernet driver":          {"ice 0000:b1:00.0 ens801f0np0: tx_timeout: VSI_num: 6, Q 14, NTC: 0x0, HW_HEAD: 0x0", ""},
		"a netdev":                    {"ib0: transmit timeout: latency 1234 msecs", "mlx5_0|0000:4d:00.0||transmit_timeout 1"},
		"a netdev of a container":     {"NETDEV WATCHDOG: net1 (mlx5_core): transmit queue 19 timed out", "|||transmit_timeout 1"},
		"a netdev of another driver":  {"NETDEV WATCHDOG: eth0 (tg3): transmit queue 0 timed out", ""},
		"a GPU":                       {"NVRM: Xid (PCI:0000:1b:00): 79, pid=1234, GPU has fallen off the bus.", "|0000:1b:00.0||gpu_xid 1"},
		"a process with RDMA devices": {"Out of memory: Killed process 4242 (python3) total-vm:8kB", "|||oom_kill 1"},
		"a process without":           {"Out of memory: Killed process 77 (python3) total-vm:8kB", ""},
		"an unknown process":          {"Out of memory: Killed process 78 (python3) total-vm:8kB", ""},
	} {
		t.Run(name, func(t *testing.T) {
			log := &written{}
			_, read := kernelLogOf(log)
			log.print(time.Hour, c.line)
			want := strings.Replace(c.want, "|||transmit", "||mlx5_core|transmit", 1)
			if got := counted(read(t)); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
}

// TestFirmwareFirst: a record of a PCIe error by the host's firmware is one of firmware first, of whatever severity and
// device; errors that the kernel handles, and records of memory, are none.
func TestFirmwareFirst(t *testing.T) {
	record := func(section string) []string {
		return []string{
			"{3}[Hardware Error]: event severity: corrected", "{3}[Hardware Error]:  Error 0, type: corrected",
			"{3}[Hardware Error]:   section_type: PCIe error", "{3}[Hardware Error]:   " + section,
		}
	}
	for name, c := range map[string]struct {
		lines   []string
		counted string
		want    bool
	}{
		"record": {record("device_id: 0000:4d:00.0"), "mlx5_0|0000:4d:00.0|ghes|pcie_correctable 1", true},
		"record and registers": {
			append(record("device_id: 0000:4d:00.0"),
				"mlx5_core 0000:4d:00.0: AER: aer_status: 0x00000001, aer_mask: 0x00002000",
				"mlx5_core 0000:4d:00.0:    [ 0] RxErr"), "mlx5_0|0000:4d:00.0|ghes|pcie_correctable 1", true,
		},
		"registers": {[]string{
			"mlx5_core 0000:4d:00.0: AER: aer_status: 0x00040000, aer_mask: 0x00000000",
			"mlx5_core 0000:4d:00.0: AER: aer_uncor_severity: 0x00062030",
		}, "mlx5_0|0000:4d:00.0|ghes|pcie_fatal 1", true},
		"of an NVMe": {record("device_id: 0000:e1:00.0"), "", true},
		"of memory":  {record("node: 0 card: 2"), "", false},
		"AER": {
			[]string{"mlx5_core 0000:4d:00.0: AER: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"},
			"mlx5_0|0000:4d:00.0|mlx5_core|pcie_correctable 1", false,
		},
		"AER of a port": {
			[]string{"pcieport 0000:15:01.0: AER: Uncorrected (Fatal) error received: 0000:4d:00.0"},
			"mlx5_0|0000:4d:00.0|pcieport|pcie_fatal 1", false,
		},
		"nothing": {nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			log := &written{}
			_, read := kernelLogOf(log)
			log.print(time.Hour, c.lines...)
			for range 2 { // it stays so
				n := read(t)
				if got := counted(n); got != c.counted || n.KernelLog.FirmwareFirst != c.want {
					t.Errorf("%s, firmware first %v; want %s, %v", got, n.KernelLog.FirmwareFirst, c.counted, c.want)
				}
			}
		})
	}
}

// TestKernelLogRounds: each event counts once, and the last one of a kind gives time and detail.
func TestKernelLogRounds(t *testing.T) {
	log := &written{}
	_, read := kernelLogOf(log)
	log.print(time.Minute, "mlx5_core 0000:4d:00.0: Port module event: module 0, Cable plugged")
	read(t)
	log.print(time.Hour, "mlx5_core 0000:4d:00.0: Port module event: module 1, Cable plugged")
	read(t)
	n := read(t)
	if got := counted(n); got != "mlx5_0|0000:4d:00.0|mlx5_core|module_plugged 2" {
		t.Error(got)
	}
	// The machine has been up for two hours at time 0.
	if k := n.KernelLog.Counts[0]; k.Detail != "module 1, Cable plugged" || k.SinceBoot != time.Hour ||
		!k.At.Equal(time.Unix(-3600, 0)) {
		t.Errorf("%+v", k)
	}
	log.reading.Lost, log.reading.Skipped = 5, 9
	if n := read(t); n.KernelLog.Lost != 5 || n.KernelLog.Skipped != 9 {
		t.Errorf("%+v", n.KernelLog)
	}
}

// TestKernelLogRecent: the messages of the last 15 minutes by their own time, whenever they are read.
func TestKernelLogRecent(t *testing.T) {
	log := &written{}
	c, read := kernelLogOf(log)
	recent := func() uint64 { return *read(t).KernelLog.Counts[0].Recent }
	for _, at := range []time.Duration{
		time.Minute, 105 * time.Minute, 105*time.Minute + time.Second, 110 * time.Minute, 119 * time.Minute,
	} {
		log.print(at, "mlx5_core 0000:4d:00.0: Port module event: module 0, Cable plugged")
	}
	if got := recent(); got != 3 { // of an uptime of two hours
		t.Error(got)
	}
	if got := recent(); got != 3 {
		t.Error("counted again:", got)
	}
	for _, k := range c.counts { // as if 10 minutes had passed
		for i := range k.times {
			k.times[i] -= 10 * time.Minute
		}
	}
	if got := recent(); got != 1 {
		t.Error(got)
	}
}

// TestKernelLogOfLoad: what a driver prints at its start is forgotten when it starts again, of this function only.
func TestKernelLogOfLoad(t *testing.T) {
	const power = "mlx5_core 0000:%s: mlx5_pcie_event:299:(pid 268269): Detected insufficient power on the PCIe slot (27W)."
	log := &written{}
	_, round := kernelLogOf(log)
	log.print(time.Minute, fmt.Sprintf(power, "4d:00.0"), fmt.Sprintf(power, "3b:00.0"),
		"mlx5_core 0000:4d:00.0: poll_health:801:(pid 0): device's health compromised - reached miss count")
	want := "mlx5_0|0000:4d:00.0|mlx5_core|firmware_stopped 1\nmlx5_0|0000:4d:00.0|mlx5_core|slot_power 1\nmlx5_1|0000:3b:00.0|mlx5_core|slot_power 1"
	if got := counted(round(t)); got != want {
		t.Errorf("after the boot: %s", got)
	}
	log.print(time.Hour, "mlx5_core 0000:4d:00.0: firmware version: 28.43.2026")
	if got := counted(round(t)); got != strings.Replace(want, "mlx5_0|0000:4d:00.0|mlx5_core|slot_power 1\n", "", 1) {
		t.Errorf("after the driver was loaded again: %s", got)
	}
	log.print(time.Hour, fmt.Sprintf(power, "4d:00.0"))
	if got := counted(round(t)); got != want {
		t.Errorf("after the message of that load: %s", got)
	}
}

func TestKernelLogIsBounded(t *testing.T) {
	log := &written{}
	c, read := kernelLogOf(log)
	for i := range maxKernelLogSeries + 50 {
		log.print(time.Hour,
			fmt.Sprintf("mlx5_core 0000:%02x:%02x.0: Port module event: module 0, Cable plugged", i/32, i%32))
	}
	if n := read(t); len(n.KernelLog.Counts) != maxKernelLogSeries || len(c.counts) != maxKernelLogSeries {
		t.Errorf("%d", len(n.KernelLog.Counts))
	}
	log.print(time.Hour, "mlx5_core 0000:00:00.0: Port module event: module 0, Cable plugged")
	if n := read(t); n.KernelLog.Counts[0].Count != 2 {
		t.Errorf("a known one no longer counts: %+v", n.KernelLog.Counts[0])
	}
}

// TestKernelLogThatIsNotReadable: no section, so that nothing is ok; a denied one is reported.
func TestKernelLogThatIsNotReadable(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{syscall.EPERM, "permission"},
		{syscall.ENOENT, ""},
		{syscall.EIO, "io"},
	} {
		_, read := kernelLogOf(&written{err: &access.Error{Op: "open", Path: "dev/kmsg", Err: c.err}})
		n := read(t)
		var got string
		for _, i := range n.Issues {
			got += i.Reason
			if i.Source != "kernel_log" || (i.Reason == "permission" && !strings.Contains(i.Needs, "CAP_SYSLOG")) {
				t.Errorf("%+v", i)
			}
		}
		if got != c.want || n.KernelLog != nil {
			t.Errorf("%v: issues %q, want %q; section %v", c.err, got, c.want, n.KernelLog)
		}
		if text := emittedKernelLog(n); text != "" {
			t.Errorf("%v: %s", c.err, text)
		}
	}
}

func emittedKernelLog(n *snapshot.Node) string {
	s := exposition.NewSink([]*exposition.Desc{
		kernelLogEvents, kernelLogRecent, kernelLogTime, kernelLogLost, kernelLogSkipped,
	})
	s.Begin()
	New(shared.NewState(shared.Options{})).Emit(n, s)
	return string(exposition.AppendText(nil, s.End()))
}

func TestEmitKernelLog(t *testing.T) {
	log := &written{}
	_, read := kernelLogOf(log)
	log.print(time.Hour, "mlx5_core 0000:4d:00.0: Port module event[error]: module 0, Cable error, High Temperature")
	got := emittedKernelLog(read(t))
	for _, want := range []string{
		`rdma_kernel_log_events_total{device="mlx5_0",driver="mlx5_core",kind="module_error",pci_address="0000:4d:00.0"} 1`,
		`{detail="module 0, Cable error, High Temperature",device="mlx5_0",driver="mlx5_core",kind="module_error",pci_address="0000:4d:00.0"} -3600`,
		"rdma_kernel_log_overruns_total 0", "rdma_kernel_log_skipped_total 0",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nhas no %s", got, want)
		}
	}
}

// unresolved lists what the log says does not work.
func unresolved(n *snapshot.Node) string {
	var out []string
	for _, k := range n.KernelLog.Counts {
		if k.Unresolved {
			out = append(out, strings.Join(strings.Fields(k.Device+" "+k.PCIAddress+" "+k.Driver+" "+k.Kind), " "))
		}
	}
	return strings.Join(out, ", ")
}

// TestKernelLogUnresolved: what the log reports holds until the log or the state of the object shows an end.
func TestKernelLogUnresolved(t *testing.T) {
	const (
		stopped = "mlx5_core 0000:4d:00.0: poll_health:801:(pid 0): device's health compromised - reached miss count"
		failed  = "mlx5_core 0000:4d:00.0: mlx5_health_try_recover:381:(pid 1): health recovery flow aborted, PCI reads still not working"
	)
	for name, tt := range map[string]struct {
		lines []string
		want  string
	}{
		"stopped":                {[]string{stopped}, "mlx5_0 0000:4d:00.0 mlx5_core firmware_stopped"},
		"recovered":              {[]string{stopped, "mlx5_core 0000:4d:00.0: mlx5_health_try_recover:340:(pid 9): health recovery succeeded"}, ""},
		"not recovered":          {[]string{stopped, failed}, "mlx5_0 0000:4d:00.0 mlx5_core firmware_stopped, mlx5_0 0000:4d:00.0 mlx5_core recovery_failed"},
		"loaded again":           {[]string{stopped, failed, "mlx5_core 0000:4d:00.0: firmware version: 28.45.4028"}, ""},
		"another one recovered":  {[]string{stopped, "mlx5_core 0000:3b:00.0: mlx5_health_try_recover:340:(pid 9): health recovery succeeded"}, "mlx5_0 0000:4d:00.0 mlx5_core firmware_stopped"},
		"again":                  {[]string{stopped, "mlx5_core 0000:4d:00.0: firmware version: 28.45.4028", stopped}, "mlx5_0 0000:4d:00.0 mlx5_core firmware_stopped"},
		"no lasting kind":        {[]string{"mlx5_core 0000:4d:00.0: Port module event: module 0, Cable unplugged"}, ""},
		"a GPU":                  {[]string{"NVRM: GPU at PCI:0000:1b:00.0 has fallen off the bus."}, "0000:1b:00.0 gpu_lost"},
		"a fatal error of a GPU": {[]string{"pcieport 0000:1a:01.0: DPC: containment event, status:0x1f01 source:0x0000"}, "0000:1a:01.0 pcieport pcie_contained"},
	} {
		t.Run(name, func(t *testing.T) {
			log := &written{}
			_, read := kernelLogOf(log)
			log.print(time.Minute, tt.lines...)
			if got := unresolved(read(t)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestKernelLogSettles: a function with an RDMA device has been probed, and a device that was gone and is back works.
func TestKernelLogSettles(t *testing.T) {
	log := &written{}
	c, read := kernelLogOf(log)
	devices, gpus, _ := c.lastRound.Last(t.Context())
	publish := func(d []snapshot.Device) { c.lastRound.Publish(time.Unix(0, 0), d, gpus) }
	log.reading.Events = []host.KernelEvent{
		{Seq: 1, Event: kernellog.Event{Kind: kernellog.FunctionDead, Driver: "mlx5_core", PCIAddress: "0000:3b:00.0"}},
		{Seq: 2, Event: kernellog.Event{Kind: kernellog.ProbeFailed, Driver: "mlx5_core", PCIAddress: "0000:4d:00.0"}},
		{Seq: 3, Event: kernellog.Event{Kind: kernellog.ModuleRefused, Driver: "nvidia_peermem"}},
		{Seq: 4, Event: kernellog.Event{Kind: kernellog.ModuleRefused, Driver: "mlx5_ib"}},
	}
	const dead, refused = "mlx5_1 0000:3b:00.0 mlx5_core function_dead", "nvidia_peermem module_refused"
	for i, step := range []struct {
		devices []snapshot.Device
		want    string
	}{
		{devices, refused + ", " + dead},                                                 // mlx5_0 is there, and module mlx5_ib is loaded
		{devices[1:], refused + ", " + dead},                                             // no longer
		{devices[2:], refused + ", " + dead}, {devices, refused}, {devices[2:], refused}, // gone, back, gone again
	} {
		publish(step.devices)
		if got := unresolved(read(t)); got != step.want {
			t.Errorf("step %d: got %s, want %s", i, got, step.want)
		}
	}
	log.reading.Events = append(log.reading.Events, host.KernelEvent{
		Seq: 5, Event: kernellog.Event{Kind: kernellog.ProbeFailed, Driver: "mlx5_core", PCIAddress: "0000:4d:00.0"},
	})
	publish(nil)
	if got, want := unresolved(read(t)), refused+", mlx5_0 0000:4d:00.0 mlx5_core probe_failed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestKernelLogOfProbe: a function whose driver failed ought to have an RDMA device, except an Ethernet function with a
// driver, which may be used without, a virtual function, and one that is gone.
func TestKernelLogOfProbe(t *testing.T) {
	log := &written{}
	_, read := kernelLogOf(log)
	for i, function := range []string{"0000:21:00.0", "0000:22:00.0", "0000:22:00.1", "0000:23:00.0"} {
		log.reading.Events = append(log.reading.Events, host.KernelEvent{
			Seq: uint64(i + 1), Event: kernellog.Event{Kind: kernellog.ProbeFailed, Driver: "ice", PCIAddress: function},
		})
	}
	if got := unresolved(read(t)); got != "0000:22:00.0 ice probe_failed" {
		t.Error(got)
	}
	log.reading.Events = append(log.reading.Events, host.KernelEvent{
		Seq: 5, Event: kernellog.Event{Kind: kernellog.RecoveryEnded, Driver: "ice", PCIAddress: "0000:22:00.0"},
	})
	if got := unresolved(read(t)); got != "" {
		t.Errorf("recovered: %s", got)
	}
}
