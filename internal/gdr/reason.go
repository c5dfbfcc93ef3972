package gdr

import (
	"maps"
	"slices"
)

// Reason says why data goes as it does.
type Reason string

// The reasons. Those of direct ways come first, then those why there is no mechanism, then the others of staging, then those of what
// cannot be known.
const (
	IsDirect        Reason = "direct"
	DirectCoupled   Reason = "direct_c2c"
	DirectForcedPCI Reason = "direct_pcie_mapping"

	PeermemNotLoaded  Reason = "peermem_not_loaded"
	PeermemInvisible  Reason = "peermem_invisible_to_nccl"
	DriverProprietary Reason = "gpu_driver_proprietary"
	DriverOld         Reason = "gpu_driver_without_dmabuf"
	KernelOld         Reason = "kernel_without_dmabuf"
	NICDriverLacks    Reason = "nic_driver_without_dmabuf"
	DMABUFDisabled    Reason = "dmabuf_disabled"

	GPUUnsupported Reason = "gpu_unsupported"
	FarHostBridge  Reason = "beyond_host_bridge"
	FarNode        Reason = "other_numa_node"
	NearestDown    Reason = "nearest_port_down"
	CoupledOff     Reason = "c2c_not_used"
	CoupledFar     Reason = "other_cpu"
	LevelSet       Reason = "gdr_level_set"
	ReadOff        Reason = "gdr_read_disabled"
	PreAmpere      Reason = "pre_ampere_send"

	NoNIC            Reason = "no_nic"
	NoActiveNIC      Reason = "no_active_nic"
	NoChosenNIC      Reason = "no_chosen_nic"
	NotNVIDIA        Reason = "gpu_not_nvidia"
	NetPlugin        Reason = "net_plugin"
	EFA              Reason = "efa"
	VirtualTopology  Reason = "vm_topology"
	ModelUnknown     Reason = "gpu_model_unknown"
	FlavourUnknown   Reason = "gpu_driver_unknown"
	KernelUnknown    Reason = "kernel_unknown"
	NICDriverUnknown Reason = "nic_driver_unknown"
	LinksUnknown     Reason = "nvlink_unknown"
)

// advice is a reason in words, and what to do.
type advice struct{ words, remedy string }

var advices = map[Reason]advice{
	IsDirect:        {"the NIC reads and writes the GPU's memory itself", ""},
	DirectCoupled:   {"the NIC reaches the GPU's memory through the CPU that the GPU is coupled to", ""},
	DirectForcedPCI: {"the NIC reaches the GPU's memory over PCIe, though the GPU is coupled to its CPU", ""},

	PeermemNotLoaded:  {"nvidia_peermem is not loaded and DMA-BUF is unavailable", "load nvidia_peermem (modprobe nvidia_peermem) and add it to /etc/modules-load.d; if it does not load, reinstall the GPU driver after MLNX_OFED"},
	PeermemInvisible:  {"NCCL searches nvidia_peermem in /sys/kernel/mm/memory_peers, which MLNX_OFED 24.04 and newer lack, and DMA-BUF is unavailable", "use NCCL 2.23.4 or newer with nvidia_peermem, or the open GPU kernel modules for DMA-BUF"},
	DriverProprietary: {"the proprietary GPU kernel modules export no DMA-BUF and no peer memory module is loaded", "install the open GPU kernel modules, or MLNX_OFED and nvidia_peermem"},
	DriverOld:         {"the GPU driver is older than 515 and exports no DMA-BUF, and no peer memory module is loaded", "install a newer GPU driver with open kernel modules, or MLNX_OFED and nvidia_peermem"},
	KernelOld:         {"ib_core of this kernel cannot register DMA-BUFs and no peer memory module is loaded", "run Linux 5.12 or newer, or install MLNX_OFED and nvidia_peermem"},
	NICDriverLacks:    {"the NIC driver cannot register DMA-BUFs and no peer memory module is loaded", "use a newer kernel, or a NIC driver of the vendor that has reg_user_mr_dmabuf"},
	DMABUFDisabled:    {"NCCL_DMABUF_ENABLE=0 disables DMA-BUF and no peer memory module is loaded", "remove NCCL_DMABUF_ENABLE from the job's environment and from nccl.conf"},

	GPUUnsupported: {"this GPU has no GPUDirect RDMA", "use a data center or professional GPU"},
	FarHostBridge:  {"the nearest eligible NIC is behind another host bridge or root port than the GPU", "put GPU and NIC behind one PCIe switch; NCCL_NET_GDR_LEVEL=PHB tries it all the same"},
	FarNode:        {"the nearest eligible NIC belongs to another NUMA node than the GPU", "put the NIC into a slot of the GPU's own socket, best behind the same PCIe switch"},
	NearestDown:    {"the nearest NIC has no ACTIVE port, and the next one is too far", "bring up the port of the nearest NIC: see RDMAPortDown, RDMAPortNoSubnetManager"},
	CoupledOff:     {"the way through the coupled CPU is used by NCCL 2.27 and newer, unless NCCL_NET_GDR_C2C=0", "use NCCL 2.27 or newer; on 2.26 set NCCL_NET_GDR_C2C=1"},
	CoupledFar:     {"the nearest eligible NIC belongs to another CPU than the one that the GPU is coupled to", "give the job a NIC of the GPU's own CPU: look at NCCL_IB_HCA and at ports that are down"},
	LevelSet:       {"NCCL_NET_GDR_LEVEL allows less distance than there is", "remove NCCL_NET_GDR_LEVEL from the job's environment and from nccl.conf, or raise it"},
	ReadOff:        {"NCCL_NET_GDR_READ=0 makes sending go through host memory", "remove NCCL_NET_GDR_READ from the job's environment and from nccl.conf"},
	PreAmpere:      {"NCCL sends from GPUs before Ampere through host memory unless NVLink joins them; receiving is direct", "nothing is wrong; NCCL_NET_GDR_READ=1 tries it"},

	NoNIC:            {"no RDMA device is seen on this host", ""},
	NoActiveNIC:      {"no eligible NIC has an ACTIVE port", "look at the NICs' links first"},
	NoChosenNIC:      {"NCCL_IB_HCA leaves no NIC with an ACTIVE port", "correct NCCL_IB_HCA; names are those of /sys/class/infiniband"},
	NotNVIDIA:        {"the GPU is not NVIDIA's: NCCL does not run on it", ""},
	NetPlugin:        {"a net plugin is loaded, which decides by itself", "ask the plugin: NCCL_DEBUG=INFO"},
	EFA:              {"EFA is used through a net plugin (OFI), which decides by itself", "ask the plugin: NCCL_DEBUG=INFO"},
	VirtualTopology:  {"the PCI tree of a virtual machine does not show distances, and there is no topology file for it", "give NCCL_TOPO_FILE, or /var/run/nvidia-topologyd/virtualTopology.xml"},
	ModelUnknown:     {"what model the GPU is cannot be read", "load the GPU driver, and let the exporter read /proc/driver/nvidia"},
	FlavourUnknown:   {"whether the GPU driver's kernel modules are the open ones cannot be read", "let the exporter read /proc/driver/nvidia/version"},
	KernelUnknown:    {"whether the kernel can register DMA-BUFs cannot be read", "let the exporter read /proc/kallsyms"},
	NICDriverUnknown: {"whether the NIC's driver can register DMA-BUFs is not known of this kernel", "look for reg_user_mr_dmabuf in the driver's source"},
	LinksUnknown:     {"the GPU is older than Ampere, and whether NVLink joins it to another cannot be read", "let the exporter use NVML"},
}

// Reasons are those of verdicts, by name.
func Reasons() []Reason { return slices.Sorted(maps.Keys(advices)) }

// Words is the reason as a sentence without its full stop.
func (r Reason) Words() string { return r.advice().words }

// Remedy says what to do, empty where there is nothing to do.
func (r Reason) Remedy() string { return r.advice().remedy }

func (r Reason) advice() advice {
	if a, ok := advices[r]; ok {
		return a
	}
	return useAdvices[r]
}

// NoMechanism says that there is no way for a NIC to get at the memory of the GPU, which somebody can change.
func (r Reason) NoMechanism() bool {
	switch r {
	case PeermemNotLoaded, PeermemInvisible, DriverProprietary, DriverOld, KernelOld, NICDriverLacks, DMABUFDisabled:
		return true
	}
	return false
}
