package expect

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"rdma_exporter/internal/role"
	"rdma_exporter/internal/snapshot"
)

// Data is the memory as stored in the state directory.
type Data struct {
	Links     map[string]LinkRecord     `json:"links,omitempty"`     // by Link.ID
	Functions map[string]FunctionRecord `json:"functions,omitempty"` // by FunctionRecord.key
	Roles     map[string]RoleRecord     `json:"roles,omitempty"`     // by Link.ID of the port
	Baselines map[string]Baseline       `json:"baselines,omitempty"` // by Link.ID, "#" and the name of the value
	Idle      map[string]IdleRecord     `json:"idle,omitempty"`      // by Link.ID of the port
	GPUs      map[string]GPURecord      `json:"gpus,omitempty"`      // by UUID
	Places    map[string]PlaceRecord    `json:"places,omitempty"`    // by FunctionID, Link.ID, GPUID
}

// RoleRecord is a learned role of a port.
type RoleRecord struct {
	Device string `json:"device"` // name at that time
	Port   int    `json:"port"`
	role.Verdict
}

// LinkRecord is the memory of a link.
type LinkRecord struct {
	Device    string `json:"device"` // name when last ACTIVE
	Port      int    `json:"port"`
	Netdev    string `json:"netdev,omitempty"`     // of a bond's member
	LinkLayer string `json:"link_layer,omitempty"` // when it was first ACTIVE, until Observe adopts another
	Mark
	ActiveSince time.Time `json:"active_since"` // when it was first ACTIVE
	MarkedAt    time.Time `json:"marked_at"`    // when it reached the mark
}

// FunctionRecord is a physical function that had an RDMA device.
type FunctionRecord struct {
	Device     string    `json:"device"` // name when last seen
	PCIAddress string    `json:"pci_address"`
	NodeGUID   string    `json:"node_guid,omitempty"`
	Driver     string    `json:"driver"`
	BoardID    string    `json:"board_id,omitempty"`
	Netdev     bool      `json:"netdev,omitempty"` // had a network interface
	FirstSeen  time.Time `json:"first_seen"`
	LastSeen   time.Time `json:"last_seen"` // to the hour
	Boot       string    `json:"boot"`      // boot ID when last seen
	// Earlier is the name of the function at this address in an earlier boot, if different, until it is accepted.
	Earlier string `json:"earlier_device,omitempty"`
}

// wasNamed returns the name of the function in an earlier boot.
func (f *FunctionRecord) wasNamed() string { return cmp.Or(f.Earlier, f.Device) }

// seenEvery is the precision of LastSeen: each change is a write.
const seenEvery = time.Hour

// LinkID identifies a link in the memory: by the GUID of its device, which survives a rename and another slot, or else
// by its PCI address; and by the netdev of a bond member.
func LinkID(guid, pci string, port int, netdev string) string {
	id := FunctionID(guid, pci) + "/" + strconv.Itoa(port)
	if netdev != "" {
		id += "/" + netdev
	}
	return id
}

const zeroGUID = "0000:0000:0000:0000"

// key returns a key that survives a rename and a move to another slot.
func (f *FunctionRecord) key() string {
	if f.NodeGUID == "" || f.NodeGUID == zeroGUID {
		return "pci/" + f.PCIAddress
	}
	return "guid/" + f.NodeGUID
}

// Memory is Data with synchronised access.
type Memory struct {
	mu      sync.Mutex
	data    Data
	version uint64                // number of changes
	changed chan struct{}         // holds a token while there is something to store
	seen    map[string]bool       // keys of the functions present at the last reading
	active  map[string]float64    // rates of the links ACTIVE at the last reading, by Link.ID; infinite: unknown
	layers  map[string]string     // link layers of links of a board at the last reading, by Link.ID
	down    map[string]IdleRecord // ports that can be accepted as not in use, by Link.ID
	listed  map[string]bool       // UUIDs of the GPUs that NVML listed at the last reading
}

// NewMemory returns a memory with the stored data.
func NewMemory(d Data) *Memory {
	m := &Memory{data: clone(d), changed: make(chan struct{}, 1)}
	return m
}

func clone(d Data) Data {
	return Data{
		copyMap(d.Links), copyMap(d.Functions), copyMap(d.Roles), copyMap(d.Baselines), copyMap(d.Idle), copyMap(d.GPUs),
		copyMap(d.Places),
	}
}

func copyMap[T any](m map[string]T) map[string]T {
	out := map[string]T{}
	maps.Copy(out, m)
	return out
}

// Changed returns a channel that receives when there is something new to store.
func (m *Memory) Changed() <-chan struct{} { return m.changed }

// Version returns the number of changes of the memory.
func (m *Memory) Version() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.version
}

// touch records a change. m.mu is held.
func (m *Memory) touch() {
	m.version++
	m.Touch()
}

// Touch marks the memory as changed.
func (m *Memory) Touch() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// Data returns a copy.
func (m *Memory) Data() Data {
	m.mu.Lock()
	defer m.mu.Unlock()
	return clone(m.data)
}

// Mark returns the high-water mark of a link; zero if none.
func (m *Memory) Mark(id string) Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data.Links[id].Mark
}

// WasActive reports whether a link has ever been ACTIVE.
func (m *Memory) WasActive(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.data.Links[id]
	return ok
}

// Role returns the learned role of a port; empty if none.
func (m *Memory) Role(id string) role.Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data.Roles[id].Verdict
}

// Learn stores the role of a port.
func (m *Memory) Learn(id string, r RoleRecord) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.data.Roles[id] != r {
		m.data.Roles[id] = r
		m.touch()
	}
}

// NamedLink is a link with its names.
type NamedLink struct {
	Link
	Device string
	Port   int
	Netdev string // of a bond's member
	Idle   bool   // a port that is not ACTIVE and that nothing but its past or its peers expects to be
}

// Observe records ACTIVE links, and raises their marks.
func (m *Memory) Observe(now time.Time, links []NamedLink) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now = now.UTC().Truncate(time.Second)
	m.active = map[string]float64{}
	m.observeIdle(links)
	m.adoptLayers(links)
	for i := range links {
		l := &links[i]
		if l.ID == "" || !l.Active {
			continue
		}
		m.active[l.ID] = math.Inf(1)
		if l.Rate != nil {
			m.active[l.ID] = *l.Rate
		}
		r, known := m.data.Links[l.ID]
		before := r
		if !known {
			r.ActiveSince = now
		}
		r.Device, r.Port, r.Netdev = l.Device, l.Port, l.Netdev
		r.LinkLayer = cmp.Or(r.LinkLayer, l.Kind.LinkLayer)
		if l.Rate != nil && *l.Rate > r.Rate {
			r.Mark, r.MarkedAt = l.currentMark(), now
		}
		if !known || r != before {
			m.data.Links[l.ID] = r
			m.touch()
		}
	}
}

// See records the physical functions that are present. A missing function whose address has a new function was
// replaced: it is discarded with its links. If the address has a function that was known before, bus numbers have
// changed.
func (m *Memory) See(now time.Time, boot string, there []FunctionRecord) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now = now.UTC().Truncate(time.Second)
	seen, replaced := map[string]bool{}, map[string]bool{}
	at := m.functionsByAddress()
	for i := range there {
		f := there[i]
		key := f.key()
		seen[key] = true
		before, known := m.data.Functions[key]
		replaced[f.PCIAddress] = replaced[f.PCIAddress] || !known
		f.FirstSeen, f.LastSeen, f.Boot = now, now.Truncate(seenEvery), boot
		was := at[f.PCIAddress]
		if known && before.PCIAddress == f.PCIAddress {
			was = before
		}
		if was.Earlier != "" || was.Boot != boot {
			f.Earlier = was.wasNamed()
		}
		if f.Earlier == f.Device {
			f.Earlier = ""
		}
		if known {
			f.FirstSeen = before.FirstSeen
			if before.wasNamed() == f.Device { // the card has kept its name: bus numbers have changed
				f.Earlier = ""
			}
		}
		if !known || f != before {
			m.data.Functions[key] = f
			m.touch()
		}
	}
	for key, f := range m.data.Functions {
		if !seen[key] && replaced[f.PCIAddress] {
			delete(m.data.Functions, key)
			m.forgetLinks(key)
			m.touch()
		}
	}
	m.seen = seen
}

// functionsByAddress returns the remembered functions; of several at an address, the last seen one. m.mu is held.
func (m *Memory) functionsByAddress() map[string]FunctionRecord {
	at := map[string]FunctionRecord{}
	for _, f := range m.data.Functions {
		if o, ok := at[f.PCIAddress]; !ok ||
			cmp.Or(o.LastSeen.Compare(f.LastSeen), strings.Compare(o.NodeGUID, f.NodeGUID)) < 0 {
			at[f.PCIAddress] = f
		}
	}
	return at
}

// Renamed returns the functions that have exchanged names since an earlier boot, by address. Entirely new names do not
// count: a query for an old name returns nothing, and no wrong device.
func (m *Memory) Renamed(there []FunctionRecord) (out []snapshot.RenamedDevice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, before := map[string]bool{}, map[string]bool{}
	for i := range there {
		now[there[i].Device] = true
	}
	for _, f := range m.data.Functions {
		before[f.wasNamed()] = true
	}
	for i := range there {
		f := m.data.Functions[there[i].key()]
		if f.Earlier != "" && (now[f.Earlier] || before[f.Device]) {
			out = append(out, snapshot.RenamedDevice{Name: f.Device, Earlier: f.Earlier, PCIAddress: f.PCIAddress})
		}
	}
	slices.SortFunc(out,
		func(a, b snapshot.RenamedDevice) int { return strings.Compare(a.PCIAddress, b.PCIAddress) })
	return out
}

// Absent returns the remembered functions that are not present, by address.
func (m *Memory) Absent(there []FunctionRecord) []FunctionRecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := map[string]bool{}
	for i := range there {
		seen[there[i].key()] = true
	}
	var out []FunctionRecord
	for key, f := range m.data.Functions {
		if !seen[key] {
			out = append(out, f)
		}
	}
	sortFunctions(out)
	return out
}

func sortFunctions(f []FunctionRecord) {
	slices.SortFunc(f, func(a, b FunctionRecord) int {
		return slices.Compare([]string{a.PCIAddress, a.NodeGUID}, []string{b.PCIAddress, b.NodeGUID})
	})
}

// forgetLinks discards the links of a discarded function. m.mu is held.
func (m *Memory) forgetLinks(function string) {
	maps.DeleteFunc(m.data.Links, func(id string, _ LinkRecord) bool { return strings.HasPrefix(id, function+"/") })
	maps.DeleteFunc(m.data.Roles, func(id string, _ RoleRecord) bool { return strings.HasPrefix(id, function+"/") })
	maps.DeleteFunc(m.data.Baselines, func(id string, _ Baseline) bool { return strings.HasPrefix(id, function+"/") })
	maps.DeleteFunc(m.data.Idle, func(id string, _ IdleRecord) bool { return strings.HasPrefix(id, function+"/") })
	m.forgetPlaces(function)
}

// Absorb adds the additional entries of another memory, its higher marks, and its baselines, which cover a longer time
// than those formed since the start of the program.
func (m *Memory) Absorb(d Data) {
	m.mu.Lock()
	defer m.mu.Unlock()
	absorb(m.data.Links, d.Links, func(own, other LinkRecord) bool { return own.Rate < other.Rate })
	absorb(m.data.Roles, d.Roles, func(_, _ RoleRecord) bool { return false })
	absorb(m.data.Functions, d.Functions, func(_, _ FunctionRecord) bool { return false })
	absorb(m.data.Baselines, d.Baselines, func(own, other Baseline) bool {
		return own.Serial == "" || other.Serial == "" || own.Serial == other.Serial
	})
	absorb(m.data.Idle, d.Idle, func(_, _ IdleRecord) bool { return false })
	absorb(m.data.GPUs, d.GPUs, func(_, _ GPURecord) bool { return false })
	absorb(m.data.Places, d.Places, func(_, _ PlaceRecord) bool { return false })
	m.touch()
}

// absorb adds the missing entries of a map, and replaces those that are better in the other map.
func absorb[T any](to, from map[string]T, better func(own, other T) bool) {
	for id, other := range from {
		if own, known := to[id]; !known || better(own, other) {
			to[id] = other
		}
	}
}
