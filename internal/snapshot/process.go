package snapshot

// Process is one that holds an RDMA device (/dev/infiniband/uverbsN), or a GPU with NCCL mapped. A field that cannot be read is empty.
type Process struct {
	PID     int
	Command string   // its name: of /proc/PID/stat
	GPUs    []int    // minor numbers of the GPUs that it holds: /dev/nvidiaN
	Verbs   []string // nodes of RDMA devices that it holds: uverbs0
	Cut     bool     // it has more open than is looked at, so that it may hold more
	NCCL    string   // version of NCCL that is mapped: libnccl.so.2.22.3; empty also where its file name has no number
	HasNCCL bool     // NCCL is mapped
	Plugin  bool     // a net plugin of NCCL is mapped: libnccl-net*.so
	Mover   bool     // a library is mapped that moves caches by RDMA: NIXL, Mooncake
	// Env is what of its environment is about the job and no secret: names that begin with NCCL_, and SLURM_JOB_ID,
	// SLURM_JOB_NUM_NODES, WORLD_SIZE, LOCAL_WORLD_SIZE. It is as it was when the program started.
	Env map[string]string
	// Conf is NCCL's settings of files as the process sees them: of NCCL_CONF_FILE or ~/.nccl.conf, then of /etc/nccl.conf. Nil: they or Env
	// cannot all be read, or there is no NCCL.
	Conf map[string]string
	// Topology is the functions and NUMA nodes of its own NCCL_TOPO_FILE, as <system><cpu numaid><pci busid>; empty where it has none.
	Topology string
	// LockedMemory is the most that it may lock, in bytes: Max locked memory of limits. Nil: there is no limit, or it cannot be read.
	LockedMemory *uint64
	// Regions are the memory regions that it has registered with RDMA devices, and their bytes: RDMA netlink RES_MR_GET. Nil: not told.
	Regions, RegionBytes *uint64
	Job                  string // slurm/123, or kubernetes/UID of the pod
}
