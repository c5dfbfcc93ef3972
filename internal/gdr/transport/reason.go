package transport

import (
	"cmp"
	"maps"
	"slices"

	"rdma_exporter/internal/gdr"
)

// Reason is the reason of a transport.
type Reason string

// NetPlugin is the only reason that verdicts have too.
const NetPlugin = Reason(gdr.NetPlugin)

// The other reasons: of gdr, of staging, of tcp and host_only, of unknown.
const (
	Registered    Reason = "registered"
	KeepsDMABUF   Reason = "dmabuf_open"
	NotRegistered Reason = "not_registered"

	HostRegistered Reason = "host_memory_registered"
	IBDisabled     Reason = "ib_disabled"
	NetChosen      Reason = "net_socket"
	NoVerbs        Reason = "no_rdma_device"
	NotNCCL        Reason = "no_nccl"
	OneNode        Reason = "one_node"

	SettingsUnknown Reason = "settings_unknown"
	NotReady        Reason = "not_ready"
	NoMemory        Reason = "no_memory_region"
	CacheMover      Reason = "cache_mover"
	OtherLibrary    Reason = "other_library"
	BusyUnknown     Reason = "port_rate_unknown"
	Quiet           Reason = "port_quiet"
	PeermemUnseen   Reason = "peermem_unseen"
	DMABUFUnseen    Reason = "dmabuf_unseen"
	YoungProcess    Reason = "process_young"
	StartedBefore   Reason = "started_before"
	EventsLost      Reason = "events_lost"
	ExporterUnknown Reason = "dmabuf_exporter_unknown"
	FilesCut        Reason = "many_open_files"
	NotConnected    Reason = "not_connected"
	NodesUnknown    Reason = "nodes_unknown"
	DomainUnknown   Reason = "nvlink_domain_unknown"
	InDomain        Reason = "nvlink_domain"
	SocketsUnknown  Reason = "other_rate_unknown"
	SocketsQuiet    Reason = "other_quiet"
)

var advices = map[Reason]struct{ words, remedy string }{
	Registered:     {"GPU memory is registered with NICs", ""},
	KeepsDMABUF:    {"the process has memory registered with NICs and keeps DMA-BUFs of GPU memory open, which indicates that NICs access GPU memory", ""},
	NotRegistered:  {"the NIC is busy, but no GPU memory is registered with any NIC: data goes through host memory, although GPUDirect RDMA is possible", "run the job with NCCL_DEBUG=INFO: channels with GPUDirect RDMA have GDRDMA in their lines; check that the container has /dev/infiniband and the version file of the peer memory module"},
	HostRegistered: {"the NIC is busy, and since its start the process has registered host memory only: data goes through host memory, although GPUDirect RDMA is possible", "run the job with NCCL_DEBUG=INFO: channels with GPUDirect RDMA have GDRDMA in their lines; check NCCL_NET_GDR_LEVEL, NCCL_DMABUF_ENABLE and the CUDA driver inside the container"},

	IBDisabled: {"NCCL_IB_DISABLE is set, which makes NCCL use sockets", "remove NCCL_IB_DISABLE from the job's environment and from nccl.conf"},
	NetChosen:  {"NCCL_NET=Socket is set, which makes NCCL use sockets", "remove NCCL_NET from the job's environment and from nccl.conf"},
	NoVerbs:    {"the job spans nodes, has no RDMA device open, and the kernel sends or receives much over a network interface", "run the job with NCCL_DEBUG=INFO and read its NET/IB lines; give its container /dev/infiniband and libibverbs with the provider of the NIC"},
	NotNCCL:    {"a process without NCCL uses the GPU and an RDMA device, such as storage or a cache: NCCL sends no GPU data", ""},
	OneNode:    {"the job runs on one node and needs no NIC", ""},

	SettingsUnknown: {"not all settings of the job (environment, NCCL_CONF_FILE, ~/.nccl.conf) can be read; they may disable GPUDirect RDMA", "run the exporter with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, in the PID namespace of the jobs"},
	NotReady:        {"GPUDirect RDMA is not possible between the GPU and its NIC, or unknown (reason in rdma_gdr_gpu_info)", ""},
	NoMemory:        {"the process has registered no memory with a NIC yet: NCCL connects on first use", ""},
	CacheMover:      {"the process also uses a library that transfers caches by RDMA (NIXL, Mooncake), which may cause the traffic", ""},
	OtherLibrary:    {"the process has no NCCL, but another communication library", ""},
	BusyUnknown:     {"traffic of the NIC port not known yet, or cannot be read", ""},
	Quiet:           {"too little traffic on the NIC port", ""},
	PeermemUnseen:   {"use count of the peer memory module cannot be read", "allow the exporter to read /sys/module/nvidia_peermem/refcnt"},
	DMABUFUnseen:    {"DMA-BUFs may be in use, their attachments are not read", "grant the exporter CAP_BPF and CAP_PERFMON (drop-in ebpf.conf of the unit, privileges.ebpf of the chart): eBPF programs observe registrations"},
	YoungProcess:    {"no GPU memory is registered with any NIC, and the process is younger than 15 minutes: it may load data and connect later", ""},
	StartedBefore:   {"the process is older than the observation by eBPF programs, registrations before that are unknown", "no remedy for this job: jobs that start from now on are evaluated"},
	EventsLost:      {"events of the eBPF programs were lost since the process started", "no remedy for this job: jobs that start from now on are evaluated"},
	ExporterUnknown: {"the process has registered DMA-BUFs of an exporter that is not known to have host or GPU memory", "report the exporter, it is in the JSON of the node"},
	FilesCut:        {"the process has more than 4096 open files, no RDMA device among the first", ""},
	NotConnected:    {"the process has no RDMA device open, and no connection to another host: NCCL connects on first use", ""},
	NodesUnknown:    {"the process has no RDMA device open, unknown whether the job spans nodes", ""},
	DomainUnknown:   {"the process has no RDMA device open, cannot read whether NVLink connects the nodes of the job", "allow the exporter to use NVML"},
	InDomain:        {"the GPU is in an NVLink domain of several hosts, jobs in it need no NIC", ""},
	SocketsUnknown:  {"the kernel's traffic over network interfaces is not known yet, or cannot be read", ""},
	SocketsQuiet:    {"the process has no RDMA device open, and no network interface has much traffic of the kernel", ""},
}

// Reasons returns the reasons that only transports have, sorted.
func Reasons() []Reason { return slices.Sorted(maps.Keys(advices)) }

// Words returns the reason as a sentence without a full stop. r may also be the reason of a verdict, gdr.Reason.
func (r Reason) Words() string { return cmp.Or(advices[r].words, gdr.Reason(r).Words()) }

// Remedy returns the remedy, empty if there is none. r may also be the reason of a verdict, gdr.Reason.
func (r Reason) Remedy() string { return cmp.Or(advices[r].remedy, gdr.Reason(r).Remedy()) }
