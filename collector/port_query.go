package collector

import (
	"context"
	"strconv"
	"time"

	"rdma_exporter/internal/host"
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
		inRange(r, dir, &p)
		return p, true, a.Netdev, true
	}
	if st.takesRTNL(d) {
		var both []*uint64
		if both, ok = r.NumbersUnderRTNL(host.SourcePortFiles, dir, "state", "phys_state"); !ok {
			return p, false, "", false
		}
		p.State, p.PhysicalState = both[0], both[1]
	} else {
		r.Begin(host.SourcePortFiles)
		p.State, p.PhysicalState = r.Number(dir, "state"), r.Number(dir, "phys_state")
	}
	inRange(r, dir, &p)
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
		if r.UnderRTNL(host.SourcePortState, 1, func() { late, lateErr = rdma.Port(ctx, name, n) }) != nil {
			return a, false, false
		}
		a, err = late, lateErr
	} else {
		r.Begin(host.SourcePortState)
		err = r.Try(func() (err error) { a, err = r.Host.RDMA.Port(r.Ctx, name, n); return err })
	}
	noteNetlink(r, dir, "port", now, err)
	return a, err == nil, true
}

// noteNetlink records the outcome of a request that has a fallback. A denied permission is reported.
func noteNetlink(r *reading.Reader, dir, name string, now time.Time, err error) {
	r.Quarantine.Note(dir, name, now, err)
	if err != nil && host.NotPermitted(err) {
		r.Issue(err)
	}
}

// ethtoolDir names the requests for a netdev, as captures do.
func ethtoolDir(netdev string) string { return "ethtool/" + netdev }

// netlinkDir names the requests for a port, as captures do.
func netlinkDir(name string, n int) string { return "rdma/" + name + "/" + strconv.Itoa(n) }

// askEthtool makes an ethtool request for a netdev, which takes rtnl. made is false if an earlier request is slow or
// has not returned, or if the item is quarantined; an unsupported request returns the zero answer.
func askEthtool[T any](
	r *reading.Reader, s host.Source, ask func(context.Context, string) (T, error), netdev string,
) (answer T, made bool) {
	got, made := reading.Ask(r, s, ethtoolDir(netdev), s.Name(), netdev, ask)
	return valueOf(got), made
}
