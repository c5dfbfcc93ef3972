package snapshot

// Process is a process that holds an RDMA device (/dev/infiniband/uverbsN), or a GPU with NCCL mapped. Unreadable fields are empty.
type Process struct {
	PID     int
	Command string   // name in /proc/PID/stat
	GPUs    []int    // minor numbers of held GPUs: /dev/nvidiaN
	Verbs   []string // held nodes of RDMA devices: uverbs0
	Cut     bool     // more files are open than are checked: it may hold more
	NCCL    string   // version of the mapped NCCL: libnccl.so.2.22.3; also empty if its file name has no number
	HasNCCL bool     // NCCL is mapped
	Plugin  bool     // a net plugin of NCCL is mapped: libnccl-net*.so
	Mover   bool     // a library that transfers caches by RDMA is mapped: NIXL, Mooncake
	// Env is the job-related part of its environment, without secrets: NCCL_*, UCX_IB_*, SLURM_JOB_ID, SLURM_JOB_NUM_NODES, WORLD_SIZE,
	// LOCAL_WORLD_SIZE, as of the start of the program.
	Env map[string]string
	// Conf is NCCL's settings in files, as the process sees them: NCCL_CONF_FILE or ~/.nccl.conf, then /etc/nccl.conf. Nil: these or Env
	// could not be read completely, or there is no NCCL.
	Conf map[string]string
	// Topology is the functions and NUMA nodes of its own NCCL_TOPO_FILE, as <system><cpu numaid><pci busid>; empty: none.
	Topology string
	// DMABUFs are the DMA-BUFs of GPU memory that it keeps open, by exporter. Empty also where its fdinfo cannot be read.
	DMABUFs []DMABUFs
	// LockedMemory is the soft limit "Max locked memory" in bytes. Nil: unlimited or unreadable.
	LockedMemory *uint64
	Unlimited    bool // the soft limit of locked memory is "unlimited"
	// Regions are the memory regions registered with RDMA devices, and their bytes: RDMA netlink RES_MR_GET. Nil: unknown.
	Regions, RegionBytes *uint64
	Job                  string // slurm/123, or kubernetes/UID of the pod
}

// DMABUFs are DMA-BUFs of one exporter that a process keeps open. A library that closes the descriptor after registering it with a NIC
// (NCCL) leaves none.
type DMABUFs struct {
	Exporter string
	Buffers  int    // two descriptors of one buffer count once
	Bytes    uint64 // their sizes
}

// Exporters of GPU memory, exp_name of /proc/PID/fdinfo: nvidia (nv-dmabuf.c), and amdgpu, which exports by the DRM core
// (drm_gem_prime_export). Other DRM drivers have the name of amdgpu: it counts only for a process with /dev/kfd.
const (
	ExporterNVIDIA = "nv_dmabuf"
	ExporterDRM    = "drm"
)
