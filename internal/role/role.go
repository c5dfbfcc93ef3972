// Package role determines the purpose of each port of a NIC, compute or other, from the strongest available evidence.
// The state of the port itself is not used: a compute port that is down is a compute port. It is pure.
package role

import (
	"slices"

	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/snapshot"
)

// Source is the evidence for a role.
type Source string

// The sources, the strongest first.
const (
	Site         Source = "site"          // the site configuration
	TopologyFile Source = "topology_file" // in NCCL's topology file it is, or is not, nearest to a GPU
	GPUDirect    Source = "gpudirect"     // it is, or is not, the nearest NIC of a GPU in the PCI tree
	PCIeSwitch   Source = "pcie_switch"   // it shares a PCIe switch or root port with a GPU, or does not
	Siblings     Source = "siblings"      // most ports of its kind on the host are ACTIVE
	VPD          Source = "vpd"           // its vital product data names NVLink management
)

var sources = []Source{Site, TopologyFile, GPUDirect, PCIeSwitch, Siblings}

// Verdict is a role and its evidence; Source is empty if the role is unknown.
type Verdict struct {
	Role   pci.Role `json:"role,omitempty"`
	Source Source   `json:"source,omitempty"`
}

var unknown = Verdict{Role: pci.Unknown}

// Keep merges a learned role with one from current evidence. A learned compute role is kept unless the current evidence
// is stronger, since evidence disappears as ports and GPUs fail.
func (learned Verdict) Keep(now Verdict) Verdict {
	if learned.Role != pci.Compute || now.Role == pci.Compute || now.Role == pci.NVLinkManagement {
		return now
	}
	if now.Source != "" && slices.Index(sources, now.Source) < slices.Index(sources, learned.Source) {
		return now
	}
	return learned
}

// Kind is the common properties of NICs of one purpose.
type Kind struct {
	Board        string // board_id; empty: the NIC has no siblings
	LinkLayer    string
	PortsPerCard int
}

// NIC is an RDMA device.
type NIC struct {
	gdr.NIC
	Kind
	Path     string // of its PCI function below /sys/devices; empty if none
	Emulated bool   // the port above is emulated by a hypervisor, so the position is meaningless
	Function string // PCI function number: ports at the same place of their card are alike
	// Not used as a sibling: ignored, or part of another device on this host (virtual function, sub-function).
	Apart        bool
	Rate         float64 // bits per second: the highest rate known of the device; 0: unknown
	DefaultRoute bool    // the default route uses its card
}

// Machine is the GPUs of a host.
type Machine struct {
	gdr.Machine
	GPUPaths []string // of the PCI functions, below /sys/devices
}

// Of returns the role of each port, by index of NIC and port.
func Of(m *Machine, nics []NIC) [][]Verdict {
	out := make([][]Verdict, len(nics))
	near := m.nearest(nics)
	found := false
	for i := range nics {
		v := m.byPlace(&nics[i], near[i])
		found = found || v.Role == pci.Compute
		out[i] = slices.Repeat([]Verdict{v}, len(nics[i].Ports))
	}
	if found { // the others are for storage or management, whatever their siblings
		return out
	}
	for i, ports := range siblings(nics) {
		for j, compute := range ports {
			if compute {
				out[i][j] = Verdict{pci.Compute, Siblings}
			}
		}
	}
	return out
}

// byPlace returns the verdict from the position of a NIC.
func (m *Machine) byPlace(n *NIC, near Source) Verdict {
	if near != "" {
		return Verdict{pci.Compute, near}
	}
	shares := pci.RoleOf(n.Path, m.GPUPaths)
	if shares == pci.Compute {
		return Verdict{pci.Compute, PCIeSwitch}
	}
	for g := range m.GPUs {
		switch d, file := m.Distance(&m.GPUs[g], &n.NIC); {
		case d == "" || n.Path == "":
		case file:
			return Verdict{pci.Other, TopologyFile}
		default:
			return Verdict{pci.Other, GPUDirect}
		}
	}
	if shares == pci.Other && !n.Emulated {
		return Verdict{pci.Other, PCIeSwitch}
	}
	return unknown
}

// choice is the NICs that are equally near to a GPU.
type choice struct {
	level int // of their distance
	nics  []int
	file  bool // the distance is from a topology file
}

// nearest finds the NICs that NCCL would assign to the GPUs if all ports were ACTIVE, and the evidence. Beyond the
// GPU's switch several NICs may be equally near, including storage NICs: NICs of half the rate, and boards of which the
// host has fewer, are excluded.
func (m *Machine) nearest(nics []NIC) map[int]Source {
	all := boardsOf(nics)
	var choices []choice
	far := nccl.Level(pci.SYS)
	for g := range m.GPUs {
		c := choice{level: nccl.Level("")}
		for i := range nics {
			n := &nics[i]
			if n.Path == "" || n.Role == pci.NVLinkManagement {
				continue
			}
			d, file := m.Distance(&m.GPUs[g], &n.NIC)
			level := nccl.Level(d)
			beyond := level > nccl.Level(pci.PXB)
			if d == "" || beyond && (n.DefaultRoute || all.slow(n)) || level > c.level {
				continue
			}
			if level < c.level {
				c = choice{level: level}
			}
			c.nics, c.file = append(c.nics, i), file
		}
		if c.level > nccl.Level(pci.PXB) {
			c.nics = all.most(nics, c.nics)
		}
		if len(c.nics) > 0 {
			choices, far = append(choices, c), min(far, c.level)
		}
	}
	out := map[int]Source{}
	for _, c := range choices {
		if c.level == nccl.Level(pci.SYS) && far < c.level { // near another GPU, across the sockets
			continue
		}
		for _, i := range c.nics {
			out[i] = GPUDirect
			if c.file {
				out[i] = TopologyFile
			}
		}
	}
	return out
}

// boards are the NICs of a host by board.
type boards struct {
	count   map[string]int
	rate    map[string]float64
	fastest float64
}

func boardsOf(nics []NIC) *boards {
	b := &boards{count: map[string]int{}, rate: map[string]float64{}}
	for i := range nics {
		n := &nics[i]
		if !n.Apart {
			b.count[n.Board]++
		}
		b.rate[n.Board], b.fastest = max(b.rate[n.Board], n.Rate), max(b.fastest, n.Rate)
	}
	return b
}

// slow reports whether all NICs of the board have at most half of the host's highest rate. A board without a known
// rate, as where all its ports are down, is a spare one, unless the host has more of it than of any other.
func (b *boards) slow(n *NIC) bool {
	if b.rate[n.Board] > 0 {
		return b.rate[n.Board] <= b.fastest/2
	}
	for board, rate := range b.rate {
		if rate > 0 && b.count[board] >= b.count[n.Board] {
			return true
		}
	}
	return false
}

// most keeps the NICs of the most frequent boards of the host.
func (b *boards) most(nics []NIC, of []int) (out []int) {
	most := 0
	for _, i := range of {
		most = max(most, b.count[nics[i].Board])
	}
	for _, i := range of {
		if b.count[nics[i].Board] == most {
			out = append(out, i)
		}
	}
	return out
}

// minAlike is the minimum number of ports of a kind to derive a role from them, and of ACTIVE ones to expect the same
// of another.
const minAlike = 3

// place is the position of a port on its card: unused second ports must not count as siblings of first ones.
type place struct {
	Kind
	function string
	port     int
}

// placesOf returns the places of a NIC's ports, and whether a port there is ACTIVE.
func placesOf(n *NIC) map[place]bool {
	out := map[place]bool{}
	for _, p := range n.Ports {
		at := n.placeOf(p.Number)
		out[at] = out[at] || p.Active
	}
	return out
}

func (n *NIC) placeOf(port int) place {
	if len(n.Ports) > snapshot.Planes {
		port = 0
	}
	return place{n.Kind, n.Function, port}
}

// siblings finds ports with at least three of a kind on the host, more than half of them ACTIVE.
func siblings(nics []NIC) [][]bool {
	total, active := map[place]int{}, map[place]int{}
	for i := range nics {
		n := &nics[i]
		if n.Apart || n.Board == "" || n.Role == pci.NVLinkManagement {
			continue
		}
		for at, up := range placesOf(n) {
			total[at]++
			if up {
				active[at]++
			}
		}
	}
	out := make([][]bool, len(nics))
	for i := range nics {
		n := &nics[i]
		out[i] = make([]bool, len(n.Ports))
		for j, p := range n.Ports {
			at := n.placeOf(p.Number)
			out[i][j] = !n.Apart && total[at] >= minAlike && 2*active[at] > total[at]
		}
	}
	return out
}

// Peers returns for each port whether it is expected to be ACTIVE like its peers: of the compute ports at the same
// place of their card, at least three and more than half are ACTIVE; of planes, all others of the kind. compute selects
// the ports.
func Peers(nics []NIC, compute func(nic, port int) bool) [][]bool {
	total, active := map[place]int{}, map[place]int{}
	each := func(f func(i, j int, at place, up bool)) {
		for i := range nics {
			for j, p := range nics[i].Ports {
				if !nics[i].Apart && len(nics[i].Ports) <= snapshot.Planes && compute(i, j) {
					f(i, j, place{function: nics[i].Function, port: p.Number}, p.Active)
				}
			}
		}
	}
	each(func(_, _ int, at place, up bool) {
		total[at]++
		if up {
			active[at]++
		}
	})
	out := make([][]bool, len(nics))
	for i := range nics {
		out[i] = make([]bool, len(nics[i].Ports))
	}
	each(func(i, j int, at place, _ bool) { out[i][j] = active[at] >= minAlike && 2*active[at] > total[at] })
	for i := range nics {
		missingPlanes(nics, i, out[i])
	}
	return out
}

// missingPlanes marks the planes of a device that all others of its kind have, if it has most of these planes itself: a
// device with half of them or fewer is set up for fewer.
func missingPlanes(nics []NIC, device int, missing []bool) {
	n := &nics[device]
	if len(n.Ports) <= snapshot.Planes || n.Apart {
		return
	}
	others, active := 0, map[int]int{}
	for i := range nics {
		if o := &nics[i]; i != device && o.Kind == n.Kind && !o.Apart && len(o.Ports) == len(n.Ports) {
			others++
			for _, p := range o.Ports {
				if p.Active {
					active[p.Number]++
				}
			}
		}
	}
	if others < minAlike {
		return
	}
	var has, lacks []int
	for j, p := range n.Ports {
		switch {
		case active[p.Number] < others:
		case p.Active:
			has = append(has, j)
		default:
			lacks = append(lacks, j)
		}
	}
	if len(lacks) < len(has) {
		for _, j := range lacks {
			missing[j] = true
		}
	}
}
