package collector

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

var (
	portHWStat = &Desc{
		Name: "rdma_port_hw_stat", Type: untyped, Scope: scopeFunction,
		Help:   "Port counter or value of the driver without a metric of its own.",
		Labels: []string{"device", "port", "stat"},
		Source: "RDMA netlink STAT_GET, ports/N/hw_counters/STAT",
	}
	deviceHWStat = &Desc{
		Name: "rdma_device_hw_stat", Type: untyped, Scope: scopeDevice,
		Help:   "Device counter or value of the driver without a metric of its own.",
		Labels: []string{"device", "stat"},
		Source: "/sys/class/infiniband/DEV/hw_counters/STAT",
	}
)

// hwCounters keeps the driver of each device: the meaning of names depends on it.
type hwCounters struct {
	Options
	devices perDevice[hwState]
}

// hwState belongs to the lane of its device.
type hwState struct {
	at      time.Time // when the following was read
	driver  string
	own     bool         // the device has counters beside those of its ports
	ports   []int        // none while the kernel is still making them
	traffic map[int]bool // ports whose traffic is in counters/
	ib      map[int]bool // ports whose link layer is InfiniBand
	nvlink  bool         // it manages NVLink switches: not read

	order      map[string]hwNames // by directory
	quarantine quarantine
}

func newHWState() *hwState {
	return &hwState{traffic: map[int]bool{}, ib: map[int]bool{}, order: map[string]hwNames{}}
}

func newHWCounters(o Options) *Collector {
	c := &hwCounters{Options: o}
	return &Collector{
		Name:    "hwcounters",
		Help:    "RDMA transport counters: retransmissions, congestion notification, request errors",
		Default: true,
		Descs:   slices.Concat(transportDescs, trafficDescs, []*Desc{portHWStat, deviceHWStat}),
		Read:    c.read,
		Emit:    emitHWCounters,
	}
}

func (c *hwCounters) read(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error)) {
	names, err := c.Options.devices(h, n)
	if err != nil {
		done(err)
		return
	}
	states := c.devices.of(h, names, newHWState)
	eachDevice(ctx, h, n, "hwcounters", names, func(r *reader, name string) (snapshot.DeviceCounters, bool) {
		return c.readDevice(r, name, states[name])
	}, func(devices []snapshot.DeviceCounters) {
		n.HWCounters = &snapshot.HWCounters{Devices: devices}
	}, done)
}

func (c *hwCounters) readDevice(r *reader, name string, st *hwState) (snapshot.DeviceCounters, bool) {
	r.begin(host.SourceIdentity)
	r.quarantine = &st.quarantine
	dir := classDir + "/" + name
	if len(st.ports) == 0 || r.due(st.at) {
		names, err := r.h.Files.List(dir)
		if err != nil {
			if !host.IsAbsent(err) {
				r.issue(err)
			}
			return snapshot.DeviceCounters{}, false
		}
		st.driver, st.own, st.ports, st.at = r.driverOf(name), slices.Contains(names, "hw_counters"), r.ports(name), r.now()
		st.nvlink = c.nvlink.manages(r, name)
		for _, n := range st.ports {
			files, _ := r.h.Files.List(portDir(name, n) + "/counters") // absent: no traffic there
			st.traffic[n] = hasTraffic(files)
			st.ib[n] = r.optional(portDir(name, n)+"/link_layer") == "InfiniBand"
		}
	}
	d := snapshot.DeviceCounters{Name: name, Driver: st.driver}
	if st.nvlink {
		return d, true
	}
	if st.own {
		r.begin(host.SourceHWCounters)
		d.Stats = st.files(r, dir+"/hw_counters")
	}
	for _, n := range st.ports {
		stats, ok := r.statGet(name, n)
		stats = slices.DeleteFunc(stats, func(s snapshot.Stat) bool { return st.leavesOut(r, s.Name) })
		if !ok { // no netlink, or no statistics for this port: use sysfs
			stats = st.files(r, portDir(name, n)+"/hw_counters")
		}
		d.Ports = append(d.Ports, snapshot.PortCounters{Number: n, Traffic: st.traffic[n], InfiniBand: st.ib[n], Stats: stats})
	}
	return d, true
}

// statGet requests the statistics of a port by netlink.
func (r *reader) statGet(name string, n int) ([]snapshot.Stat, bool) {
	dir, now := netlinkDir(name, n), r.now()
	if r.quarantine.held(dir, "stats", now) {
		return nil, false
	}
	r.begin(host.SourceHWCounters)
	r.asked++
	stats, err := r.h.RDMA.Stats(r.ctx, name, n, nil)
	r.noteNetlink(dir, "stats", now, err)
	return stats, err == nil
}

// hwNames are the files of a hw_counters directory, in listed order and in read order.
type hwNames struct{ listed, ordered []string }

// files reads a hw_counters directory.
func (st *hwState) files(r *reader, dir string) []snapshot.Stat {
	names, err := r.h.Files.Attributes(dir)
	if err != nil {
		if !host.IsAbsent(err) {
			r.issue(err)
		}
		return nil
	}
	known := st.order[dir]
	if !slices.Equal(known.listed, names) {
		known = hwNames{names, hwOrder(names)}
		known.ordered = slices.DeleteFunc(known.ordered, func(name string) bool { return !isFirst(name) && st.leavesOut(r, name) })
		st.order[dir] = known
	}
	return r.stats(dir, known.ordered)
}

// leavesOut reports whether a counter of the device is not read.
func (st *hwState) leavesOut(r *reader, name string) bool {
	return r.reduced.Of(r.device) && !r.reads(transportDesc(transportNames[family(st.driver)], name))
}

// hwOrder puts counter 0 first and leaves out lifespan (a setting). The kernel caches a read for 10 ms if counter 0 was read; on mlx5
// that is rx_write_requests, and any other order costs up to three firmware commands per file.
func hwOrder(names []string) []string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		if isFirst(name) {
			out = append(out, name)
		}
	}
	for _, name := range names {
		if !isFirst(name) && name != "lifespan" {
			out = append(out, name)
		}
	}
	return out
}

// isFirst reports whether a counter of mlx5 is counter 0.
func isFirst(name string) bool {
	return name == "rx_write_requests" || name == "vport_rx_write_requests"
}

// notDecoded is the value of a counter that the driver could not decode (ionic).
const notDecoded = allOnes

func emitHWCounters(n *snapshot.Node, s Sink) {
	if n.HWCounters == nil {
		return
	}
	var emitted []*Desc // of a port
	for i := range n.HWCounters.Devices {
		d := &n.HWCounters.Devices[i]
		names := transportNames[family(d.Driver)]
		emitDeviceStats(s, d, names)
		for j := range d.Ports {
			p := &d.Ports[j]
			port := strconv.Itoa(p.Number)
			emitted = emitted[:0]
			for _, st := range p.Stats {
				desc := transportDesc(names, st.Name)
				if slices.Contains(emitted, desc) { // a driver with an old name and a new one
					desc = nil
				}
				if st.Value == notDecoded || p.InfiniBand && st.Value == 0 && slices.Contains(sparseDescs, desc) {
					continue
				}
				if desc != nil && !(p.Traffic && isTraffic(desc)) {
					s.Emit(desc, float64(st.Value), d.Name, port)
					emitted = append(emitted, desc)
				} else if wanted(d.Driver, st.Name) {
					s.Emit(portHWStat, float64(st.Value), d.Name, port, statName(st.Name))
				}
			}
		}
	}
}

// emitDeviceStats emits the counters of a device. Counters that a driver has only there (congestion counters of mana, all of mlx5 in
// switchdev mode and of mlx4 with old firmware) are those of its port if it has exactly one.
func emitDeviceStats(s Sink, d *snapshot.DeviceCounters, names map[string]*Desc) {
	for _, st := range d.Stats {
		desc := transportDesc(names, st.Name)
		switch {
		case st.Value == notDecoded:
		case desc != nil && len(d.Ports) == 1 && !counts(d.Ports[0].Stats, names, desc) && !(d.Ports[0].Traffic && isTraffic(desc)):
			s.Emit(desc, float64(st.Value), d.Name, strconv.Itoa(d.Ports[0].Number))
		case wanted(d.Driver, st.Name):
			s.Emit(deviceHWStat, float64(st.Value), d.Name, statName(st.Name))
		}
	}
}

// counts reports whether one of the counters has the metric.
func counts(stats []snapshot.Stat, names map[string]*Desc, d *Desc) bool {
	return slices.ContainsFunc(stats, func(st snapshot.Stat) bool { return transportDesc(names, st.Name) == d })
}

// transportDesc is the metric of a driver's counter; mlx5 prefixes those of a representor with vport_.
func transportDesc(names map[string]*Desc, stat string) *Desc {
	stat = strings.TrimPrefix(stat, "vport_")
	if d := names[stat]; d != nil {
		return d
	}
	return common[stat]
}

// statName turns a counter's name into a label value: hfi1 appends ",32" for 32-bit counters, irdma has blanks.
func statName(name string) string {
	name, _, _ = strings.Cut(name, ",")
	return strings.ReplaceAll(name, " ", "_")
}

// wanted reports whether to emit a counter: hfi1 has hundreds of per-lane, per-context and chip counters.
func wanted(driver, name string) bool {
	if driver != "hfi1" {
		return true
	}
	switch name, _, _ = strings.Cut(name, ","); name {
	case "TxPkt", "TxWords", "TxWait", "TxDropped", "TxUnsupVL", "RxPkt", "RxWords", "RxVL15Dropped", "SwLinkDown", "SwLinkUp", "UnknownFrame",
		"XmitDscd", "LinkWidthDowngrade", "LinkDown", "LinkUp", "RcResend", "RcAck", "RnrNak", "SeqNak", "RcTimeOut", "RdmaSeq", "OtherNaks", "LoopPkts",
		"DmaWait", "PioWait", "TxFlowStall", "RxFlowStall", "TxCpErr", "LcbCrc", "LcbSeqCrc", "LcbRxCrc":
		return true
	}
	return false
}
