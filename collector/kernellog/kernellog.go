// Package kernellog counts messages of the kernel log that tell of faults.
package kernellog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/kernellog"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

// ofMessages is for metrics of messages: there may be none.
func ofMessages(d *metric.Desc) *metric.Desc {
	return metric.Beside(kernelLogLost.Name, ofKernelLog(d))
}

// ofKernelLog is for metrics of the kernel log of a host with RDMA devices.
func ofKernelLog(d *metric.Desc) *metric.Desc {
	return metric.Of("rdma_device_info", metric.Asks(source.KernelLog, d))
}

var (
	kernelLogEvents = ofMessages(metric.Host("rdma_kernel_log_events_total",
		"Messages of the kernel log about RDMA devices, the PCIe ports above them and GPUs, since boot as far as the log reaches back. driver: printed the message, or is on the stack of a stuck task; ghes: the firmware of the host reports it. No series: no message.",
		"/dev/kmsg", "device", "pci_address", "driver", "kind"))
	kernelLogRecent = ofMessages(metric.Host("rdma_kernel_log_recent_events",
		"Messages of rdma_kernel_log_events_total of the last 15 minutes, by their own time. An increase of the counter is not that: it has no sample before the first message, and begins anew with the exporter.",
		"/dev/kmsg and /proc/uptime", "device", "pci_address", "driver", "kind"))
	kernelLogTime = ofMessages(metric.Host("rdma_kernel_log_last_event_timestamp_seconds",
		"Time of the last message of a kind about an object. detail: its values, such as the number and the error of a module.",
		"/dev/kmsg and /proc/uptime", "device", "pci_address", "driver", "kind", "detail"))
	kernelLogUnresolved = ofMessages(metric.Host("rdma_kernel_log_unresolved",
		"Object that does not work according to its last message of this kind, always 1: no later message reports an end, and the state of the object shows none. device: its PCI address without an RDMA device; empty for a GPU.",
		"/dev/kmsg, /sys/bus/pci/devices/ADDRESS/infiniband, /sys/module/NAME", "device", "pci_address", "driver", "kind"))
	kernelLogLost = ofKernelLog(metric.Host("rdma_kernel_log_overruns_total",
		"Messages of the kernel log that were overwritten before they were read, since the start of the exporter.",
		"/dev/kmsg, gaps of the sequence numbers"))
	kernelLogSkipped = ofKernelLog(metric.Host("rdma_kernel_log_skipped_total",
		"Messages of the kernel log that were not examined, since the start of the exporter: of more than 100 a second each tenth is.",
		"/dev/kmsg"))
)

// recentKernelLog is the age of the events of rdma_kernel_log_recent_events.
const recentKernelLog = 15 * time.Minute

// maxKernelLogSeries limits the objects and kinds; events of others are not counted.
const maxKernelLogSeries = 256

// kernelLog counts the events of the kernel log by object and kind.
type kernelLog struct {
	lastRound *shared.LastRound
	next      uint64 // number of the first record that is not counted
	counts    map[hostdata.KernelLogKey]*kernelLogCount
	// RDMA device by the address of its function, or of a port above it alone; empty: a GPU, or a port above several.
	functions map[string]string
	gpus      map[string]bool // PCI functions

	firmwareFirst bool // a record of the host's firmware was among the events
}

func newKernelLog(last *shared.LastRound) *kernelLog {
	return &kernelLog{
		lastRound: last, counts: map[hostdata.KernelLogKey]*kernelLogCount{},
		functions: map[string]string{}, gpus: map[string]bool{},
	}
}

// New returns the collector.
func New(with *shared.State) *shared.Collector {
	c := newKernelLog(with.Last)
	return &shared.Collector{
		Name: "kernellog",
		Help: "messages of the kernel log that tell of faults of RDMA devices, PCIe and GPUs",
		Descs: []*metric.Desc{
			kernelLogEvents, kernelLogRecent, kernelLogTime, kernelLogUnresolved, kernelLogLost, kernelLogSkipped,
		},
		Read: c.read,
		Emit: metric.EmitSection(func(n *snapshot.Node) *hostdata.KernelLog { return n.KernelLog }, emitKernelLog),
	}
}

func (c *kernelLog) read(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error)) {
	if h.KernelLog == nil {
		done(nil)
		return
	}
	issues, err := reading.OfHost(ctx, h, "kernellog", source.KernelLog, func(r reading.Reads) {
		r.Ask(1)
		log, err := h.KernelLog.KernelLog(ctx)
		if err != nil {
			r.IssueUnless(err, access.Absent, access.Unsupported)
			return
		}
		c.count(r, &log)
		n.KernelLog = c.section(&log)
	})
	if err != nil {
		n.Issues = append(n.Issues, snapshot.Issue{Reason: string(access.ReasonOf(err)), Err: err})
	}
	n.Issues = append(n.Issues, issues...)
	done(err)
}

// count counts the events that are new.
func (c *kernelLog) count(r reading.Reads, log *host.KernelLogReading) {
	devices, gpus, _ := c.lastRound.Last(r.Ctx)
	c.learn(devices, gpus)
	boot, since := time.Time{}, time.Duration(0)
	seconds, ok := sysfs.ReadUptime(r.Host)
	if ok {
		since = time.Duration(seconds * float64(time.Second))
		boot = r.Now().Add(-since)
	}
	for _, k := range c.counts {
		for len(k.times) > 0 && k.times[0] <= since-recentKernelLog {
			k.times = k.times[1:]
		}
		k.Recent = nil
	}
	for _, e := range log.Events {
		if e.Seq < c.next {
			continue
		}
		c.next = e.Seq + 1
		c.firmwareFirst = c.firmwareFirst || e.Driver == kernellog.Firmware
		key, ours := c.key(r, &e.Event)
		if e.Kind.Ends() { // of a function that this exporter does not watch, too: it may have watched its fault
			c.resolve(&key)
		}
		if e.Kind == kernellog.DriverLoaded {
			c.forget(e.PCIAddress)
			continue
		}
		if !ours {
			continue
		}
		k := c.counts[key]
		if k == nil {
			if len(c.counts) == maxKernelLogSeries {
				continue
			}
			k = &kernelLogCount{KernelLogCount: hostdata.KernelLogCount{KernelLogKey: key}}
			c.counts[key] = k
		}
		k.Count++
		k.Detail, k.SinceBoot = e.Detail, e.At
		k.Unresolved, k.absent = e.Kind.Lasts(), false
		if ok {
			k.At = boot.Add(e.At)
			if e.At > since-recentKernelLog && len(k.times) < host.MaxKernelEvents {
				k.times = append(k.times, e.At)
			}
		}
	}
	present := map[string]bool{}
	for i := range devices {
		present[devices[i].PCIAddress] = true
	}
	for _, k := range c.counts {
		if ok {
			k.Recent = new(uint64(len(k.times)))
		}
		if k.Unresolved {
			k.settle(r, present[k.PCIAddress])
		}
		_, known := c.functions[k.PCIAddress]
		k.GPU = c.gpus[k.PCIAddress] || !known && strings.HasPrefix(k.Kind, "gpu_")
	}
}

// resolve ends what the log had reported on an object.
func (c *kernelLog) resolve(of *hostdata.KernelLogKey) {
	for _, k := range c.counts {
		if of.PCIAddress != "" && k.PCIAddress == of.PCIAddress || of.Device != "" && k.Device == of.Device {
			k.Unresolved = false
		}
	}
}

// settle ends what the log has reported on an object whose state shows that it works. present: it has an RDMA device.
func (k *kernelLogCount) settle(r reading.Reads, present bool) {
	switch kernellog.Kind(k.Kind) {
	case kernellog.ProbeFailed, kernellog.NoAddressSpace:
		k.Unresolved = !present && lacksRDMA(r, sysfs.PCIDir+k.PCIAddress, k.Device != "")
	case kernellog.ModuleRefused:
		_, err := r.Host.Files.Resolve("sys/module/" + k.Driver)
		k.Unresolved = err != nil
	case kernellog.FirmwareStopped, kernellog.RecoveryFailed, kernellog.FunctionDead:
		// A device that was gone and is back has been probed again: not all drivers print that.
		k.Unresolved = !present || !k.absent
		k.absent = k.absent || !present
	}
}

// forget removes what the driver of a function had printed when it was loaded before.
func (c *kernelLog) forget(function string) {
	maps.DeleteFunc(c.counts, func(k hostdata.KernelLogKey, _ *kernelLogCount) bool {
		return k.PCIAddress == function && kernellog.Kind(k.Kind).PrintedAtLoad()
	})
}

// kernelLogCount is a count with the times of its recent events.
type kernelLogCount struct {
	hostdata.KernelLogCount
	times  []time.Duration // since boot
	absent bool            // the object had no RDMA device since the last message
}

// learn notes the functions of the devices and GPUs, and the ports above them. They stay known when a device is gone.
func (c *kernelLog) learn(devices []snapshot.Device, gpus []string) {
	for i := range devices {
		d := &devices[i]
		if d.PCIAddress == "" {
			continue
		}
		// A subfunction has the address of its parent.
		if d.FunctionType != snapshot.SubFunction || c.functions[d.PCIAddress] == "" {
			c.functions[d.PCIAddress] = d.Name
		}
		if d.FunctionType != snapshot.Physical { // the ports above a virtual function are those of its physical one
			continue
		}
		for p := path.Dir(d.Path); pci.IsAddress(path.Base(p)); p = path.Dir(p) {
			c.above(path.Base(p), d.Name)
		}
	}
	for _, p := range gpus {
		c.gpus[path.Base(p)] = true
		for ; pci.IsAddress(path.Base(p)); p = path.Dir(p) {
			c.above(path.Base(p), "")
		}
	}
}

// above notes the device below a port; empty once there are several.
func (c *kernelLog) above(port, device string) {
	if known, ok := c.functions[port]; ok && known != device {
		device = ""
	}
	c.functions[port] = device
}

// rdmaDrivers print about RDMA devices only: their messages count even if the device is not known, because it is gone.
var rdmaDrivers = []string{
	"mlx5_core", "mlx5_ib", "mlx4_core", "mlx4_en", "mlx4_ib", "bnxt_re", "irdma", "hns_roce", "hns_roce_hw_v2", "efa",
}

// hostKinds are the kinds of the host as a whole, and those of GPUs.
var hostKinds = []kernellog.Kind{
	kernellog.SoftLockup, kernellog.HungTask, kernellog.RCUStall, kernellog.PeerMemory, kernellog.NVSwitchSXid,
	kernellog.GPUXid, kernellog.GPULost, kernellog.GPUFailed, kernellog.ConnectionError, kernellog.ModuleRefused,
}

// key returns the object and the kind of an event; ours is false for an event of a device that this exporter does not
// watch.
func (c *kernelLog) key(r reading.Reads, e *kernellog.Event) (key hostdata.KernelLogKey, ours bool) {
	key = hostdata.KernelLogKey{Device: e.Device, PCIAddress: e.PCIAddress, Driver: e.Driver, Kind: string(e.Kind)}
	if e.Kind == kernellog.OOMKill {
		var pid int
		_, err := fmt.Sscanf(e.Detail, "pid %d,", &pid)
		return key, err == nil && c.lastRound.Holds(pid)
	}
	if key.PCIAddress == "" && e.Netdev != "" {
		key.PCIAddress = functionOfNetdev(r, e.Netdev)
	}
	device, known := c.functions[key.PCIAddress]
	key.Device = cmp.Or(key.Device, device)
	return key, known || key.Device != "" || slices.Contains(rdmaDrivers, e.Driver) ||
		slices.Contains(hostKinds, e.Kind) || e.Kind.Lasts() && isForRDMA(r, key.PCIAddress)
}

// lacksRDMA reports whether a function without an RDMA device ought to have one. had: it had one before. An Ethernet
// function may be used without RDMA: one counts that has no driver, so that it has no interface either. A virtual
// function is made and ended with jobs.
func lacksRDMA(r reading.Reads, dir string, had bool) bool {
	if _, err := r.Host.Files.Resolve(dir); err != nil {
		return false // the inventory reports it
	}
	if _, err := r.Host.Files.Link(dir + "/physfn"); err == nil {
		return false
	}
	return had || rdmaKindOf(r, dir) != pci.RDMAEthernet || sysfs.BoundDriver(r.Host.Files, dir) == ""
}

// isForRDMA reports whether a function supports RDMA, whatever its driver: one without a driver has no RDMA device.
func isForRDMA(r reading.Reads, function string) bool {
	return pci.IsAddress(function) && rdmaKindOf(r, sysfs.PCIDir+function) != ""
}

func rdmaKindOf(r reading.Reads, dir string) pci.RDMAKind {
	return pci.RDMAKindOf(r.Optional(dir+"/vendor"), r.Optional(dir+"/device"), r.Optional(dir+"/class"))
}

// functionOfNetdev returns the PCI function of a netdev, or that above its auxiliary device; empty: none, or the netdev
// is gone.
func functionOfNetdev(r reading.Reads, netdev string) string {
	if strings.Contains(netdev, "/") || netdev == ".." {
		return ""
	}
	p, err := r.Host.Files.Resolve(sysfs.NetDir + netdev + "/device")
	if err != nil {
		return ""
	}
	for ; p != "." && p != "/"; p = path.Dir(p) {
		if pci.IsAddress(path.Base(p)) {
			return path.Base(p)
		}
	}
	return ""
}

// section returns the data of the round, sorted.
func (c *kernelLog) section(log *host.KernelLogReading) *hostdata.KernelLog {
	out := &hostdata.KernelLog{Lost: log.Lost, Skipped: log.Skipped, FirmwareFirst: c.firmwareFirst}
	for _, k := range c.counts {
		out.Counts = append(out.Counts, k.KernelLogCount)
	}
	slices.SortFunc(out.Counts, func(a, b hostdata.KernelLogCount) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.PCIAddress, b.PCIAddress),
			cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

func emitKernelLog(log *hostdata.KernelLog, s metric.Sink) {
	s.Emit(kernelLogLost, float64(log.Lost))
	s.Emit(kernelLogSkipped, float64(log.Skipped))
	for _, k := range log.Counts {
		if k.Unresolved {
			device := cmp.Or(k.Device, k.PCIAddress)
			if k.GPU {
				device = ""
			}
			s.Emit(kernelLogUnresolved, 1, device, k.PCIAddress, k.Driver, k.Kind)
		}
		s.Emit(kernelLogEvents, float64(k.Count), k.Device, k.PCIAddress, k.Driver, k.Kind)
		metric.EmitNumber(s, kernelLogRecent, k.Recent, k.Device, k.PCIAddress, k.Driver, k.Kind)
		if !k.At.IsZero() {
			s.Emit(kernelLogTime, float64(k.At.UnixMilli())/1000, k.Device, k.PCIAddress, k.Driver, k.Kind, k.Detail)
		}
	}
}
