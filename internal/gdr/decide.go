package gdr

import (
	"cmp"
	"slices"

	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/pci"
)

const vendorNVIDIA = 0x10de

// decision is common to all pairs of a machine and a job.
type decision struct {
	*Machine
	job   Job
	limit int
	set   bool
	none  Reason // why no NIC is eligible
	gpus  int    // that NCCL can use

	gpuAt []*pci.NCCLPlace // by GPU; nil: place unknown
	nics  []nicFacts
}

// nicFacts is the decision on a NIC that does not depend on the GPU.
type nicFacts struct {
	at       *pci.NCCLPlace // nil: place unknown
	eligible bool
	down     bool // eligible but for an ACTIVE port
	// By the mechanisms that the GPU has: NVIDIA since Turing, NVIDIA before, AMD.
	turing, older, rocm reach
}

// reach is the mechanism by which a NIC accesses the memory of a GPU, with its verdict.
type reach struct {
	mechanism Mechanism
	way       Verdict
}

// reach returns that of a GPU.
func (f *nicFacts) reach(g *GPU) reach {
	switch {
	case g.Vendor == vendorAMD:
		return f.rocm
	case g.preTuring():
		return f.older
	}
	return f.turing
}

func newDecision(m *Machine, j Job) *decision {
	d := &decision{Machine: m, job: j, none: NoActiveNIC}
	if max(m.Devices, len(m.NICs)) == 0 {
		d.none = NoNIC
	}
	d.limit, d.set = j.limit()
	for i := range m.GPUs {
		g := &m.GPUs[i]
		if g.Vendor == vendorNVIDIA {
			d.gpus++
		}
		d.gpuAt = append(d.gpuAt, d.place(g.Address, g.Place))
	}
	chosen, _, _ := j.Env.HCAs()
	compute := slices.ContainsFunc(m.NICs, func(n NIC) bool { return n.Role == pci.Compute })
	for i := range m.NICs {
		n := &m.NICs[i]
		meant := slices.ContainsFunc(n.Ports, func(p Port) bool { return j.Env.AllowsPort(n.Device, p.Number) })
		ok := slices.ContainsFunc(n.Ports, func(p Port) bool { return p.Active && j.Env.AllowsPort(n.Device, p.Number) })
		if len(chosen) > 0 {
			d.none = NoChosenNIC
		} else if compute {
			meant = meant && n.Role == pci.Compute
		}
		meant = meant && n.Role != pci.NVLinkManagement
		f := nicFacts{at: d.place(nicAddress(n), n.Place), eligible: ok && meant, down: meant && !ok}
		state, why := d.HasDMABUF(n.Driver)
		f.turing = d.mechanism(state, why)
		f.older = d.mechanism(Staging, GPUWithoutDMABUF)
		f.rocm = d.rocmMechanism(n)
		d.nics = append(d.nics, f)
	}
	return d
}

// pair decides on a GPU and a NIC, eligible or not.
func (d *decision) pair(g, n int) Pair {
	gpu, nic := &d.GPUs[g], &d.NICs[n]
	facts := &d.nics[n]
	by := facts.reach(gpu)
	p := Pair{GPU: g, NIC: n, Eligible: facts.eligible, Mechanism: by.mechanism}
	if at := d.gpuAt[g]; at != nil && facts.at != nil {
		p.Distance = at.DistanceTo(*facts.at, gpu.Coupled)
	}
	if !d.Virtual {
		p.SMI = pci.DistanceOf(gpu.Place, nic.Place)
	}
	p.Receive = d.receive(gpu, nic, p.Distance, by.way)
	p.Send = p.Receive
	if p.Receive.State == Direct {
		p.Send = d.send(gpu, p.Receive)
	}
	return p
}

// Distance returns the distance of a GPU and a NIC as seen by NCCL, empty if unknown; file reports whether it is from
// the topology file.
func (m *Machine) Distance(g *GPU, n *NIC) (distance pci.Distance, file bool) {
	d := decision{Machine: m}
	a, b := d.place(g.Address, g.Place), d.place(nicAddress(n), n.Place)
	if a == nil || b == nil {
		return "", false
	}
	return a.DistanceTo(*b, g.Coupled), m.Topology.Has(g.Address) && m.Topology.Has(nicAddress(n))
}

// place returns the place of a function as seen by NCCL: a topology file overrides the PCI tree. Nil: unknown, in a
// virtual machine.
func (d *decision) place(address string, p pci.Place) *pci.NCCLPlace {
	if t := cmp.Or(d.job.Topology, d.Topology); t.Has(address) {
		return new(t.Places[address])
	}
	if d.Virtual {
		return nil
	}
	return new(p.AsNCCL(d.Bridges))
}

func nicAddress(n *NIC) string {
	if len(n.Place.Chain) == 0 {
		return ""
	}
	return n.Place.Chain[len(n.Place.Chain)-1]
}

// mechanism returns the one that NCCL would use with a NIC: state is whether DMA-BUF works between GPU and NIC.
func (d *decision) mechanism(state State, why Reason) reach {
	if d.job.Env.Integer("NCCL_DMABUF_ENABLE", 1) == 0 && state != Staging {
		state, why = Staging, DMABUFDisabled
	}
	peermem := d.seesPeermem(parseVersion(d.job.NCCL))
	switch {
	case state == Direct:
		return reach{DMABUF, Verdict{Direct, IsDirect}}
	case peermem && state == Staging:
		return reach{PeerMem, Verdict{Direct, IsDirect}}
	case peermem: // one of the two
		return reach{"", Verdict{Direct, IsDirect}}
	case state == Unknown:
		return reach{"", Verdict{Unknown, why}}
	case d.HasPeermem():
		return reach{None, Verdict{Staging, PeermemInvisible}}
	case d.Peermem.Supported != nil && *d.Peermem.Supported:
		return reach{None, Verdict{Staging, PeermemNotLoaded}}
	}
	return reach{None, Verdict{Staging, why}}
}

// receive returns the verdict on the NIC's writes to GPU memory. Reasons that do not depend on the mechanism are first:
// loading a module does not help a GPU without a near NIC.
func (d *decision) receive(gpu *GPU, nic *NIC, distance pci.Distance, way Verdict) Verdict {
	lacks, known := gpu.lacksGDR()
	switch {
	case gpu.Vendor == vendorAMD:
		return d.rocmReceive(gpu, nic, distance, way)
	case gpu.Vendor != vendorNVIDIA:
		return Verdict{Unknown, NotNVIDIA}
	case lacks != "":
		return Verdict{Staging, lacks}
	case d.job.Plugin:
		return Verdict{Unknown, NetPlugin}
	case nic.Driver == "efa":
		return Verdict{Unknown, EFA}
	case distance == "":
		return Verdict{Unknown, VirtualTopology}
	case nccl.Level(distance) > d.limit:
		return Verdict{Staging, d.tooFar(distance, gpu.Coupled)}
	case !known:
		return Verdict{Unknown, ModelUnknown}
	case way.State != Direct:
		return way
	case distance == pci.P2C:
		return Verdict{Direct, DirectCoupled}
	case gpu.Coupled:
		return Verdict{Direct, DirectForcedPCI}
	case is(gpu.SmallBAR) && gpu.preAmpere():
		return Verdict{Direct, directFixedBAR}
	case is(gpu.SmallBAR):
		return Verdict{Direct, directSmallBAR}
	}
	return way
}

// tooFar returns the reason why a distance exceeds the limit.
func (d *decision) tooFar(distance pci.Distance, coupled bool) Reason {
	switch {
	case d.set && nccl.Level(distance) <= nccl.Level(pci.PXB), d.set && distance == pci.P2C && d.job.usesC2C():
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

// send returns the verdict on the NIC's reads of GPU memory, if writes are direct.
func (d *decision) send(gpu *GPU, receive Verdict) Verdict {
	read := d.job.Env.Integer("NCCL_NET_GDR_READ", -2)
	switch {
	case read == 0:
		return Verdict{Staging, ReadOff}
	case read > 0 || gpu.Vendor == vendorAMD || !gpu.preAmpere() || d.gpus == 1:
		return receive
	case gpu.Linked == nil:
		return Verdict{Unknown, LinksUnknown}
	case !*gpu.Linked:
		return Verdict{Staging, PreAmpere}
	}
	return receive
}
