package collector

import (
	"net/netip"
	"strconv"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

var (
	portRoCEv2GIDs = of(ethernetPorts, asks(host.SourcePortTables, portDesc("rdma_port_roce_v2_gid_entries",
		"RoCE v2 entries in the GID table, by address family: ipv4 (IPv4-mapped), ipv6 (global or unique local), link_local (created by the kernel for every netdev, not routed).",
		"ports/N/gids, ports/N/gid_attrs/types", "family")))
	portRoCEv2GIDIndex = portDesc("rdma_port_roce_v2_gid_index",
		"Lowest GID table index of the RoCE v2 entries of an address family: the value of NCCL_IB_GID_INDEX for this family on this port. Absent where the family has no entry.",
		"ports/N/gids, ports/N/gid_attrs/types", "family")
)

var gidFamilies = []string{"ipv4", "ipv6", "link_local"}

// gidFamily returns the address family of a GID as printed by sysfs; empty for the zero GID and invalid text.
func gidFamily(gid string) string {
	a, err := netip.ParseAddr(gid)
	switch {
	case err != nil || a.Is4() || a.Zone() != "" || a.IsUnspecified():
		return ""
	case a.Is4In6():
		return "ipv4"
	case a.IsLinkLocalUnicast():
		return "link_local"
	}
	return "ipv6"
}

// roceV2GIDs groups the named RoCE v2 entries of a GID table by address family; nil if one of them cannot be parsed
// (its family is unknown). The kernel answers from its own table.
func roceV2GIDs(r *reading.Reader, dir string, names []string) map[string]snapshot.GIDFamily {
	out := map[string]snapshot.GIDFamily{}
	for _, name := range names {
		gid, state := r.TableEntry(dir+"/gids", name)
		if state != reading.EntryUsed {
			return nil
		}
		index, err := strconv.ParseUint(name, 10, 32)
		family := gidFamily(gid)
		if err != nil || family == "" {
			r.Issue(host.ErrGarbled(dir+"/gids/"+name, []byte(gid)))
			return nil
		}
		f := out[family]
		if f.Entries == 0 || index < f.First {
			f.First = index
		}
		f.Entries++
		out[family] = f
	}
	return out
}

func emitRoCEv2GIDs(s Sink, d *snapshot.Device, p *snapshot.Port, port string) {
	if p.RoCEv2 == nil || !isRoCE(d, p) {
		return
	}
	for _, family := range gidFamilies {
		f := p.RoCEv2[family]
		s.Emit(portRoCEv2GIDs, float64(f.Entries), d.Name, port, family)
		if f.Entries > 0 {
			s.Emit(portRoCEv2GIDIndex, float64(f.First), d.Name, port, family)
		}
	}
}
