package answer

import (
	"path"
	"reflect"
	"slices"
	"strings"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
)

// Paths of entries that are no files of the machine.
const (
	SystemPath     = "rdma/system"
	HealthPath     = "devlink/health"
	PodsPath       = "pods"       // pods with devices; empty if there are none
	LaunchersPath  = "launchers"  // services that start jobs, with their limit of locked memory
	KernelLogPath  = "kernel/log" // events
	TracePath      = "ebpf/trace" // what eBPF programs have observed
	PairsPath      = "ebpf/pairs" // what they have observed of queue pairs
	ProcessDir     = "processes"
	NVMLSystemPath = "nvml/system"
	NVMLGPUDir     = "nvml/gpu"
)

// ModesDir has the permission bits of files, by path.
const ModesDir = "modes"

// QueuePairsOf returns the path of the connected queue pairs of a device, as listed by RDMA netlink.
func QueuePairsOf(device string) string { return "rdma/" + device + "/pairs" }

// ConnectionsOf returns the path of the connected IDs of rdma_cm of a device.
func ConnectionsOf(device string) string { return "rdma/" + device + "/connections" }

// LLDPDir has the neighbours of systemd-networkd by interface index: frames, each preceded by its length.
const LLDPDir = "run/systemd/netif/lldp/"

// IsLLDP reports whether an entry has neighbours of systemd-networkd.
func IsLLDP(name string) bool { return strings.HasPrefix(name, LLDPDir) }

// IsSubnet reports whether a path is the entry of both ends of a link.
func IsSubnet(name string) bool {
	return strings.HasPrefix(name, "subnet/") && strings.HasSuffix(name, "/link")
}

var nvmlGPUEntry = lazy.Regexp(`^` + NVMLGPUDir + `/[0-9]+$`)

// IsGPU reports whether an entry is a GPU.
func IsGPU(name string) bool { return nvmlGPUEntry().MatchString(name) }

// LauncherSearch is the services that start jobs. A line of its own marks a search that was not completed.
type LauncherSearch struct {
	Found []hostdata.Launcher
	Cut   bool
}

var countedAnswer = lazy.Regexp(`^(?:rdma|ethtool)/.*/(stats|pause|fec)$|^subnet/.*/(agent|fec|manager)/`)

var readings = []string{"lifespan", "outbound_pci_stalled_rd", "outbound_pci_stalled_wr"}

// IsReading reports whether a value among counters is not one: the lifetime of the kernel's counter cache, the
// percentage of PCIe stalls of mlx5.
func IsReading(name string) bool { return slices.Contains(readings, name) }

// CounterLines returns which lines of an entry are counters; nil for an entry without any.
func CounterLines(p string) func(name string) bool {
	if IsGPU(p) {
		return tableOf(reflect.TypeFor[accel.GPU]()).counts
	}
	m := countedAnswer().FindStringSubmatch(p)
	if m == nil {
		return nil
	}
	switch m[1] + m[2] {
	case "pause":
		return tableOf(reflect.TypeFor[host.Pause]()).counts
	case "manager":
		return tableOf(reflect.TypeFor[host.IBManager]()).counts
	case "fec":
		if m[1] != "" {
			return tableOf(reflect.TypeFor[host.FEC]()).counts
		}
		return tableOf(reflect.TypeFor[host.IBFEC]()).counts
	}
	return func(name string) bool { return !IsReading(path.Base(name)) }
}
