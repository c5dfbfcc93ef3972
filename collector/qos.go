package collector

import (
	"context"
	"path"
	"slices"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// qos keeps data that changes only with the configuration.
type qos struct {
	Options
	devices perDevice[qosDevice]
}

// qosDevice belongs to the lane of its device.
type qosDevice struct {
	at    time.Time       // when the following was read
	id    snapshot.Device // name, board, address; the Ethernet ports of a physical function with the names of their netdevs
	state map[string]*qosNetdev
	ports map[int]*qosPort

	quarantine quarantine
}

// qosNetdev is the state of a netdev.
type qosNetdev struct {
	at   time.Time // of the last query
	link uint64    // carrier changes at that time
	last snapshot.NetdevQoS
}

// qosPort is the state of a port.
type qosPort struct {
	at           time.Time
	trafficClass *uint64
}

// qosReading is a device and its data.
type qosReading struct {
	device  snapshot.Device
	netdevs []snapshot.NetdevQoS
	ports   []snapshot.PortQoS
}

func newQoS(o Options) *Collector {
	c := &qos{Options: o}
	return &Collector{
		Name:    "qos",
		Help:    "lossless configuration of RDMA ports: priority flow control, priorities, traffic classes, congestion notification",
		Default: true,
		Descs:   qosDescs,
		Read:    c.read,
		Emit:    emitQoS,
	}
}

func (c *qos) read(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error)) {
	names, err := c.Options.devices(h, n)
	if err != nil {
		done(err)
		return
	}
	states := c.devices.of(h, names, func() *qosDevice { return &qosDevice{state: map[string]*qosNetdev{}, ports: map[int]*qosPort{}} })
	eachDevice(ctx, h, n, "qos", names, func(r *reader, name string) (qosReading, bool) {
		return states[name].read(r, name)
	}, func(readings []qosReading) {
		n.QoS = c.section(readings)
	}, done)
}

// section combines the data with the present configuration.
func (c *qos) section(readings []qosReading) *snapshot.QoS {
	out := &snapshot.QoS{}
	for i := range readings {
		r := &readings[i]
		out.Netdevs = append(out.Netdevs, r.netdevs...)
		for j, s := range c.subjects(&r.device)[1:] { // the first is the device
			p := r.ports[j]
			pins := c.siteSettings(s)
			p.PinnedRoCE, p.PinnedCongestionControl = pins.RoCE, pins.CongestionControl
			out.Ports = append(out.Ports, p)
		}
	}
	return out
}

// read reads one device. Virtual functions and sub-functions have the configuration of their port and are left out.
func (st *qosDevice) read(r *reader, name string) (out qosReading, ok bool) {
	r.begin(host.SourceIdentity)
	r.quarantine = &st.quarantine
	if st.at.IsZero() || r.due(st.at) {
		var whole bool
		if st.id, whole = r.wiredIdentity(name, []snapshot.FunctionType{snapshot.Physical}, "Ethernet"); whole {
			st.at = r.now()
		} else {
			st.at = time.Time{}
		}
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

// wiredIdentity reads the names of a device and those of its ports with one of the link layers, with the names of their netdevs; none if
// the function is of another kind. whole is false while the kernel is still creating the ports.
func (r *reader) wiredIdentity(name string, kinds []snapshot.FunctionType, layers ...string) (d snapshot.Device, whole bool) {
	d.Name = name
	kind, function := r.function(classDir + "/" + name)
	if !slices.Contains(kinds, kind) {
		return d, true
	}
	d.FunctionType, d.BoardID = kind, r.optional(classDir+"/"+name+"/board_id")
	if function != "" {
		d.PCIAddress = path.Base(function)
	}
	numbers := r.ports(name)
	for _, n := range numbers {
		r.begin(host.SourceIdentity)
		p := snapshot.Port{Number: n, LinkLayer: r.optional(portDir(name, n) + "/link_layer")}
		if !slices.Contains(layers, p.LinkLayer) {
			continue
		}
		r.begin(host.SourceNetdev)
		p.Netdev = r.netdevs(&d, n, p.LinkLayer, "")
		d.Ports = append(d.Ports, p)
	}
	return d, len(numbers) > 0
}

// readPort reads the MLNX_OFED setting for all RoCE packets of a port.
func (st *qosDevice) readPort(r *reader, n int) snapshot.PortQoS {
	p := st.ports[n]
	if p == nil {
		p = &qosPort{}
		st.ports[n] = p
	}
	if r.due(p.at) {
		r.begin(host.SourceRoCEConfig)
		p.at, p.trafficClass = r.now(), r.trafficClass(r.device, n)
	}
	return snapshot.PortQoS{Device: r.device, Port: n, TrafficClass: p.trafficClass}
}

// readNetdev queries a netdev's configuration each minute, and after a carrier change: a switch may have negotiated another one.
func (st *qosDevice) readNetdev(r *reader, n int, netdev string) snapshot.NetdevQoS {
	nd := st.state[netdev]
	if nd == nil {
		nd = &qosNetdev{}
		st.state[netdev] = nd
	}
	r.begin(host.SourceNetdev)
	link := r.carrierChanges(netdev)
	changed := link != nd.link
	if changed {
		r.quarantine.release(dcbDir(netdev))
		r.quarantine.release(netDir + netdev)
	}
	if r.due(nd.at) || changed && r.deferrable() {
		nd.last.Device, nd.last.Port, nd.last.Name = r.device, n, netdev
		r.readDCB(&nd.last)
		r.readOFED(&nd.last)
		nd.at, nd.link = r.now(), link
	}
	return nd.last
}

// carrierChanges returns the carrier changes, without a lock.
func (r *reader) carrierChanges(netdev string) (n uint64) {
	for _, name := range []string{"carrier_up_count", "carrier_down_count"} {
		if c := r.count(netDir + netdev + "/" + name); c != nil {
			n += *c
		}
	}
	return n
}

// dcbDir names the requests for a netdev, as captures do.
func dcbDir(netdev string) string { return "dcb/" + netdev }
