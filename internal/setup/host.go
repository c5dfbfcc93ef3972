package setup

import (
	"fmt"
	"slices"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
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
	{
		// It changes with the load: it is no metric.
		ID: "irq_locality", ofJob: true, Domain: Host, Name: "CPUs that serve the interrupts of a device",
		Read:   "/sys/class/infiniband/DEV/device/{msi_irqs,local_cpulist}, /sys/kernel/irq/N/per_cpu_count (since Linux 4.9): since the driver has requested the interrupts",
		Wanted: "local: 90% on the CPUs of the NUMA node of the device, on hosts with several",
		Why:    "Completions on the other socket cross the link between the sockets: latency, and TCP throughput. Jobs that poll for completions have few interrupts.",
		Remedy: "for i in $(ls /sys/class/infiniband/{device}/device/msi_irqs); do cat /sys/class/infiniband/{device}/device/local_cpulist > /proc/irq/$i/smp_affinity_list; done",
		Source: "NVIDIA, performance tuning for Mellanox adapters: IRQ affinity; Documentation/core-api/irq/irq-affinity.rst of the kernel",
		find:   each(func(m *machine) []hostdata.DeviceInterrupts { return m.Setup.Interrupts }, findIRQLocality),
	},
}

func findNUMABalancing(m *machine) []finding {
	const file = "proc/sys/kernel/numa_balancing"
	if len(m.devices) == 0 || m.GDR == nil || len(m.GDR.GPUs) == 0 {
		return nil
	}
	text, ok := m.files.Text(file)
	if !ok && m.files.Unread(file) == "" { // a kernel without NUMA
		return nil
	}
	return []finding{{
		found: text, unknown: m.files.Unread(file), want: "0", meets: text == "0", basis: hostdata.SetupGuide,
	}}
}

const (
	// fewInterrupts are those of links that change and of an idle device.
	fewInterrupts = 100_000
	// localShare of the interrupts is local, and others are those of a few more queues than local CPUs.
	localShare = 0.9
)

func findIRQLocality(m *machine, x hostdata.DeviceInterrupts) (f finding, ok bool) {
	f = finding{object: object{device: x.Device}, want: "local", basis: hostdata.SetupGuide}
	share := float64(x.Local) / float64(max(x.Total, 1))
	switch {
	case !x.Elsewhere || !slices.ContainsFunc(m.devices, func(d *snapshot.Device) bool { return d.Name == x.Device }):
		return f, false
	case x.Unread != "":
		f.unknown = "/sys/kernel/irq: " + x.Unread
	case x.Total < fewInterrupts:
		return f, false
	case share >= localShare:
		f.found, f.meets = "local", true
	case share >= 0.5:
		f.found = "mostly local"
	default:
		f.found = "mostly remote"
	}
	f.evidence = fmt.Sprintf("%.0f%% of %d interrupts on CPUs %s", 100*share, x.Total, x.CPUs)
	return f, true
}
