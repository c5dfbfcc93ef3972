package library

import (
	"cmp"
	"maps"
	"slices"

	"rdma_exporter/internal/gdr/transport"
)

// Reason is the reason of a result. Reasons of package transport apply too.
type Reason string

// The reasons: of settings, of the host, of the process, of what is in use.
const (
	MooncakeTCP    Reason = "mooncake_tcp"
	UCXWithoutRDMA Reason = "ucx_tls_without_rdma"
	UCXWithoutTCP  Reason = "ucx_tls_without_tcp"
	UCXWithoutGPU  Reason = "ucx_tls_without_gpu"
	UCXNetDevices  Reason = "ucx_net_devices"
	UCXDirectOff   Reason = "ucx_gpu_direct_disabled"
	FabricProvider Reason = "fi_provider"
	NVSHMEMRemote  Reason = "nvshmem_remote_transport"

	NoMechanism        Reason = "dmabuf_missing"
	MechanismUnknown   Reason = "dmabuf_unknown"
	Expandable         Reason = "expandable_segments"
	NoDEVX             Reason = "devx_missing"
	NoPeerMapping      Reason = "peer_mapping_not_permitted"
	PeerMappingUnknown Reason = "peer_mapping_unknown"
	NoChannel          Reason = "imex_channel_missing"
	ChannelUnknown     Reason = "imex_channel_unknown"

	NoDevice       Reason = "no_rdma_device_on_host"
	NoNodes        Reason = "no_device_nodes"
	NodesDenied    Reason = "device_nodes_denied"
	NodesUnknown   Reason = "device_nodes_unknown"
	LockedMemory   Reason = "locked_memory"
	NotOpened      Reason = "not_opened"
	RegionsUnknown Reason = "regions_unknown"
	NotConnected   Reason = "nothing_registered"

	SeveralLibraries Reason = "several_libraries"

	HostOnly         Reason = "no_gpu"
	HostMemory       Reason = "host_memory"
	GPUMemoryUnknown Reason = "gpu_memory_unknown"

	FilesCut   = Reason(transport.FilesCut)
	Registered = Reason(transport.Registered)
)

// advices are the reasons in words. Sources: UCX, src/ucp/core/ucp_context.c; Mooncake, transfer_engine_impl.cpp, and
// issues 351 and 2511; PyTorch, issue 153688 (ibv_reg_mr: Bad address) and pull request 189941 (the attribute for
// GPUDirect RDMA); NVSHMEM, ibgda.cpp and the release notes of 3.4.5; open-gpu-kernel-modules, osmemdesc.c
// (PEER_MAP_OVERRIDE) and nv-reg.h (ImexChannelCount); mlx5/devx.c of the kernel, which requires no capability for
// DEVX; libfabric, fi_provider(7).
var advices = map[Reason]struct{ words, remedy string }{
	MooncakeTCP:    {"MC_FORCE_TCP or MOONCAKE_PROTOCOL=tcp is set, which makes Mooncake use TCP", "remove MC_FORCE_TCP from the job's environment, and set MOONCAKE_PROTOCOL=rdma"},
	UCXWithoutRDMA: {"UCX_TLS selects no RDMA transport", "unset UCX_TLS, or add rc to it"},
	UCXWithoutTCP:  {"UCX_TLS does not select tcp", ""},
	UCXWithoutGPU:  {"UCX_TLS selects no transport for GPU memory", "unset UCX_TLS, or add cuda to it (rocm for AMD GPUs)"},
	UCXNetDevices:  {"UCX_NET_DEVICES names no RDMA device of this host", "unset UCX_NET_DEVICES, or name RDMA devices with ports, such as mlx5_0:1"},
	UCXDirectOff:   {"UCX_IB_GPU_DIRECT_RDMA disables GPUDirect RDMA", "remove UCX_IB_GPU_DIRECT_RDMA from the job's environment"},
	FabricProvider: {"FI_PROVIDER selects no provider with RDMA", "unset FI_PROVIDER, or select verbs (efa on EFA)"},
	NVSHMEMRemote:  {"NVSHMEM_REMOTE_TRANSPORT=none disables transports to other hosts", "unset NVSHMEM_REMOTE_TRANSPORT if the job spans hosts"},

	NoMechanism:        {"no NIC can register DMA-BUFs of the GPUs, and no peer memory module is loaded", "install the open GPU kernel modules on Linux 5.12 or newer, or load nvidia_peermem"},
	MechanismUnknown:   {"unknown whether a NIC can register DMA-BUFs of the GPUs, and no peer memory module is loaded", "allow the exporter to read /proc/driver/nvidia/version and /proc/kallsyms"},
	Expandable:         {"PyTorch allocates GPU memory in expandable segments, which the peer memory module cannot register unless PyTorch marks them for GPUDirect RDMA, and DMA-BUF is unavailable", "use the open GPU kernel modules (DMA-BUF), or set expandable_segments:False in PYTORCH_CUDA_ALLOC_CONF"},
	NoDEVX:             {"no RDMA device has DEVX (mlx5), which IBGDA requires", ""},
	NoPeerMapping:      {"the GPU may not ring the doorbell of NICs: PeerMappingOverride of the GPU driver is not set, and the process has no CAP_SYS_ADMIN", "load nvidia with NVreg_RegistryDwords=\"PeerMappingOverride=1;\", or use NVSHMEM 3.4.5 or newer, in which the CPU does"},
	PeerMappingUnknown: {"unknown whether the GPU may ring the doorbell of NICs", "allow the exporter to read /proc/driver/nvidia/params and the processes"},
	NoChannel:          {"the process has no IMEX channel, without which hosts of an NVLink domain cannot share GPU memory", "create channel0 (NVreg_CreateImexChannel0=1 of nvidia) and give it to the container: by a ComputeDomain in Kubernetes, switch/nvidia_imex in Slurm"},
	ChannelUnknown:     {"unknown whether the process has an IMEX channel", "run the exporter with CAP_SYS_PTRACE"},

	NoDevice:       {"no RDMA device on this host", ""},
	NoNodes:        {"the process has no device nodes in /dev/infiniband", "give the container /dev/infiniband: an RDMA device plugin in Kubernetes, --device=/dev/infiniband elsewhere"},
	NodesDenied:    {"the user of the process may not open the nodes in /dev/infiniband", "install rdma-core, whose udev rule sets the mode of uverbs nodes to 0666, or add the user to their group"},
	NodesUnknown:   {"no RDMA device is open, unknown whether the process has device nodes in /dev/infiniband", "run the exporter with CAP_SYS_PTRACE"},
	LockedMemory:   {"no memory is registered, and the limit of locked memory is below 64 MiB: registrations fail", "raise the limit: LimitMEMLOCK=infinity of the service, --ulimit memlock=-1 of the container"},
	NotOpened:      {"the process has no RDMA device open: the library is not in use, or connects over another transport", ""},
	RegionsUnknown: {"memory regions of the process are unknown", ""},
	NotConnected:   {"no memory is registered yet", ""},

	SeveralLibraries: {"memory is registered, unknown by which of several libraries", ""},

	HostOnly:         {"the process holds no GPU", ""},
	HostMemory:       {"host memory is registered, but no GPU memory", "read the messages of the library on registration: UCX_LOG_LEVEL=info, FI_LOG_LEVEL=info, NVSHMEM_DEBUG=INFO"},
	GPUMemoryUnknown: {"memory is registered, unknown whether it is GPU memory", "grant the exporter CAP_BPF and CAP_PERFMON (drop-in ebpf.conf of the unit, privileges.ebpf of the chart)"},
}

// Reasons returns the reasons that only libraries have, sorted.
func Reasons() []Reason { return slices.Sorted(maps.Keys(advices)) }

// Words returns the reason as a sentence without a full stop.
func (r Reason) Words() string { return cmp.Or(advices[r].words, transport.Reason(r).Words()) }

// Remedy returns the remedy, empty if there is none.
func (r Reason) Remedy() string { return cmp.Or(advices[r].remedy, transport.Reason(r).Remedy()) }
