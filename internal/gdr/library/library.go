// Package library decides which transports a communication library of a process can use on its host, which it uses, and
// why not a better one. The package does no I/O.
package library

import (
	"path"
	"slices"
	"strings"

	"rdma_exporter/internal/lazy"
)

// Names of libraries.
const (
	NCCL      = "nccl"
	RCCL      = "rccl"
	UCX       = "ucx"
	NIXL      = "nixl"
	Mooncake  = "mooncake"
	NVSHMEM   = "nvshmem"
	DeepEP    = "deepep"
	Libfabric = "libfabric"
	MSCCLPP   = "mscclpp"
)

// Transport is a way of data to other hosts.
type Transport string

// The transports of a library, the best first.
const (
	NVLink Transport = "nvlink" // in an NVLink domain of several hosts
	IBGDA  Transport = "ibgda"  // the GPU itself posts work requests to the NIC
	GDR    Transport = "gdr"    // NICs access GPU memory
	RDMA   Transport = "rdma"   // memory is registered with NICs, none of it known to be GPU memory
	TCP    Transport = "tcp"

	None    Transport = "none" // in use: no transport to other hosts
	Unknown Transport = "unknown"
)

// libraries are searched in this order. Sources: build files and wheels of the projects; auditwheel adds a hash to the
// name of a file (libfabric-e091ee2e.so.1).
var libraries = []struct {
	name       string
	maps       func(directory, base string) bool // of a file in /proc/PID/maps
	transports []Transport                       // the best first
}{
	{NCCL, named("libnccl"), []Transport{NVLink, GDR, RDMA, TCP}},
	{RCCL, named("librccl"), []Transport{GDR, RDMA, TCP}},
	// UCX and NVSHMEM load modules when they are initialized: libuct_ib.so.0, nvshmem_transport_ibgda.so.3. Other
	// libraries link to them without a use (PyTorch to NVSHMEM).
	{UCX, func(_, base string) bool { return strings.HasPrefix(base, "libuct_") }, []Transport{NVLink, GDR, RDMA, TCP}},
	{Libfabric, named("libfabric"), []Transport{GDR, RDMA, TCP}},
	{
		NVSHMEM, func(_, base string) bool {
			return strings.HasPrefix(base, "nvshmem_bootstrap") || strings.HasPrefix(base, "nvshmem_transport")
		},
		[]Transport{NVLink, IBGDA, GDR, RDMA},
	},
	{
		MSCCLPP, func(_, base string) bool { return strings.Contains(base, "mscclpp") },
		[]Transport{NVLink, GDR, RDMA},
	},
	{NIXL, func(_, base string) bool { return strings.Contains(base, "nixl") }, []Transport{NVLink, GDR, RDMA, TCP}},
	{DeepEP, func(directory, base string) bool { // deep_ep_cpp.cpython-312-x86_64-linux-gnu.so
		return strings.HasPrefix(base, "deep_ep") || directory == "deep_ep"
	}, []Transport{NVLink, IBGDA, GDR, RDMA}},
	{Mooncake, func(directory, base string) bool { // mooncake/engine.cpython-312-x86_64-linux-gnu.so, libtransfer_engine.so
		return strings.Contains(base, "mooncake") || directory == "mooncake" ||
			strings.HasPrefix(base, "libtransfer_engine")
	}, []Transport{GDR, RDMA, TCP}},
}

var hash = lazy.Regexp(`^(?:-[0-9a-f]{8})?\.so`)

// named reports whether a file is the shared library of a name.
func named(library string) func(directory, base string) bool {
	return func(_, base string) bool {
		rest, ok := strings.CutPrefix(base, library)
		return ok && hash().MatchString(rest)
	}
}

// Words occur in the file names of all libraries.
var Words = []string{
	"libnccl", "librccl", "libuct_", "nixl", "mooncake", "libtransfer_engine", "nvshmem_", "deep_ep", "libfabric",
	"mscclpp",
}

// Of returns the name of the library that a mapped file belongs to; empty if none.
func Of(file string) string {
	directory, base := path.Base(path.Dir(file)), path.Base(file)
	for _, l := range libraries {
		if l.maps(directory, base) {
			return l.name
		}
	}
	return ""
}

// IsName reports whether it is the name of a library.
func IsName(name string) bool { return transportsOf(name) != nil }

func transportsOf(name string) []Transport {
	for _, l := range libraries {
		if l.name == name {
			return l.transports
		}
	}
	return nil
}

// Variables are the environment variables that decide on transports, besides those of NCCL and UCX_IB_*. They hold no
// secrets.
var Variables = []string{
	"FI_PROVIDER", "MC_FORCE_HCA", "MC_FORCE_TCP", "MOONCAKE_PROTOCOL", "NVSHMEM_IBGDA_NIC_HANDLER",
	"NVSHMEM_IB_ENABLE_IBGDA", "NVSHMEM_REMOTE_TRANSPORT", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF",
	"UCX_NET_DEVICES", "UCX_TLS",
}

// has reports whether a library is mapped.
func (p *Process) has(name string) bool { return slices.Contains(p.Libraries, name) }
