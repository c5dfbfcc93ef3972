// Package gdr decides whether data of a GPU goes to a NIC directly (GPUDirect RDMA) or through host memory, and why, as
// NCCL does. NCCL stages through host memory without an error, at a fraction of the bandwidth. The package does no I/O.
//
// AMD GPUs use RCCL, a port of NCCL with the same rules and other mechanisms: see rocm.go.
//
// The decision is that of NCCL 2.30: ncclTopoCheckGdr in src/graph/paths.cc and the InfiniBand transport's properties.
package gdr

import (
	"cmp"

	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/pci"
)

// Machine has the inputs of the decision, except those of the job.
type Machine struct {
	Virtual bool   // a virtual machine, whose PCI tree is not the physical one
	Kernel  string // release: 6.12.48+deb13-amd64
	Driver  Driver // of the GPUs
	Peermem Peermem
	ROCm    ROCm
	// DMABUF reports whether ib_core can register DMA-BUFs: the symbol ib_umem_dmabuf_get in /proc/kallsyms. Nil: unknown.
	DMABUF   *bool
	Bridges  map[string]pci.Bridge // models of switches by address
	Topology *nccl.Topology        // NCCL's topology file; nil: none
	GPUs     []GPU
	NICs     []NIC
	Devices  int // RDMA devices, including those missing in NICs because their PCI address cannot be read
}

// Driver is the GPU driver.
type Driver struct {
	Version string // 570.133.20; empty: unknown
	Open    *bool  // the open kernel modules; nil: unknown
}

// Peermem is the older mechanism: a module that lets ib_core of MLNX_OFED, or of a kernel with that patch, map GPU
// memory.
type Peermem struct {
	Module string // nvidia_peermem or nv_peer_mem if loaded
	// Clients are the names in /sys/kernel/mm/memory_peers, which exists in MLNX_OFED up to 23.10.
	Clients []string
	// Supported reports whether ib_core has ib_register_peer_memory_client. Nil: unknown.
	Supported *bool
}

// GPU is one GPU.
type GPU struct {
	Index, UUID string
	Address     string
	Vendor      uint64 // PCI vendor
	Device      uint64 // PCI device id
	Model       string // NVIDIA H100 80GB HBM3; empty: unknown
	Display     bool   // a display controller, as opposed to a 3D one without outputs
	Place       pci.Place
	// Compute is the CUDA compute capability, ten times the major number and the minor one: 90; 0: unknown.
	Compute int
	Linked  *bool // to another GPU by NVLink; nil: unknown
	Coupled bool  // to its CPU by NVLink-C2C
	// SmallBAR reports whether only a part of the memory is in the BAR (BAR1 of NVIDIA GPUs). Nil: unknown.
	SmallBAR *bool
}

// NIC is an RDMA device.
type NIC struct {
	Device string
	Driver string // mlx5_core
	Role   pci.Role
	Place  pci.Place
	Ports  []Port
}

// Port is a port of a NIC.
type Port struct {
	Number int
	Active bool
}

// State is the data path.
type State string

// The states.
const (
	Direct  State = "direct"
	Staging State = "staging" // through host memory
	Unknown State = "unknown"
)

// Verdict is a state with its reason.
type Verdict struct {
	State  State
	Reason Reason
}

// Mechanism is how a NIC accesses the memory of GPUs.
type Mechanism string

// The mechanisms.
const (
	PeerMem Mechanism = "peermem"
	DMABUF  Mechanism = "dmabuf"
	None    Mechanism = "none"
)

// Pair is the decision on a GPU and a NIC.
type Pair struct {
	GPU, NIC  int          // indices into Machine
	SMI       pci.Distance // in terms of nvidia-smi; empty: unknown
	Distance  pci.Distance // in terms of NCCL; empty: unknown
	Tree      pci.Distance // that of the PCI tree, where a topology file gives Distance; empty: unknown
	Mechanism Mechanism    // that NCCL would use; empty: unknown
	Eligible  bool         // NCCL would use this NIC: it is up and selected by the job
	// Of the best pair of a GPU: the nearer NIC that would be better with an ACTIVE port; negative: none.
	Down    int
	Send    Verdict // the NIC reads the GPU's memory
	Receive Verdict // the NIC writes it
	// Of the best pair of a GPU: what keeps data from going directly, and the path that its hardware can have.
	Obstacles           []Obstacle
	CanSend, CanReceive State
}

// Verdict of a pair: that of receiving, or of sending if receiving is direct.
func (p Pair) Verdict() Verdict {
	if p.Receive.State == Direct {
		return p.Send
	}
	return p.Receive
}

// Result is the decision on all pairs.
type Result struct {
	Pairs []Pair // by GPU, then by NIC
	// Best is each GPU with its best eligible NIC. Without one, NIC is negative and the verdicts have the reason.
	Best []Pair
}

// Decide decides on every pair of GPU and NIC, and on every GPU with its best eligible NIC.
func (m *Machine) Decide(j Job) Result {
	d := newDecision(m, j, 0)
	r := Result{Pairs: make([]Pair, 0, len(m.GPUs)*len(m.NICs)), Best: make([]Pair, 0, len(m.GPUs))}
	used := make([]int, len(m.NICs)) // by GPUs before
	s := search{m: m, job: j, decisions: map[removal]*decision{0: d}}
	for g := range m.GPUs {
		best := d.best(g, used, func(p Pair) { r.Pairs = append(r.Pairs, p) })
		if best.NIC >= 0 {
			used[best.NIC]++
		}
		s.explain(&best)
		r.Best = append(r.Best, best)
	}
	return r
}

// best decides on a GPU with its best eligible NIC: of equal ones that which is used the least. each gets all pairs.
func (d *decision) best(g int, used []int, each func(Pair)) Pair {
	best, down := Pair{GPU: g, NIC: -1}, Pair{NIC: -1}
	for n := range d.NICs {
		p := d.pair(g, n)
		if each != nil {
			each(p)
		}
		switch {
		case p.Eligible && (best.NIC < 0 || p.compare(best) > 0 ||
			p.compare(best) == 0 && used != nil && used[n] < used[best.NIC]):
			best = p
		case d.nics[n].down && (down.NIC < 0 || p.compare(down) > 0):
			down = p
		}
	}
	best.Down = -1
	if best.NIC < 0 {
		v := Verdict{Unknown, d.none}
		best.Send, best.Receive = v, v
	}
	if down.NIC >= 0 && best.NIC >= 0 && best.Receive.State == Staging && down.Receive.State == Direct {
		best.Down, best.Receive.Reason, best.Send.Reason = down.NIC, NearestDown, NearestDown
	}
	return best
}

// compare is greater than 0 if the pair is better: by verdict of receiving, of sending, then by distance. GPUs spread
// over equal NICs.
func (p Pair) compare(o Pair) int {
	return cmp.Or(ranks[p.Receive.State]-ranks[o.Receive.State], ranks[p.Send.State]-ranks[o.Send.State],
		nccl.Level(o.Distance)-nccl.Level(p.Distance))
}

// ranks puts unknown above staging, so that unknown is not reported as staging.
var ranks = map[State]int{Direct: 2, Unknown: 1}
