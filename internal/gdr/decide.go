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
	job     Job
	removed removal
	file    *nccl.Topology // that of the job, or else of the machine
	limit   int
	c2c     bool
	set     bool
	none    Reason // why no NIC is eligible
	gpus    int    // that NCCL can use

	gpuAt []seat // by GPU
	nics  []nicFacts
}

// seat is the place of a function as seen by NCCL: by the topology file or else by the PCI tree, and by the PCI tree
// alone, which a virtual machine does not have. Nil: unknown.
type seat struct{ at, tree *pci.NCCLPlace }

// nicFacts is the decision on a NIC that does not depend on the GPU.
type nicFacts struct {
	seat
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

// newDecision returns the decision with a set of obstacles removed.
func newDecision(m *Machine, j Job, removed removal) *decision {
	j = j.without(removed)
	d := &decision{Machine: m, job: j, removed: removed, file: cmp.Or(j.Topology, m.Topology), none: NoActiveNIC}
	if max(m.Devices, len(m.NICs)) == 0 {
		d.none = NoNIC
	}
	d.c2c = removed&useC2C != 0 || j.usesC2C()
	d.limit, d.set = j.limit(d.c2c)
	for i := range m.GPUs {
		g := &m.GPUs[i]
		if g.Vendor == vendorNVIDIA {
			d.gpus++
		}
		d.gpuAt = append(d.gpuAt, d.seat(g.Address, g.Place))
	}
	chosen, _, _ := j.Env.HCAs()
	compute := slices.ContainsFunc(m.NICs, func(n NIC) bool { return n.Role == pci.Compute })
	for i := range m.NICs {
		n := &m.NICs[i]
		meant := slices.ContainsFunc(n.Ports, func(p Port) bool { return j.Env.AllowsPort(n.Device, p.Number) })
		ok := slices.ContainsFunc(n.Ports, func(p Port) bool {
			return (p.Active || removed&portsUp != 0) && j.Env.AllowsPort(n.Device, p.Number)
		})
		if len(chosen) > 0 {
			d.none = NoChosenNIC
		} else if compute {
			meant = meant && n.Role == pci.Compute
		}
		meant = meant && n.Role != pci.NVLinkManagement
		f := nicFacts{seat: d.seat(nicAddress(n), n.Place), eligible: ok && meant, down: meant && !ok}
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
	p.Distance = between(d.gpuAt[g].at, facts.at, gpu.Coupled)
	if d.file.Has(gpu.Address) || d.file.Has(nicAddress(nic)) {
		p.Tree = between(d.gpuAt[g].tree, facts.tree, gpu.Coupled)
	}
	if d.removed&noFile != 0 && p.Tree != "" && nccl.Level(p.Tree) < nccl.Level(p.Distance) {
		p.Distance = p.Tree
	}
	if d.removed&moved != 0 && p.Distance != "" && nccl.Level(p.Distance) > nccl.Level(pci.P2C) {
		p.Distance = pci.PIX
		if gpu.Coupled {
			p.Distance = pci.P2C
		}
	}
	if !d.Virtual {
		p.SMI = pci.DistanceOf(gpu.Place, nic.Place)
	}
	p.Receive = d.receive(gpu, nic, &p, by.way)
	p.Send = p.Receive
	if p.Receive.State == Direct {
		p.Send = d.send(gpu, p.Receive)
	}
	return p
}

// Distance returns the distance of a GPU and a NIC as seen by NCCL, empty if unknown; file reports whether it is from
// the topology file.
func (m *Machine) Distance(g *GPU, n *NIC) (distance pci.Distance, file bool) {
	d := decision{Machine: m, file: m.Topology}
	a, b := d.seat(g.Address, g.Place).at, d.seat(nicAddress(n), n.Place).at
	return between(a, b, g.Coupled), m.Topology.Has(g.Address) && m.Topology.Has(nicAddress(n))
}

// between returns the distance of a GPU and a NIC; empty: a place is unknown.
func between(gpu, nic *pci.NCCLPlace, coupled bool) pci.Distance {
	if gpu == nil || nic == nil {
		return ""
	}
	return gpu.DistanceTo(*nic, coupled)
}

func (d *decision) seat(address string, p pci.Place) (s seat) {
	if !d.Virtual {
		s.tree = new(p.AsNCCL(d.Bridges))
	}
	s.at = s.tree
	if d.file.Has(address) {
		s.at = new(d.file.Places[address])
	}
	return s
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
	case d.removed&anyMechanism != 0 && why != DMABUFDisabled:
		return reach{"", Verdict{Direct, IsDirect}}
	case d.HasPeermem():
		return reach{None, Verdict{Staging, PeermemInvisible}}
	case d.Peermem.Supported != nil && *d.Peermem.Supported:
		return reach{None, Verdict{Staging, PeermemNotLoaded}}
	}
	return reach{None, Verdict{Staging, why}}
}

// receive returns the verdict on the NIC's writes to GPU memory. Reasons that do not depend on the mechanism are first:
// loading a module does not help a GPU without a near NIC.
func (d *decision) receive(gpu *GPU, nic *NIC, p *Pair, way Verdict) Verdict {
	lacks, known := gpu.lacksGDR()
	distance := p.Distance
	switch {
	case gpu.Vendor == vendorAMD:
		return d.rocmReceive(gpu, nic, p, way)
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
		return Verdict{Staging, d.tooFar(p, gpu.Coupled)}
	case !known:
		return Verdict{Unknown, ModelUnknown}
	case way.State != Direct:
		return way
	case distance == pci.P2C:
		return Verdict{Direct, directCoupled}
	case gpu.Coupled:
		return Verdict{Direct, directForcedPCI}
	case is(gpu.SmallBAR) && gpu.preAmpere():
		return Verdict{Direct, directFixedBAR}
	case is(gpu.SmallBAR):
		return Verdict{Direct, directSmallBAR}
	}
	return way
}

// tooFar returns the reason why the distance of a pair exceeds the limit.
func (d *decision) tooFar(p *Pair, coupled bool) Reason {
	distance := p.Distance
	switch {
	case d.set && nccl.Level(distance) <= nccl.Level(pci.PXB), d.set && distance == pci.P2C && d.c2c:
		return LevelSet
	case p.Tree != "" && nccl.Level(p.Tree) <= d.limit:
		return TopologyFile
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
