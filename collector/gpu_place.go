package collector

import (
	"bytes"
	"path"
	"strconv"
	"strings"

	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/reading"
)

// readBridge reads the model of a bridge.
func readBridge(r *reading.Reader, at string) pci.Bridge {
	return pci.Bridge{
		Vendor: hexValue(r.Optional(at + "/vendor")), Device: hexValue(r.Optional(at + "/device")),
		SubVendor: hexValue(r.Optional(at + "/subsystem_vendor")), SubDevice: hexValue(r.Optional(at + "/subsystem_device")),
	}
}

// readGPUPlace reads the place of a GPU, whether it is coupled to its CPU, and whether its place is virtual, by the
// vendor of its root port: a real GPU has a port above it.
func readGPUPlace(r *reading.Reader, dir string) (g gdr.GPU, emulated bool) {
	g = gdr.GPU{Address: path.Base(dir), Place: readPlace(r, dir)}
	root := ""
	if g.Place.Bridged() {
		root = r.Optional(pciDir + g.Place.Chain[0] + "/vendor")
	}
	g.Coupled = pci.Coupled(r.Optional(dir+"/vendor"), root)
	return g, !g.Place.Bridged() || pci.Emulated(root)
}

// readConfig reads configuration space, and returns its readable size. It costs the kernel some hundred register reads,
// once an hour.
func readConfig(r *reading.Reader, dir string) (c pci.Config, size int, ok bool) {
	r.Ask(1)
	b, err := r.Host.Files.ReadIn(dir, "config", nil)
	if err != nil {
		r.IssueUnless(err, host.Absent)
		return c, 0, false
	}
	c, ok = pci.ParseConfig(b)
	return c, len(b), ok
}

func readPlace(r *reading.Reader, dir string) pci.Place {
	numa, err := strconv.Atoi(r.Optional(dir + "/numa_node"))
	if err != nil {
		numa = -1
	}
	return pci.PlaceOf(dir, numa)
}

// gpuInformation is what NVIDIA's driver exposes of a GPU without NVML.
func gpuInformation(r *reading.Reader, address string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(r.Optional("proc/driver/nvidia/gpus/" + address + "/information")) {
		key, value, _ := strings.Cut(line, ":")
		out[key] = strings.TrimSpace(value)
	}
	return out
}

// openConfig is the size of configuration space readable by every process (pci_read_config, drivers/pci/pci-sysfs.c).
const openConfig = 64

// hexValue parses the number in files such as vendor and device; 0 where there is none.
func hexValue(text string) uint64 {
	n, err := strconv.ParseUint(text, 0, 32)
	if err != nil {
		return 0
	}
	return n
}

// decimal is a number; 0 where there is none.
func decimal(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// readNCCLConf reads the settings of NCCL on this machine.
func readNCCLConf(r *reading.Reader) gdr.Env {
	b, err := r.Host.Files.Read("etc/nccl.conf", nil)
	if err != nil {
		r.IssueUnless(err, host.Absent)
		return gdr.Env{}
	}
	return gdr.ParseConf(string(b))
}

// readTopology reads the topology file configured for NCCL, or the default one of virtual machines.
func readTopology(r *reading.Reader, file string) *gdr.Topology {
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
		t, err := gdr.ParseTopology(bytes.NewReader(b))
		if err != nil {
			r.Issue(host.ErrGarbled(name, nil))
			return nil
		}
		return t
	}
	return nil
}
