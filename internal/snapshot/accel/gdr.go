package accel

// GDR is the requirements of GPUDirect RDMA, and how NCCL would use it.
type GDR struct {
	Virtual bool   // virtual machine: its PCI tree is emulated
	NCCL    string // version that was evaluated; empty: a current one
	Driver  string // version of the GPU driver
	Flavour string // of the GPU driver: open or proprietary; empty: unknown
	Peermem string // loaded peer memory module: nvidia_peermem, nv_peer_mem
	// PeerClient is the peer memory client of AMD GPUs: amdkfd if registered, unknown, empty without one or without AMD
	// GPUs.
	PeerClient string
	GPUs       []GDRGPU
	NICs       []GDRNIC
	Pairs      []GDRPair // by GPU, then by NIC

	Registrations []GDRRegistrations
	Processes     []Process // that hold RDMA devices, or GPUs with NCCL; only visible ones
	PortJobs      []DeviceJobs
	Jobs          []JobInfo
	Libraries     []ProcessLibrary
	JobGIDs       []GDRJobGID
	Trace         *Trace // nil: no eBPF programs are attached
	Registered    []GDRRegistered
}

// GDRTransport is how data of a GPU is currently sent to other hosts.
type GDRTransport struct {
	State         string // gdr, staging, tcp, host_only, unknown: gdr.Transport
	Reason        string // gdr.Reason
	Words, Remedy string
	Process       *Process // that holds the GPU
}

// GDRJobGID is the entry of a port's GID table that a job selects by NCCL_IB_GID_INDEX.
type GDRJobGID struct {
	Device      string
	Port, Index int
	Type        string // roce_v2, roce_v1, empty
	Process     *Process
}

// Mismatch reports whether the entry is not RoCE v2.
func (g *GDRJobGID) Mismatch() bool { return g.Type != "roce_v2" }

// GDRRegistrations is the use of the peer memory mechanism; nil: unknown.
type GDRRegistrations struct {
	Source string  // the module, or memory_peers/CLIENT
	Client string  // of MLNX_OFED up to 23.10
	Live   *uint64 // refcnt of the module; num_alloc_mrs less num_dealloc_mrs of the client
	Bytes  *uint64 // num_reg_bytes less num_dereg_bytes
}

// GDRRegistered is memory that is registered with an RDMA device, of one GPU as far as known.
type GDRRegistered struct {
	Device    string // empty: unknown
	GPU, UUID string // that the registering process holds, if it holds one only
	// dmabuf and peermem: GPU memory; dmabuf_host and host: host memory; dmabuf_other: a DMA-BUF of an unknown exporter.
	Mechanism string
	PID       int // 0: unknown, or of several processes
	Job       string
	Bytes     uint64
	Regions   uint64
}

// GDRGPU is a GPU and its path to the root.
type GDRGPU struct {
	Index, UUID string // of NVML, or as in the driver's files
	PCIAddress  string
	Model       string
	NUMA        int       // numa_node; -1: unknown
	Root        string    // directory of its host bridge
	Hops        []PCIeHop // from the root port to the GPU, both included
	Coupled     bool      // to its CPU by NVLink-C2C
	IOMMU       string    // type of its IOMMU group; empty: none
	Best        GDRPair   // its best eligible NIC
	Process     *Process  // the process whose NCCL settings were evaluated; nil: a current NCCL
	// Transport is nil if no process uses the GPU together with NCCL or an RDMA device, or processes are not visible.
	Transport *GDRTransport
}

// GDRNIC is an RDMA device.
type GDRNIC struct {
	Device     string
	PCIAddress string
	Role       string
	NUMA       int    // numa_node; -1: unknown
	CPUs       string // local_cpulist
	Root       string
	Path       []string // functions from the root port to the device's
	Active     bool     // one of its ports is ACTIVE
	Ports      []int
	IOMMU      string // type of its IOMMU group; empty: none
	Settings   *PCIeSettings
	// Redirect: Access Control Services send traffic between the device and a GPU of the same root port up to the root.
	// Nil: there is no such GPU, or configuration space is not readable.
	Redirect   *bool
	RedirectAt []string // the ports that do
	DMABUF     *bool    // whether it can register DMA-BUFs of the GPUs; nil: unknown, or no GPU
}

// PCIeSettings is Device Control and ATS Control in configuration space.
type PCIeSettings struct {
	MaxPayload, MaxReadRequest int // bytes
	RelaxedOrdering            bool
	ATS, HasATS                bool // address translation services: enabled, supported
}

// GDRPair is the data path between a GPU and a NIC.
type GDRPair struct {
	GPU, NIC      int    // indices; NIC is -1 if there is none that NCCL could use
	Topology      string // distance as in nvidia-smi topo -m; empty: unknown
	Distance      string // distance as in NCCL
	Mechanism     string // that NCCL would use: peermem, dmabuf, none; empty: unknown
	Eligible      bool   // NCCL would use the NIC: it is up and selected
	Send, Receive string // direct, staging, unknown
	Reason        string // gdr.Reason, if not both are direct
	Words, Remedy string // the reason as text, and the remedy
	// Tree is the distance by the PCI tree, where a topology file of NCCL gives Distance; empty: unknown.
	Tree string
	// Of a GPU's best pair.
	Down                string        // the nearer RDMA device without an ACTIVE port
	Obstacles           []GDRObstacle // in the order of removal
	CanSend, CanReceive string        // direct, staging, unknown: once all obstacles but the hardware are removed
}

// GDRObstacle is a reason why data of a GPU does not go to a NIC directly.
type GDRObstacle struct {
	Kind          string // settings, port, mechanism, place
	Reason        string // gdr.Reason
	Words, Remedy string
	// The path of the GPU once this obstacle and those before are removed.
	Send, Receive string
	After         string // gdr.Reason of that path
}
