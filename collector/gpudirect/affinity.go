package gpudirect

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/snapshot/accel"
)

var gpuAffinity = metric.Of(
	"rdma_gdr_gpu_info",
	metric.Beside("rdma_gdr_gpu_info", metric.GPU(
		"rdma_gpu_nic_affinity_info",
		"Port of an RDMA device that is nearest to the GPU by its place, always 1; several where several are equally near (at most 16). Whether ports are up does not count: the series stay while a port is down. Devices of role compute; where there is none, all but those that manage NVLink. gpu, UUID and pci_bus_id: labels and values of the DCGM exporter. distance: as in rdma_gdr_gpu_info.",
		"/sys/bus/pci/devices; in a virtual machine the topology file of NCCL",
		"pci_bus_id",
		"device",
		"port",
		"distance",
	)),
)

// nearestPorts limits the series of a GPU: virtual functions are as near as their physical function.
const nearestPorts = 16

// distances are in order, the nearest first.
var distances = []pci.Distance{pci.PIX, pci.PXB, pci.P2C, pci.PHB, pci.NODE, pci.SYS}

// affinity returns the NICs nearest to a GPU, as indices, and their distance.
func affinity(d *accel.GDR, gpu int) (nics []int, distance string) {
	if len(d.Pairs) != len(d.GPUs)*len(d.NICs) {
		return nil, ""
	}
	best, compute := len(distances),
		slices.ContainsFunc(d.NICs, func(n accel.GDRNIC) bool { return n.Role == string(pci.Compute) })
	for _, p := range d.Pairs[gpu*len(d.NICs) : (gpu+1)*len(d.NICs)] {
		nic := &d.NICs[p.NIC]
		if compute && nic.Role != string(pci.Compute) || nic.Role == string(pci.NVLinkManagement) {
			continue
		}
		at := slices.Index(distances, pci.Distance(cmp.Or(p.Tree, p.Distance)))
		if at < 0 || at > best {
			continue
		}
		if at < best {
			best, nics = at, nil
		}
		nics = append(nics, p.NIC)
	}
	if best == len(distances) {
		return nil, ""
	}
	return nics, string(distances[best])
}

// dcgmBusID returns a PCI address in the format of NVML and the DCGM exporter: 00000000:1B:00.0, with a domain of 8
// digits.
func dcgmBusID(address string) string {
	domain, rest, ok := strings.Cut(address, ":")
	if !ok || len(domain) > 8 {
		return address
	}
	return strings.ToUpper(strings.Repeat("0", 8-len(domain)) + domain + ":" + rest)
}

func emitAffinity(s metric.Sink, d *accel.GDR, gpu int) {
	g, n := &d.GPUs[gpu], 0
	nics, distance := affinity(d, gpu)
	for _, i := range nics {
		for _, port := range d.NICs[i].Ports {
			if n++; n <= nearestPorts {
				s.Emit(gpuAffinity, 1, g.Index, g.UUID, dcgmBusID(g.PCIAddress), d.NICs[i].Device, strconv.Itoa(port), distance)
			}
		}
	}
}
