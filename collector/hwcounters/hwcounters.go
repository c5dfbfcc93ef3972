// Package hwcounters reads transport counters of RDMA devices.
package hwcounters

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
)

var (
	portHWStat = &metric.Desc{
		Name: "rdma_port_hw_stat", Type: exposition.Untyped, Scope: exposition.ScopeFunction,
		Help:   "Port counter or value of the driver without a metric of its own.",
		Labels: []string{"device", "port", "stat"}, Source: "RDMA netlink STAT_GET, ports/N/hw_counters/STAT",
	}
	deviceHWStat = &metric.Desc{
		Name: "rdma_device_hw_stat", Type: exposition.Untyped, Scope: exposition.ScopeDevice,
		Help:   "Device counter or value of the driver without a metric of its own.",
		Labels: []string{"device", "stat"}, Source: "/sys/class/infiniband/DEV/hw_counters/STAT",
	}
)

// hwState belongs to the reader of its device, one at a time.
type hwState struct {
	of    *reading.Device // that the following are of
	own   bool            // the device has counters beside those of its ports
	dir   hwDir           // with these
	ports []hwPort
}

// hwPort is a port of a device.
type hwPort struct {
	number     int
	netlink    string // names its requests
	dir        hwDir
	traffic    bool // is in counters/
	infiniBand bool // by its link layer
}

// hwDir is a directory hw_counters, with its files in listed order and in read order.
type hwDir struct {
	path            string
	listed, ordered []string
}

// New returns the collector.
func New(with *shared.State) *shared.Collector {
	read := shared.ReadDevices(with.Devices, "hwcounters", nil, readDevice,
		func(n *snapshot.Node, devices []snapshot.DeviceCounters) {
			n.HWCounters = &snapshot.HWCounters{Devices: devices}
		})
	return &shared.Collector{
		Name:  "hwcounters",
		Help:  "RDMA transport counters: retransmissions, congestion notification, request errors",
		Descs: slices.Concat(transportDescs, trafficDescs, []*metric.Desc{portHWStat, deviceHWStat}),
		Read: func(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error)) {
			read(ctx, h, n, func(err error) {
				with.Retries.Publish(retriesOf(n.HWCounters, h.Now()))
				done(err)
			})
		},
		Emit: emitHWCounters,
	}
}

// retriesOf returns the exceeded retries of each port that counts them.
func retriesOf(found *snapshot.HWCounters, now time.Time) (out []shared.PortRetries) {
	if found == nil {
		return nil
	}
	for i := range found.Devices {
		d := &found.Devices[i]
		names := transportNames[familyOf(d.Driver)]
		for j := range d.Ports {
			for _, st := range d.Ports[j].Stats {
				if st.Value != notDecoded && transportDesc(names, st.Name) == retriesExceeded {
					out = append(out, shared.PortRetries{Device: d.Name, Port: d.Ports[j].Number, Exceeded: st.Value, At: now})
				}
			}
		}
	}
	return out
}

func readDevice(r *reading.Reader, d *reading.Device, st *hwState) (snapshot.DeviceCounters, bool) {
	dir := sysfs.ClassDir + "/" + d.Name
	if st.of != d {
		names, err := r.Host.Files.List(dir)
		if err != nil {
			if !access.IsAbsent(err) {
				r.From(source.Identity).Issue(err)
			}
			return snapshot.DeviceCounters{}, false
		}
		st.of, st.own, st.dir = d, slices.Contains(names, "hw_counters"), hwDir{path: dir + "/hw_counters"}
		st.ports = nil
		for i := range d.Ports {
			n := d.Ports[i].Number
			dir := sysfs.PortDir(d.Name, n)
			files, _ := r.Host.Files.List(dir + "/counters") // absent: no traffic there
			st.ports = append(st.ports, hwPort{
				number: n, netlink: sysfs.NetlinkDir(d.Name, n), dir: hwDir{path: dir + "/hw_counters"},
				traffic: counters.HasTraffic(files), infiniBand: d.Ports[i].LinkLayer == "InfiniBand",
			})
		}
	}
	out := snapshot.DeviceCounters{Name: d.Name, Driver: d.Driver}
	if d.ManagesNVLink {
		return out, true
	}
	if st.own {
		out.Stats = st.files(r, &st.dir)
	}
	out.Ports = slices.Grow(out.Ports, len(st.ports))
	for i := range st.ports {
		p := &st.ports[i]
		stats, ok := p.statGet(r)
		stats = slices.DeleteFunc(stats, func(s wire.Stat) bool { return st.leavesOut(r, s.Name) })
		if !ok { // no netlink, or no statistics for this port: use sysfs
			stats = st.files(r, &p.dir)
		}
		out.Ports = append(out.Ports,
			snapshot.PortCounters{Number: p.number, Traffic: p.traffic, InfiniBand: p.infiniBand, Stats: stats})
	}
	return out, true
}

// statGet requests the statistics of a port by netlink.
func (p *hwPort) statGet(r *reading.Reader) ([]wire.Stat, bool) {
	now := r.Now()
	if r.Quarantine.Held(p.netlink, "stats", now) {
		return nil, false
	}
	var stats []wire.Stat
	asked := r.From(source.HWCounters)
	err := asked.Try(func() (err error) { stats, err = r.Host.RDMA.Stats(r.Ctx, r.Device, p.number, nil); return err })
	shared.NoteNetlink(asked, p.netlink, "stats", now, err)
	return stats, err == nil
}

// files reads a hw_counters directory.
func (st *hwState) files(r *reading.Reader, d *hwDir) []wire.Stat {
	files := r.From(source.HWCounters)
	names, err := r.Host.Files.Attributes(d.path)
	if err != nil {
		if !access.IsAbsent(err) {
			files.Issue(err)
		}
		return nil
	}
	if !slices.Equal(d.listed, names) {
		d.listed = names
		d.ordered = slices.DeleteFunc(hwOrder(names),
			func(name string) bool { return !isFirst(name) && st.leavesOut(r, name) })
	}
	return files.Stats(d.path, d.ordered)
}

// leavesOut reports whether a counter of the device is not read.
func (st *hwState) leavesOut(r *reading.Reader, name string) bool {
	return r.Reduced() && !shared.Wants(r, transportDesc(transportNames[familyOf(st.of.Driver)], name))
}

// hwOrder puts counter 0 first and leaves out lifespan (a setting). The kernel caches a read for 10 ms if counter 0 was
// read; on mlx5 that is rx_write_requests, and any other order costs up to three firmware commands per file.
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
const notDecoded = counters.AllOnes

func emitHWCounters(n *snapshot.Node, s metric.Sink) {
	if n.HWCounters == nil {
		return
	}
	var emitted []*metric.Desc // of a port
	var descs statDescs
	for i := range n.HWCounters.Devices {
		d := &n.HWCounters.Devices[i]
		names := descs.ofDriver(d.Driver)
		emitDeviceStats(s, d, names)
		for j := range d.Ports {
			p := &d.Ports[j]
			port := strconv.Itoa(p.Number)
			emitted = emitted[:0]
			for k, st := range p.Stats {
				desc := descs.at(k, st.Name)
				if slices.Contains(emitted, desc) { // a driver with an old name and a new one
					desc = nil
				}
				if st.Value == notDecoded || p.InfiniBand && st.Value == 0 && desc != nil && desc.Sparse {
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

// emitDeviceStats emits the counters of a device. Counters that a driver has only there (congestion counters of mana,
// all of mlx5 in switchdev mode and of mlx4 with old firmware) are those of its port if it has exactly one.
func emitDeviceStats(s metric.Sink, d *snapshot.DeviceCounters, names map[string]*metric.Desc) {
	for _, st := range d.Stats {
		desc := transportDesc(names, st.Name)
		switch {
		case st.Value == notDecoded:
		case desc != nil && len(d.Ports) == 1 && !counts(d.Ports[0].Stats, names, desc) &&
			!(d.Ports[0].Traffic && isTraffic(desc)):
			s.Emit(desc, float64(st.Value), d.Name, strconv.Itoa(d.Ports[0].Number))
		case wanted(d.Driver, st.Name):
			s.Emit(deviceHWStat, float64(st.Value), d.Name, statName(st.Name))
		}
	}
}

// counts reports whether one of the counters has the metric.
func counts(stats []wire.Stat, names map[string]*metric.Desc, d *metric.Desc) bool {
	return slices.ContainsFunc(stats, func(st wire.Stat) bool { return transportDesc(names, st.Name) == d })
}

// transportDesc returns the metric of a driver's counter. mlx5 prefixes the counters of a representor with vport_.
func transportDesc(names map[string]*metric.Desc, stat string) *metric.Desc {
	stat = strings.TrimPrefix(stat, "vport_")
	if d := names[stat]; d != nil {
		return d
	}
	return Common[stat]
}

// statDescs finds the metrics of the counters of ports. Ports of a driver mostly have the same counters in the same
// order, so that those of the first are looked up.
type statDescs struct {
	family string
	names  map[string]*metric.Desc // of the family
	found  []statDesc              // by position in a port
}

type statDesc struct {
	stat string
	desc *metric.Desc
}

// ofDriver returns the names of a driver's counters. at is of this driver until the next call.
func (s *statDescs) ofDriver(driver string) map[string]*metric.Desc {
	if f := familyOf(driver); f != s.family {
		*s = statDescs{family: f, names: transportNames[f], found: s.found[:0]}
	}
	return s.names
}

// at is transportDesc of the counter at a position. Each position of a port is asked for, in order.
func (s *statDescs) at(position int, stat string) *metric.Desc {
	if position == len(s.found) {
		s.found = append(s.found, statDesc{})
	}
	f := &s.found[position]
	if f.stat != stat {
		*f = statDesc{stat, transportDesc(s.names, stat)}
	}
	return f.desc
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
	case "TxPkt", "TxWords", "TxWait", "TxDropped", "TxUnsupVL", "RxPkt", "RxWords", "RxVL15Dropped", "SwLinkDown",
		"SwLinkUp", "UnknownFrame",
		"XmitDscd", "LinkWidthDowngrade", "LinkDown", "LinkUp", "RcResend", "RcAck", "RnrNak", "SeqNak", "RcTimeOut",
		"RdmaSeq", "OtherNaks", "LoopPkts",
		"DmaWait", "PioWait", "TxFlowStall", "RxFlowStall", "TxCpErr", "LcbCrc", "LcbSeqCrc", "LcbRxCrc":
		return true
	}
	return false
}
