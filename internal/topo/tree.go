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

// branch is a run of functions with nothing beside them, and what hangs on its end.
type branch struct {
	run  []Node
	next []branch
}

// branches are those below a function, or a host bridge, in the order of addresses.
func (m *Machine) branches(parent string) (out []branch) {
	for _, n := range m.Functions {
		if n.Parent != parent {
			continue
		}
		b := branch{run: []Node{n}, next: m.branches(n.Address)}
		if len(b.next) == 1 && !m.named(n.Address) {
			b.run, b.next = append(b.run, b.next[0].run...), b.next[0].next
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

// short leaves out the domain where all functions are in the first one.
func (m *Machine) short(address string) string {
	for _, n := range m.Functions {
		if !strings.HasPrefix(n.Address, "0000:") {
			return address
		}
	}
	return strings.TrimPrefix(address, "0000:")
}
