package sysfs

import (
	"bytes"
	"path"
	"strconv"
	"strings"

	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/reading"
)

// ReadBridge reads the model of a bridge.
func ReadBridge(r reading.Reads, at string) pci.Bridge {
	return pci.Bridge{
		Vendor: HexValue(r.Optional(at + "/vendor")), Device: HexValue(r.Optional(at + "/device")),
		SubVendor: HexValue(r.Optional(at + "/subsystem_vendor")), SubDevice: HexValue(r.Optional(at + "/subsystem_device")),
	}
}

// ReadGPUPlace reads the place of a GPU, whether it is coupled to its CPU, and whether its place is virtual, by the
// vendor of its root port: a real GPU has a port above it.
func ReadGPUPlace(r reading.Reads, dir string) (g gdr.GPU, emulated bool) {
	g = gdr.GPU{Address: path.Base(dir), Place: ReadPlace(r, dir)}
	root := ""
	if g.Place.Bridged() {
		root = r.Optional(PCIDir + g.Place.Chain[0] + "/vendor")
	}
	g.Coupled = pci.Coupled(r.Optional(dir+"/vendor"), root)
	return g, !g.Place.Bridged() || pci.Emulated(root)
}

// ReadConfig reads configuration space, and returns its readable size. It costs the kernel some hundred register reads,
// once an hour.
func ReadConfig(r reading.Reads, dir string) (c pci.Config, size int, ok bool) {
	r.Ask(1)
	b, err := r.Host.Files.ReadIn(dir, "config", nil)
	if err != nil {
		r.IssueUnless(err, access.Absent)
		return c, 0, false
	}
	c, ok = pci.ParseConfig(b)
	return c, len(b), ok
}

// ReadPlace reads the place of a PCI function: its host bridge, the functions above it, its NUMA node.
func ReadPlace(r reading.Reads, dir string) pci.Place {
	numa, err := strconv.Atoi(r.Optional(dir + "/numa_node"))
	if err != nil {
		numa = -1
	}
	return pci.PlaceOf(dir, numa)
}

// GPUInformation returns the information file of a GPU, which NVIDIA's driver exposes without NVML.
func GPUInformation(r reading.Reads, address string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(r.Optional("proc/driver/nvidia/gpus/" + address + "/information")) {
		key, value, _ := strings.Cut(line, ":")
		out[key] = strings.TrimSpace(value)
	}
	return out
}

// OpenConfig is the size of configuration space readable by every process (pci_read_config, drivers/pci/pci-sysfs.c).
const OpenConfig = 64

// HexValue parses the number in files such as vendor and device; 0 where there is none.
func HexValue(text string) uint64 {
	n, err := strconv.ParseUint(text, 0, 32)
	if err != nil {
		return 0
	}
	return n
}

// Decimal parses a number; 0 if the text is not a number.
func Decimal(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// ReadNCCLConf reads the settings of NCCL on this machine.
func ReadNCCLConf(r reading.Reads) nccl.Env {
	b, err := r.Host.Files.Read("etc/nccl.conf", nil)
	if err != nil {
		r.IssueUnless(err, access.Absent)
		return nccl.Env{}
	}
	return nccl.ParseConf(string(b))
}

// ReadTopology reads the topology file configured for NCCL, or the default one of virtual machines.
func ReadTopology(r reading.Reads, file string) *nccl.Topology {
	files := []string{"var/run/nvidia-topologyd/virtualTopology.xml", "run/nvidia-topologyd/virtualTopology.xml"}
	if file != "" {
		files = []string{strings.TrimPrefix(file, "/")}
	}
	for _, name := range files {
		b, err := r.Host.Files.Read(name, nil)
		if err != nil {
			if file != "" {
				r.Issue(err)
			}
			continue
		}
		t, err := nccl.ParseTopology(bytes.NewReader(b))
		if err != nil {
			r.Issue(access.ErrGarbled(name, nil))
			return nil
		}
		return t
	}
	return nil
}
