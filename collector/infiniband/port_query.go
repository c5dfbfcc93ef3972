package infiniband

import (
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// query reads the port with a single netlink query; in sysfs each file is a query to the driver. complete is true if
// netlink returned everything; otherwise only the states are read, because each further file is another query. ok is
// false if rtnl is unavailable.
func (st *portState) query(
	r *reading.Reader, d *snapshot.Device, n int,
) (p snapshot.Port, complete bool, netdev string, ok bool) {
	p.Number = n
	a, complete, ok := st.portGet(r, d.Name, n, st.takesRTNL(d))
	if !ok {
		return p, false, "", false
	}
	dir := st.dir
	if complete && a.State != nil && *a.State >= portStates.lowest && *a.State <= portStates.highest {
		p.State, p.PhysicalState, p.LID, p.SMLID, p.LMC, p.Capabilities = a.State, a.PhysicalState, a.LID, a.SMLID,
			a.LMC, a.Capabilities
		inRange(r.From(source.PortState), dir, &p)
		return p, true, a.Netdev, true
	}
	files := r.From(source.PortFiles)
	if st.takesRTNL(d) {
		var both []*uint64
		if both, ok = r.NumbersUnderRTNL(source.PortFiles, dir, "state", "phys_state"); !ok {
			return p, false, "", false
		}
		p.State, p.PhysicalState = both[0], both[1]
	} else {
		p.State, p.PhysicalState = files.Number(dir, "state"), files.Number(dir, "phys_state")
	}
	inRange(files, dir, &p)
	return p, false, "", true
}

// portGet queries the port by netlink. ok is false if rtnl is unavailable.
func (st *portState) portGet(r *reading.Reader, name string, n int, rtnl bool) (a host.RDMAPort, complete, ok bool) {
	dir, now := st.netlink, r.Now()
	if r.Quarantine.Held(dir, "port", now) {
		return a, false, true
	}
	var err error
	if rtnl {
		ctx, rdma := r.Ctx, r.Host.RDMA
		var late host.RDMAPort // may still be written to after a refusal
		var lateErr error
		if r.UnderRTNL(source.PortState, 1, func() { late, lateErr = rdma.Port(ctx, name, n) }) != nil {
			return a, false, false
		}
		a, err = late, lateErr
	} else {
		err = r.From(source.PortState).Try(func() (err error) { a, err = r.Host.RDMA.Port(r.Ctx, name, n); return err })
	}
	shared.NoteNetlink(r.From(source.PortState), dir, "port", now, err)
	return a, err == nil, true
}
