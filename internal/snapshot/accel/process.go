package accel

import (
	"strings"
	"time"
)

// Process is a process that holds an RDMA device (/dev/infiniband/uverbsN), or a GPU with a communication library.
// Unreadable fields are empty.
type Process struct {
	PID     int
	Command string // name in /proc/PID/stat
	// Started is the time of its start since boot (CLOCK_BOOTTIME), in steps of 10 ms; 0: unknown.
	Started time.Duration
	GPUs    []int    // minor numbers of held GPUs: /dev/nvidiaN
	Verbs   []string // held nodes of RDMA devices: uverbs0
	Cut     bool     // more files are open than are checked: it may hold more
	// Its open files are not readable: it has only a name, a job and a start time.
	Hidden bool
	// Version of the mapped NCCL: libnccl.so.2.22.3; empty if the file has none.
	NCCL    string
	HasNCCL bool // NCCL is mapped
	Plugin  bool // a net plugin of NCCL is mapped: libnccl-net*.so
	Mover   bool // a library that transfers caches by RDMA is mapped: NIXL, Mooncake
	// Libraries are the mapped communication libraries, sorted: nccl, ucx, … (gdr/library).
	Libraries []string
	// RDMANodes: there are nodes of RDMA devices below its root directory (/dev/infiniband/uverbsN). IMEXChannels: there
	// are IMEX channels (/dev/nvidia-caps-imex-channels/channelN). Nil: unknown, or it has no library.
	RDMANodes, IMEXChannels *bool
	// Capabilities are its effective ones, CapEff in /proc/PID/status. Nil: unknown, or it is in a user namespace, in
	// which they do not apply to devices.
	Capabilities *uint64
	// DMABUFs are the DMA-BUFs of GPU memory that it keeps open, by exporter. Empty also where its fdinfo cannot be read.
	DMABUFs []DMABUFs
	// LockedMemory is the soft limit "Max locked memory" in bytes. Nil: unlimited or unreadable.
	LockedMemory *uint64
	Unlimited    bool // the soft limit of locked memory is "unlimited"
	// MayOpen: it is root, or in all groups that own nodes of RDMA devices (uverbs) which others may not open. Nil:
	// unknown, or others may open all of them.
	MayOpen *bool
	Job     string // slurm/123, or kubernetes/UID of the pod
	// Step, Container and Unit are of its control group. Step: of a Slurm job, 0, batch, extern. Container: the first 12
	// digits of its ID. Unit: systemd's, only without job and container: ganesha.service, session-3.scope; user.slice for
	// units of a user's own manager.
	Step      string
	Container string
	Unit      string
	// Network is the number of its network namespace if that is not the one of process 1, and Netdevs the names of the
	// netdevs there but lo, separated by spaces: eth0 net1. Empty: the network of the host, or unknown.
	Network string
	Netdevs string
	// Peers is the number of other hosts that a process with NCCL and without an RDMA device has TCP connections to, both
	// ports assigned by the kernel, and PeersOver the interfaces of the host that these use. Nil: unknown.
	Peers     *uint64
	PeersOver string
	// JobName and User are SLURM_JOB_NAME and the real user ID. Empty unless permitted (--collector.gdr.job-names).
	JobName string
	User    string
	// Env is the job-related part of its environment, without secrets: NCCL_*, UCX_IB_*, SLURM_JOB_ID, the size of the
	// job (nccl.NodeVariables), and the rank (RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK), as of the start of the program.
	Env map[string]string
	// Conf is NCCL's settings in files below the root directory of the process: NCCL_CONF_FILE or ~/.nccl.conf, then
	// /etc/nccl.conf. Nil: these or Env could not be read completely, or there is no NCCL.
	Conf map[string]string
	// Topology is the functions and NUMA nodes of its own NCCL_TOPO_FILE, as <system><cpu numaid><pci busid>; empty: none.
	Topology string `foreign:"parsed"`

	// Regions are the memory regions registered with RDMA devices, and their bytes: RDMA netlink RES_MR_GET. Nil: unknown.
	Regions, RegionBytes *uint64
	// Namespace and Pod are the names of a pod, from the kubelet (--collector.gdr.pod-resources). Empty unless its devices
	// identify it.
	Namespace, Pod string
}

// Workload identifies what a process belongs to. Scheduler: slurm, kubernetes, container, systemd, session (of a user),
// none.
func (p *Process) Workload() Workload {
	scheduler, id, ok := strings.Cut(p.Job, "/")
	session := strings.TrimSuffix(p.Unit, ".scope")
	switch {
	case ok:
		return Workload{scheduler, id, p.Namespace, p.Pod}
	case p.Container != "":
		return Workload{Scheduler: "container", ID: p.Container}
	case p.Unit == userSlice:
		return Workload{Scheduler: "session"}
	case strings.HasPrefix(p.Unit, "session-") && session != p.Unit:
		return Workload{Scheduler: "session", ID: session}
	case p.Unit != "":
		return Workload{Scheduler: "systemd", ID: p.Unit}
	}
	return Workload{Scheduler: "none"}
}

// userSlice stands for all units of users' own managers: their names are the users' choice.
const userSlice = "user.slice"

// Workload is a job, a pod, a container, a service or a session.
type Workload struct {
	Scheduler string `json:"scheduler"`        // see Process.Workload; unknown: a process that is not visible
	ID        string `json:"job_id,omitempty"` // of the job, UID of the pod, of the container, name of the unit
	// Namespace and Pod are the names of a pod; empty: unknown.
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
}

// Key returns the workload as one word: slurm/77, none.
func (w *Workload) Key() string { return strings.TrimSuffix(w.Scheduler+"/"+w.ID, "/") }

// JobInfo describes a workload on the host.
type JobInfo struct {
	Workload
	Name, User string   // where permitted
	Steps      []string // of a Slurm job, sorted
	GPUs       []int    // indices in GDR.GPUs
}

// PortJob is a workload that uses the ports of an RDMA device.
type PortJob struct {
	Workload
	Processes   int
	Contexts    uint64  // 0 where RDMA netlink does not list them
	Regions     *uint64 // memory regions registered with the device; nil: unknown, the device is open
	RegionBytes uint64
	QPs         *uint64 // queue pairs; nil: not listed by this driver without a firmware command each
}

// DeviceJobs are the workloads that use an RDMA device or a function of it, the busiest first.
type DeviceJobs struct {
	Device    string
	Ports     []int
	Surviving []int // of each port, how many of the workloads go on over another port if it fails
	Jobs      []PortJob
}

// DMABUFs are DMA-BUFs of one exporter that a process keeps open. A library that closes the descriptor after
// registering it with a NIC (NCCL) leaves none.
type DMABUFs struct {
	Exporter string
	Buffers  int    // two descriptors of one buffer count once
	Bytes    uint64 // their sizes
}

// Exporters of GPU memory, exp_name of /proc/PID/fdinfo: nvidia (nv-dmabuf.c), and amdgpu, which exports by the DRM
// core (drm_gem_prime_export). Other DRM drivers have the name of amdgpu: it counts only for a process with /dev/kfd.
const (
	ExporterNVIDIA = "nv_dmabuf"
	ExporterDRM    = "drm"
)
