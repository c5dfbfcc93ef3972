package collector

import (
	"strings"
	"time"

	"rdma_exporter/internal/host"
)

// quarantineTime is how long an item that keeps failing is left alone, unless its device registers again or its link changes.
const quarantineTime = 6 * time.Hour

// failuresToQuarantine: one failure may be a firmware command that was lost.
const failuresToQuarantine = 2

// quarantine keeps items that answer with an error from being asked again and again: each question costs the firmware a
// command, and some drivers a line in the kernel log. A nil quarantine holds nothing. An item is a file of a directory, or a netlink request. A group, the
// items of one directory, is left alone as a whole when two of its items are and none has an answer; where some have, the
// others go on.
type quarantine struct {
	groups map[string]*group
}

type group struct {
	failed   map[string]*failure
	answered bool // an item has had an answer
}

type failure struct {
	count int
	last  time.Time
}

// held says whether the failures are enough, and recent enough, to leave the item alone.
func (f *failure) held(now time.Time) bool {
	return f != nil && f.count >= failuresToQuarantine && now.Sub(f.last) < quarantineTime
}

// held says whether an item is to be left alone.
func (q *quarantine) held(dir, name string, now time.Time) bool {
	if q == nil {
		return false
	}
	g := q.groups[dir]
	return g != nil && (g.failed[name].held(now) || g.held(now))
}

// rest returns the items of a directory that are not to be left alone.
func (q *quarantine) rest(dir string, names []string, now time.Time) []string {
	if q == nil || q.groups[dir] == nil {
		return names
	}
	var out []string
	for _, name := range names {
		if !q.held(dir, name, now) {
			out = append(out, name)
		}
	}
	return out
}

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

// note takes the outcome of a read. Only refusals count: what is absent, gone or not permitted costs nothing to ask for.
func (q *quarantine) note(dir, name string, now time.Time, err error) {
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
	if !host.Refused(err) {
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

// release lets everything below a directory be asked again.
func (q *quarantine) release(dir string) {
	for d := range q.groups {
		if d == dir || strings.HasPrefix(d, dir+"/") {
			delete(q.groups, d)
		}
	}
}

// items counts what is left alone.
func (q *quarantine) items(now time.Time) (n uint64) {
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
