package gdr

import (
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/pci"
)

// Job is a process that uses or may use NCCL.
type Job struct {
	NCCL   string // version of the library, 2.22.3; empty: unknown, taken as a current one
	Env    nccl.Env
	Plugin bool // a net plugin is loaded
	// Topology is that of NCCL_TOPO_FILE of the job; nil: that of the machine.
	Topology *nccl.Topology
}

// usesC2C reports whether NCCL uses the path through the CPU that a GPU is coupled to: by default since 2.27, optional
// in 2.26.
func (j Job) usesC2C() bool {
	v := parseVersion(j.NCCL)
	switch {
	case v.before(version{2, 26}):
		return false
	case v.before(version{2, 27}):
		return j.Env.Integer("NCCL_NET_GDR_C2C", 0) != 0
	}
	return j.Env.Integer("NCCL_NET_GDR_C2C", 1) != 0
}

// limit returns the maximum distance for GPUDirect RDMA, and whether the user has set it. c2c: NCCL uses the path
// through the coupled CPU.
func (j Job) limit(c2c bool) (limit int, set bool) {
	if l, ok := j.Env.GDRLevel(); ok {
		return l, true
	}
	if c2c {
		return nccl.Level(pci.P2C), false
	}
	return nccl.Level(pci.PXB), false
}
