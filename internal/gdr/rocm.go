package gdr

import (
	"slices"

	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/pci"
)

const vendorAMD = 0x1002

// ROCm is the mechanisms by which NICs access memory of AMD GPUs.
type ROCm struct {
	// Peer reports whether the peer memory client of amdgpu is registered: its entry in memory_peers, which ib_core has in
	// three places, or the symbols ib_register_peer_memory_client and kfd_init_peer_direct (amdgpu of ROCm,
	// kfd_peerdirect.c; not in-tree). The latter registers when a process opens /dev/kfd. Nil: unknown.
	Peer *bool
	// P2P reports whether the kernel has CONFIG_PCI_P2PDMA and CONFIG_DMABUF_MOVE_NOTIFY, without which RCCL does not use
	// DMA-BUFs (rocmwrap.cc). Nil: unknown.
	P2P *bool
}

// HasAMD reports whether the GPUs are those of AMD.
func (m *Machine) HasAMD() bool {
	vendor := func(id uint64) bool { return slices.ContainsFunc(m.GPUs, func(g GPU) bool { return g.Vendor == id }) }
	return vendor(vendorAMD) && !vendor(vendorNVIDIA)
}

// rocmDMABUF is whether a NIC with a driver can use DMA-BUFs of amdgpu, and the reason if not or if unknown.
func (m *Machine) rocmDMABUF(driver string) (State, Reason) {
	supported := m.registersDMABUF()
	switch {
	case is(m.ROCm.P2P) && is(supported):
		return m.nicDMABUF(driver)
	case m.ROCm.P2P != nil && !*m.ROCm.P2P, supported != nil && !*supported:
		return Staging, KernelWithoutP2P
	case m.ROCm.P2P == nil:
		return Unknown, KernelConfigUnknown
	}
	return Unknown, KernelUnknown
}

// rocmMechanism returns the mechanism that RCCL would use with a NIC, and its verdict. Whether DMA-BUF or the peer
// memory client has precedence depends on the version of RCCL, which its file name does not have: NCCL_DMABUF_ENABLE is
// 1 by default in recent versions, 0 before.
func (d *decision) rocmMechanism(nic *NIC) reach {
	state, why := d.rocmDMABUF(nic.Driver)
	enabled := d.job.Env.Integer("NCCL_DMABUF_ENABLE", -1)
	if enabled == 0 && state != Staging {
		state, why = Staging, DMABUFDisabled
	}
	peer := d.ROCm.Peer
	switch {
	case is(peer) && state == Staging:
		return reach{PeerMem, Verdict{Direct, IsDirect}}
	case is(peer) && enabled < 0, is(peer) && state == Unknown: // one of the two
		return reach{"", Verdict{Direct, IsDirect}}
	case state == Direct:
		return reach{DMABUF, Verdict{Direct, IsDirect}}
	case state == Unknown:
		return reach{"", Verdict{Unknown, why}}
	case peer == nil:
		return reach{"", Verdict{Unknown, ROCmPeerUnknown}}
	case d.removed&anyMechanism != 0 && why != DMABUFDisabled:
		return reach{"", Verdict{Direct, IsDirect}}
	}
	return reach{None, Verdict{Staging, why}}
}

// rocmReceive returns the verdict on the NIC's writes to memory of an AMD GPU. RCCL has the distance limit of NCCL, but
// goes through a host bridge on some AMD processors (ncclTopoCheckGdr of RCCL).
func (d *decision) rocmReceive(gpu *GPU, nic *NIC, p *Pair, way Verdict) Verdict {
	distance := p.Distance
	switch {
	case d.job.Plugin:
		return Verdict{Unknown, NetPlugin}
	case nic.Driver == "efa":
		return Verdict{Unknown, EFA}
	case distance == "":
		return Verdict{Unknown, VirtualTopology}
	case nccl.Level(distance) > d.limit && (distance != pci.PHB || d.set):
		return Verdict{Staging, d.tooFar(p, false)}
	case is(gpu.SmallBAR) && d.removed&anyMechanism == 0:
		return Verdict{Staging, SmallBAR}
	case distance == pci.PHB && !d.set && way.State != Staging: // without a mechanism the distance does not matter
		return Verdict{Unknown, RCCLHostBridge}
	}
	return way
}

// is reports whether b is known to be true.
func is(b *bool) bool { return b != nil && *b }
