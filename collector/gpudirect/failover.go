package gpudirect

import (
	"slices"

	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/snapshot/accel"
)

var portJobsSurviving = metric.Of("rdma_port_job_info", metric.Beside("rdma_port_job_info",
	metric.Asks(source.Processes, metric.Port("rdma_port_jobs_surviving",
		"Workloads of rdma_port_jobs that go on if the port fails: all of their visible processes have NCCL 2.29.7 or newer with NCCL_IB_RESILIENCY_PORT_FAILOVER=1, and NCCL fuses the port with another one that is ACTIVE.",
		"/proc/PID/environ, nccl.conf; NCCL (p2p_resiliency.cc, ncclTopoAutoMerge)"))))

// countSurvivors sets how many workloads of each port go on if it fails.
func countSurvivors(d *accel.GDR, nics []gdrNIC, conf nccl.Env) {
	d.PortJobs = slices.Clone(d.PortJobs)
	for i := range d.PortJobs {
		on := &d.PortJobs[i]
		on.Surviving = make([]int, len(on.Ports))
		n := slices.IndexFunc(nics, func(n gdrNIC) bool { return n.Device == on.Device })
		for j, port := range on.Ports {
			for _, job := range on.Jobs {
				if n >= 0 && survives(d.Processes, job.Workload, conf, nics, &nics[n], port) {
					on.Surviving[j]++
				}
			}
		}
	}
}

// survives reports whether a workload goes on without a port.
func survives(
	processes []accel.Process, who accel.Workload, conf nccl.Env, nics []gdrNIC, nic *gdrNIC, port int,
) bool {
	seen := false
	for i := range processes {
		p := &processes[i]
		if p.Workload() != who {
			continue
		}
		env := settings(p, conf)
		if p.Plugin || p.Conf == nil || !env.FailsOver(p.NCCL) || !hasSpare(env, nics, nic, port) {
			return false
		}
		seen = true
	}
	return seen
}

// hasSpare reports whether a process uses another ACTIVE port of the same fused NIC.
func hasSpare(env nccl.Env, nics []gdrNIC, nic *gdrNIC, port int) bool {
	own := nccl.NetPort{Device: nic.Device, Port: port, Address: nic.PCIAddress}
	for i := range nics {
		other := &nics[i]
		for _, p := range other.Ports {
			spare := nccl.NetPort{Device: other.Device, Port: p.Number, Address: other.PCIAddress}
			if p.Active && spare != own && env.AllowsPort(other.Device, p.Number) &&
				env.Fuses(own, spare, pci.DistanceOf(nic.Place, other.Place)) {
				return true
			}
		}
	}
	return false
}
