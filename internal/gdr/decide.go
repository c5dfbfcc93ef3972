package gdr

import (
	"slices"

	"rdma_exporter/internal/pci"
)

const vendorNVIDIA = 0x10de

// decision is what all pairs of a machine and a job have in common.
type decision struct {
	*Machine
	job      Job
	hcas     hcas
	limit    int
	set      bool
	eligible []bool
	none     Reason // why no NIC is eligible
	gpus     int    // that NCCL can use
}

func newDecision(m *Machine, j Job) *decision {
	d := &decision{Machine: m, job: j, hcas: j.Env.hcas(), none: NoActiveNIC}
	d.limit, d.set = j.limit()
	for _, g := range m.GPUs {
		if g.Vendor == vendorNVIDIA {
			d.gpus++
		}
	}
	compute := slices.ContainsFunc(m.NICs, func(n NIC) bool { return n.Role == pci.Compute })
	for _, n := range m.NICs {
		ok := slices.ContainsFunc(n.Ports, func(p Port) bool { return p.Active && d.hcas.allow(n.Device, p.Number) })
		if len(d.hcas.list) > 0 {
			d.none = NoChosenNIC
		} else if compute {
			ok = ok && n.Role == pci.Compute
		}
		d.eligible = append(d.eligible, ok && n.Role != pci.NVLinkManagement)
	}
	return d
}

// pair judges a GPU and a NIC, whether or not the NIC is eligible.
func (d *decision) pair(g, n int) Pair {
	gpu, nic := &d.GPUs[g], &d.NICs[n]
	p := Pair{GPU: g, NIC: n, Eligible: d.eligible[n]}
	if d.knowsPlaces(gpu, nic) {
		p.Distance = d.fabric(gpu.Address, gpu.Place).DistanceTo(d.fabric(nicAddress(nic), nic.Place), gpu.Coupled)
	}
	if !d.Virtual {
		p.SMI = pci.DistanceOf(gpu.Place, nic.Place)
	}
	mechanism, way := d.mechanism(nic)
	p.Mechanism = mechanism
	p.Receive = d.receive(gpu, nic, p.Distance, way)
	p.Send = p.Receive
	if p.Receive.State == Direct {
		p.Send = d.send(gpu, p.Receive)
	}
	return p
}

// knowsPlaces says whether it is known where both are: from a topology file, or from a tree that is no virtual machine's.
func (d *decision) knowsPlaces(g *GPU, n *NIC) bool {
	return !d.Virtual || d.Topology.has(g.Address) && d.Topology.has(nicAddress(n))
}

// fabric is where NCCL takes a function to be: a topology file stands above the tree.
func (d *decision) fabric(address string, p pci.Place) pci.Fabric {
	if d.Topology.has(address) {
		return d.Topology.places[address]
	}
	return p.Fabric(d.Bridges)
}

func nicAddress(n *NIC) string {
	if len(n.Place.Chain) == 0 {
		return ""
	}
	return n.Place.Chain[len(n.Place.Chain)-1]
}

// mechanism is the one that NCCL would use with a NIC, and what that comes to.
func (d *decision) mechanism(nic *NIC) (Mechanism, Verdict) {
	state, why := d.HasDMABUF(nic.Driver)
	if d.job.Env.integer("NCCL_DMABUF_ENABLE", 1) == 0 && state != Staging {
		state, why = Staging, DMABUFDisabled
	}
	peermem := d.seesPeermem(parseVersion(d.job.NCCL))
	switch {
	case state == Direct:
		return DMABUF, Verdict{Direct, IsDirect}
	case peermem && state == Staging:
		return PeerMem, Verdict{Direct, IsDirect}
	case peermem: // one of the two
		return "", Verdict{Direct, IsDirect}
	case state == Unknown:
		return "", Verdict{Unknown, why}
	case d.HasPeermem():
		return None, Verdict{Staging, PeermemInvisible}
	case d.Peermem.Supported != nil && *d.Peermem.Supported:
		return None, Verdict{Staging, PeermemNotLoaded}
	}
	return None, Verdict{Staging, why}
}

// receive is the verdict on the NIC's writing into the GPU's memory. What makes the mechanism a matter of no account comes first: one
// does not load a module for a GPU that no NIC is near.
func (d *decision) receive(gpu *GPU, nic *NIC, distance pci.Distance, way Verdict) Verdict {
	supported, known := gpu.supportsGDR()
	switch {
	case gpu.Vendor != vendorNVIDIA:
		return Verdict{Unknown, NotNVIDIA}
	case !supported:
		return Verdict{Staging, GPUUnsupported}
	case d.job.Plugin:
		return Verdict{Unknown, NetPlugin}
	case nic.Driver == "efa":
		return Verdict{Unknown, EFA}
	case distance == "":
		return Verdict{Unknown, VirtualTopology}
	case level(distance) > d.limit:
		return Verdict{Staging, d.tooFar(distance, gpu.Coupled)}
	case !known:
		return Verdict{Unknown, ModelUnknown}
	case way.State != Direct:
		return way
	case distance == pci.P2C:
		return Verdict{Direct, DirectCoupled}
	case gpu.Coupled:
		return Verdict{Direct, DirectForcedPCI}
	}
	return way
}

// tooFar says why a distance is beyond the limit.
func (d *decision) tooFar(distance pci.Distance, coupled bool) Reason {
	switch {
	case d.set && level(distance) <= level(pci.PXB), d.set && distance == pci.P2C && d.job.usesC2C():
		return LevelSet
	case distance == pci.P2C:
		return CoupledOff
	case coupled:
		return CoupledFar
	case distance == pci.SYS:
		return FarNode
	}
	return FarHostBridge
}

// send is the verdict on the NIC's reading of the GPU's memory, where writing is direct.
func (d *decision) send(gpu *GPU, receive Verdict) Verdict {
	read := d.job.Env.integer("NCCL_NET_GDR_READ", -2)
	switch {
	case read == 0:
		return Verdict{Staging, ReadOff}
	case read > 0 || !gpu.preAmpere() || d.gpus == 1:
		return receive
	case gpu.Linked == nil:
		return Verdict{Unknown, LinksUnknown}
	case !*gpu.Linked:
		return Verdict{Staging, PreAmpere}
	}
	return receive
}
