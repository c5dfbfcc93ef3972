package expect

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rdma_exporter/internal/words"
)

// Accepted holds the expectations that Accept discarded, so that the present state becomes the expected one. Each list
// is sorted by name.
type Accepted struct {
	Links     []LinkRecord
	Roles     []RoleRecord     // of ports without one of these links
	Functions []FunctionRecord // for a function that is present under a new name, that name only
	Baselines []Baseline       // of named devices and ports, and of discarded links
	Idle      []IdleRecord     // ports now recorded as not in use
	GPUs      []GPURecord      // that are lost
}

// ErrNotRead is the error of Accept before the devices have been read.
var ErrNotRead = errors.New("RDMA devices have not been read yet: differences are unknown")

// Accept discards remembered state that differs from the last reading: links that are down, slower or of another link
// layer, functions that are missing or renamed. For named devices and ports (device, PCI address, DEVICE/PORT) it
// discards all links, roles and baselines. With dry nothing is changed. unknown are the names without remembered state.
func (m *Memory) Accept(names []string, dry bool) (out Accepted, unknown []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := len(names) == 0
	if all && (m.seen == nil || m.active == nil) {
		return out, nil, ErrNotRead
	}
	if dry {
		m = &Memory{
			data: clone(m.data), changed: make(chan struct{}, 1), seen: m.seen, active: m.active, layers: m.layers,
			down: m.down, listed: m.listed,
		}
	}
	matched := map[string]bool{}
	named := func(of ...string) (found bool) {
		for _, name := range of {
			for _, spelling := range []string{name, words.Foreign(name)} { // the second is the one that lists show
				if name != "" && slices.Contains(names, spelling) {
					matched[spelling], found = true, true
				}
			}
		}
		return found
	}
	linkNamed := func(id, device string, port int) bool {
		return named(device, fmt.Sprintf("%s/%d", device, port), m.addressOf(id))
	}
	out.Links = forget(m, m.data.Links, func(id string, l LinkRecord) bool {
		rate, active := m.active[id]
		return linkNamed(id, l.Device, l.Port) || all && (!active || rate < l.Rate || m.hasFlipped(id, l.LinkLayer))
	})
	ports := map[string]bool{}
	for _, l := range out.Links {
		ports[fmt.Sprintf("%s/%d", l.Device, l.Port)] = true
	}
	for _, r := range forget(m, m.data.Roles, func(id string, r RoleRecord) bool {
		_, active := m.active[id]
		return linkNamed(id, r.Device, r.Port) || all && !active && !m.hasMembers(id)
	}) {
		if !ports[fmt.Sprintf("%s/%d", r.Device, r.Port)] {
			out.Roles = append(out.Roles, r)
		}
	}
	out.Baselines = forget(m, m.data.Baselines, func(id string, b Baseline) bool {
		link, _, _ := strings.Cut(id, "#")
		return linkNamed(link, b.Device, b.Port) || ports[fmt.Sprintf("%s/%d", b.Device, b.Port)]
	})
	out.Idle = m.acceptIdle(func(id, device string, port int) bool { return linkNamed(id, device, port) || all })
	out.GPUs = m.acceptGPUs(func(g GPURecord) bool { return named(g.UUID, g.PCIAddress) || all })
	out.Functions = m.acceptFunctions(func(f FunctionRecord) bool { return named(f.Device, f.PCIAddress) || all })
	slices.SortFunc(out.Links, func(a, b LinkRecord) int {
		return cmp.Or(strings.Compare(a.Device, b.Device), cmp.Compare(a.Port, b.Port), strings.Compare(a.Netdev, b.Netdev))
	})
	slices.SortFunc(out.Roles, func(a, b RoleRecord) int {
		return cmp.Or(strings.Compare(a.Device, b.Device), cmp.Compare(a.Port, b.Port))
	})
	for _, name := range names {
		if !matched[name] {
			unknown = append(unknown, name)
		}
	}
	return out, unknown, nil
}

// hasMembers reports whether the link of a port is a bond with an ACTIVE member: the role belongs to the port. m.mu is
// held.
func (m *Memory) hasMembers(id string) bool {
	for other := range m.active {
		if strings.HasPrefix(other, id+"/") {
			return true
		}
	}
	return false
}

// addressOf returns the PCI address of the function of a link; empty: unknown. m.mu is held.
func (m *Memory) addressOf(id string) string {
	for key, f := range m.data.Functions {
		if strings.HasPrefix(id, key+"/") {
			return f.PCIAddress
		}
	}
	return ""
}

// acceptFunctions discards missing functions with their links, and earlier names of others. m.mu is held.
func (m *Memory) acceptFunctions(which func(FunctionRecord) bool) []FunctionRecord {
	var renamed []FunctionRecord
	for key, f := range m.data.Functions {
		if which(f) && m.seen[key] && f.Earlier != "" {
			renamed = append(renamed, f)
			f.Earlier = ""
			m.data.Functions[key] = f
			m.touch()
		}
	}
	out := forget(m, m.data.Functions, func(key string, f FunctionRecord) bool { return which(f) && !m.seen[key] })
	for i := range out {
		m.forgetLinks(out[i].key())
	}
	out = append(out, renamed...)
	sortFunctions(out)
	return out
}

func forget[T any](m *Memory, from map[string]T, which func(string, T) bool) (out []T) {
	maps.DeleteFunc(from, func(key string, r T) bool {
		if !which(key, r) {
			return false
		}
		out = append(out, r)
		m.touch()
		return true
	})
	return out
}
