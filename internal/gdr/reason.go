package gdr

import (
	"maps"
	"slices"
)

// Reason is the reason of a verdict.
type Reason string

// The reasons: of direct, of missing mechanisms, other ones of staging, of unknown.
const (
	IsDirect        Reason = "direct"
	directCoupled   Reason = "direct_c2c"
	directForcedPCI Reason = "direct_pcie_mapping"
	directSmallBAR  Reason = "direct_bar1_small"
	directFixedBAR  Reason = "direct_bar1_fixed"

	PeermemNotLoaded  Reason = "peermem_not_loaded"
	PeermemInvisible  Reason = "peermem_invisible_to_nccl"
	GPUWithoutDMABUF  Reason = "gpu_without_dmabuf"
	DriverProprietary Reason = "gpu_driver_proprietary"
	DriverOld         Reason = "gpu_driver_without_dmabuf"
	KernelOld         Reason = "kernel_without_dmabuf"
	NICDriverLacks    Reason = "nic_driver_without_dmabuf"
	DMABUFDisabled    Reason = "dmabuf_disabled"
	KernelWithoutP2P  Reason = "kernel_without_p2pdma"
	SmallBAR          Reason = "gpu_bar_small"

	GPUUnsupported Reason = "gpu_unsupported"
	GPUUnified     Reason = "gpu_unified_memory"
	FarHostBridge  Reason = "beyond_host_bridge"
	FarNode        Reason = "other_numa_node"
	NearestDown    Reason = "nearest_port_down"
	CoupledOff     Reason = "c2c_not_used"
	CoupledFar     Reason = "other_cpu"
	LevelSet       Reason = "gdr_level_set"
	TopologyFile   Reason = "topology_file"
	notChosen      Reason = "nearest_not_chosen"
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

	KernelConfigUnknown Reason = "kernel_config_unknown"
	ROCmPeerUnknown     Reason = "rocm_peer_unknown"
	RCCLHostBridge      Reason = "rccl_host_bridge"
)

// advice is a reason in words, and its remedy.
type advice struct{ words, remedy string }

var advices = map[Reason]advice{
	IsDirect:        {"the NIC reads and writes GPU memory directly", ""},
	directCoupled:   {"the NIC accesses GPU memory through the CPU coupled to the GPU (NVLink-C2C)", ""},
	directForcedPCI: {"the NIC accesses GPU memory over PCIe, although the GPU is coupled to its CPU (NVLink-C2C)", ""},
	directSmallBAR:  {"the NIC accesses GPU memory directly, but BAR1 is smaller than the memory and limits what can be registered", "enable Above 4G Decoding and Resizable BAR in the firmware setup; a board with display outputs may need NVIDIA's displaymodeselector"},
	directFixedBAR:  {"the NIC accesses GPU memory directly, but BAR1 is smaller than the memory and limits what can be registered", "a larger BAR1 is not possible with this GPU: register less memory"},

	PeermemNotLoaded:  {"nvidia_peermem is not loaded and DMA-BUF is unavailable", "load nvidia_peermem (modprobe nvidia_peermem) and add it to /etc/modules-load.d; if it does not load, reinstall the GPU driver after MLNX_OFED"},
	PeermemInvisible:  {"NCCL searches nvidia_peermem in /sys/kernel/mm/memory_peers, which MLNX_OFED 24.04 and newer lack, and DMA-BUF is unavailable", "use NCCL 2.23.4 or newer with nvidia_peermem"},
	GPUWithoutDMABUF:  {"GPUs before Turing have no open kernel modules and export no DMA-BUF, and no peer memory module is loaded", "install MLNX_OFED and load nvidia_peermem; DMA-BUF is not possible with this GPU"},
	DriverProprietary: {"the proprietary GPU kernel modules export no DMA-BUF and no peer memory module is loaded", "install MLNX_OFED and load nvidia_peermem, or install the open GPU kernel modules"},
	DriverOld:         {"the GPU driver is older than 515 and exports no DMA-BUF, and no peer memory module is loaded", "install MLNX_OFED and load nvidia_peermem, or install a newer GPU driver with open kernel modules"},
	KernelOld:         {"ib_core of this kernel cannot register DMA-BUFs and no peer memory module is loaded", "install MLNX_OFED and load nvidia_peermem, or run Linux 5.12 or newer"},
	NICDriverLacks:    {"the NIC driver cannot register DMA-BUFs and no peer memory module is loaded", "use a NIC driver of the vendor that has reg_user_mr_dmabuf, or a newer kernel"},
	DMABUFDisabled:    {"NCCL_DMABUF_ENABLE=0 disables DMA-BUF and no peer memory module is loaded", "remove NCCL_DMABUF_ENABLE from the job's environment and from nccl.conf"},
	KernelWithoutP2P:  {"the kernel lacks CONFIG_PCI_P2PDMA, CONFIG_DMABUF_MOVE_NOTIFY or DMA-BUF registration in ib_core, and the peer memory client of ROCm is not registered", "install the amdgpu driver of ROCm and a NIC driver with peer memory support, or run a kernel with CONFIG_PCI_P2PDMA and CONFIG_DMABUF_MOVE_NOTIFY"},
	SmallBAR:          {"only a part of GPU memory is in the BAR of the GPU, the rest is out of reach of NICs", "enable Above 4G Decoding and Resizable BAR in the firmware setup"},

	GPUUnsupported: {"GeForce and TITAN GPUs do not support GPUDirect RDMA", "not possible with this GPU: use a data center or professional GPU"},
	GPUUnified:     {"GPU and CPU share one memory, which NICs do not access through the GPU (GB10)", "GPUDirect RDMA is not possible with this GPU; own RDMA programs register memory of cudaHostAlloc"},
	FarHostBridge:  {"the nearest eligible NIC is below a different host bridge or root port", "put GPU and NIC below one PCIe switch; NCCL_NET_GDR_LEVEL=PHB makes NCCL try it anyway"},
	FarNode:        {"the nearest eligible NIC is on another NUMA node", "move the NIC to a slot on the socket of the GPU, best below the same PCIe switch"},
	NearestDown:    {"the nearest NIC has no ACTIVE port, and the next one is too far away", "bring up the port of the nearest NIC: see RDMAPortDown, RDMANoSubnetManager"},
	CoupledOff:     {"NCCL 2.27 and newer uses the path through the coupled CPU (NVLink-C2C), unless NCCL_NET_GDR_C2C=0", "use NCCL 2.27 or newer; on 2.26 set NCCL_NET_GDR_C2C=1"},
	CoupledFar:     {"the nearest eligible NIC is on another CPU than the one coupled to the GPU", "use a NIC on the CPU of the GPU: check NCCL_IB_HCA and ports that are down"},
	LevelSet:       {"the distance exceeds NCCL_NET_GDR_LEVEL", "remove NCCL_NET_GDR_LEVEL from the environment of the job and from nccl.conf, or raise it"},
	TopologyFile:   {"the topology file of NCCL puts the NIC further away than the PCI tree", "unset NCCL_TOPO_FILE in the environment of the job and in nccl.conf; without it, move /var/run/nvidia-topologyd/virtualTopology.xml away"},
	notChosen:      {"NCCL_IB_HCA leaves out the nearest NIC", "remove NCCL_IB_HCA from the environment of the job and from nccl.conf, or add the nearest NIC"},
	ReadOff:        {"NCCL_NET_GDR_READ=0 disables GPUDirect RDMA for sending", "remove NCCL_NET_GDR_READ from the environment of the job and from nccl.conf"},
	PreAmpere:      {"NCCL sends through host memory from GPUs before Ampere without NVLink; receiving is direct", "no fault; NCCL_NET_GDR_READ=1 makes NCCL try it"},

	NoNIC:            {"no RDMA device on this host", ""},
	NoActiveNIC:      {"no eligible NIC has an ACTIVE port", "fix the links of the NICs first"},
	NoChosenNIC:      {"NCCL_IB_HCA selects no NIC with an ACTIVE port", "correct NCCL_IB_HCA; device names are in /sys/class/infiniband"},
	NotNVIDIA:        {"neither an NVIDIA nor an AMD GPU, NCCL and RCCL do not use it", ""},
	NetPlugin:        {"a NCCL net plugin is loaded, which makes the decision", "run the job with NCCL_DEBUG=INFO and read the output of the plugin"},
	EFA:              {"EFA uses a NCCL net plugin (OFI), which makes the decision", "run the job with NCCL_DEBUG=INFO and read the output of the plugin"},
	VirtualTopology:  {"distances unknown: virtual machine without a topology file", "set NCCL_TOPO_FILE, or provide /var/run/nvidia-topologyd/virtualTopology.xml"},
	ModelUnknown:     {"GPU model cannot be read", "load the GPU driver, and allow the exporter to read /proc/driver/nvidia"},
	FlavourUnknown:   {"cannot read whether the kernel modules of the GPU driver are the open ones", "allow the exporter to read /proc/driver/nvidia/version"},
	KernelUnknown:    {"cannot read whether the kernel can register DMA-BUFs", "allow the exporter to read /proc/kallsyms"},
	NICDriverUnknown: {"unknown whether the NIC driver of this kernel can register DMA-BUFs", "check for reg_user_mr_dmabuf in the source of the driver"},
	LinksUnknown:     {"GPU before Ampere, cannot read whether NVLink connects it to another GPU", "allow the exporter to use NVML"},

	KernelConfigUnknown: {"cannot read whether the kernel has CONFIG_PCI_P2PDMA and CONFIG_DMABUF_MOVE_NOTIFY, which RCCL requires for DMA-BUF", "allow the exporter to read /boot/config-RELEASE or /proc/config.gz"},
	ROCmPeerUnknown:     {"cannot read whether the peer memory client of ROCm is registered", "allow the exporter to read /proc/kallsyms"},
	RCCLHostBridge:      {"the nearest eligible NIC is below a different host bridge, through which RCCL uses GPUDirect RDMA on some AMD processors only", "run the job with NCCL_DEBUG=INFO: channels with GPUDirect RDMA have GDRDMA in their lines"},
}

// Reasons returns the reasons of verdicts, by name.
func Reasons() []Reason { return slices.Sorted(maps.Keys(advices)) }

// Words returns the reason as a sentence without a full stop; empty if it is not in Reasons.
func (r Reason) Words() string { return advices[r].words }

// Remedy returns the remedy, empty if there is none.
func (r Reason) Remedy() string { return advices[r].remedy }
