package infiniband

import (
	"slices"

	"rdma_exporter/collector/infiniband/pma"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

const (
	physicalLinkUp = 5
)

// portState is the state of one port that outlives a round.
type portState struct {
	dir     string // of the port in sysfs
	netlink string // names its requests by RDMA netlink

	slow    reading.Kept[snapshot.Port] // what changes with the link or the configuration
	state   uint64                      // at the last reading
	changed bool                        // state changed since slow was read
	ethtool map[string]host.LinkModes   // by netdev
	wires   portWires
	agent   pma.Agent

	carriers uint64 // carrier changes of its netdevs

	last reading.Kept[snapshot.Port] // of its state
}

// read reads one port of d.
func (st *portState) read(r *reading.Reader, d *snapshot.Device, n int) snapshot.Port {
	dir := st.dir
	id := r.From(source.Identity)
	names, err := r.Host.Files.Attributes(dir)
	if err != nil {
		id.Issue(err)
		return snapshot.Port{Number: n}
	}
	if !st.slow.Known() { // from the RDMA core; it decides which lock the state takes
		st.slow.Value.LinkLayer = id.Text(dir, "link_layer")
	}
	p, ok := st.fresh(r, d, n)
	if !ok {
		p = st.kept(r, d, n)
	}
	p.Subnet = st.slow.Value.Subnet
	p.LinkLayer, p.GIDs, p.PKeys, p.Netdev = st.slow.Value.LinkLayer, st.slow.Value.GIDs, st.slow.Value.PKeys,
		sysfs.WithLink(r, st.slow.Value.Netdev)
	p.RoCEv2, p.Wire, p.PKeyTable = st.slow.Value.RoCEv2, st.slow.Value.Wire, st.slow.Value.PKeyTable
	st.withLinks(r, p.Netdev)
	if p.LinkLayer == "InfiniBand" {
		sysfs.WithIPoIB(r, p.Netdev)
	}
	st.carrierEvent(r, p.Netdev)
	if slices.Contains(names, "counters") {
		st.agent.Counters(r, d, &p)
	}
	return p
}

// takesRTNL reports whether each query of the port takes rtnl.
func (st *portState) takesRTNL(d *snapshot.Device) bool {
	return isGeneric(d.Driver) && st.slow.Value.LinkLayer == "Ethernet"
}

// fresh queries the state and related values. ok is false if rtnl is unavailable.
func (st *portState) fresh(r *reading.Reader, d *snapshot.Device, n int) (snapshot.Port, bool) {
	p, complete, netdev, ok := st.query(r, d, n)
	if !ok {
		return p, false
	}
	up := sysfs.IsActive(&p)
	st.linkEvent(r, &p)
	if st.changed && r.Deferrable() || st.slow.DueOf(r, shared.SlowInterval) {
		st.readSlow(r, d, &p, complete, netdev)
		st.slow.Read(r.Now())
		st.changed = false
	}
	if !complete {
		p.LID, p.SMLID, p.LMC, p.Capabilities = st.slow.Value.LID, st.slow.Value.SMLID, st.slow.Value.LMC,
			st.slow.Value.Capabilities
	}
	p.LinkLayer = st.slow.Value.LinkLayer
	physicallyUp := p.LinkLayer == "InfiniBand" && p.PhysicalState != nil && *p.PhysicalState == physicalLinkUp
	if up || physicallyUp {
		st.readRate(r, d, &p)
	}
	if p.State != nil {
		st.last.Keep(p, r.Now())
	}
	return p, true
}

// linkEvent discards data that a state change invalidates: quarantined items may answer now, the speed may differ.
func (st *portState) linkEvent(r *reading.Reader, p *snapshot.Port) {
	var state uint64
	if p.State != nil {
		state = *p.State
	}
	if state == st.state {
		return
	}
	st.state, st.changed = state, true
	if !st.slow.Known() {
		return
	}
	st.ethtool = nil
	st.slow.Value.Netdev = slices.Clone(st.slow.Value.Netdev)
	for i := range st.slow.Value.Netdev {
		st.slow.Value.Netdev[i].DownReason, st.slow.Value.Netdev[i].DownDetail = "", ""
	}
	r.Quarantine.Release(st.dir)
	r.Quarantine.Release(st.netlink)
	for i := range st.slow.Value.Netdev {
		r.Quarantine.Release(sysfs.EthtoolDir(st.slow.Value.Netdev[i].Name))
	}
}

// carrierEvent clears the quarantine when the carrier of a netdev has changed: without a readable state it is the only
// sign of a link event.
func (st *portState) carrierEvent(r *reading.Reader, netdevs []snapshot.Netdev) {
	var changes uint64
	for i := range netdevs {
		if nd := &netdevs[i]; nd.CarrierUps != nil && nd.CarrierDowns != nil {
			changes += *nd.CarrierUps + *nd.CarrierDowns
		}
	}
	if changes != st.carriers && st.carriers != 0 {
		r.Quarantine.Release(st.dir)
		r.Quarantine.Release(st.netlink)
	}
	st.carriers = changes
}

// kept returns the port at its last read, while its state cannot be queried. Data that takes no rtnl is read as usual.
func (st *portState) kept(r *reading.Reader, d *snapshot.Device, n int) snapshot.Port {
	p := snapshot.Port{Number: n, Unread: true}
	if !st.slow.Known() {
		st.readSlow(r, d, &p, false, "")
		st.slow.Read(r.Now())
		st.changed = true
	}
	if !st.last.Known() {
		return p
	}
	if p.Age = r.Now().Sub(st.last.Time()); p.Age <= shared.LastStateTime {
		age := p.Age
		p = st.last.Value
		p.Age = age
	}
	return p
}

// readSlow reads data that changes only with the link or the configuration.
func (st *portState) readSlow(r *reading.Reader, d *snapshot.Device, p *snapshot.Port, complete bool, netdev string) {
	dir := st.dir
	layer := st.slow.Value.LinkLayer
	if st.slow.Known() {
		layer = r.From(source.Identity).Text(dir, "link_layer")
	}
	st.slow.Value = snapshot.Port{LinkLayer: layer}
	// Each is another query like the state's, and generic ports have none.
	if !complete && p.State != nil && !st.takesRTNL(d) {
		files := r.From(source.PortFiles)
		st.slow.Value.LID, st.slow.Value.SMLID = files.Number(dir, "lid"), files.Number(dir, "sm_lid")
		st.slow.Value.LMC, st.slow.Value.Capabilities = files.Number(dir, "lid_mask_count"), files.Number(dir, "cap_mask")
		inRange(files, dir, &st.slow.Value)
	}
	tables := r.From(source.PortTables)
	st.slow.Value.GIDs, st.slow.Value.RoCEv2 = readGIDs(tables, dir, st.slow.Value.LinkLayer)
	st.slow.Value.PKeys, st.slow.Value.PKeyTable = readPKeys(tables, dir)
	st.slow.Value.Subnet = readSubnet(tables, dir, st.slow.Value.LinkLayer)
	st.slow.Value.Netdev = sysfs.WithLink(r, sysfs.NetdevsOf(r, d, p.Number, st.slow.Value.LinkLayer, netdev))
	readMTUs(r, st.slow.Value.Netdev)
	st.wires.read(r, d, p.Number, &st.slow.Value, !p.Unread)
	if p.Unread || st.slow.Value.LinkLayer != "Ethernet" { // rtnl is unavailable, or not an Ethernet port
		return
	}
	st.askLinkModes(r)
	readLinkStates(r, st.slow.Value.Netdev, sysfs.IsActive(p))
}

// askLinkModes queries the link modes of each netdev, and keeps the previous ones where the query was not made.
func (st *portState) askLinkModes(r *reading.Reader) {
	kept := st.ethtool
	st.ethtool = map[string]host.LinkModes{}
	for _, nd := range st.slow.Value.Netdev {
		m, made := shared.AskEthtool(r, source.LinkModes, r.Host.Ethtool.LinkModes, nd.Name)
		if !made {
			m = kept[nd.Name]
		}
		st.ethtool[nd.Name] = m
	}
}

// readRate sets rate and lanes of a port with a link.
func (st *portState) readRate(r *reading.Reader, d *snapshot.Device, p *snapshot.Port) {
	for _, nd := range st.slow.Value.Netdev { // of a bond, the first member with a link
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
	dir := st.dir
	files := r.From(source.PortFiles)
	b, ok := files.Bytes(dir, "rate")
	if !ok {
		return
	}
	rate, ok := parseRate(string(b))
	if !ok {
		files.Issue(access.ErrGarbled(dir+"/rate", b))
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
