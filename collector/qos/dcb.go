package qos

import (
	"slices"

	"rdma_exporter/internal/host/dcb"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// dcbItem names the request in the quarantine.
const dcbItem = "ieee"

// readDCB queries the data center bridging configuration of the netdev. The previous one is kept if rtnl is
// unavailable.
func readDCB(r *reading.Reader, q *snapshot.NetdevQoS) {
	dir := dcbDir(q.Name)
	if r.Quarantine.Held(dir, dcbItem, r.Now()) {
		return
	}
	c, made := reading.Ask(r, source.DCB, dir, dcbItem, q.Name, r.Host.DCB.IEEE)
	switch {
	case c != nil:
		bridging(q, c)
	case made:
		bridging(q, &dcb.Config{})
	}
}

// bridging stores a configuration in q, an empty one if the query failed.
func bridging(q *snapshot.NetdevQoS, c *dcb.Config) {
	q.PFC, q.Classes, q.Buffers = nil, nil, nil
	if p := c.PFC; p != nil {
		q.PFC = &snapshot.PFC{Capable: p.Capability, Sent: p.Requests, Received: p.Indications}
		for i := range q.PFC.Enabled {
			q.PFC.Enabled[i] = p.Enabled>>i&1 == 1
		}
	}
	if e := c.ETS; e != nil {
		q.Classes = &snapshot.Classes{Algorithm: e.Algorithm, Bandwidth: e.Bandwidth, OfPrio: e.TrafficClass}
	}
	if b := c.Buffer; b != nil {
		q.Buffers = &snapshot.Buffers{Sizes: b.Sizes, OfPrio: b.Buffer}
	}
	q.DSCPs, q.Trust, q.DCBX = dscps(c.Apps), trust(c), dcbxFlags(c.DCBX)
}

// maxDSCP is the largest value of six bits.
const maxDSCP = 63

// dscps groups the DSCPs of an APP table by priority. The highest priority of a DSCP counts (users of
// dcb_ieee_getapp_mask take the last bit).
func dscps(apps []dcb.App) *[snapshot.Priorities][]uint8 {
	leadsTo := map[uint8]uint8{}
	for _, a := range apps {
		if a.Selector == dcb.SelectorDSCP && a.Protocol <= maxDSCP {
			d := uint8(a.Protocol)
			leadsTo[d] = max(leadsTo[d], a.Priority)
		}
	}
	if len(leadsTo) == 0 {
		return nil
	}
	out := &[snapshot.Priorities][]uint8{}
	for d := range uint8(maxDSCP + 1) {
		if p, ok := leadsTo[d]; ok {
			out[p] = append(out[p], d)
		}
	}
	return out
}

// byDSCP is trust in the DSCP of a packet.
const byDSCP = "dscp"

// trust selects the priority of a received packet. If the driver does not report it, it is the DSCP while the APP table
// has a DSCP entry, as in mlx5 (mlx5e_dcbnl_ieee_setapp).
func trust(c *dcb.Config) string {
	by := func(selector uint8) bool {
		if c.Trust != nil {
			return slices.Contains(c.Trust, selector)
		}
		return slices.ContainsFunc(c.Apps, func(a dcb.App) bool { return a.Selector == selector })
	}
	switch {
	case by(dcb.SelectorDSCP):
		return byDSCP
	case by(dcb.SelectorPCP), c.Trust == nil && c.Apps != nil:
		return "pcp"
	}
	return ""
}

// dcbxFlags names the flags DCB_CAP_DCBX_* of include/uapi/linux/dcbnl.h.
func dcbxFlags(flags *uint64) (out []string) {
	if flags == nil {
		return nil
	}
	for _, f := range []struct {
		bit  uint64
		name string
	}{
		{dcb.DCBXHost, "host"},
		{dcb.DCBXLLDManaged, "lld_managed"},
		{dcb.DCBXCEE, "cee"},
		{dcb.DCBXIEEE, "ieee"},
		{dcb.DCBXStatic, "static"},
	} {
		if *flags&f.bit != 0 {
			out = append(out, f.name)
		}
	}
	return out
}
