package library

import (
	"slices"

	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/gdr/transport"
)

// Process is a process with communication libraries, and its host. Nil pointers are unknown.
type Process struct {
	Libraries []string          // names, as Of returns them
	Env       map[string]string // Variables, and those of NCCL and UCX
	GPU       bool              // it holds a GPU
	Container bool
	Verbs     bool    // it holds an RDMA device
	Cut       bool    // not all of its files were read
	Regions   *uint64 // memory regions registered with RDMA devices
	GPUMemory *bool   // some of them are GPU memory
	Locked    *uint64 // limit of locked memory in bytes; nil: none, or unknown
	Nodes     *bool   // its root directory has nodes of RDMA devices: /dev/infiniband/uverbsN
	MayOpen   *bool   // it may open those of the host
	Channels  *bool   // its root directory has an IMEX channel: /dev/nvidia-caps-imex-channels/channelN
	// Capabilities are its effective ones in the initial user namespace (CapEff of /proc/PID/status).
	Capabilities *uint64

	Devices     []string   // RDMA devices of the host
	MLX5        bool       // one of them has the driver mlx5_core
	Peermem     bool       // a peer memory module is loaded
	DMABUF      gdr.State  // Direct: a NIC can register DMA-BUFs of the GPUs
	DMABUFWhy   gdr.Reason // if it is not Direct
	PeerMapping *bool      // the GPU driver maps memory of other devices for every process (PeerMappingOverride)
	Domain      *bool      // a GPU of the process is in an NVLink domain of several hosts
}

// Bits of Capabilities (include/uapi/linux/capability.h).
const (
	capIPCLock  = 1 << 14
	capSysAdmin = 1 << 21
)

// lockedEnough is the limit below which registrations fail, as in the alert on it.
const lockedEnough = 64 << 20

// Possible is whether a library can use a transport here.
type Possible struct {
	Transport Transport
	State     State
	Reason    Reason // empty if it can
}

// State is yes, no or unknown.
type State string

// The states.
const (
	Yes     State = "yes"
	No      State = "no"
	Unclear State = "unknown"
)

// Result is the state of a library in a process.
type Result struct {
	Library  string
	Possible []Possible // the best first
	InUse    Transport
	Reason   Reason // why InUse is no better one, or unknown
}

// rule is a condition that excludes transports.
type rule struct {
	transports []Transport
	libraries  []string // nil: all
	state      State
	reason     Reason
	when       func(*Process) bool
}

var (
	network = []Transport{IBGDA, GDR, RDMA} // over RDMA devices
	viaUCX  = []string{UCX}                 // also for NIXL, whose default backend is UCX
	// register are libraries that register memory of the application. NCCL and NVSHMEM allocate theirs, with the
	// attribute for GPUDirect RDMA.
	register = []string{UCX, NIXL, Mooncake, Libfabric, MSCCLPP}
)

// rules are evaluated in order, the first that holds decides on a transport. Sources are at the reasons.
var rules = []rule{
	{network, []string{NCCL, RCCL}, No, Reason(transport.IBDisabled), func(p *Process) bool {
		return p.isSet("NCCL_IB_DISABLE") && p.Env["NCCL_IB_DISABLE"] != "0"
	}},
	{network, []string{NCCL, RCCL}, No, Reason(transport.NetChosen), func(p *Process) bool {
		return p.Env["NCCL_NET"] == "Socket"
	}},
	{network, []string{Mooncake}, No, MooncakeTCP, func(p *Process) bool {
		return p.isSet("MC_FORCE_TCP") && !p.isSet("MC_FORCE_HCA") || p.Env["MOONCAKE_PROTOCOL"] == "tcp"
	}},
	{network, viaUCX, No, UCXWithoutRDMA, func(p *Process) bool {
		return !ucxSelects(p.Env["UCX_TLS"], ucxRDMA, []string{"ib"}, []string{"rc", "dc", "ud"})
	}},
	{[]Transport{TCP}, viaUCX, No, UCXWithoutTCP, func(p *Process) bool {
		return !ucxSelects(p.Env["UCX_TLS"], ucxTCP, []string{"tcp"})
	}},
	{network, viaUCX, No, UCXNetDevices, func(p *Process) bool {
		selects := ucxNetDevices(p.Env["UCX_NET_DEVICES"], p.Devices)
		return selects != nil && !*selects
	}},
	{network, []string{Libfabric}, No, FabricProvider, func(p *Process) bool {
		return fabricWithout(p.Env["FI_PROVIDER"])
	}},
	{network, []string{NVSHMEM, DeepEP}, No, NVSHMEMRemote, func(p *Process) bool {
		return p.Env["NVSHMEM_REMOTE_TRANSPORT"] == "none" && !yes(p.Env["NVSHMEM_IB_ENABLE_IBGDA"])
	}},

	{network, nil, No, NoDevice, func(p *Process) bool { return len(p.Devices) == 0 }},
	{network, nil, Unclear, FilesCut, func(p *Process) bool { return !p.Verbs && p.Cut }},
	{network, nil, No, NoNodes, func(p *Process) bool { return !p.Verbs && isNot(p.Nodes) }},
	{network, nil, No, NodesDenied, func(p *Process) bool { return !p.Verbs && !p.Container && isNot(p.MayOpen) }},
	{network, nil, Unclear, NodesUnknown, func(p *Process) bool { return !p.Verbs && p.Nodes == nil }},
	{network, nil, No, LockedMemory, func(p *Process) bool {
		return p.Verbs && p.Regions != nil && *p.Regions == 0 && p.Locked != nil && *p.Locked < lockedEnough &&
			(p.Capabilities == nil || *p.Capabilities&capIPCLock == 0)
	}},

	{[]Transport{NVLink}, nil, No, NoChannel, func(p *Process) bool { return isNot(p.Channels) }},
	{[]Transport{NVLink}, nil, Unclear, ChannelUnknown, func(p *Process) bool { return p.Channels == nil }},

	{[]Transport{IBGDA, GDR}, nil, No, NoMechanism, func(p *Process) bool {
		return !is(p.GPUMemory) && !p.Peermem && p.DMABUF == gdr.Staging
	}},
	{[]Transport{IBGDA, GDR}, nil, Unclear, MechanismUnknown, func(p *Process) bool {
		return !is(p.GPUMemory) && !p.Peermem && p.DMABUF != gdr.Direct
	}},
	{[]Transport{GDR}, viaUCX, No, UCXWithoutGPU, func(p *Process) bool {
		return !ucxSelects(p.Env["UCX_TLS"], ucxGPU, []string{"cuda"}, []string{"cuda_copy"})
	}},
	{[]Transport{GDR}, viaUCX, No, UCXDirectOff, func(p *Process) bool { return no(p.Env["UCX_IB_GPU_DIRECT_RDMA"]) }},
	{[]Transport{GDR}, register, No, Expandable, func(p *Process) bool { return p.virtual() && isNot(p.GPUMemory) }},
	{[]Transport{GDR}, register, Unclear, Expandable, func(p *Process) bool { return p.virtual() && p.GPUMemory == nil }},

	{[]Transport{IBGDA}, nil, No, NoDEVX, func(p *Process) bool { return !p.MLX5 }},
	{[]Transport{IBGDA}, nil, No, NoPeerMapping, func(p *Process) bool {
		return p.rings() && isNot(p.PeerMapping) && p.Capabilities != nil && *p.Capabilities&capSysAdmin == 0
	}},
	{[]Transport{IBGDA}, nil, Unclear, PeerMappingUnknown, func(p *Process) bool {
		return p.rings() && !is(p.PeerMapping) &&
			(p.Capabilities == nil || p.PeerMapping == nil && *p.Capabilities&capSysAdmin == 0)
	}},
}

// virtual reports whether PyTorch allocates GPU memory by the virtual memory functions of CUDA, and only the peer
// memory module could register it.
func (p *Process) virtual() bool { return p.expandable() && p.Peermem && p.DMABUF == gdr.Staging }

// rings reports whether the GPU rings the doorbell of the NIC, by its settings: not the CPU.
func (p *Process) rings() bool {
	handler := p.Env["NVSHMEM_IBGDA_NIC_HANDLER"]
	return handler != "cpu" && handler != "cpu_host_memory"
}

// offers returns the transports of a library that the process could have: those of GPUs only if it holds one, and that
// of an NVLink domain only in one.
func (p *Process) offers(library string) (out []Transport) {
	for _, t := range transportsOf(library) {
		switch {
		case t == NVLink && !(p.GPU && is(p.Domain)):
		case (t == GDR || t == IBGDA) && !p.GPU:
		case t == IBGDA && library == NVSHMEM && !yes(p.Env["NVSHMEM_IB_ENABLE_IBGDA"]):
		default:
			out = append(out, t)
		}
	}
	return out
}

// applies reports whether a rule applies to a library of a process.
func (r *rule) applies(p *Process, library string) bool {
	return r.libraries == nil || slices.Contains(r.libraries, library) ||
		library == NIXL && p.has(UCX) && slices.Contains(r.libraries, UCX)
}

// possible evaluates the rules for a transport of a library.
func (p *Process) possible(library string, t Transport) Possible {
	for i := range rules {
		r := &rules[i]
		if slices.Contains(r.transports, t) && r.applies(p, library) && r.when(p) {
			return Possible{t, r.state, r.reason}
		}
	}
	return Possible{t, Yes, ""}
}

// Decide returns the state of each library.
func (p *Process) Decide() (out []Result) {
	for _, name := range p.Libraries {
		r := Result{Library: name}
		for _, t := range p.offers(name) {
			r.Possible = append(r.Possible, p.possible(name, t))
		}
		if len(r.Possible) == 0 { // the name is not known
			continue
		}
		r.InUse, r.Reason = p.inUse(&r)
		out = append(out, r)
	}
	return out
}

// inUse returns the transport in use by evidence, and the reason.
func (p *Process) inUse(r *Result) (Transport, Reason) {
	rdma := r.of(RDMA)
	switch {
	case rdma.State == No:
		// The library selects TCP then, unless it fails later.
		if tcp := r.of(TCP); tcp.State == Yes && rdma.Reason != LockedMemory {
			return TCP, rdma.Reason
		}
		return None, rdma.Reason
	case rdma.State == Unclear:
		return Unknown, rdma.Reason
	case !p.Verbs:
		return Unknown, NotOpened
	case p.Regions == nil:
		return Unknown, RegionsUnknown
	case *p.Regions == 0:
		return None, r.better(None, NotConnected)
	case !p.GPU:
		return RDMA, HostOnly
	case p.several() && !isNot(p.GPUMemory):
		return Unknown, r.better(RDMA, SeveralLibraries)
	case is(p.GPUMemory):
		return GDR, r.better(GDR, Registered)
	case isNot(p.GPUMemory):
		return RDMA, r.better(RDMA, HostMemory)
	}
	return RDMA, r.better(RDMA, GPUMemoryUnknown)
}

// parts are libraries that use another one.
var parts = map[string]string{NIXL: UCX, DeepEP: NVSHMEM}

// several reports whether several libraries may have registered the memory of the process.
func (p *Process) several() bool {
	first := ""
	for _, name := range p.Libraries {
		if whole := parts[name]; p.has(whole) {
			name = whole
		}
		if first != "" && name != first {
			return true
		}
		first = name
	}
	return false
}

// of returns the entry of a transport.
func (r *Result) of(t Transport) Possible {
	for _, p := range r.Possible {
		if p.Transport == t {
			return p
		}
	}
	return Possible{}
}

// better returns the reason why the best of the transports above one is not used, or else another reason.
func (r *Result) better(t Transport, otherwise Reason) Reason {
	for _, state := range []State{No, Unclear} {
		for _, p := range r.Possible {
			if p.Transport == t {
				break
			}
			if p.State == state && (t != None || p.Transport == NVLink) {
				return p.Reason
			}
		}
	}
	return otherwise
}

func is(b *bool) bool    { return b != nil && *b }
func isNot(b *bool) bool { return b != nil && !*b }
