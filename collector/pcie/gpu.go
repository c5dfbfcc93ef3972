package pcie

import (
	"context"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

var gpuLinkInfo = metric.Of(
	"rdma_gpu_pcie_link_info",
	metric.Beside("rdma_device_pcie_link_info", metric.Asks(source.PCILink,
		metric.GPU(
			"rdma_gpu_pcie_link_info",
			"PCIe link on the path from a root port to a GPU, always 1, except links on the path to an RDMA device. pci_address: downstream end. upstream: upstream end. Absent for GPUs coupled to their CPU by NVLink-C2C.",
			"the path below /sys/devices",
			"pci_address",
			"upstream",
		))),
)

// gpuWays keeps the paths to GPUs, in the order of addresses. It belongs to the lane pcie/gpu.
type gpuWays struct {
	read      reading.Last
	functions []string
	found     []accel.GPUPath
}

// gpuPaths are the paths to GPUs, and the failed reads.
type gpuPaths struct {
	paths  []accel.GPUPath
	issues []snapshot.Issue
}

// gpuPaths reads the paths to GPUs each minute. Index and UUID come from NVML.
func (c *pcie) gpuPaths(ctx context.Context, h *host.Host) (out gpuPaths) {
	_, functions, _ := c.lastRound.Last(ctx)
	if len(functions) == 0 {
		return out
	}
	issues, err := reading.OfHost(ctx, h, "pcie/gpu", source.PCILink, func(r reading.Reads) {
		if c.ways.read.Due(r.Now(), shared.SlowInterval) || !slices.Equal(functions, c.ways.functions) {
			c.ways = gpuWays{functions: functions, found: readGPUPaths(r, functions)}
			c.ways.read.Read(r.Now())
		}
	})
	if err != nil {
		return unreadGPUPaths(err)
	}
	out = gpuPaths{slices.Clone(c.ways.found), issues}
	if last := c.gpus.Latest(ctx, h); last != nil {
		for i := range out.paths {
			nameGPU(&out.paths[i], last.NVML.GPUs)
		}
	}
	return out
}

func unreadGPUPaths(err error) gpuPaths {
	return gpuPaths{
		issues: []snapshot.Issue{{Source: source.PCILink.Name(), Reason: string(access.ReasonOf(err)), Err: err}},
	}
}

// readGPUPaths reads the paths to GPUs. GPUs coupled to their CPU are left out: their data takes another path.
func readGPUPaths(r reading.Reads, functions []string) (out []accel.GPUPath) {
	sorted := slices.SortedFunc(slices.Values(functions),
		func(a, b string) int { return strings.Compare(path.Base(a), path.Base(b)) })
	for i, function := range sorted {
		chain := pci.Functions(function)
		if len(chain) > 1 && pci.Coupled(r.Optional(function+"/vendor"), r.Optional(sysfs.PCIDir+chain[0]+"/vendor")) {
			continue
		}
		uuid := sysfs.GPUInformation(r, path.Base(function))["GPU UUID"]
		out = append(out, accel.GPUPath{Index: strconv.Itoa(i), UUID: uuid, Hops: readPCIeHops(r, function)})
	}
	return out
}

// nameGPU sets index and UUID of a GPU from NVML.
func nameGPU(g *accel.GPUPath, gpus []accel.GPU) {
	address := g.Hops[len(g.Hops)-1].Address
	if i := slices.IndexFunc(gpus, func(o accel.GPU) bool { return o.PCIAddress == address }); i >= 0 {
		g.Index, g.UUID = strconv.Itoa(gpus[i].Index), gpus[i].UUID
	}
}

// gpus emits links that lead only to GPUs, without their speed: idle GPUs lower it.
func (e *pcieEmitter) gpus(paths []accel.GPUPath) {
	devices := maps.Clone(e.links)
	for _, g := range paths {
		for _, p := range pci.Pairs(e.hops(g.Hops)) {
			if devices[p.Lower] {
				continue
			}
			e.Emit(gpuLinkInfo, 1, g.Index, g.UUID, p.Lower, p.Upper)
			if !e.links[p.Lower] {
				e.links[p.Lower] = true
				e.width(p)
			}
		}
	}
}
