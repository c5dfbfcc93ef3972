package snapshot

// GDR is what GPUDirect RDMA rests on, and what NCCL would make of it.
type GDR struct {
	Virtual bool   // a virtual machine: its PCI tree is made up
	NCCL    string // version that was judged; empty: a current one
	Driver  string // version of the GPU driver
	Flavour string // of the GPU driver: open or proprietary; empty where it cannot be told
	Peermem string // peer memory module that is loaded: nvidia_peermem, nv_peer_mem
	GPUs    []GDRGPU
	NICs    []GDRNIC
	Pairs   []GDRPair // by GPU, then by NIC

	Registrations []GDRRegistrations
	Processes     []Process // that hold RDMA devices, or GPUs with NCCL; only those that could be seen
	JobGIDs       []GDRJobGID
}

// GDRTransport is how data of a GPU goes to other hosts now.
type GDRTransport struct {
	State         string // gdr, staging, tcp, host_only, unknown: gdr.Transport
	Reason        string // gdr.Reason
	Words, Remedy string
	Process       *Process // that holds the GPU
}

// GDRJobGID is an entry of a port's GID table that a job chooses by NCCL_IB_GID_INDEX.
type GDRJobGID struct {
	Device      string
	Port, Index int
	Type        string // roce_v2, roce_v1, empty
	Process     *Process
}

// Mismatch says whether it is not RoCE v2.
func (g *GDRJobGID) Mismatch() bool { return g.Type != "roce_v2" }

// GDRRegistrations is the use of the peer memory mechanism; nil where it is not told.
type GDRRegistrations struct {
	Source string  // the module, or memory_peers/CLIENT
	Client string  // of MLNX_OFED up to 23.10
	Live   *uint64 // refcnt of the module; num_alloc_mrs less num_dealloc_mrs of the client
	Bytes  *uint64 // num_reg_bytes less num_dereg_bytes
}

// GDRGPU is a GPU and its way to the root.
type GDRGPU struct {
	Index, UUID string // of NVML, or as the driver's files tell them
	PCIAddress  string
	Model       string
	NUMA        int       // numa_node; -1 where it is not known
	Root        string    // directory of its host bridge
	Hops        []PCIeHop // from the root port to the GPU, both included
	Coupled     bool      // to its CPU by NVLink-C2C
	IOMMU       string    // type of its IOMMU group; empty where there is none
	Best        GDRPair   // its best eligible NIC
	Process     *Process  // that it was judged for; nil: a current NCCL
	// Transport is nil where nobody uses the GPU together with NCCL or an RDMA device, or processes cannot be seen.
	Transport *GDRTransport
}

// GDRNIC is an RDMA device.
type GDRNIC struct {
	Device     string
	PCIAddress string
	Role       string
	NUMA       int    // numa_node; -1 where it is not known
	CPUs       string // local_cpulist
	Root       string
	Path       []string // functions from the root port to the device's
	Active     bool     // a port of it is ACTIVE
	IOMMU      string   // type of its IOMMU group; empty where there is none
	Settings   *PCIeSettings
	// Redirect says whether Access Control Services send traffic between the device and a GPU of the same root port up to the root. Nil:
	// there is no such GPU, or configuration space cannot be read.
	Redirect   *bool
	RedirectAt []string // the ports that do
	DMABUF     *bool    // whether it can register DMA-BUFs of the GPUs; nil where it is not known, or there is no GPU
}

// PCIeSettings is of Device Control in configuration space.
type PCIeSettings struct {
	MaxPayload, MaxReadRequest int // bytes
	RelaxedOrdering            bool
}

// GDRPair is what becomes of data between a GPU and a NIC.
type GDRPair struct {
	GPU, NIC      int    // indices; NIC is -1 where there is none that NCCL could use
	Topology      string // distance in the words of nvidia-smi topo -m; empty where it is not known
	Distance      string // in those of NCCL
	Mechanism     string // that NCCL would use: peermem, dmabuf, none; empty where it is not known
	Eligible      bool   // NCCL would use the NIC: it is up and of the choice
	Send, Receive string // direct, staging, unknown
	Reason        string // gdr.Reason, of what is not direct if something is not
	Words, Remedy string // the reason for people, and what to do
	Down          string // RDMA device that is nearer and has no ACTIVE port: of a GPU's best pair with that reason
}
