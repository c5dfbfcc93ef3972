package gdr

import (
	"slices"
	"strconv"
	"time"
)

// Transport is how data of a GPU is sent to other hosts at present.
type Transport string

// The transports.
const (
	OverGDR      Transport = "gdr"       // NICs access GPU memory
	OverStaging  Transport = "staging"   // NICs access host memory, although they could access GPU memory
	OverTCP      Transport = "tcp"       // TCP sockets, without RDMA
	OverHostOnly Transport = "host_only" // no GPU data goes over a NIC: the process sends host memory, or runs on one host
	OverUnknown  Transport = "unknown"
)

// Use is the state of the process that holds a GPU. Nil pointers are unknown.
type Use struct {
	NCCL     bool    // libnccl is mapped
	Plugin   bool    // a NCCL net plugin is mapped
	Mover    bool    // a library that transfers caches by RDMA is mapped: NIXL, Mooncake
	Verbs    bool    // it holds an RDMA device
	Cut      bool    // not all of its files were read
	Env      Env     // settings of NCCL and of the scheduler
	Settings bool    // all settings could be read
	Memory   *uint64 // memory regions registered with RDMA devices
	Ready    State   // decision of NCCL on receiving with the best eligible NIC

	// Registered GPU memory: of this process where Trace is TraceWhole, else of any.
	Peermem *uint64 // registrations by the peer memory module
	DMABUF  *uint64 // DMA-BUFs of GPUs that other devices are attached to
	Trace   Trace
	Young   bool // it is younger than YoungAge
	Unclear bool // it has registered DMA-BUFs of an exporter that may have GPU memory
	Kept    bool // it keeps DMA-BUFs of GPU memory open; false proves nothing, since NCCL closes them after registering

	Busy   *bool // the best eligible NIC exceeds BusyShare of its port rate
	Domain *bool // the GPU is in an NVLink domain of several hosts
	Other  *bool // a network interface without an RDMA device exceeds OtherBits
}

// Trace is what eBPF programs have observed of a process.
type Trace string

// The states of an observation.
const (
	TraceNone  Trace = ""      // there are no programs
	TraceWhole Trace = "whole" // all of its registrations
	TraceOlder Trace = "older" // it is older than the observation, or its start is unknown
	TraceLost  Trace = "lost"  // events have been lost since its start
)

const (
	// BusyShare is the share of the port rate above which traffic counts as data of a job.
	BusyShare = 0.05
	// YoungAge is the age below which a process may still load data over the NIC, and connect later. What it has
	// registered is evidence of NCCL's path only if it is observed.
	YoungAge = 15 * time.Minute
	// OtherBits is the rate in bits per second above which traffic of an interface without RDMA counts as data of a job,
	// not as logs or metadata.
	OtherBits = 1e9
)

// rule is an outcome with its condition.
type rule struct {
	transport Transport
	reason    Reason
	when      func(*Use) bool
}

// rules are evaluated in order. The rules before staging and tcp are the cases in which the traffic, or its absence, is
// expected or unknown.
var rules = []rule{
	{OverHostOnly, NotNCCL, func(u *Use) bool { return !u.NCCL }},
	{OverUnknown, NetPlugin, func(u *Use) bool { return u.Plugin }},
	{OverGDR, Registered, func(u *Use) bool {
		return u.Verbs && u.Ready == Direct && u.registers() && !none(u.Memory) && !u.alone()
	}},
	{OverGDR, KeepsDMABUF, func(u *Use) bool {
		return u.Verbs && u.Ready == Direct && u.Kept && u.Trace != TraceWhole && !none(u.Memory) && !u.alone()
	}},
	{OverHostOnly, OneNode, (*Use).alone},

	{OverUnknown, FilesCut, func(u *Use) bool { return !u.Verbs && u.Cut }},
	{OverUnknown, NodesUnknown, func(u *Use) bool { return !u.Verbs && !u.several() }},
	{OverUnknown, DomainUnknown, func(u *Use) bool { return !u.Verbs && u.Domain == nil }},
	{OverUnknown, InDomain, func(u *Use) bool { return is(u.Domain) && (!u.Verbs || u.Memory == nil) }},
	{OverUnknown, OtherUnknown, func(u *Use) bool { return !u.Verbs && u.Other == nil }},
	{OverUnknown, OtherQuiet, func(u *Use) bool { return !u.Verbs && !*u.Other }},
	{OverTCP, IBDisabled, func(u *Use) bool { return !u.Verbs && u.Env.Integer("NCCL_IB_DISABLE", 0) != 0 }},
	{OverTCP, NetChosen, func(u *Use) bool { return !u.Verbs && u.Env["NCCL_NET"] == "Socket" }},
	{OverTCP, NoVerbs, func(u *Use) bool { return !u.Verbs }},

	{OverUnknown, SettingsUnknown, func(u *Use) bool { return !u.Settings }},
	{OverUnknown, NotReady, func(u *Use) bool { return u.Ready != Direct }},
	{OverUnknown, NoMemory, func(u *Use) bool { return none(u.Memory) }},
	{OverUnknown, CacheMover, func(u *Use) bool { return u.Mover }},
	{OverUnknown, BusyUnknown, func(u *Use) bool { return u.Busy == nil }},
	{OverUnknown, Quiet, func(u *Use) bool { return !*u.Busy }},
	{OverUnknown, PeermemUnseen, func(u *Use) bool { return u.Peermem == nil }},
	{OverUnknown, ExporterUnknown, func(u *Use) bool { return u.Unclear }},
	{OverUnknown, EventsLost, func(u *Use) bool { return u.DMABUF == nil && u.Trace == TraceLost }},
	{OverUnknown, StartedBefore, func(u *Use) bool { return u.DMABUF == nil && u.Trace == TraceOlder }},
	{OverUnknown, DMABUFUnseen, func(u *Use) bool { return u.DMABUF == nil }},
	{OverStaging, HostRegistered, func(u *Use) bool { return u.Trace == TraceWhole }},
	{OverUnknown, YoungProcess, func(u *Use) bool { return u.Young }},
	{OverStaging, NotRegistered, func(*Use) bool { return true }}, // both sources were read and are empty
}

// Decide returns the transport and its reason.
func (u *Use) Decide() (Transport, Reason) {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.when(u) }) // the last one always holds
	return rules[i].transport, rules[i].reason
}

// Suspected reports whether only the DMA-BUFs are missing to decide on staging. Reading them blocks jobs.
func (u *Use) Suspected() bool {
	v := *u
	v.DMABUF = nil
	_, why := v.Decide()
	return why == DMABUFUnseen
}

// registers reports whether NICs access GPU memory: any NIC and any GPU where no source names them.
func (u *Use) registers() bool { return some(u.Peermem) || some(u.DMABUF) }

// several reports whether the job runs on several nodes, by the scheduler.
func (u *Use) several() bool { return u.Env.Nodes() > 1 }

// alone reports whether the job runs on one node, by the scheduler.
func (u *Use) alone() bool { return u.Env.Nodes() == 1 }

// Nodes is the number of nodes of the job: 0 is unknown, 2 is two or more. The launcher takes precedence over the
// allocation, since torchrun may run separately on each of several nodes. A missing variable proves nothing: the kernel
// exposes the environment at the start of the program.
func (e Env) Nodes() int {
	world, local := e.count("WORLD_SIZE"), e.count("LOCAL_WORLD_SIZE")
	switch {
	case world > 0 && local > 0 && world > local:
		return 2
	case world > 0 && world == local:
		return 1
	}
	return min(2, e.count("SLURM_JOB_NUM_NODES"))
}

// count is a number set by a scheduler; 0: none.
func (e Env) count(name string) int {
	n, err := strconv.Atoi(e[name])
	if err != nil {
		return 0
	}
	return max(0, n)
}

// Attachments is the number of attached DMA-BUFs of GPUs that may belong to a process with these settings and a NIC
// with this driver. It is 0 without reading if DMA-BUF is disabled or unsupported.
func (m *Machine) Attachments(seen *uint64, driver string, e Env) *uint64 {
	state, _ := m.HasDMABUF(driver)
	if state == Staging || e.Integer("NCCL_DMABUF_ENABLE", 1) == 0 {
		return new(uint64)
	}
	return seen
}

func is(b *bool) bool     { return b != nil && *b }
func none(n *uint64) bool { return n != nil && *n == 0 }
func some(n *uint64) bool { return n != nil && *n > 0 }
