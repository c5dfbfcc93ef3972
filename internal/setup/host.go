package setup

import (
	"rdma_exporter/internal/snapshot"
)

var hostFiles = []string{"proc/sys/kernel/numa_balancing"}

var hostChecks = []Check{
	{
		ID: "numa_balancing", Domain: Host, Name: "automatic NUMA balancing",
		Read:   "/proc/sys/kernel/numa_balancing",
		Wanted: "0 on hosts with GPUs and RDMA devices",
		Why:    "The kernel unmaps pages of jobs to sample their use: page faults during collective operations.",
		Remedy: "sysctl -w kernel.numa_balancing=0", Source: "AMD, tuning guide for GPU servers; NVIDIA, performance tuning",
		find: findNUMABalancing,
	},
}

func findNUMABalancing(m *machine) []finding {
	const file = "proc/sys/kernel/numa_balancing"
	if len(m.devices) == 0 || m.GDR == nil || len(m.GDR.GPUs) == 0 {
		return nil
	}
	text, ok := m.text(file)
	if !ok && m.unread(file) == "" { // a kernel without NUMA
		return nil
	}
	return []finding{{found: text, unknown: m.unread(file), want: "0", meets: text == "0", basis: snapshot.SetupGuide}}
}
