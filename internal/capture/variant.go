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
	under, over, before := newTimeline(base), newOverlay(), map[string]Entry{}
	for _, r := range a.Rounds {
		over.apply(r.Entries)
		now, err := over.on(under.at(r.At))
		if err != nil {
			return nil, err
		}
		whole.Rounds = append(whole.Rounds, Round{At: r.At, Entries: difference(before, now)})
		before = now
	}
	if err := checkTree(whole.Rounds); err != nil {
		return nil, err
	}
	return whole, nil
}

// VariantOf returns whole as a variant of base. Both are whole.
func VariantOf(name string, base, whole *Archive) (*Archive, error) {
	v := &Archive{Meta: whole.Meta.without(base.Meta)}
	v.Meta.Base = name
	under, over, wanted := newTimeline(base), newOverlay(), newTimeline(whole)
	for _, r := range whole.Rounds {
		have, err := over.on(under.at(r.At))
		if err != nil {
			return nil, err
		}
		want := wanted.at(r.At)
		entries := difference(have, want)
		for i, e := range entries {
			entries[i] = shortest(have[e.Path], e)
		}
		over.apply(entries)
		v.Rounds = append(v.Rounds, Round{At: r.At, Entries: entries})
	}
	again, err := v.On(base)
	if err != nil {
		return nil, err
	}
	return v, sameMachine(again, whole)
}

// Of returns the archive of a machine from its state at each moment, by path.
func Of(m Meta, offsets []time.Duration, moments []map[string]Entry) *Archive {
	a := &Archive{Meta: m}
	a.Meta.Version = Version
	before := map[string]Entry{}
	for i, now := range moments {
		a.Rounds = append(a.Rounds, Round{At: offsets[i], Entries: difference(before, now)})
		before = now
	}
	return a
}

// sameMachine returns an error that names the first path in which two whole archives differ.
func sameMachine(a, b *Archive) error {
	x, y := newTimeline(a), newTimeline(b)
	for _, r := range b.Rounds {
		if d := difference(x.at(r.At), y.at(r.At)); len(d) > 0 {
			return fmt.Errorf("round %s, entry %q: differs", r.At, d[0].Path)
		}
	}
	return nil
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

// without removes from the description what a variant takes from its base.
func (m Meta) without(base Meta) Meta {
	if m.Hostname == base.Hostname {
		m.Hostname = ""
	}
	if m.Kernel == base.Kernel {
		m.Kernel = ""
	}
	if m.Time.Equal(base.Time) {
		m.Time = time.Time{}
	}
	if slices.Equal(m.Capabilities, base.Capabilities) {
		m.Capabilities = nil
	}
	return m
}

// timeline is a whole archive over time, each path with its entry.
type timeline struct {
	rounds   []Round
	next     int // first round that at has not reached
	entries  map[string]Entry
	counters Counters
}

func newTimeline(a *Archive) *timeline {
	return &timeline{rounds: a.Rounds, entries: map[string]Entry{}, counters: NewCounters()}
}

// at returns the machine at a time not earlier than that of the previous call. The caller owns the map.
func (l *timeline) at(t time.Duration) map[string]Entry {
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

func (l *timeline) apply(e Entry) {
	Advance(l.entries, e)
	switch {
	case e.IsGone():
		l.counters.Forget(e.Path)
	case e.Kind == File:
		l.counters.Count(e)
	}
}

// overlay is the entries of a variant up to a round.
type overlay struct {
	entries map[string]Entry
	gone    map[string]bool // hidden paths of the base, with everything below
}

func newOverlay() overlay { return overlay{map[string]Entry{}, map[string]bool{}} }

func (o overlay) apply(entries []Entry) {
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

// on applies the variant to its base, in place.
func (o overlay) on(base map[string]Entry) (map[string]Entry, error) {
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

func (o overlay) hides(p string) bool {
	for ; p != ""; p = parent(p) {
		if o.gone[p] {
			return true
		}
	}
	return false
}

// parent is the path above; empty above the first element.
func parent(p string) string { return p[:max(0, strings.LastIndexByte(p, '/'))] }

// difference is the new and changed entries of now, and one ENOENT per removed subtree, sorted by path.
func difference(before, now map[string]Entry) []Entry {
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
