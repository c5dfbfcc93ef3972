package collector

import (
	"fmt"
	"math"
	"slices"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// readGIDs counts the GID table entries in use (those with a type), and groups the RoCE v2 ones; nil if not all could
// be read.
func readGIDs(r *reading.Reader, dir, linkLayer string) (map[string]uint64, map[string]snapshot.GIDFamily) {
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
			r.Issue(host.ErrGarbled(dir+"/gid_attrs/types/"+n, []byte(t)))
			return nil, nil
		}
	}
	return count, roceV2GIDs(r, dir, v2)
}

// emptyPKeys ends the P_Key table: on mlx5 each entry costs a firmware command, and subnet managers fill it from the
// start.
const emptyPKeys = 8

// readPKeys counts and lists the P_Keys; nil if one cannot be read. iWARP ports have no table.
func readPKeys(r *reading.Reader, dir string) (*uint64, []uint16) {
	names, err := r.Host.Files.List(dir + "/pkeys")
	if err != nil {
		return nil, nil
	}
	names = slices.Clone(names)
	slices.SortFunc(names, byNumber)
	whole, table := true, []uint16{}
	var n, empty uint64
	for _, name := range names {
		v := r.Number(dir+"/pkeys", name)
		if v != nil && *v > math.MaxUint16 { // a P_Key has 16 bits (IBA 10.9.1.1)
			r.Issue(host.ErrGarbled(dir+"/pkeys/"+name, fmt.Appendf(nil, "%#x", *v)))
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
