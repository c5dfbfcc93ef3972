package setup

import (
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/setup/values"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

var partitionChecks = []Check{
	{
		ID: "pkey_membership", Domain: Partition, Name: "membership in the first partition of the table",
		Read:   "/sys/class/infiniband/DEV/ports/N/pkeys/0: bit 15",
		Wanted: "full, on ACTIVE InfiniBand ports",
		Why:    "Limited members of a partition reach its full members only: jobs between two of them do not start. NCCL and IPoIB use index 0, unless NCCL_IB_PKEY is set.",
		Remedy: "make the port a full member in the subnet manager (opensm: partitions.conf, PORTGUID=full)",
		Source: "InfiniBand Architecture Specification, volume 1, 10.9; NVIDIA, NCCL: NCCL_IB_PKEY",
		find:   each((*machine).ports, findMembership),
	},
	{
		ID: "sl_to_vl", Domain: Partition, Name: "virtual lanes of the service levels",
		Read:   "SLtoVLMappingTable and PortInfo, OperationalVLs, where umad can be opened (--collector.infiniband.mad); unknown elsewhere: neither sysfs nor netlink has them",
		Wanted: "on ACTIVE InfiniBand ports for jobs that of most sibling ports, and a virtual lane in use for service level 0",
		Why:    "Ports discard packets of a service level whose virtual lane is 15 or not in use. Where ports differ, one of them shares a lane with other traffic.",
		Remedy: "correct the QoS configuration of the subnet manager (opensm: qos_ca_sl2vl), and let it configure the port again",
		Source: "InfiniBand Architecture Specification, volume 1, 7.6.6 and 14.2.5.9",
		find:   each(infiniBandPorts, findLanes),
	},
}

// fullMember is bit 15 of a P_Key.
const fullMember = 0x8000

func findMembership(m *machine, p physicalPort) (f finding, ok bool) {
	f = finding{object: p.object(), want: "full", basis: hostdata.SetupGuide}
	f.unknown = "the P_Key table could not be read"
	switch {
	case p.PKeyTable == nil:
	case len(p.PKeyTable) == 0:
		f.found = "none"
	default:
		f.found = membership(p.PKeyTable[0])
		f.meets = f.found == "full"
	}
	if j := slices.IndexFunc(p.PKeyTable, func(k uint16) bool { return membership(k) == "full" }); j > 0 && !f.meets {
		key := fmt.Sprintf("%#04x", p.PKeyTable[j])
		f.evidence = "the port is a full member of " + key
		f.remedy = fmt.Sprintf("export NCCL_IB_PKEY=%d # of the jobs; or make the port a full member in the subnet manager",
			j)
	}
	return f, p.LinkLayer == "InfiniBand" && active(p.Port)
}

// membership in the partition of a P_Key.
func membership(key uint16) string {
	if key&fullMember != 0 {
		return "full"
	}
	return "limited"
}

// discards is the virtual lane of service levels whose packets a port discards (IBA 7.6.6).
const discards = 15

// laneOf returns the virtual lane of a service level; ok is false if the port does not send its packets. A port
// without the table has one virtual lane.
func laneOf(s *snapshot.IBPortSettings, level int) (lane int, ok bool) {
	if level < 0 || level >= len(s.VLs) {
		return 0, true
	}
	lane = int(s.VLs[level])
	return lane, lane != discards && (s.DataVLs == nil || uint64(lane) < *s.DataVLs)
}

// lanesText returns a table with the number of virtual lanes; empty: unknown.
func lanesText(s *snapshot.IBPortSettings) string {
	if s == nil || s.VLs == nil || s.DataVLs == nil {
		return ""
	}
	return fmt.Sprintf("%s of %d", strings.ReplaceAll(strings.Trim(fmt.Sprint(s.VLs), "[]"), " ", ","), *s.DataVLs)
}

func findLanes(m *machine, p physicalPort) (f finding, ok bool) {
	var alike []string
	for _, o := range m.infinibands {
		if text := lanesText(o.Settings); text != "" {
			alike = append(alike, text)
		}
	}
	s, usual := p.Settings, values.Majority(alike, 2)
	if s != nil && s.MTU != nil && s.VLs == nil { // one virtual lane
		return f, false
	}
	f = finding{object: p.object(), unknown: onlyByMAD, basis: hostdata.SetupGuide, want: "0 in use"}
	if f.found = lanesText(s); f.found != "" {
		lane, sent := laneOf(s, 0)
		switch {
		case !sent:
			f.evidence = fmt.Sprintf("service level 0 has virtual lane %d: its packets are discarded", lane)
		case usual != "" && usual != f.found:
			f.want, f.basis, f.because = usual, hostdata.SetupMachine, "that of most ports for jobs"
		default:
			f.want, f.meets = f.found, true
		}
	}
	return f, true
}
