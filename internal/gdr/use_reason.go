package gdr

import (
	"maps"
	"slices"
)

// Why data goes as it does at run time, beside NetPlugin.
const (
	Registered    Reason = "registered"
	NotRegistered Reason = "not_registered"
	IBDisabled    Reason = "ib_disabled"
	NetChosen     Reason = "net_socket"
	NoVerbs       Reason = "no_rdma_device"
	NotNCCL       Reason = "no_nccl"
	OneNode       Reason = "one_node"

	SettingsUnknown Reason = "settings_unknown"
	NotReady        Reason = "not_ready"
	NoMemory        Reason = "no_memory_region"
	CacheMover      Reason = "cache_mover"
	BusyUnknown     Reason = "port_rate_unknown"
	Quiet           Reason = "port_quiet"
	PeermemUnseen   Reason = "peermem_unseen"
	DMABUFUnseen    Reason = "dmabuf_unseen"
	FilesCut        Reason = "many_open_files"
	NodesUnknown    Reason = "nodes_unknown"
	DomainUnknown   Reason = "nvlink_domain_unknown"
	InDomain        Reason = "nvlink_domain"
	OtherUnknown    Reason = "other_rate_unknown"
	OtherQuiet      Reason = "other_quiet"
)

var useAdvices = map[Reason]advice{
	Registered:    {"memory of GPUs is registered with NICs", ""},
	NotRegistered: {"the NIC is busy, and no memory of a GPU is registered with any: the job's data goes through host memory, though NCCL could do without", "look at the job's log with NCCL_DEBUG=INFO: its lines on channels say GDRDMA where the NIC uses the GPU's memory; a container may lack /dev/infiniband or the peer memory module's version"},
	IBDisabled:    {"NCCL_IB_DISABLE is set, which makes NCCL use sockets", "remove NCCL_IB_DISABLE from the job's environment and from nccl.conf"},
	NetChosen:     {"NCCL_NET=Socket is set, which makes NCCL use sockets", "remove NCCL_NET from the job's environment and from nccl.conf"},
	NoVerbs:       {"the job spans nodes, holds no RDMA device, and sends over another interface", "run the job with NCCL_DEBUG=INFO and read its NET/IB lines; give its container /dev/infiniband and libibverbs with the provider of the NIC"},
	NotNCCL:       {"a process without NCCL holds the GPU and an RDMA device, as storage and caches do: what it moves is host memory as far as NCCL goes", ""},
	OneNode:       {"the scheduler has put the job on one node, whose GPUs need no NIC", ""},

	SettingsUnknown: {"the job's settings (its environment, NCCL_CONF_FILE, ~/.nccl.conf) cannot all be read, and may switch the direct way off", "let the exporter see processes: CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, in their PID namespace"},
	NotReady:        {"NCCL has not decided for the direct way, or that is not known: rdma_gdr_gpu_info says why", "look at the GPU's reason"},
	NoMemory:        {"the process has registered no memory with a NIC: NCCL connects when it first has to", ""},
	CacheMover:      {"the process also has a library that moves caches by RDMA (NIXL, Mooncake): the traffic may be its own", ""},
	BusyUnknown:     {"the traffic of the NIC's port is not known yet, or cannot be read", ""},
	Quiet:           {"the NIC's port moves too little to tell anything", ""},
	PeermemUnseen:   {"the use of the peer memory module cannot be read", "let the exporter read /sys/module/nvidia_peermem/refcnt"},
	DMABUFUnseen:    {"DMA-BUFs may be in use, and who is attached to them is not looked at", "to look, at a price for jobs: --collector.gdr.bufinfo, as root with debugfs"},
	FilesCut:        {"the process has more than 4096 files open, and no RDMA device is among the first of them", ""},
	NodesUnknown:    {"the process holds no RDMA device, and its scheduler does not say that the job spans nodes", ""},
	DomainUnknown:   {"the process holds no RDMA device, and whether NVLink joins the job's nodes cannot be read", "let the exporter use NVML"},
	InDomain:        {"the GPU is in an NVLink domain of several hosts, in which jobs need no NIC", ""},
	OtherUnknown:    {"the traffic of interfaces without RDMA is not known yet, or cannot be read", ""},
	OtherQuiet:      {"the process holds no RDMA device, and no interface without RDMA is busy", ""},
}

// UseReasons are the reasons of transports, by name.
func UseReasons() []Reason { return slices.Sorted(maps.Keys(useAdvices)) }
