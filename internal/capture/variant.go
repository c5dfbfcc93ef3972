package capture

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A variant is an archive that holds only the differences from another archive, its base. In each round the base is as
// its replay at that moment: counters continue after the base's last round. An entry of the variant applies from its
// round on.

// IsVariant reports whether the archive requires its base.
func (a *Archive) IsVariant() bool { return a.Meta.Base != "" }

// On returns the whole machine of a variant on its base.
func (a *Archive) On(base *Archive) (*Archive, error) {
	if base.IsVariant() {
		return nil, fmt.Errorf("base %q is a variant: a whole capture is required", a.Meta.Base)
	}
	whole := &Archive{Meta: a.Meta.on(base.Meta)}
	under, over, before := NewTimeline(base), NewOverlay(), map[string]Entry{}
	for _, r := range a.Rounds {
		over.Apply(r.Entries)
		now, err := over.On(under.At(r.At))
		if err != nil {
			return nil, err
		}
		whole.Rounds = append(whole.Rounds, Round{At: r.At, Entries: Difference(before, now)})
		before = now
	}
	if err := checkTree(whole.Rounds); err != nil {
		return nil, err
	}
	return whole, nil
}

// on completes the description of a variant from that of its base.
func (m Meta) on(base Meta) Meta {
	m.Base = ""
	m.Hostname, m.Kernel = cmp.Or(m.Hostname, base.Hostname), cmp.Or(m.Kernel, base.Kernel)
	if m.Time.IsZero() {
		m.Time = base.Time
	}
	if m.Capabilities == nil {
		m.Capabilities = base.Capabilities
	}
	m.Anonymised = m.Anonymised && base.Anonymised
	return m
}

// Timeline is a whole archive over time, each path with its entry.
type Timeline struct {
	rounds   []Round
	next     int // first round that at has not reached
	entries  map[string]Entry
	counters Counters
}

// NewTimeline returns the timeline of an archive.
func NewTimeline(a *Archive) *Timeline {
	return &Timeline{rounds: a.Rounds, entries: map[string]Entry{}, counters: NewCounters()}
}

// At returns the machine at a time not earlier than that of the previous call. The caller owns the map.
func (l *Timeline) At(t time.Duration) map[string]Entry {
	for ; l.next < len(l.rounds) && l.rounds[l.next].At <= t; l.next++ {
		l.counters.NextRound()
		for _, e := range l.rounds[l.next].Entries {
			l.apply(e)
		}
	}
	now := maps.Clone(l.entries)
	if l.next < len(l.rounds) {
		return now
	}
	n := Intervals(l.rounds, t)
	for p := range l.counters.steps {
		e := now[p]
		e.Data = l.counters.After(n, p, e.Data)
		now[p] = e
	}
	return now
}

func (l *Timeline) apply(e Entry) {
	Advance(l.entries, e)
	switch {
	case e.IsGone():
		l.counters.Forget(e.Path)
	case e.Kind == File:
		l.counters.Count(e)
	}
}

// Overlay is the entries of a variant up to a round.
type Overlay struct {
	entries map[string]Entry
	gone    map[string]bool // hidden paths of the base, with everything below
}

// NewOverlay returns an overlay without entries.
func NewOverlay() Overlay { return Overlay{map[string]Entry{}, map[string]bool{}} }

// Apply adds the entries of a round.
func (o Overlay) Apply(entries []Entry) {
	for _, e := range entries {
		if e.IsGone() {
			maps.DeleteFunc(o.entries, func(p string, _ Entry) bool { return IsBelow(p, e.Path) })
			o.gone[e.Path] = true
			continue
		}
		if old, ok := o.entries[e.Path]; ok && e.Kind == Lines {
			e.Kind, e.Data = old.Kind, patched(old, e.Data)
		}
		o.entries[e.Path] = e
	}
}

// On applies the variant to its base, in place.
func (o Overlay) On(base map[string]Entry) (map[string]Entry, error) {
	if len(o.gone) > 0 {
		maps.DeleteFunc(base, func(p string, _ Entry) bool { return o.hides(p) })
	}
	for p, e := range o.entries {
		if e.Kind == Lines {
			old, ok := base[p]
			if !ok || old.Kind != File {
				return nil, fmt.Errorf("entry %q: @lines requires a file in the base", p)
			}
			e.Kind, e.Data = File, patched(old, e.Data)
		}
		base[p] = e
	}
	return base, nil
}

func (o Overlay) hides(p string) bool {
	for ; p != ""; p = parent(p) {
		if o.gone[p] {
			return true
		}
	}
	return false
}

// parent returns the path above; empty above the first element.
func parent(p string) string { return p[:max(0, strings.LastIndexByte(p, '/'))] }

// Difference returns the new and changed entries of now, and one ENOENT per removed subtree, sorted by path.
func Difference(before, now map[string]Entry) []Entry {
	var change []Entry
	alive := map[string]bool{}
	for p, e := range now {
		if old, had := before[p]; !had || !old.Equal(e) {
			change = append(change, e)
		}
		for ; p != "" && !alive[p]; p = parent(p) {
			alive[p] = true
		}
	}
	gone := map[string]bool{}
	for p := range before {
		if alive[p] {
			continue
		}
		for up := parent(p); up != "" && !alive[up]; up = parent(up) {
			p = up
		}
		gone[p] = true
	}
	for p := range gone {
		change = append(change, goneEntry(p))
	}
	slices.SortFunc(change, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return change
}
