package collector

import (
	"slices"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

const (
	stateActive      = 4
	stateActiveDefer = 5
	physicalLinkUp   = 5
)

// portState is the state of one port that outlives a round.
type portState struct {
	at      time.Time // when the slow facts were read
	state   uint64    // at the last reading
	changed bool      // state changed since the slow facts were read
	slow    snapshot.Port
	ethtool map[string]host.LinkModes // by netdev
	wires   portWires
	agent   ownAgent

	carriers uint64 // carrier changes of its netdevs

	last   snapshot.Port // at the last read of its state
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
	if st.at.IsZero() { // from the RDMA core; it decides which lock the state takes
		st.slow.LinkLayer = r.text(dir, "link_layer")
	}
	p, ok := st.fresh(r, d, n)
	if !ok {
		p = st.kept(r, d, n)
	}
	p.LinkLayer, p.GIDs, p.PKeys, p.Netdev = st.slow.LinkLayer, st.slow.GIDs, st.slow.PKeys, r.withLink(st.slow.Netdev)
	p.RoCEv2, p.Wire, p.PKeyTable = st.slow.RoCEv2, st.slow.Wire, st.slow.PKeyTable
	st.withLinks(r, p.Netdev)
	if p.LinkLayer == "InfiniBand" {
		r.withIPoIB(p.Netdev)
	}
	st.carrierEvent(r, d, n, p.Netdev)
	if slices.Contains(names, "counters") {
		st.agent.counters(r, d, &p, dir)
	}
	return p
}

// takesRTNL reports whether each query of the port takes rtnl.
func (st *portState) takesRTNL(d *snapshot.Device) bool {
	return isGeneric(d.Driver) && st.slow.LinkLayer == "Ethernet"
}

// fresh queries the state and related values. ok is false if rtnl is unavailable.
func (st *portState) fresh(r *reader, d *snapshot.Device, n int) (snapshot.Port, bool) {
	p, complete, netdev, ok := st.query(r, d, n)
	if !ok {
		return p, false
	}
	up := isActive(&p)
	st.linkEvent(r, d, &p)
	if st.changed && r.deferrable() || r.due(st.at) {
		st.readSlow(r, d, &p, complete, netdev)
		st.at, st.changed = r.now(), false
	}
	if !complete {
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

// linkEvent discards data that a state change invalidates: quarantined items may answer now, the speed may differ.
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

// carrierEvent clears the quarantine when the carrier of a netdev has changed: without a readable state it is the only sign of a link
// event.
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

// kept is the port at its last read, while its state cannot be queried. Data that takes no rtnl is read as usual.
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

// readSlow reads data that changes only with the link or the configuration.
func (st *portState) readSlow(r *reader, d *snapshot.Device, p *snapshot.Port, complete bool, netdev string) {
	dir := portDir(d.Name, p.Number)
	r.begin(host.SourceIdentity)
	layer := st.slow.LinkLayer
	if !st.at.IsZero() {
		layer = r.text(dir, "link_layer")
	}
	st.slow = snapshot.Port{LinkLayer: layer}
	if !complete && p.State != nil && !st.takesRTNL(d) { // each is another query like the state's, and generic ports have none
		r.begin(host.SourcePortFiles)
		st.slow.LID, st.slow.SMLID = r.number(dir, "lid"), r.number(dir, "sm_lid")
		st.slow.LMC, st.slow.Capabilities = r.number(dir, "lid_mask_count"), r.number(dir, "cap_mask")
		r.inRange(dir, &st.slow)
	}
	r.begin(host.SourcePortTables)
	st.slow.GIDs, st.slow.RoCEv2 = r.gids(dir, st.slow.LinkLayer)
	st.slow.PKeys, st.slow.PKeyTable = r.pkeys(dir)
	r.begin(host.SourceNetdev)
	st.slow.Netdev = r.withLink(r.netdevs(d, p.Number, st.slow.LinkLayer, netdev))
	r.readMTUs(st.slow.Netdev)
	st.wires.read(r, d, p.Number, &st.slow, !p.Unread)
	if p.Unread || st.slow.LinkLayer != "Ethernet" { // rtnl is unavailable, or not an Ethernet port
		return
	}
	st.askLinkModes(r)
	r.linkStates(st.slow.Netdev, isActive(p))
}

// askLinkModes queries the link modes of each netdev, and keeps the previous ones where the query was not made.
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
