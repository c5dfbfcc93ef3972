package snapshot

// Process is one that holds an RDMA device (/dev/infiniband/uverbsN). A field that cannot be read is empty.
type Process struct {
	PID     int
	GPUs    []int    // minor numbers of the GPUs that it holds: /dev/nvidiaN
	Verbs   []string // nodes of RDMA devices that it holds: uverbs0
	NCCL    string   // version of NCCL that is mapped: libnccl.so.2.22.3; empty also where its file name has no number
	HasNCCL bool     // NCCL is mapped
	Plugin  bool     // a net plugin of NCCL is mapped: libnccl-net*.so
	// Env is what of its environment is about the job and no secret: names that begin with NCCL_, and SLURM_JOB_ID,
	// SLURM_JOB_NUM_NODES, WORLD_SIZE, LOCAL_WORLD_SIZE. It is as it was when the program started.
	Env map[string]string
	// LockedMemory is the most that it may lock, in bytes: Max locked memory of limits. Nil: there is no limit, or it cannot be read.
	LockedMemory *uint64
	Job          string // slurm/123, or kubernetes/UID of the pod
}
