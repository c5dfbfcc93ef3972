package gdr

import (
	"slices"
	"strconv"
)

// Transport is how data of a GPU goes to other hosts now.
type Transport string

// The transports.
const (
	OverGDR      Transport = "gdr"       // NICs use the GPU's memory
	OverStaging  Transport = "staging"   // NICs use host memory, though the GPU's could be used
	OverTCP      Transport = "tcp"       // the kernel's sockets, without RDMA
	OverHostOnly Transport = "host_only" // nothing of the GPU goes over a NIC: its process moves host memory, or stays on the host
	OverUnknown  Transport = "unknown"
)

// Use is what is seen of the process that holds a GPU, and of what goes on beside it. A nil pointer is not known.
type Use struct {
	NCCL     bool    // libnccl is mapped
	Plugin   bool    // a net plugin of it is mapped
	Mover    bool    // a library is mapped that moves caches by RDMA on its own: NIXL, Mooncake
	Verbs    bool    // it holds an RDMA device
	Cut      bool    // it may hold one that is not seen
	Env      Env     // NCCL's settings, and what its scheduler says
	Settings bool    // its settings could all be read
	Memory   *uint64 // memory regions that it has registered with RDMA devices
	Ready    State   // what NCCL decided on receiving, by the best eligible NIC

	Peermem *uint64 // registrations of GPU memory by the peer memory module
	DMABUF  *uint64 // DMA-BUFs of GPUs that other devices are attached to

	Busy   *bool // the best eligible NIC moves more than BusyShare of what its port can
	Domain *bool // the GPU is in an NVLink domain of several hosts
	Other  *bool // a network interface of no RDMA device moves more than OtherBits
}

const (
	// BusyShare of a port's rate tells a job's data from chatter.
	BusyShare = 0.05
	// OtherBits a second over an interface without RDMA tell a job's data from logs and checkpoints' metadata.
	OtherBits = 1e9
)

// rule is an outcome and when it comes out.
type rule struct {
	transport Transport
	reason    Reason
	when      func(*Use) bool
}

// rules are gone through in order. What comes before staging and tcp are the ways in which RDMA traffic, or the want of it, is right;
// what cannot be read makes neither of the two.
var rules = []rule{
	{OverHostOnly, NotNCCL, func(u *Use) bool { return !u.NCCL }},
	{OverUnknown, NetPlugin, func(u *Use) bool { return u.Plugin }},
	{OverGDR, Registered, func(u *Use) bool {
		return u.Verbs && u.Ready == Direct && u.registers() && !none(u.Memory) && !u.alone()
	}},
	{OverHostOnly, OneNode, (*Use).alone},

	{OverUnknown, FilesCut, func(u *Use) bool { return !u.Verbs && u.Cut }},
	{OverUnknown, NodesUnknown, func(u *Use) bool { return !u.Verbs && !u.several() }},
	{OverUnknown, DomainUnknown, func(u *Use) bool { return !u.Verbs && u.Domain == nil }},
	{OverUnknown, InDomain, func(u *Use) bool { return is(u.Domain) && (!u.Verbs || u.Memory == nil) }},
	{OverUnknown, OtherUnknown, func(u *Use) bool { return !u.Verbs && u.Other == nil }},
	{OverUnknown, OtherQuiet, func(u *Use) bool { return !u.Verbs && !*u.Other }},
	{OverTCP, IBDisabled, func(u *Use) bool { return !u.Verbs && u.Env.integer("NCCL_IB_DISABLE", 0) != 0 }},
	{OverTCP, NetChosen, func(u *Use) bool { return !u.Verbs && u.Env["NCCL_NET"] == "Socket" }},
	{OverTCP, NoVerbs, func(u *Use) bool { return !u.Verbs }},

	{OverUnknown, SettingsUnknown, func(u *Use) bool { return !u.Settings }},
	{OverUnknown, NotReady, func(u *Use) bool { return u.Ready != Direct }},
	{OverUnknown, NoMemory, func(u *Use) bool { return none(u.Memory) }},
	{OverUnknown, CacheMover, func(u *Use) bool { return u.Mover }},
	{OverUnknown, BusyUnknown, func(u *Use) bool { return u.Busy == nil }},
	{OverUnknown, Quiet, func(u *Use) bool { return !*u.Busy }},
	{OverUnknown, PeermemUnseen, func(u *Use) bool { return u.Peermem == nil }},
	{OverUnknown, DMABUFUnseen, func(u *Use) bool { return u.DMABUF == nil }},
	{OverStaging, NotRegistered, func(*Use) bool { return true }}, // both sources are read, and empty, else it were gdr
}

// Decide says how data goes, and why that is so or is not known.
func (u *Use) Decide() (Transport, Reason) {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.when(u) }) // the last one always is
	return rules[i].transport, rules[i].reason
}

// Suspected says whether only the DMA-BUFs have to be looked at, which costs jobs, to tell of staging.
func (u *Use) Suspected() bool {
	v := *u
	v.DMABUF = nil
	_, why := v.Decide()
	return why == DMABUFUnseen
}

// registers says whether NICs use memory of GPUs: any NIC's, and any GPU's, since neither source tells whose.
func (u *Use) registers() bool { return some(u.Peermem) || some(u.DMABUF) }

// several says whether the scheduler spreads the job over several nodes.
func (u *Use) several() bool { return u.nodes() > 1 }

// alone says whether the scheduler has put the job on one node.
func (u *Use) alone() bool { return u.nodes() == 1 }

// nodes is the number of nodes as far as it is told: 0 not, 2 stands for more. The launcher's word is nearer to the process than the
// allocation, for torchrun may run by itself on each of several nodes. A variable that is missing says nothing: the kernel shows the
// environment as it was when the program was started.
func (u *Use) nodes() int {
	world, local := u.Env.count("WORLD_SIZE"), u.Env.count("LOCAL_WORLD_SIZE")
	switch {
	case world > 0 && local > 0 && world > local:
		return 2
	case world > 0 && world == local:
		return 1
	}
	return min(2, u.Env.count("SLURM_JOB_NUM_NODES"))
}

// count is a number that a scheduler sets; 0 where there is none.
func (e Env) count(name string) int {
	n, err := strconv.Atoi(e[name])
	if err != nil {
		return 0
	}
	return max(0, n)
}

// Attachments are the DMA-BUFs of GPUs that devices are attached to, as far as they may be a process's with these settings over a NIC of a
// driver: those seen, or none where there can be none. NCCL may be told not to use them, or the GPU driver, the kernel or the NIC's driver
// cannot: what cannot be is as good as read, and empty.
func (m *Machine) Attachments(seen *uint64, driver string, e Env) *uint64 {
	state, _ := m.HasDMABUF(driver)
	if state == Staging || e.integer("NCCL_DMABUF_ENABLE", 1) == 0 {
		return new(uint64)
	}
	return seen
}

func is(b *bool) bool     { return b != nil && *b }
func none(n *uint64) bool { return n != nil && *n == 0 }
func some(n *uint64) bool { return n != nil && *n > 0 }
