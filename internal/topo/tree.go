package topo

import (
	"maps"
	"slices"
	"strings"

	"rdma_exporter/internal/pci"
)

// nodes holds the functions of the tree by address.
type nodes struct {
	m map[string]*Node
}

// add adds a path from a host bridge to a function. Links are set if they were read.
func (t *nodes) add(root string, path []string, hops []pci.Hop, numa int, cpus string) {
	parent := root
	for i, address := range path {
		n := t.m[address]
		if n == nil {
			n = &Node{Address: address, Parent: parent, NUMA: numa}
			t.m[address] = n
		}
		if i == len(path)-1 && cpus != "" {
			n.CPUs = cpus
		}
		if i < len(hops) && hops[i].Address == address && hops[i].Width != 0 {
			n.Speed, n.Width, n.MaxSpeed, n.MaxWidth = hops[i].Speed, hops[i].Width, hops[i].MaxSpeed, hops[i].MaxWidth
		}
		parent = address
	}
}

func (t *nodes) sort() []Node {
	out := []Node{}
	for _, a := range slices.Sorted(maps.Keys(t.m)) {
		out = append(out, *t.m[a])
	}
	return out
}

// Branch is a chain of functions without siblings, and the branches at its end.
type Branch struct {
	Run  []Node
	Next []Branch
}

// NUMANode is the part of the tree that belongs to a NUMA node.
type NUMANode struct {
	ID       int    // -1: unknown
	CPUs     string // empty: unknown
	Branches []Branch
}

// Tree returns the PCI tree by NUMA node.
func (m *Machine) Tree() (out []NUMANode) {
	ids, cpus := m.listNUMANodes()
	for _, id := range ids {
		n := NUMANode{ID: id, CPUs: cpus[id]}
		for _, root := range m.listRoots(id) {
			n.Branches = append(n.Branches, m.listBranches(root)...)
		}
		out = append(out, n)
	}
	return out
}

// listBranches returns the branches below a function or host bridge, by address.
func (m *Machine) listBranches(parent string) (out []Branch) {
	for _, n := range m.Functions {
		if n.Parent != parent {
			continue
		}
		b := Branch{Run: []Node{n}, Next: m.listBranches(n.Address)}
		if len(b.Next) == 1 && !m.isNamed(n.Address) {
			b.Run, b.Next = append(b.Run, b.Next[0].Run...), b.Next[0].Next
		}
		out = append(out, b)
	}
	return out
}

// isNamed reports whether a function is a listed GPU or NIC.
func (m *Machine) isNamed(address string) bool {
	return slices.ContainsFunc(m.NICs, func(n NIC) bool { return n.Address == address }) ||
		slices.ContainsFunc(m.Bare, func(f Bare) bool { return f.Address == address }) ||
		slices.ContainsFunc(m.GPUs, func(g GPU) bool { return g.Address == address })
}

// listRoots returns the host bridges of a NUMA node.
func (m *Machine) listRoots(numa int) (out []string) {
	for _, n := range m.Functions {
		if n.NUMA == numa && !pci.IsAddress(n.Parent) && !slices.Contains(out, n.Parent) {
			out = append(out, n.Parent)
		}
	}
	return out
}

// listNUMANodes returns the NUMA nodes, with their CPUs if known.
func (m *Machine) listNUMANodes() (ids []int, cpus map[int]string) {
	cpus = map[int]string{}
	for _, n := range m.Functions {
		if !slices.Contains(ids, n.NUMA) {
			ids = append(ids, n.NUMA)
		}
		if n.CPUs != "" {
			cpus[n.NUMA] = n.CPUs
		}
	}
	slices.Sort(ids)
	return ids, cpus
}

// Short returns an address without the domain, if all functions are in domain 0000.
func (m *Machine) Short(address string) string {
	for _, n := range m.Functions {
		if !strings.HasPrefix(n.Address, "0000:") {
			return address
		}
	}
	return strings.TrimPrefix(address, "0000:")
}
