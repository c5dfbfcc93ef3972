package expect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// IdleRecord is a port that was accepted as not in use. It is removed when the port becomes ACTIVE.
type IdleRecord struct {
	Device string `json:"device"` // name at that time
	Port   int    `json:"port"`
}

// IsIdle reports whether a port was accepted as not in use.
func (m *Memory) IsIdle(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.data.Idle[id]
	return ok
}

// observeIdle records the ports that can be accepted as not in use, and ends the acceptance of ACTIVE ones. m.mu is
// held.
func (m *Memory) observeIdle(links []NamedLink) {
	m.down = map[string]IdleRecord{}
	for i := range links {
		l := &links[i]
		if _, accepted := m.data.Idle[l.ID]; l.Active && accepted {
			delete(m.data.Idle, l.ID)
			m.touch()
		}
		if l.ID != "" && l.Idle {
			m.down[l.ID] = IdleRecord{l.Device, l.Port}
		}
	}
}

// acceptIdle records ports that are not ACTIVE as not in use. m.mu is held.
func (m *Memory) acceptIdle(named func(id, device string, port int) bool) (out []IdleRecord) {
	for id, r := range m.down {
		if !named(id, r.Device, r.Port) {
			continue
		}
		if _, known := m.data.Idle[id]; !known {
			m.data.Idle[id] = r
			out = append(out, r)
			m.touch()
		}
	}
	slices.SortFunc(out, func(a, b IdleRecord) int {
		return cmp.Or(strings.Compare(a.Device, b.Device), cmp.Compare(a.Port, b.Port))
	})
	return out
}

func (r IdleRecord) String() string { return fmt.Sprintf("%s/%d", r.Device, r.Port) }
