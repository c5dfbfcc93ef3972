// Package transport decides how data of a GPU goes to other hosts at present, and why: by GPUDirect RDMA, through host
// memory, or over sockets. The package does no I/O.
package transport

import (
	"slices"
	"time"

	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/nccl"
)

// Kind is a way of data of a GPU to other hosts.
type Kind string

// The transports.
const (
	OverGDR      Kind = "gdr"       // NICs access GPU memory
	OverStaging  Kind = "staging"   // NICs access host memory, although they could access GPU memory
	OverTCP      Kind = "tcp"       // TCP sockets, without RDMA
	OverHostOnly Kind = "host_only" // no GPU data goes over a NIC: the process sends host memory, or runs on one host
	OverUnknown  Kind = "unknown"
)

// Process is the state of the process that holds a GPU. Nil pointers are unknown.
type Process struct {
	NCCL     bool      // libnccl is mapped
	Plugin   bool      // a NCCL net plugin is mapped
	Mover    bool      // a library that transfers caches by RDMA is mapped: NIXL, Mooncake
	Other    bool      // another communication library than NCCL is mapped
	Verbs    bool      // it holds an RDMA device
	Cut      bool      // not all of its files were read
	Env      nccl.Env  // settings of NCCL and of the scheduler
	Settings bool      // all settings could be read
	Peers    *uint64   // other hosts that it has TCP connections to; of a process without an RDMA device
	Memory   *uint64   // memory regions registered with RDMA devices
	Ready    gdr.State // decision of NCCL on receiving with the best eligible NIC

	// Registered GPU memory: of this process where Trace is TraceWhole, else of any.
	Peermem *uint64 // registrations by the peer memory module
	DMABUF  *uint64 // DMA-BUFs of GPUs that other devices are attached to
	Trace   Trace
	Young   bool // it is younger than YoungAge
	Unclear bool // it has registered DMA-BUFs of an exporter that may have GPU memory
	Kept    bool // it keeps DMA-BUFs of GPU memory open; false proves nothing, since NCCL closes them after registering

	Busy    *bool // the best eligible NIC exceeds BusyShare of its port rate
	Domain  *bool // the GPU is in an NVLink domain of several hosts
	Sockets *bool // traffic of the kernel over a network interface exceeds SocketBits
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
)

// SocketBits returns the rate in bits per second above which traffic of the kernel over an interface counts as data of
// a job, not as logs or metadata: a tenth of the interface's speed (0: unknown), at least 100 Mb/s.
func SocketBits(speed float64) float64 { return max(1e8, speed/10) }

// rule is an outcome with its condition.
type rule struct {
	transport Kind
	reason    Reason
	when      func(*Process) bool
}

// rules are evaluated in order. The rules before staging and tcp are the cases in which the traffic, or its absence, is
// expected or unknown.
var rules = []rule{
	{OverUnknown, OtherLibrary, func(u *Process) bool { return !u.NCCL && u.Other }},
	{OverHostOnly, NotNCCL, func(u *Process) bool { return !u.NCCL }},
	{OverUnknown, NetPlugin, func(u *Process) bool { return u.Plugin }},
	{OverGDR, Registered, func(u *Process) bool {
		return u.Verbs && u.Ready == gdr.Direct && u.registers() && !none(u.Memory) && !u.alone()
	}},
	{OverGDR, KeepsDMABUF, func(u *Process) bool {
		return u.Verbs && u.Ready == gdr.Direct && u.Kept && u.Trace != TraceWhole && !none(u.Memory) && !u.alone()
	}},
	{OverHostOnly, OneNode, (*Process).alone},

	{OverUnknown, FilesCut, func(u *Process) bool { return !u.Verbs && u.Cut }},
	{OverUnknown, NotConnected, func(u *Process) bool { return !u.Verbs && none(u.Peers) }},
	{OverUnknown, NodesUnknown, func(u *Process) bool { return !u.Verbs && !u.several() }},
	{OverUnknown, DomainUnknown, func(u *Process) bool { return !u.Verbs && u.Domain == nil }},
	{OverUnknown, InDomain, func(u *Process) bool { return is(u.Domain) && (!u.Verbs || u.Memory == nil) }},
	{OverUnknown, SocketsUnknown, func(u *Process) bool { return !u.Verbs && u.Sockets == nil }},
	{OverUnknown, SocketsQuiet, func(u *Process) bool { return !u.Verbs && !*u.Sockets }},
	{OverTCP, IBDisabled, func(u *Process) bool { return !u.Verbs && u.Env.Integer("NCCL_IB_DISABLE", 0) != 0 }},
	{OverTCP, NetChosen, func(u *Process) bool { return !u.Verbs && u.Env["NCCL_NET"] == "Socket" }},
	{OverTCP, NoVerbs, func(u *Process) bool { return !u.Verbs }},

	{OverUnknown, SettingsUnknown, func(u *Process) bool { return !u.Settings }},
	{OverUnknown, NotReady, func(u *Process) bool { return u.Ready != gdr.Direct }},
	{OverUnknown, NoMemory, func(u *Process) bool { return none(u.Memory) }},
	{OverUnknown, CacheMover, func(u *Process) bool { return u.Mover }},
	{OverUnknown, BusyUnknown, func(u *Process) bool { return u.Busy == nil }},
	{OverUnknown, Quiet, func(u *Process) bool { return !*u.Busy }},
	{OverUnknown, PeermemUnseen, func(u *Process) bool { return u.Peermem == nil }},
	{OverUnknown, ExporterUnknown, func(u *Process) bool { return u.Unclear }},
	{OverUnknown, EventsLost, func(u *Process) bool { return u.DMABUF == nil && u.Trace == TraceLost }},
	{OverUnknown, StartedBefore, func(u *Process) bool { return u.DMABUF == nil && u.Trace == TraceOlder }},
	{OverUnknown, DMABUFUnseen, func(u *Process) bool { return u.DMABUF == nil }},
	{OverStaging, HostRegistered, func(u *Process) bool { return u.Trace == TraceWhole }},
	{OverUnknown, YoungProcess, func(u *Process) bool { return u.Young }},
	{OverStaging, NotRegistered, func(*Process) bool { return true }}, // both sources were read and are empty
}

// Decide returns the transport and its reason.
func (u *Process) Decide() (Kind, Reason) {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.when(u) }) // the last one always holds
	return rules[i].transport, rules[i].reason
}

// Suspected reports whether only the DMA-BUFs are missing to decide on staging. Reading them blocks jobs.
func (u *Process) Suspected() bool {
	v := *u
	v.DMABUF = nil
	_, why := v.Decide()
	return why == DMABUFUnseen
}

// registers reports whether NICs access GPU memory: any NIC and any GPU where no source names them.
func (u *Process) registers() bool { return some(u.Peermem) || some(u.DMABUF) }

// several reports whether the job runs on several nodes, by its launcher, its connections or the scheduler.
func (u *Process) several() bool { return u.Env.Nodes() > 1 || some(u.Peers) }

// alone reports whether the job runs on one node, by its launcher or the scheduler.
func (u *Process) alone() bool { return u.Env.Nodes() == 1 }

func is(b *bool) bool     { return b != nil && *b }
func none(n *uint64) bool { return n != nil && *n == 0 }
func some(n *uint64) bool { return n != nil && *n > 0 }
