package reading

import (
	"strings"
	"time"

	"rdma_exporter/internal/host/access"
)

// quarantineTime is how long an item that keeps failing is not read, unless its device registers again or its link
// changes.
const quarantineTime = 6 * time.Hour

// failuresToQuarantine is more than one, since a single failure may be a lost firmware command.
const failuresToQuarantine = 2

// Quarantine stops repeated reads of items that return an error: each costs a firmware command, and with some drivers a
// kernel log line. A nil Quarantine holds nothing. An item is a file of a directory, or a netlink request. A group (the
// items of one directory) is held as a whole if two of its items are held and none was ever read successfully;
// otherwise its other items are still read.
type Quarantine struct {
	groups map[string]*group
}

type group struct {
	failed   map[string]*failure
	answered bool // an item was read successfully
}

type failure struct {
	count int
	last  time.Time
}

// held reports whether the failures are numerous and recent enough to hold the item.
func (f *failure) held(now time.Time) bool {
	return f != nil && f.count >= failuresToQuarantine && now.Sub(f.last) < quarantineTime
}

// Held reports whether an item is held.
func (q *Quarantine) Held(dir, name string, now time.Time) bool {
	if q == nil {
		return false
	}
	g := q.groups[dir]
	return g != nil && (g.failed[name].held(now) || g.held(now))
}

// allowed returns the items of a directory that are not held.
func (q *Quarantine) allowed(dir string, names []string, now time.Time) []string {
	if q == nil || q.groups[dir] == nil {
		return names
	}
	var out []string
	for _, name := range names {
		if !q.Held(dir, name, now) {
			out = append(out, name)
		}
	}
	return out
}

// Failing reports whether an item of a directory has failed and has not been released.
func (q *Quarantine) Failing(dir string) bool { return q.groups[dir] != nil }

func (g *group) held(now time.Time) bool {
	if g.answered {
		return false
	}
	n := 0
	for _, f := range g.failed {
		if f.held(now) {
			n++
		}
	}
	return n >= 2
}

// Note records the outcome of a read. Only errors of the driver count: reads of absent, gone or denied items cost
// nothing.
func (q *Quarantine) Note(dir, name string, now time.Time, err error) {
	if q == nil {
		return
	}
	g := q.groups[dir]
	if err == nil {
		if g == nil {
			return // the usual case costs nothing
		}
		g.answered = true
		delete(g.failed, name)
		return
	}
	if !access.Refused(err) || access.Passing(dir, err) {
		return
	}
	if g == nil {
		g = &group{failed: map[string]*failure{}}
		if q.groups == nil {
			q.groups = map[string]*group{}
		}
		q.groups[dir] = g
	}
	f := g.failed[name]
	if f == nil {
		f = &failure{}
		g.failed[name] = f
	}
	f.count++
	f.last = now
}

// Release clears everything below a directory.
func (q *Quarantine) Release(dir string) {
	for d := range q.groups {
		if d == dir || strings.HasPrefix(d, dir+"/") {
			delete(q.groups, d)
		}
	}
}

// Items returns the number of held items.
func (q *Quarantine) Items(now time.Time) (n uint64) {
	if q == nil {
		return 0
	}
	for _, g := range q.groups {
		for _, f := range g.failed {
			if f.held(now) {
				n++
			}
		}
	}
	return n
}
