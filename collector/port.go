package collector

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

var (
	portInfo = &Desc{
		Name: "rdma_port_info", Type: gauge, Scope: scopePort,
		Help:   "Port of an RDMA device, always 1; one series for each member of a bond. role: compute shares a PCIe switch or root port with a GPU, other does not, unknown cannot be told.",
		Labels: []string{"device", "port", "netdev", "link_layer", "role"},
		Source: "ports/N/link_layer; RDMA netlink PORT_GET ndev_name, device/net/*/dev_port, gid_attrs/ndevs",
	}
	portLogicalState = &Desc{
		Name: "rdma_port_state_id", Type: gauge, Scope: scopePort,
		Help:   "Logical state of the port: 1 DOWN, 2 INIT, 3 ARMED, 4 ACTIVE, 5 ACTIVE_DEFER.",
		Labels: []string{"device", "port"},
		Source: "RDMA netlink PORT_GET, ports/N/state; enum ib_port_state",
	}
	portPhysicalState = &Desc{
		Name: "rdma_port_physical_state_id", Type: gauge, Scope: scopePort,
		Help:   "Physical state of the port: 1 Sleep, 2 Polling, 3 Disabled (RoCE drivers say so of any port that is down), 4 PortConfigurationTraining, 5 LinkUp, 6 LinkErrorRecovery, 7 PhyTest; Omni-Path: 9 offline, 11 test.",
		Labels: []string{"device", "port"},
		Source: "RDMA netlink PORT_GET, ports/N/phys_state; enum ib_port_phys_state",
	}
	portWasActive = &Desc{
		Name: "rdma_port_was_active", Type: gauge, Scope: scopePort,
		Help:   "Whether the exporter has seen the port ACTIVE.",
		Labels: []string{"device", "port"},
		Source: "ports/N/state over time",
	}
	portAdminUp = &Desc{
		Name: "rdma_port_admin_up", Type: gauge, Scope: scopePort,
		Help:   "Whether the netdev of the port is administratively up (IFF_UP).",
		Labels: []string{"device", "port", "netdev"},
		Source: "/sys/class/net/NETDEV/flags",
	}
	portCarrierChanges = &Desc{
		Name: "rdma_port_carrier_changes_total", Type: counter, Scope: scopePort,
		Help:   "Times the carrier of the port's netdev came or went since the netdev was made; setting it up or down counts as well.",
		Labels: []string{"device", "port", "netdev"},
		Source: "/sys/class/net/NETDEV/carrier_changes",
	}
	portRate = &Desc{
		Name: "rdma_port_rate_bytes_per_second", Type: gauge, Unit: "bytes per second", Scope: scopePort,
		Help:   "Data rate of the link; absent while there is no link or the driver does not tell it truly.",
		Labels: []string{"device", "port"},
		Source: "ports/N/rate; ethtool netlink LINKMODES speed on Ethernet",
	}
	portWidth = &Desc{
		Name: "rdma_port_width_lanes", Type: gauge, Unit: "lanes", Scope: scopePort,
		Help:   "Lanes that the link uses; absent while there is no link or the driver does not tell.",
		Labels: []string{"device", "port"},
		Source: "ports/N/rate; ethtool netlink LINKMODES lanes on Ethernet",
	}
	portLID = &Desc{
		Name: "rdma_port_lid", Type: gauge, Scope: scopePort,
		Help:   "Local identifier of an InfiniBand port, 0 or 65535 while none is assigned.",
		Labels: []string{"device", "port"},
		Source: "RDMA netlink PORT_GET, ports/N/lid",
	}
	portSMLID = &Desc{
		Name: "rdma_port_sm_lid", Type: gauge, Scope: scopePort,
		Help:   "Local identifier of the subnet manager that configured an InfiniBand port.",
		Labels: []string{"device", "port"},
		Source: "RDMA netlink PORT_GET, ports/N/sm_lid",
	}
	portLMC = &Desc{
		Name: "rdma_port_lid_mask_control", Type: gauge, Scope: scopePort,
		Help:   "LID mask control of an InfiniBand port, 0 to 7: the port answers to 2^LMC LIDs.",
		Labels: []string{"device", "port"},
		Source: "RDMA netlink PORT_GET, ports/N/lid_mask_count",
	}
	portIsSM = &Desc{
		Name: "rdma_port_is_subnet_manager", Type: gauge, Scope: scopePort,
		Help:   "Whether a subnet manager runs on this InfiniBand port.",
		Labels: []string{"device", "port"},
		Source: "RDMA netlink PORT_GET, ports/N/cap_mask bit 1 (IsSM), IBA PortInfo CapabilityMask",
	}
	portGIDs = &Desc{
		Name: "rdma_port_gid_entries", Type: gauge, Scope: scopePort,
		Help:   "GID table entries in use by type: ib, roce_v1, roce_v2.",
		Labels: []string{"device", "port", "type"},
		Source: "ports/N/gid_attrs/types",
	}
	portPKeys = &Desc{
		Name: "rdma_port_pkey_entries", Type: gauge, Scope: scopePort,
		Help:   "P_Key table entries in use. The count ends at the eighth empty entry in a row.",
		Labels: []string{"device", "port"},
		Source: "ports/N/pkeys",
	}

	portDescs = []*Desc{
		portInfo, portLogicalState, portPhysicalState, portWasActive, portAdminUp, portCarrierChanges, portRate, portWidth,
		portLID, portSMLID, portLMC, portIsSM, portGIDs, portPKeys, portDownReason,
		portMTU, portRoCEMTU, portRoCEv2GIDs, portRoCEv2GIDIndex, wireInfo, portPKeysMissing,
	}
)

const (
	stateActive      = 4
	stateActiveDefer = 5
	physicalLinkUp   = 5
)

// portState is what outlives a round of one port.
type portState struct {
	at      time.Time // when the slow facts were read
	state   uint64    // at that reading
	slow    snapshot.Port
	ethtool host.LinkModes // of the first netdev
	wires   wires
}

func isActive(p *snapshot.Port) bool {
	return p.State != nil && (*p.State == stateActive || *p.State == stateActiveDefer)
}

// read reads one port of d.
func (st *portState) read(r *reader, d *snapshot.Device, n int) snapshot.Port {
	dir := portDir(d.Name, n)
	names, err := r.h.Files.Attributes(dir)
	if err != nil {
		r.issue(err)
		return snapshot.Port{Number: n}
	}
	p, told, netdev := r.portState(d, n)
	up := isActive(&p)
	state := uint64(0)
	if p.State != nil {
		state = *p.State
	}
	now := r.h.Now()
	if state != st.state && !st.at.IsZero() { // a link event: what failed may answer now, what was the speed may not be
		st.ethtool = host.LinkModes{}
		r.quarantine.release(dir)
		r.quarantine.release(netlinkDir(d.Name, n))
	}
	if st.at.IsZero() || now.Sub(st.at) >= slowInterval || state != st.state {
		st.readSlow(r, d, n, told, netdev, up)
		st.at, st.state = now, state
	} else if !up {
		st.slow.Netdev = r.withAdmin(st.slow.Netdev)
	}
	if !told {
		p.LID, p.SMLID, p.LMC, p.Capabilities = st.slow.LID, st.slow.SMLID, st.slow.LMC, st.slow.Capabilities
	}
	p.LinkLayer, p.GIDs, p.PKeys, p.Netdev = st.slow.LinkLayer, st.slow.GIDs, st.slow.PKeys, r.withCarrier(st.slow.Netdev)
	p.RoCEv2, p.Wire, p.PKeyTable = st.slow.RoCEv2, st.slow.Wire, st.slow.PKeyTable
	physicallyUp := p.LinkLayer == "InfiniBand" && p.PhysicalState != nil && *p.PhysicalState == physicalLinkUp
	if up || physicallyUp {
		st.readRate(r, d, &p)
	}
	if slices.Contains(names, "counters") {
		p.Counters = r.pma(dir)
	}
	return p
}

// portState asks the driver once by netlink for what costs it one query a file in sysfs. Where netlink told all, told is
// true; else the states alone are read, because each further file is another query.
func (r *reader) portState(d *snapshot.Device, n int) (p snapshot.Port, told bool, netdev string) {
	p.Number = n
	a, ok := r.portGet(d.Name, n)
	if ok && a.State != nil && *a.State <= stateActiveDefer {
		p.State, p.PhysicalState, p.LID, p.SMLID, p.LMC, p.Capabilities = a.State, a.PhysicalState, a.LID, a.SMLID, a.LMC, a.Capabilities
		return p, true, a.Netdev
	}
	dir := portDir(d.Name, n)
	p.State, p.PhysicalState = r.number(dir, "state"), r.number(dir, "phys_state")
	if p.State != nil && *p.State > stateActiveDefer {
		r.issue(host.ErrGarbled(dir+"/state", fmt.Append(nil, *p.State)))
		p.State = nil
	}
	return p, false, ""
}

// portGet asks for the port by netlink.
func (r *reader) portGet(name string, n int) (host.RDMAPort, bool) {
	dir, now := netlinkDir(name, n), r.h.Now()
	if r.quarantine.held(dir, "port", now) {
		return host.RDMAPort{}, false
	}
	a, err := r.h.RDMA.Port(r.ctx, name, n)
	r.quarantine.note(dir, "port", now, err)
	return a, err == nil
}

// netlinkDir names the requests for a port, as captures do.
func netlinkDir(name string, n int) string { return "rdma/" + name + "/" + strconv.Itoa(n) }

// readSlow reads what changes with the link or the configuration only.
func (st *portState) readSlow(r *reader, d *snapshot.Device, n int, told bool, netdev string, up bool) {
	dir := portDir(d.Name, n)
	st.slow = snapshot.Port{LinkLayer: r.text(dir, "link_layer")}
	if !told {
		st.slow.LID, st.slow.SMLID = r.number(dir, "lid"), r.number(dir, "sm_lid")
		st.slow.LMC, st.slow.Capabilities = r.number(dir, "lid_mask_count"), r.number(dir, "cap_mask")
	}
	st.slow.GIDs, st.slow.RoCEv2 = r.gids(dir, st.slow.LinkLayer)
	st.slow.PKeys, st.slow.PKeyTable = r.pkeys(dir)
	st.slow.Netdev = r.withAdmin(r.netdevs(d, n, st.slow.LinkLayer, netdev))
	r.readMTUs(st.slow.Netdev)
	st.wires.read(r, d, n, &st.slow)
	if st.slow.LinkLayer == "Ethernet" && len(st.slow.Netdev) > 0 {
		if m, made := askEthtool(r, r.h.Ethtool.LinkModes, st.slow.Netdev[0].Name); made {
			st.ethtool = m
		}
	}
	if st.slow.LinkLayer == "Ethernet" && !up {
		r.downReasons(st.slow.Netdev)
	}
}

// readRate sets rate and lanes of a port with a link.
func (st *portState) readRate(r *reader, d *snapshot.Device, p *snapshot.Port) {
	if st.ethtool.Speed != nil {
		bits := float64(*st.ethtool.Speed) * 1e6
		p.Rate, p.Lanes = &bits, st.ethtool.Lanes
		if p.Lanes != nil || isGeneric(d.Driver) {
			return
		}
	}
	if isGeneric(d.Driver) && p.LinkLayer == "Ethernet" {
		return
	}
	dir := portDir(d.Name, p.Number)
	b, ok := r.bytes(dir, "rate")
	if !ok {
		return
	}
	rate, ok := parseRate(string(b))
	if !ok {
		r.issue(host.ErrGarbled(dir+"/rate", b))
		return
	}
	if printsUnknown(d.HCAType, p.LinkLayer, rate) {
		return
	}
	p.Lanes = &rate.lanes
	if p.Rate == nil {
		p.Rate = &rate.bits
	}
}

// askEthtool makes an ethtool request for a netdev, which takes rtnl. It is not made if an earlier one is slow or has not
// returned; what the kernel or the driver does not know is the zero answer.
func askEthtool[T any](r *reader, ask func(context.Context, string) (T, error), netdev string) (answer T, made bool) {
	var got T
	var err error
	if refused := r.h.RTNL.Do(r.ctx, func() { got, err = ask(r.ctx, netdev) }); refused != nil {
		r.issue(refused) // got may still be written to
		return answer, false
	}
	if reason := host.ReasonOf(err); err != nil && reason != host.Absent && reason != host.Unsupported {
		r.issue(err)
	}
	return got, true
}

// gids counts the GID table entries in use, those that have a type, and sorts the RoCE v2 ones.
func (r *reader) gids(dir, linkLayer string) (map[string]uint64, map[string]snapshot.GIDFamily) {
	names, err := r.h.Files.List(dir + "/gids")
	if err != nil {
		return nil, nil
	}
	count := map[string]uint64{}
	switch linkLayer {
	case "InfiniBand":
		count["ib"] = 0
	case "Ethernet":
		count["roce_v1"], count["roce_v2"] = 0, 0
	default:
		return nil, nil
	}
	var v2 []string
	for _, n := range names {
		t, ok := r.entry(dir+"/gid_attrs/types", n)
		switch {
		case !ok:
		case linkLayer == "InfiniBand":
			count["ib"]++
		case t == "RoCE v2":
			count["roce_v2"]++
			v2 = append(v2, n)
		default:
			count["roce_v1"]++
		}
	}
	return count, r.roceV2GIDs(dir, v2)
}

// emptyPKeys ends the P_Key table: on mlx5 each entry costs a firmware command, and subnet managers fill it from the start.
const emptyPKeys = 8

// pkeys counts the P_Keys and lists them; no list where one cannot be read. iWARP ports have no table.
func (r *reader) pkeys(dir string) (*uint64, []uint16) {
	names, err := r.h.Files.List(dir + "/pkeys")
	if err != nil {
		return nil, nil
	}
	names = slices.Clone(names)
	slices.SortFunc(names, byNumber)
	whole, table := true, []uint16{}
	var n, empty uint64
	for _, name := range names {
		v := r.number(dir+"/pkeys", name)
		if v == nil {
			whole = false
		}
		if v != nil && *v != 0 {
			n++
			empty = 0
			table = append(table, uint16(*v))
		} else if empty++; empty == emptyPKeys {
			break
		}
	}
	if !whole {
		return &n, nil
	}
	return &n, table
}

func emitPort(s Sink, d *snapshot.Device, p *snapshot.Port, port string) {
	if len(p.Netdev) == 0 {
		s.Emit(portInfo, 1, d.Name, port, "", p.LinkLayer, d.Role)
	}
	for _, nd := range p.Netdev {
		s.Emit(portInfo, 1, d.Name, port, nd.Name, p.LinkLayer, d.Role)
		if nd.DownReason != "" {
			s.Emit(portDownReason, 1, d.Name, port, nd.Name, nd.DownReason, nd.DownDetail)
		}
		emitUint(s, portCarrierChanges, nd.CarrierChanges, d.Name, port, nd.Name)
		if nd.Admin != nil {
			s.Emit(portAdminUp, boolValue(*nd.Admin), d.Name, port, nd.Name)
		}
	}
	emitUint(s, portLogicalState, p.State, d.Name, port)
	emitUint(s, portPhysicalState, p.PhysicalState, d.Name, port)
	s.Emit(portWasActive, boolValue(p.WasActive), d.Name, port)
	if p.Rate != nil {
		s.Emit(portRate, *p.Rate/8, d.Name, port)
	}
	emitUint(s, portWidth, p.Lanes, d.Name, port)
	if p.LinkLayer == "InfiniBand" {
		emitUint(s, portLID, p.LID, d.Name, port)
		emitUint(s, portSMLID, p.SMLID, d.Name, port)
		emitUint(s, portLMC, p.LMC, d.Name, port)
		if p.Capabilities != nil {
			s.Emit(portIsSM, float64(*p.Capabilities>>1&1), d.Name, port)
		}
	}
	for _, t := range []string{"ib", "roce_v1", "roce_v2"} {
		if n, ok := p.GIDs[t]; ok {
			s.Emit(portGIDs, float64(n), d.Name, port, t)
		}
	}
	emitUint(s, portPKeys, p.PKeys, d.Name, port)
	emitUint(s, portPKeysMissing, p.PKeysMissing, d.Name, port)
	emitMTU(s, d, p, port)
	emitRoCEv2GIDs(s, d, p, port)
}
