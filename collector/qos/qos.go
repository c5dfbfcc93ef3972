// Package qos reads the lossless configuration of RDMA ports.
package qos

import (
	"strconv"
	"strings"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// qosDevice belongs to the reader of its device, one at a time.
type qosDevice struct {
	of *reading.Device // that the following is of
	// Name, board, address; the Ethernet ports of a physical function with the names of their netdevs.
	id    snapshot.Device
	state map[string]*qosNetdev
	ports map[int]*reading.Kept[*uint64]
}

// qosNetdev is the state of a netdev.
type qosNetdev struct {
	link uint64 // carrier changes at the last query
	last reading.Kept[snapshot.NetdevQoS]
}

// qosReading is a device and its data.
type qosReading struct {
	device  snapshot.Device
	netdevs []snapshot.NetdevQoS
	ports   []snapshot.PortQoS
}

// New returns the collector.
func New(with *shared.State) *shared.Collector {
	return &shared.Collector{
		Name:  "qos",
		Help:  "lossless configuration of RDMA ports: priority flow control, priorities, traffic classes, congestion notification",
		Descs: qosDescs,
		Read: shared.ReadDevices(with.Devices, "qos", newQoSDevice, readQoS, func(n *snapshot.Node, readings []qosReading) {
			n.QoS = qosSection(with.Site, readings)
		}),
		Emit: metric.EmitSection(func(n *snapshot.Node) *snapshot.QoS { return n.QoS }, emitQoS),
	}
}

func newQoSDevice() *qosDevice {
	return &qosDevice{state: map[string]*qosNetdev{}, ports: map[int]*reading.Kept[*uint64]{}}
}

// qosSection combines the data with the present configuration.
func qosSection(conf *shared.SiteConfig, readings []qosReading) *snapshot.QoS {
	out := &snapshot.QoS{}
	for i := range readings {
		r := &readings[i]
		out.Netdevs = append(out.Netdevs, r.netdevs...)
		for j, s := range conf.Subjects(&r.device)[1:] { // the first is the device
			p := r.ports[j]
			pins := conf.Settings(s)
			p.PinnedRoCE, p.PinnedCongestionControl = pins.RoCE, pins.CongestionControl
			out.Ports = append(out.Ports, p)
		}
	}
	return out
}

// readQoS reads one device. Virtual functions and sub-functions have the configuration of their port and are left out.
func readQoS(r *reading.Reader, d *reading.Device, st *qosDevice) (out qosReading, ok bool) {
	if st.of != d {
		st.of, st.id = d, shared.PortsOf(d, []snapshot.FunctionType{snapshot.Physical}, "Ethernet")
	}
	out.device = st.id
	for i := range st.id.Ports {
		p := &st.id.Ports[i]
		out.ports = append(out.ports, st.readPort(r, p.Number))
		for j := range p.Netdev {
			out.netdevs = append(out.netdevs, st.readNetdev(r, p.Number, p.Netdev[j].Name))
		}
	}
	return out, true
}

// readPort reads the MLNX_OFED setting for all RoCE packets of a port.
func (st *qosDevice) readPort(r *reading.Reader, n int) snapshot.PortQoS {
	p := counters.Entry(st.ports, n)
	if p.DueOf(r, shared.SlowInterval) {
		p.Keep(readTrafficClass(r.From(source.RoCEConfig), r.Device, n), r.Now())
	}
	return snapshot.PortQoS{Device: r.Device, Port: n, TrafficClass: p.Value}
}

// readNetdev queries a netdev's configuration each minute, and after a carrier change: a switch may have negotiated
// another one.
func (st *qosDevice) readNetdev(r *reading.Reader, n int, netdev string) snapshot.NetdevQoS {
	nd := counters.Entry(st.state, netdev)
	link := shared.CarrierChanges(r, netdev)
	changed := link != nd.link
	if changed {
		r.Quarantine.Release(dcbDir(netdev))
		r.Quarantine.Release(sysfs.NetDir + netdev)
	}
	if nd.last.DueOf(r, shared.SlowInterval) || changed && r.Deferrable() {
		q := &nd.last.Value
		q.Device, q.Port, q.Name = r.Device, n, netdev
		readDCB(r, q)
		readOFED(r, q)
		nd.last.Read(r.Now())
		nd.link = link
	}
	return nd.last.Value
}

// dcbDir names the requests for a netdev, as captures do.
func dcbDir(netdev string) string { return "dcb/" + netdev }

// readOFED reads the netdev files of MLNX_OFED. A firmware error shows as an empty file.
func readOFED(reader *reading.Reader, q *snapshot.NetdevQoS) {
	r := reader.From(source.RoCEConfig)
	dir := sysfs.NetDir + q.Name
	if t := r.Optional(dir + "/qos/trust"); t != "" {
		q.Trust = t
	}
	if _, err := r.Host.Files.List(dir + "/ecn"); err != nil {
		return
	}
	for p := range snapshot.Priorities {
		name := strconv.Itoa(p)
		q.Notification[p] = r.Count(dir + "/ecn/roce_np/enable/" + name)
		q.Reaction[p] = r.Count(dir + "/ecn/roce_rp/enable/" + name)
	}
	q.CNPDSCP = r.Count(dir + "/ecn/roce_np/cnp_dscp")
	q.CNPPriority = r.Count(dir + "/ecn/roce_np/cnp_802p_prio")
}

// readTrafficClass reads the traffic class set for all RoCE packets of a port; those for single addresses are left out.
// An empty file: none is set.
func readTrafficClass(r reading.Reads, device string, n int) *uint64 {
	return globalTrafficClass(r.Optional(sysfs.ClassDir + "/" + device + "/tc/" + strconv.Itoa(n) + "/traffic_class"))
}

// globalTrafficClass reads lines such as "Global tclass=106" and "src_ip=…,dst_ip=…,tclass=96".
func globalTrafficClass(text string) *uint64 {
	for line := range strings.Lines(text) {
		value, ok := strings.CutPrefix(strings.TrimSpace(line), "Global tclass=")
		if n, err := strconv.ParseUint(value, 10, 8); ok && err == nil {
			return &n
		}
	}
	return nil
}
