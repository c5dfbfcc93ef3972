package capture

import (
	"path"
	"reflect"
	"slices"
	"strings"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/snapshot"
)

// Paths of entries that are no files of the machine.
const (
	systemPath     = "rdma/system"
	healthPath     = "devlink/health"
	podsPath       = "pods"       // pods with devices; empty if there are none
	launchersPath  = "launchers"  // services that start jobs, with their limit of locked memory
	kernelLogPath  = "kernel/log" // events
	tracePath      = "ebpf/trace" // what eBPF programs have observed
	processDir     = "processes"
	nvmlSystemPath = "nvml/system"
	nvmlGPUDir     = "nvml/gpu"
)

// modesDir has the permission bits of files, by path.
const modesDir = "modes"

// lldpDir has the neighbours of systemd-networkd by interface index: frames, each preceded by its length.
const lldpDir = "run/systemd/netif/lldp/"

func isLLDP(name string) bool { return strings.HasPrefix(name, lldpDir) }

// isSubnet reports whether a path is the entry of both ends of a link.
func isSubnet(name string) bool {
	return strings.HasPrefix(name, "subnet/") && strings.HasSuffix(name, "/link")
}

var nvmlGPUEntry = lazy.Regexp(`^` + nvmlGPUDir + `/[0-9]+$`)

func isGPU(name string) bool { return nvmlGPUEntry().MatchString(name) }

// launcherSearch is the services that start jobs. A line of its own marks a search that was not completed.
type launcherSearch struct {
	Found []snapshot.Launcher
	Cut   bool
}

var countedAnswer = lazy.Regexp(`^(?:rdma|ethtool)/.*/(stats|pause|fec)$|^subnet/.*/(agent|fec|manager)/`)

var readings = []string{"lifespan", "outbound_pci_stalled_rd", "outbound_pci_stalled_wr"}

// isReading reports whether a value among counters is not one: the lifetime of the kernel's counter cache, the
// percentage of PCIe stalls of mlx5.
func isReading(name string) bool { return slices.Contains(readings, name) }

// countedLines returns which lines of an entry are counters; nil for an entry without any.
func countedLines(p string) func(name string) bool {
	if isGPU(p) {
		return tableOf(reflect.TypeFor[snapshot.GPU]()).counts
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
	return func(name string) bool { return !isReading(path.Base(name)) }
}
