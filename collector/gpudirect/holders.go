package gpudirect

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

var (
	portJobInfo = metric.Of("rdma_port_job_info", metric.Asks(source.Processes, metric.Port("rdma_port_job_info",
		"Workload that uses the port, always 1: a process of it has memory registered with the RDMA device, or a queue pair on it. A port of a physical function has those of its virtual functions and subfunctions too. At most 16 for each port, those with the most registered memory; rdma_port_jobs counts all. scheduler and job_id: slurm and the job, kubernetes and the UID of the pod, container and the first digits of its ID, systemd and the unit, session and the login session, none, unknown (a process that is not visible). namespace and pod: names of the pod, only with --collector.gdr.pod-resources, and empty if its devices do not identify it. Where RDMA netlink does not list memory regions: workloads that have the device open.",
		"RDMA netlink RES_CTX_GET, RES_MR_GET, RES_QP_GET of drivers without a firmware command for it; /proc/PID/cgroup; the kubelet's PodResources API",
		"scheduler", "job_id", "namespace", "pod")))
	portJobs = metric.Of("rdma_port_job_info", metric.Beside("rdma_port_job_info", metric.Asks(source.Processes,
		metric.Port("rdma_port_jobs", "Workloads that use the port; absent if there are none. See rdma_port_job_info.",
			"as rdma_port_job_info"))))
	gpuJobInfo = metric.Of("rdma_port_job_info", metric.Beside("rdma_port_job_info", metric.Asks(source.Processes,
		metric.GPU("rdma_gpu_job_info",
			"Workload with a process that has the GPU open, and a communication library or an RDMA device, always 1. Labels as in rdma_port_job_info; at most 16 for each GPU.",
			"/proc/PID/fd, /proc/PID/cgroup", "scheduler", "job_id", "namespace", "pod"))))
	jobInfo = metric.Of("rdma_job_info", metric.Host("rdma_job_info",
		"Name and user of a workload of rdma_port_job_info or rdma_gpu_job_info, always 1; at most 64. name: SLURM_JOB_NAME; user: number of the user. Only with --collector.gdr.job-names.",
		"/proc/PID/environ, /proc/PID/status", "scheduler", "job_id", "name", "user"))
)

// Limits of series. Users may start any number of jobs.
const (
	jobsOfPort = 16
	jobsNamed  = 64
)

// listsQPs reports whether the queue pairs of a device can be listed without firmware commands.
func listsQPs(name string, devices []snapshot.Device) bool {
	i := slices.IndexFunc(devices, func(d snapshot.Device) bool { return d.Name == name })
	return i >= 0 && shared.ListsQPs(devices[i].Driver)
}

// jobs returns the workloads on the ports of each device. A device without an answer of RDMA netlink has the processes
// that have it open.
func (o holderSearch) jobs(
	h *host.Host, found []accel.Process, names []string, devices []snapshot.Device,
) (out []accel.DeviceJobs) {
	byPID := map[int]*accel.Process{}
	for i := range found {
		byPID[found[i].PID] = &found[i]
	}
	nodes := map[string]string{} // of devices that do not answer
	if len(o.devices) < len(names) &&
		slices.ContainsFunc(found, func(p accel.Process) bool { return len(p.Verbs) > 0 }) {
		nodes = verbsDevices(h)
	}
	sums := map[string]map[accel.Workload]*accel.PortJob{}
	for _, name := range names {
		answer, answered := o.devices[name]
		uses := listHolders(answer, byPID)
		if !answered {
			uses = opened(found, nodes, name)
		}
		if len(uses) == 0 {
			continue
		}
		merge(sums, name, uses)
		if parent := parentDevice(h, name, devices); parent != "" && parent != name {
			merge(sums, parent, uses)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		i := slices.IndexFunc(devices, func(d snapshot.Device) bool { return d.Name == name })
		if i < 0 {
			continue
		}
		one := accel.DeviceJobs{Device: name}
		for j := range devices[i].Ports {
			one.Ports = append(one.Ports, devices[i].Ports[j].Number)
		}
		for _, job := range sums[name] {
			one.Jobs = append(one.Jobs, *job)
		}
		slices.SortFunc(one.Jobs, busiestFirst)
		out = append(out, one)
	}
	return out
}

// listHolders returns the uses of a device, one for each process that RDMA netlink lists with registered memory or
// queue pairs. NCCL opens all devices, also those that it does not use.
func listHolders(answer []host.RDMAHolder, byPID map[int]*accel.Process) (uses []accel.PortJob) {
	uses = make([]accel.PortJob, 0, len(answer))
	for i := range answer {
		one := &answer[i]
		if one.Regions == 0 && counters.ValueOf(one.QPs) == 0 {
			continue
		}
		who := accel.Workload{Scheduler: "unknown"}
		if p := byPID[one.PID]; p != nil {
			who = p.Workload()
		}
		uses = append(uses, accel.PortJob{
			Workload: who, Processes: 1, Contexts: one.Contexts, RegionBytes: one.RegionBytes, Regions: &one.Regions,
			QPs: one.QPs,
		})
	}
	return uses
}

// opened returns the uses of a device by processes that have it open.
func opened(found []accel.Process, nodes map[string]string, device string) (uses []accel.PortJob) {
	for i := range found {
		p := &found[i]
		if slices.ContainsFunc(p.Verbs, func(node string) bool { return nodes[node] == device }) {
			uses = append(uses, accel.PortJob{Workload: p.Workload(), Processes: 1})
		}
	}
	return uses
}

// merge adds uses to the workloads of a device.
func merge(sums map[string]map[accel.Workload]*accel.PortJob, device string, uses []accel.PortJob) {
	if sums[device] == nil {
		sums[device] = map[accel.Workload]*accel.PortJob{}
	}
	for _, use := range uses {
		sum := counters.Entry(sums[device], use.Workload)
		sum.Workload = use.Workload
		sum.Processes, sum.Contexts, sum.RegionBytes = sum.Processes+use.Processes, sum.Contexts+use.Contexts,
			sum.RegionBytes+use.RegionBytes
		add(&sum.Regions, use.Regions)
		add(&sum.QPs, use.QPs)
	}
}

// add adds a number that may be unknown to a sum; nil: none is known.
func add(sum **uint64, n *uint64) {
	if n == nil {
		return
	}
	if *sum == nil {
		*sum = new(uint64)
	}
	**sum += *n
}

func busiestFirst(a, b accel.PortJob) int {
	return cmp.Or(cmp.Compare(b.RegionBytes, a.RegionBytes), cmp.Compare(counters.ValueOf(b.QPs), counters.ValueOf(a.QPs)),
		cmp.Compare(a.Scheduler, b.Scheduler), cmp.Compare(a.ID, b.ID))
}

// verbsDevices returns the devices by uverbs node.
func verbsDevices(h *host.Host) map[string]string {
	out := map[string]string{}
	names, _ := h.Files.List(sysfs.VerbsDir)
	for _, node := range names {
		if !strings.HasPrefix(node, "uverbs") {
			continue
		}
		if b, err := h.Files.Read(sysfs.VerbsDir+"/"+node+"/ibdev", nil); err == nil {
			out[node] = strings.TrimSpace(string(b))
		}
	}
	return out
}

// parentDevice returns the device of the physical function of a virtual function or subfunction; empty: none on this
// host.
func parentDevice(h *host.Host, name string, devices []snapshot.Device) string {
	address := shared.PhysicalFunction(h.Files, name)
	i := slices.IndexFunc(devices,
		func(d snapshot.Device) bool { return address != "" && d.PCIAddress == address && d.Name != name })
	if i < 0 {
		return ""
	}
	return devices[i].Name
}

// jobsOn returns the workloads of the processes, with their GPUs.
func jobsOn(found []accel.Process, gpus []gdrGPU) (out []accel.JobInfo) {
	for i := range found {
		p := &found[i]
		who := p.Workload()
		k := slices.IndexFunc(out, func(j accel.JobInfo) bool { return j.Workload == who })
		if k < 0 {
			k = len(out)
			out = append(out, accel.JobInfo{Workload: who})
		}
		j := &out[k]
		j.Name, j.User = cmp.Or(j.Name, p.JobName), cmp.Or(j.User, p.User)
		if p.Step != "" && !slices.Contains(j.Steps, p.Step) {
			j.Steps = append(j.Steps, p.Step)
		}
		for g := range gpus {
			if slices.Contains(p.GPUs, gpus[g].minor) && !slices.Contains(j.GPUs, g) {
				j.GPUs = append(j.GPUs, g)
			}
		}
	}
	for i := range out {
		slices.Sort(out[i].Steps)
		slices.Sort(out[i].GPUs)
	}
	slices.SortFunc(out, func(a, b accel.JobInfo) int {
		return cmp.Or(cmp.Compare(a.Scheduler, b.Scheduler), cmp.Compare(a.ID, b.ID))
	})
	return out
}

func emitJobs(s metric.Sink, d *accel.GDR) {
	for _, device := range d.PortJobs {
		for i, number := range device.Ports {
			port := strconv.Itoa(number)
			for _, j := range device.Jobs[:min(jobsOfPort, len(device.Jobs))] {
				s.Emit(portJobInfo, 1, device.Device, port, j.Scheduler, j.ID, j.Namespace, j.Pod)
			}
			s.Emit(portJobs, float64(len(device.Jobs)), device.Device, port)
			if i < len(device.Surviving) {
				s.Emit(portJobsSurviving, float64(device.Surviving[i]), device.Device, port)
			}
		}
	}
	emitted := make([]int, len(d.GPUs))
	for i, j := range d.Jobs {
		for _, g := range j.GPUs {
			if emitted[g]++; emitted[g] <= jobsOfPort {
				s.Emit(gpuJobInfo, 1, d.GPUs[g].Index, d.GPUs[g].UUID, j.Scheduler, j.ID, j.Namespace, j.Pod)
			}
		}
		metric.EmitIf(s, i < jobsNamed && j.Name+j.User != "", jobInfo, j.Scheduler, j.ID, j.Name, j.User)
	}
}
