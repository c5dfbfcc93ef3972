// Package gpu reads GPUs: NVLinks, fabric, PCIe, XID errors, and GPUs without a driver.
package gpu

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

// gpu serves the NVML reading, and compares it with the PCI tree.
type gpu struct {
	conf   *shared.SiteConfig
	gpus   *shared.GPUReadings
	nodes  map[string]gpuPlace // of the NVIDIA GPUs in the PCI tree, by address
	amd    []accel.AMDGPU      // in the PCI tree, by address; nil: the tree was not read
	found  reading.Last        // of nodes and amd
	memory *expect.Memory
}

// New returns the collector.
func New(with *shared.State) *shared.Collector {
	c := &gpu{conf: with.Site, gpus: with.GPUs, memory: with.Memory}
	return &shared.Collector{
		Name:  "gpu",
		Help:  "NVIDIA GPUs from NVML: NVLinks, fabric, PCIe, XID errors",
		Descs: gpuDescs(),
		Run:   with.GPUs.Run,
		Read:  c.read,
		Emit:  metric.EmitSection(func(n *snapshot.Node) *accel.GPUs { return n.GPUs }, emitGPUs),
	}
}

func (c *gpu) read(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error)) {
	r := c.gpus.Latest(ctx, h)
	section := &accel.GPUs{Full: c.gpus.Full, Released: h.GPUs.GPUsReleased()}
	if r == nil { // the first reading is under way
		n.GPUs, n.Pending = section, []string{source.NVML.Name()}
		done(nil)
		return
	}
	issues := c.find(ctx, h)
	known := c.see(r)
	section.Ignored, section.AMD = c.ignored(known), c.amd
	section.NVML, section.Age = r.NVML, max(0, h.Now().Sub(r.At))
	section.GPUs = slices.Clone(r.NVML.GPUs) // the reading is shared
	n.Devices = append(n.Devices, reading.Ended("", r.Failed()))
	n.Issues = append(n.Issues, r.Issues(section.Released != nil)...)
	if r.Err == nil {
		n.Issues = append(append(n.Issues, issues...), c.compare(section)...)
		section.Lost = lostNVIDIA(known, r, section.Functions)
	}
	section.Lost = append(section.Lost, lostAMD(known, c.amd)...)
	n.GPUs = section
	done(nil)
}

// see records the GPUs that NVML lists and those with a driver of AMD, and returns all of which is known that they
// were.
func (c *gpu) see(r *shared.GPUReading) []expect.GPURecord {
	listed := recordsOf(c.amd)
	if r.Err == nil {
		for i := range r.NVML.GPUs {
			g := &r.NVML.GPUs[i]
			listed = append(listed, expect.GPURecord{Index: g.Index, UUID: g.UUID, PCIAddress: g.PCIAddress})
		}
	}
	if r.Err == nil || len(listed) > 0 { // else nothing is known of what NVML lists
		c.memory.SeeGPUs(listed)
	}
	return c.memory.GPUs()
}

// ignored evaluates every GPU listed so far: a GPU that no longer answers is to be ignored as well.
func (c *gpu) ignored(known []expect.GPURecord) (out []accel.GPUName) {
	conf := c.conf.Current()
	for _, g := range known {
		name := nameOf(g)
		of := site.GPU{Hostname: c.conf.Hostname, Index: name.Index, UUID: g.UUID, PCIAddress: g.PCIAddress}
		if conf.IgnoredGPU(of) {
			out = append(out, name)
		}
	}
	return out
}

// nameOf returns the name of a GPU in metrics. AMD GPUs have no index.
func nameOf(g expect.GPURecord) accel.GPUName {
	if g.Driver == accel.DriverAMD {
		return accel.GPUName{UUID: g.UUID}
	}
	return accel.GPUName{Index: strconv.Itoa(g.Index), UUID: g.UUID}
}

// errHidden is the error of a GPU that NVML does not list.
var errHidden = errors.New("GPU in the PCI tree is not listed by NVML: bound to another driver, not in this container, or fallen off the bus")

// gpuPlace is what the PCI tree says of a GPU.
type gpuPlace struct {
	numaNode, driver string
	ofDriver         bool // listed by the driver
}

// compare sets the NUMA nodes of the GPUs from the PCI tree, and finds GPUs that NVML does not list.
func (c *gpu) compare(section *accel.GPUs) (issues []snapshot.Issue) {
	shown := map[string]bool{}
	for i := range section.GPUs {
		g := &section.GPUs[i]
		g.NUMANode, shown[g.PCIAddress] = c.nodes[g.PCIAddress].numaNode, true
	}
	for _, address := range slices.Sorted(maps.Keys(c.nodes)) {
		section.Functions = append(section.Functions, accel.GPUFunction{
			PCIAddress: address, Driver: c.nodes[address].driver, Visible: shown[address], OfDriver: c.nodes[address].ofDriver,
		})
		if !shown[address] {
			issues = append(issues, snapshot.Issue{Reason: string(access.Gone), Err: fmt.Errorf("%s: %w", address, errHidden)})
		}
	}
	return issues
}

// find lists the GPUs of the PCI tree each minute.
func (c *gpu) find(ctx context.Context, h *host.Host) []snapshot.Issue {
	now := h.Now()
	if !c.found.Due(now, shared.SlowInterval) {
		return nil
	}
	nodes, amd := map[string]gpuPlace{}, []accel.AMDGPU(nil)
	issues, err := reading.OfHost(ctx, h, "pci/gpu", source.PCI, func(r reading.Reads) {
		driven, _ := r.Host.Files.List("proc/driver/nvidia/gpus") // absent: the driver is not loaded, or is not NVIDIA's
		functions := sysfs.GPUs(h, r)
		amd = readAMD(r, functions)
		for _, function := range functions {
			if r.Optional(function+"/vendor") != vendorNVIDIA {
				continue
			}
			node := r.Optional(function + "/numa_node")
			if node == "-1" {
				node = ""
			}
			nodes[path.Base(function)] = gpuPlace{
				node, sysfs.BoundDriver(r.Host.Files, function), slices.Contains(driven, path.Base(function)),
			}
		}
	})
	if err != nil {
		return []snapshot.Issue{{Source: source.PCI.Name(), Reason: string(access.ReasonOf(err)), Err: err}}
	}
	c.found.Read(now)
	c.nodes, c.amd = nodes, amd
	return issues
}

const vendorNVIDIA = "0x10de"
