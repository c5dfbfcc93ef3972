package topo

import (
	"maps"
	"slices"
	"strings"

	"rdma_exporter/internal/pci"
)

// nodes are the functions of the tree by address.
type nodes struct {
	m map[string]*Node
}

// add puts a way from a host bridge to a function into the tree. Links are told where they were read.
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

func (t *nodes) sorted() []Node {
	out := []Node{}
	for _, a := range slices.Sorted(maps.Keys(t.m)) {
		out = append(out, *t.m[a])
	}
	return out
}

// Branch is a run of functions with nothing beside them, and what hangs on its end.
type Branch struct {
	Run  []Node
	Next []Branch
}

// NUMANode is the part of the tree that is near to some processors.
type NUMANode struct {
	ID       int    // -1: not told
	CPUs     string // empty: not told
	Branches []Branch
}

// Tree is the PCI tree by NUMA node.
func (m *Machine) Tree() (out []NUMANode) {
	ids, cpus := m.numas()
	for _, id := range ids {
		n := NUMANode{ID: id, CPUs: cpus[id]}
		for _, root := range m.roots(id) {
			n.Branches = append(n.Branches, m.branches(root)...)
		}
		out = append(out, n)
	}
	return out
}

// branches are those below a function, or a host bridge, in the order of addresses.
func (m *Machine) branches(parent string) (out []Branch) {
	for _, n := range m.Functions {
		if n.Parent != parent {
			continue
		}
		b := Branch{Run: []Node{n}, Next: m.branches(n.Address)}
		if len(b.Next) == 1 && !m.named(n.Address) {
			b.Run, b.Next = append(b.Run, b.Next[0].Run...), b.Next[0].Next
		}
		out = append(out, b)
	}
	return out
}

// named says whether a function is one of those that one looks for.
func (m *Machine) named(address string) bool {
	return slices.ContainsFunc(m.NICs, func(n NIC) bool { return n.Address == address }) ||
		slices.ContainsFunc(m.GPUs, func(g GPU) bool { return g.Address == address })
}

// roots are the host bridges of a NUMA node.
func (m *Machine) roots(numa int) (out []string) {
	for _, n := range m.Functions {
		if n.NUMA == numa && !pci.IsAddress(n.Parent) && !slices.Contains(out, n.Parent) {
			out = append(out, n.Parent)
		}
	}
	return out
}

// numas are the NUMA nodes, with the processors of each where they are told.
func (m *Machine) numas() (ids []int, cpus map[int]string) {
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

// Short leaves out the domain where all functions are in the first one.
func (m *Machine) Short(address string) string {
	for _, n := range m.Functions {
		if !strings.HasPrefix(n.Address, "0000:") {
			return address
		}
	}
	return strings.TrimPrefix(address, "0000:")
}
