package setup

import (
	"fmt"
	"slices"

	"rdma_exporter/internal/snapshot"
)

var partitionChecks = []Check{
	{
		ID: "pkey_membership", Domain: Partition, Name: "membership in the first partition of the table",
		Read:   "/sys/class/infiniband/DEV/ports/N/pkeys/0: bit 15",
		Wanted: "full, on ACTIVE InfiniBand ports",
		Why:    "Limited members of a partition cannot communicate with each other. NCCL uses index 0 unless NCCL_IB_PKEY is set, and IPoIB as well.",
		Remedy: "make the port a full member in the subnet manager (opensm: partitions.conf, PORTGUID=full)",
		Source: "InfiniBand Architecture Specification, volume 1, 10.9; NVIDIA, NCCL: NCCL_IB_PKEY",
		find:   findMembership,
	},
}

// fullMember is bit 15 of a P_Key.
const fullMember = 0x8000

func findMembership(m *machine) (out []finding) {
	for _, d := range m.devices() {
		for i := range d.Ports {
			p := &d.Ports[i]
			if p.LinkLayer != "InfiniBand" || !active(p) {
				continue
			}
			f := finding{object: object{device: d.Name, port: p.Number}, want: "full", basis: snapshot.SetupGuide}
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
				f.remedy = "set NCCL_IB_PKEY to the index of " + key + " in the jobs, or make the port a full member in the subnet manager"
			}
			out = append(out, f)
		}
	}
	return out
}

// membership in the partition of a P_Key.
func membership(key uint16) string {
	if key&fullMember != 0 {
		return "full"
	}
	return "limited"
}
