package peers

import (
	"cmp"
	"maps"
	"slices"
)

// Saved is the connected queue pairs as kept over a restart.
type Saved struct {
	Groups []SavedGroup `json:"groups"`
}

// SavedGroup is queue pairs of one process with one peer.
type SavedGroup struct {
	Device  string `json:"device"`
	Port    int    `json:"port"`
	Peer    string `json:"peer"`
	PID     int    `json:"pid"`
	Command string `json:"command,omitempty"`
	// Pairs are the numbers of the queue pairs, each with that of its peer's.
	Pairs [][2]uint64 `json:"pairs"`
}

// Data returns what is kept, sorted.
func (t *Table) Data() (s Saved) {
	t.mu.Lock()
	defer t.mu.Unlock()
	type key struct {
		device, peer, command string
		port, pid             int
	}
	groups := map[key][][2]uint64{}
	for _, in := range []map[pairID]*pair{t.saved, t.pairs} {
		for id, p := range in {
			k := key{id.device, p.peer, p.command, p.port, p.pid}
			groups[k] = append(groups[k], [2]uint64{id.number, p.number})
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(groups), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.device, b.device), a.port-b.port, cmp.Compare(a.peer, b.peer), a.pid-b.pid,
			cmp.Compare(a.command, b.command))
	}) {
		slices.SortFunc(groups[k], func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) })
		s.Groups = append(s.Groups, SavedGroup{k.device, k.port, k.peer, k.pid, k.command, groups[k]})
	}
	return s
}

// Absorb takes up what an earlier run has kept. It counts once a list confirms it.
func (t *Table) Absorb(s Saved) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.listed) > 0 {
		t.begin() // what was listed before has to be listed again
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		for _, n := range g.Pairs {
			id := pairID{g.Device, n[0]}
			if len(t.saved) >= maxPairs || t.pairs[id] != nil {
				continue
			}
			t.saved[id] = &pair{port: g.Port, peer: g.Peer, number: n[1], pid: g.PID, command: g.Command}
		}
	}
}

// Changed returns a channel with a message after a change.
func (t *Table) Changed() <-chan struct{} { return t.changed }

func (t *Table) touch() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}
