package infiniband

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

var (
	portRoCEv2GIDs = metric.Of(
		metric.EthernetPorts,
		metric.Asks(source.PortTables, metric.Port(
			"rdma_port_roce_v2_gid_entries",
			"RoCE v2 entries in the GID table, by address family: ipv4 (IPv4-mapped), ipv6 (global or unique local), link_local (created by the kernel for every netdev, not routed).",
			"ports/N/gids, ports/N/gid_attrs/types",
			"family",
		)),
	)
	portRoCEv2GIDIndex = metric.Port(
		"rdma_port_roce_v2_gid_index",
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
func roceV2GIDs(r reading.Reads, dir string, names []string) map[string]snapshot.GIDFamily {
	out := map[string]snapshot.GIDFamily{}
	for _, name := range names {
		gid, state := r.TableEntry(dir+"/gids", name)
		if state != reading.EntryUsed {
			return nil
		}
		index, err := strconv.ParseUint(name, 10, 32)
		family := gidFamily(gid)
		if err != nil || family == "" {
			r.Issue(access.ErrGarbled(dir+"/gids/"+name, []byte(gid)))
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

func emitRoCEv2GIDs(s metric.Sink, d *snapshot.Device, p *snapshot.Port, port string) {
	if p.RoCEv2 == nil || !sysfs.IsRoCE(d, p) {
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

// readGIDs counts the GID table entries in use (those with a type), and groups the RoCE v2 ones; nil if not all could
// be read.
func readGIDs(r reading.Reads, dir, linkLayer string) (map[string]uint64, map[string]snapshot.GIDFamily) {
	names, err := r.Host.Files.List(dir + "/gids")
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
		t, found := r.TableEntry(dir+"/gid_attrs/types", n)
		switch {
		case found == reading.EntryUnread:
			return nil, nil // its type is unknown
		case found == reading.EntryEmpty:
		case linkLayer == "InfiniBand":
			count["ib"]++
		case t == "RoCE v2":
			count["roce_v2"]++
			v2 = append(v2, n)
		case t == "IB/RoCE v1":
			count["roce_v1"]++
		default: // gid_type_str of drivers/infiniband/core/cache.c has no others
			r.Issue(access.ErrGarbled(dir+"/gid_attrs/types/"+n, []byte(t)))
			return nil, nil
		}
	}
	return count, roceV2GIDs(r, dir, v2)
}

// readSubnet reads the prefix of an InfiniBand port's subnet from its first GID (IBA 4.1.1): "fe80:0000:0000:0000";
// empty if it is unknown.
func readSubnet(r reading.Reads, dir, linkLayer string) string {
	if linkLayer != "InfiniBand" {
		return ""
	}
	text, found := r.TableEntry(dir+"/gids", "0")
	if found != reading.EntryUsed {
		return ""
	}
	gid, err := netip.ParseAddr(text)
	if err != nil || !gid.Is6() || gid.Zone() != "" {
		r.Issue(access.ErrGarbled(dir+"/gids/0", []byte(text)))
		return ""
	}
	return gid.StringExpanded()[:len("fe80:0000:0000:0000")]
}

// emptyPKeys ends the P_Key table: on mlx5 each entry costs a firmware command, and subnet managers fill it from the
// start.
const emptyPKeys = 8

// readPKeys counts and lists the P_Keys; nil if one cannot be read. iWARP ports have no table.
func readPKeys(r reading.Reads, dir string) (*uint64, []uint16) {
	names, err := r.Host.Files.List(dir + "/pkeys")
	if err != nil {
		return nil, nil
	}
	names = slices.Clone(names)
	slices.SortFunc(names, counters.ByNumber)
	whole, table := true, []uint16{}
	var n, empty uint64
	for _, name := range names {
		v := r.Number(dir+"/pkeys", name)
		if v != nil && *v > math.MaxUint16 { // a P_Key has 16 bits (IBA 10.9.1.1)
			r.Issue(access.ErrGarbled(dir+"/pkeys/"+name, fmt.Appendf(nil, "%#x", *v)))
			v = nil
		}
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
		return nil, nil
	}
	return &n, table
}
