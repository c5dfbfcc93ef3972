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
		Help:   "Port of an RDMA device, always 1; one series for each member of a bond. role: compute shares a PCIe switch or root port with a GPU, other does not, nvlink_management manages NVLink switches and has nothing else here, unknown cannot be told; a pin overrides.",
		Labels: []string{"device", "port", "netdev", "link_layer", "role"},
		Source: "ports/N/link_layer; RDMA netlink PORT_GET ndev_name, device/net/*/dev_port, gid_attrs/ndevs; PCI vpd",
	}
	portLogicalState = &Desc{
		Name: "rdma_port_state_id", Asks: host.SourcePortFiles.Name(), Type: gauge, Scope: scopePort,
		Help:   "Logical state of the port: 1 DOWN, 2 INIT, 3 ARMED, 4 ACTIVE, 5 ACTIVE_DEFER.",
		Labels: []string{"device", "port"},
		Source: "RDMA netlink PORT_GET, ports/N/state; enum ib_port_state",
	}
	portPhysicalState = &Desc{
		Name: "rdma_port_physical_state_id", Asks: host.SourcePortFiles.Name(), Type: gauge, Scope: scopePort,
		Help:   "Physical state of the port: 1 Sleep, 2 Polling, 3 Disabled (RoCE drivers say so of any port that is down), 4 PortConfigurationTraining, 5 LinkUp, 6 LinkErrorRecovery, 7 PhyTest; Omni-Path: 9 offline, 11 test.",
		Labels: []string{"device", "port"},
		Source: "RDMA netlink PORT_GET, ports/N/phys_state; enum ib_port_phys_state",
	}
	portWasActive = &Desc{
		Name: "rdma_port_was_active", Type: gauge, Scope: scopePort,
		Help:   "Whether the exporter has seen the port ACTIVE, in this run or an earlier one that the state directory knows of.",
		Labels: []string{"device", "port"},
		Source: "ports/N/state over time; the state directory",
	}
	portPinnedActive = &Desc{
		Name: "rdma_port_pinned_active", Beside: "rdma_port_state_id", Type: gauge, Scope: scopePort,
		Help:   "1 where the configuration says that the port has to be ACTIVE.",
		Labels: []string{"device", "port"},
		Source: "the configuration file, active",
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
		Source: "/sys/class/net/NETDEV/carrier_up_count, carrier_down_count",
	}
	portTransitions = &Desc{
		Name: "rdma_port_link_transitions_total", Type: counter, Scope: scopePort,
		Help:   "Times that the link came up or went down since the exporter first saw the port, however short; what was done by hand is not counted, a carrier that the driver takes away for a new configuration (mlx5: MTU, ring size) is. netdev is empty for InfiniBand ports, of which the readings of the state tell.",
		Labels: []string{"device", "port", "netdev", "to"},
		Source: "/sys/class/net/NETDEV/carrier_up_count, carrier_down_count; rtnetlink RTNLGRP_LINK, flags; RDMA netlink PORT_GET, ports/N/state",
	}
	portDownEvents = &Desc{
		Name: "rdma_port_link_down_events_total", Type: counter, Scope: scopePort,
		Help:   "Times that the physical link of the port's netdev went down, as the driver counts them; read each minute and when the link changes.",
		Labels: []string{"device", "port", "netdev"},
		Source: "ethtool netlink LINKSTATE_GET, ext_down_cnt (since Linux 6.12)",
	}
	portRate = &Desc{
		Name: "rdma_port_rate_bytes_per_second", Of: "rdma_port_rate_bytes_per_second", Type: gauge, Unit: "bytes per second", Scope: scopePort,
		Help:   "Data rate of the link; absent while there is no link or the driver does not tell it truly.",
		Labels: []string{"device", "port"},
		Source: "ports/N/rate; ethtool netlink LINKMODES speed on Ethernet",
	}
	portWidth = &Desc{
		Name: "rdma_port_width_lanes", Of: "rdma_port_rate_bytes_per_second", Type: gauge, Unit: "lanes", Scope: scopePort,
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
		Name: "rdma_port_sm_lid", Of: infinibandPorts, Asks: host.SourcePortFiles.Name(), Type: gauge, Scope: scopePort,
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
		Name: "rdma_port_pkey_entries", Asks: host.SourcePortTables.Name(), Type: gauge, Scope: scopePort,
		Help:   "P_Key table entries in use. The count ends at the eighth empty entry in a row.",
		Labels: []string{"device", "port"},
		Source: "ports/N/pkeys",
	}

	portDescs = []*Desc{
		portInfo, portLogicalState, portPhysicalState, portWasActive, portPinnedActive, portAdminUp, portCarrierChanges, portTransitions, portDownEvents, portRate, portWidth,
		portLID, portSMLID, portLMC, portIsSM, portGIDs, portPKeys, portDownReason,
		portMTU, portRoCEMTU, portRoCEv2GIDs, portRoCEv2GIDIndex, wireInfo, wireDuplicate, portPKeysMissing,
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
	state   uint64    // at the last reading
	changed bool      // it has changed since the slow facts were read
	slow    snapshot.Port
	ethtool map[string]host.LinkModes // by netdev
	wires   portWires

	carriers uint64 // times that the carriers of its netdevs came and went

	last   snapshot.Port // as it was when its state was last read
	lastAt time.Time
}

func isActive(p *snapshot.Port) bool {
	return p.State != nil && (*p.State == stateActive || *p.State == stateActiveDefer)
}

// read reads one port of d.
func (st *portState) read(r *reader, d *snapshot.Device, n int) snapshot.Port {
	dir := portDir(d.Name, n)
	r.begin(host.SourceIdentity)
	names, err := r.h.Files.Attributes(dir)
	if err != nil {
		r.issue(err)
		return snapshot.Port{Number: n}
	}
	if st.at.IsZero() { // the core tells it, and it tells which lock the state takes
		st.slow.LinkLayer = r.text(dir, "link_layer")
	}
	p, ok := st.fresh(r, d, n)
	if !ok {
		p = st.kept(r, d, n)
	}
	p.LinkLayer, p.GIDs, p.PKeys, p.Netdev = st.slow.LinkLayer, st.slow.GIDs, st.slow.PKeys, r.withLink(st.slow.Netdev)
	p.RoCEv2, p.Wire, p.PKeyTable = st.slow.RoCEv2, st.slow.Wire, st.slow.PKeyTable
	st.withLinks(r, p.Netdev)
	st.carrierEvent(r, d, n, p.Netdev)
	if slices.Contains(names, "counters") {
		p.Counters = r.pma(dir)
	}
	return p
}

// takesRTNL says whether each query of the port takes rtnl.
func (st *portState) takesRTNL(d *snapshot.Device) bool {
	return isGeneric(d.Driver) && st.slow.LinkLayer == "Ethernet"
}

// fresh asks for the state, and for what goes with it. It is not ok where rtnl is in the way.
func (st *portState) fresh(r *reader, d *snapshot.Device, n int) (snapshot.Port, bool) {
	p, told, netdev, ok := st.query(r, d, n)
	if !ok {
		return p, false
	}
	up := isActive(&p)
	st.linkEvent(r, d, &p)
	if st.changed && r.deferrable() || r.due(st.at) {
		st.readSlow(r, d, &p, told, netdev)
		st.at, st.changed = r.now(), false
	}
	if !told {
		p.LID, p.SMLID, p.LMC, p.Capabilities = st.slow.LID, st.slow.SMLID, st.slow.LMC, st.slow.Capabilities
	}
	p.LinkLayer = st.slow.LinkLayer
	physicallyUp := p.LinkLayer == "InfiniBand" && p.PhysicalState != nil && *p.PhysicalState == physicalLinkUp
	if up || physicallyUp {
		st.readRate(r, d, &p)
	}
	if p.State != nil {
		st.last, st.lastAt = p, r.now()
	}
	return p, true
}

// linkEvent forgets what a change of the state makes void: what failed may answer now, what was the speed may not be.
func (st *portState) linkEvent(r *reader, d *snapshot.Device, p *snapshot.Port) {
	var state uint64
	if p.State != nil {
		state = *p.State
	}
	if state == st.state {
		return
	}
	st.state, st.changed = state, true
	if st.at.IsZero() {
		return
	}
	st.ethtool = nil
	st.slow.Netdev = slices.Clone(st.slow.Netdev)
	for i := range st.slow.Netdev {
		st.slow.Netdev[i].DownReason, st.slow.Netdev[i].DownDetail = "", ""
	}
	r.quarantine.release(portDir(d.Name, p.Number))
	r.quarantine.release(netlinkDir(d.Name, p.Number))
	for i := range st.slow.Netdev {
		r.quarantine.release(ethtoolDir(st.slow.Netdev[i].Name))
	}
}

// carrierEvent lets what failed be asked again when the carrier of a netdev has come or gone: with a state that cannot be read, nothing
// else tells of a link event.
func (st *portState) carrierEvent(r *reader, d *snapshot.Device, n int, netdevs []snapshot.Netdev) {
	var changes uint64
	for i := range netdevs {
		if nd := &netdevs[i]; nd.CarrierUps != nil && nd.CarrierDowns != nil {
			changes += *nd.CarrierUps + *nd.CarrierDowns
		}
	}
	if changes != st.carriers && st.carriers != 0 {
		r.quarantine.release(portDir(d.Name, n))
		r.quarantine.release(netlinkDir(d.Name, n))
	}
	st.carriers = changes
}

// kept is the port as it was last read, while its state cannot be asked for. What takes no rtnl is read as ever.
func (st *portState) kept(r *reader, d *snapshot.Device, n int) snapshot.Port {
	p := snapshot.Port{Number: n, Unread: true}
	if st.at.IsZero() {
		st.readSlow(r, d, &p, false, "")
		st.at, st.changed = r.now(), true
	}
	if st.lastAt.IsZero() {
		return p
	}
	if p.Age = r.now().Sub(st.lastAt); p.Age <= lastStateTime {
		age := p.Age
		p = st.last
		p.Age = age
	}
	return p
}

// query asks the driver once by netlink for what costs it one query a file in sysfs. Where netlink told all, told is
// true; else the states alone are read, because each further file is another query. It is not ok where rtnl is in the way.
func (st *portState) query(r *reader, d *snapshot.Device, n int) (p snapshot.Port, told bool, netdev string, ok bool) {
	p.Number = n
	a, told, ok := r.portGet(d.Name, n, st.takesRTNL(d))
	if !ok {
		return p, false, "", false
	}
	if told && a.State != nil && *a.State <= stateActiveDefer {
		p.State, p.PhysicalState, p.LID, p.SMLID, p.LMC, p.Capabilities = a.State, a.PhysicalState, a.LID, a.SMLID, a.LMC, a.Capabilities
		return p, true, a.Netdev, true
	}
	dir := portDir(d.Name, n)
	if st.takesRTNL(d) {
		var both []*uint64
		if both, ok = r.numbersUnderRTNL(host.SourcePortFiles, dir, "state", "phys_state"); !ok {
			return p, false, "", false
		}
		p.State, p.PhysicalState = both[0], both[1]
	} else {
		r.begin(host.SourcePortFiles)
		p.State, p.PhysicalState = r.number(dir, "state"), r.number(dir, "phys_state")
	}
	if p.State != nil && *p.State > stateActiveDefer {
		r.issue(host.ErrGarbled(dir+"/state", fmt.Append(nil, *p.State)))
		p.State = nil
	}
	return p, false, "", true
}

// portGet asks for the port by netlink. It is not ok where rtnl is in the way.
func (r *reader) portGet(name string, n int, rtnl bool) (a host.RDMAPort, told, ok bool) {
	dir, now := netlinkDir(name, n), r.now()
	if r.quarantine.held(dir, "port", now) {
		return a, false, true
	}
	var err error
	if rtnl {
		ctx, rdma := r.ctx, r.h.RDMA
		var late host.RDMAPort // may still be written to after a refusal
		var lateErr error
		if r.underRTNL(host.SourcePortState, 1, func() { late, lateErr = rdma.Port(ctx, name, n) }) != nil {
			return a, false, false
		}
		a, err = late, lateErr
	} else {
		r.begin(host.SourcePortState)
		r.asked++
		a, err = r.h.RDMA.Port(r.ctx, name, n)
	}
	r.noteNetlink(dir, "port", now, err)
	return a, err == nil, true
}

// noteNetlink takes the outcome of a request that has another way where it fails. Not being permitted is worth telling.
func (r *reader) noteNetlink(dir, name string, now time.Time, err error) {
	r.quarantine.note(dir, name, now, err)
	if err != nil && host.NotPermitted(err) {
		r.issue(err)
	}
}

// ethtoolDir names the requests for a netdev, as captures do.
func ethtoolDir(netdev string) string { return "ethtool/" + netdev }

// netlinkDir names the requests for a port, as captures do.
func netlinkDir(name string, n int) string { return "rdma/" + name + "/" + strconv.Itoa(n) }

// readSlow reads what changes with the link or the configuration only.
func (st *portState) readSlow(r *reader, d *snapshot.Device, p *snapshot.Port, told bool, netdev string) {
	dir := portDir(d.Name, p.Number)
	r.begin(host.SourceIdentity)
	layer := st.slow.LinkLayer
	if !st.at.IsZero() {
		layer = r.text(dir, "link_layer")
	}
	st.slow = snapshot.Port{LinkLayer: layer}
	if !told && p.State != nil && !st.takesRTNL(d) { // each is the query that the state was, and generic ports have none
		r.begin(host.SourcePortFiles)
		st.slow.LID, st.slow.SMLID = r.number(dir, "lid"), r.number(dir, "sm_lid")
		st.slow.LMC, st.slow.Capabilities = r.number(dir, "lid_mask_count"), r.number(dir, "cap_mask")
	}
	r.begin(host.SourcePortTables)
	st.slow.GIDs, st.slow.RoCEv2 = r.gids(dir, st.slow.LinkLayer)
	st.slow.PKeys, st.slow.PKeyTable = r.pkeys(dir)
	r.begin(host.SourceNetdev)
	st.slow.Netdev = r.withLink(r.netdevs(d, p.Number, st.slow.LinkLayer, netdev))
	r.readMTUs(st.slow.Netdev)
	st.wires.read(r, d, p.Number, &st.slow, !p.Unread)
	if p.Unread || st.slow.LinkLayer != "Ethernet" { // rtnl is in the way, or has nothing to tell
		return
	}
	st.askLinkModes(r)
	r.linkStates(st.slow.Netdev, isActive(p))
}

// askLinkModes asks for the link modes of each netdev. Those of one that was not asked now are kept.
func (st *portState) askLinkModes(r *reader) {
	kept := st.ethtool
	st.ethtool = map[string]host.LinkModes{}
	for _, nd := range st.slow.Netdev {
		m, made := askEthtool(r, host.SourceLinkModes, r.h.Ethtool.LinkModes, nd.Name)
		if !made {
			m = kept[nd.Name]
		}
		st.ethtool[nd.Name] = m
	}
}

// readRate sets rate and lanes of a port with a link.
func (st *portState) readRate(r *reader, d *snapshot.Device, p *snapshot.Port) {
	for _, nd := range st.slow.Netdev { // of a bond, the first member with a link
		m := st.ethtool[nd.Name]
		if m.Speed == nil || p.LinkLayer != "Ethernet" {
			continue
		}
		bits := float64(*m.Speed) * 1e6
		p.Rate, p.Lanes = &bits, m.Lanes
		if p.Lanes != nil {
			return
		}
		break
	}
	if st.takesRTNL(d) {
		return
	}
	dir := portDir(d.Name, p.Number)
	r.begin(host.SourcePortFiles)
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
// returned, nor if the driver refuses it; what the kernel or the driver does not know is the zero answer.
func askEthtool[T any](r *reader, s host.Source, ask func(context.Context, string) (T, error), netdev string) (answer T, made bool) {
	ctx, now := r.ctx, r.now()
	if r.quarantine.held(ethtoolDir(netdev), s.Name(), now) {
		return answer, true
	}
	var got T
	var err error
	if r.underRTNL(s, 1, func() { got, err = ask(ctx, netdev) }) != nil {
		return answer, false // got may still be written to
	}
	r.quarantine.note(ethtoolDir(netdev), s.Name(), now, err)
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
		s.Emit(portInfo, 1, d.Name, port, "", p.LinkLayer, p.Role)
	}
	for _, nd := range p.Netdev {
		s.Emit(portInfo, 1, d.Name, port, nd.Name, p.LinkLayer, p.Role)
		if nd.DownReason != "" {
			s.Emit(portDownReason, 1, d.Name, port, nd.Name, nd.DownReason, nd.DownDetail)
		}
		if nd.CarrierUps != nil && nd.CarrierDowns != nil {
			s.Emit(portCarrierChanges, float64(*nd.CarrierUps+*nd.CarrierDowns), d.Name, port, nd.Name)
		}
		emitTransitions(s, nd.Transitions, d.Name, port, nd.Name)
		emitUint(s, portDownEvents, nd.DownEvents, d.Name, port, nd.Name)
		if nd.Admin != nil {
			s.Emit(portAdminUp, boolValue(*nd.Admin), d.Name, port, nd.Name)
		}
	}
	emitTransitions(s, p.Transitions, d.Name, port, "")
	emitUint(s, portLogicalState, p.State, d.Name, port)
	emitUint(s, portPhysicalState, p.PhysicalState, d.Name, port)
	s.Emit(portWasActive, boolValue(p.WasActive), d.Name, port)
	if p.PinnedActive {
		s.Emit(portPinnedActive, 1, d.Name, port)
	}
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

func emitTransitions(s Sink, t *snapshot.Transitions, labels ...string) {
	if t != nil {
		s.Emit(portTransitions, float64(t.Ups), append(labels, "up")...)
		s.Emit(portTransitions, float64(t.Downs), append(labels, "down")...)
	}
}
