package nccl

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/pci"
)

// NetPort is a port that NCCL may use as a NIC of its own.
type NetPort struct {
	Device  string
	Port    int
	Address string // PCI address of its function
}

// FailsOver reports whether a process with this NCCL goes on when a port of a fused NIC fails: 2.29.7 and newer with
// NCCL_IB_RESILIENCY_PORT_FAILOVER=1 (src/transport/net_ib/p2p_resiliency.cc). A communicator over a single port ends.
func (e Env) FailsOver(version string) bool {
	var major, minor, patch int
	_, _ = fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch) // what is missing is 0
	return slices.Compare([]int{major, minor, patch}, []int{2, 29, 7}) >= 0 &&
		e.Integer("NCCL_IB_RESILIENCY_PORT_FAILOVER", 0) == 1 && e.Integer("NCCL_IB_MERGE_NICS", 1) != 0
}

// Fuses reports whether NCCL fuses two ports at a distance to one NIC: the groups of NCCL_NET_FORCE_MERGE, else those
// within NCCL_NET_MERGE_LEVEL, by default the ports of one card (ncclTopoForceMerge, ncclTopoAutoMerge,
// src/graph/topo.cc).
func (e Env) Fuses(a, b NetPort, distance pci.Distance) bool {
	for group := range strings.SplitSeq(e["NCCL_NET_FORCE_MERGE"], ";") {
		items := strings.Split(group, ",")
		if slices.ContainsFunc(items, a.named) && slices.ContainsFunc(items, b.named) {
			return true
		}
		if slices.ContainsFunc(items, a.named) || slices.ContainsFunc(items, b.named) {
			return false
		}
	}
	switch level := cmp.Or(e["NCCL_NET_MERGE_LEVEL"], "PORT"); level {
	case "LOC":
		return false
	case "PORT":
		return a.card() == b.card()
	default:
		limit := Level(pci.Distance(level))
		return a.card() == b.card() || limit < len(levels) && Level(distance) <= limit
	}
}

// card is the address of the function without its number: functions of one card differ in that alone.
func (p NetPort) card() string {
	card, _, _ := strings.Cut(p.Address, ".")
	return card
}

// named reports whether an item of a list is the port: NAME or NAME:PORT.
func (p NetPort) named(item string) bool {
	name, port := HCA(item)
	return name == p.Device && cmp.Or(port, strconv.Itoa(p.Port)) == strconv.Itoa(p.Port)
}
