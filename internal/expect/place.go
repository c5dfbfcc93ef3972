package expect

import (
	"cmp"
	"maps"
	"strings"
)

// PlaceRecord is the last known place of a part: a function in the PCI tree, a port at a switch.
type PlaceRecord struct {
	Path     string `json:"path,omitempty"`      // functions from the root port to its own, separated by spaces
	Leaf     string `json:"leaf,omitempty"`      // switch at the far end of the link
	LeafPort string `json:"leaf_port,omitempty"` // and its port
}

// FunctionID returns the key of a function in the memory. See LinkID for its links.
func FunctionID(guid, pci string) string {
	f := FunctionRecord{NodeGUID: guid, PCIAddress: pci}
	return f.key()
}

// GPUID returns the key of a GPU among the places.
func GPUID(uuid string) string { return "gpu/" + uuid }

// Place records the present place of a function, a link or a GPU, and returns it with unknown parts filled in from
// earlier.
func (m *Memory) Place(id string, now PlaceRecord) PlaceRecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.data.Places[id]
	now.Path = cmp.Or(now.Path, before.Path)
	if now.Leaf == "" {
		now.Leaf, now.LeafPort = before.Leaf, before.LeafPort
	}
	if now != before {
		m.data.Places[id] = now
		m.touch()
	}
	return now
}

// forgetPlaces discards the places of a function and its links, or of a GPU. m.mu is held.
func (m *Memory) forgetPlaces(of string) {
	maps.DeleteFunc(m.data.Places, func(id string, _ PlaceRecord) bool {
		return id == of || strings.HasPrefix(id, of+"/")
	})
}

// LinksOf returns the links of a function that were ever ACTIVE, by Link.ID, without those of bond members.
func (m *Memory) LinksOf(function string) map[string]LinkRecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]LinkRecord{}
	for id, l := range m.data.Links {
		if l.Netdev == "" && strings.HasPrefix(id, function+"/") {
			out[id] = l
		}
	}
	return out
}
