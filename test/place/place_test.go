package place

import (
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	every = flag.Bool("every", false, "all fleets and 1,000 healthy hours; half an hour of CPU time")
	hours = flag.Int("hours", 250, "healthy hours of each of four fleets, with -every")
	write = flag.Bool("write", false, "write the table into docs/verification.md")
)

var fleets = []spec{
	{name: "rails, 64 hosts", hosts: 64, ports: 4, unit: 32, each: 4},
	{name: "rails, 256 hosts, Slurm", hosts: 256, ports: 4, unit: 32, slurm: true, blind: 0.1, each: 1},
	{name: "fat tree, 64 hosts, Slurm", hosts: 64, ports: 2, slurm: true, each: 4},
	{name: "fat tree, 128 hosts, Slurm", hosts: 128, ports: 2, slurm: true, blind: 0.1, each: 2},
	{name: "rails, 1,000 hosts", hosts: 1000, ports: 2, unit: 64, blind: 0.1, each: 1},
}

// sampled is the short form.
var sampled = spec{
	name: "fat tree, sample", hosts: 64, ports: 1, slurm: true, each: 1, only: []string{"host", "leaf", "job killed"},
}

// fault is one cause.
type fault struct {
	kind  string
	truth string // empty: nobody
	hits  func(pair) bool
	host  *host
	job   *job
}

var kinds = []string{
	"port", "host", "leaf", "uplink", "pair of leaves", "rail", "spine layer", "reboot", "maintenance", "job killed",
}

func (s spec) kinds() []string {
	if s.only != nil {
		return s.only
	}
	return kinds
}

// within returns what connections a place has.
func within(where string) func(pair) bool {
	return func(c pair) bool {
		a, b := c.leaves()
		for _, p := range []*port{c.a, c.b} {
			if slices.Contains([]string{p.where(), p.host.name, "switch " + p.leaf, "rail " + p.rail, "rack " + p.rack}, where) {
				return true
			}
		}
		return a != b && (where == "switches "+a+" and "+b || where == "between switches")
	}
}

// draw makes a fault of a kind at random, where a job has connections that it hits.
func (f *fleet) draw(kind string) *fault {
	for tries := 1; ; tries++ {
		if tries%1000 == 0 { // no job has such connections
			f.assign()
			f.until(f.now+pause, pause)
		}
		x := &fault{kind: kind, job: f.jobs[f.r.IntN(len(f.jobs))]}
		at := x.job.pairs[f.r.IntN(len(x.job.pairs))]
		if (kind == "port" || kind == "host") && len(x.job.peers[at.a]) < 6 {
			continue // fewer than four hosts report it
		}
		x.host = at.a.host
		near, far := at.leaves()
		switch kind {
		case "port":
			x.truth = at.a.where()
		case "host":
			x.truth = x.host.name
		case "leaf", "uplink":
			x.truth = "switch " + at.a.leaf
		case "pair of leaves":
			x.truth = "switches " + near + " and " + far
		case "rail":
			x.truth = "rail " + at.a.rail
		case "spine layer":
			x.truth = "between switches"
		}
		x.hits = within(x.truth)
		switch kind {
		case "uplink": // one of four
			x.hits = func(c pair) bool {
				return (c.a.leaf == at.a.leaf) != (c.b.leaf == at.a.leaf) && hash(c)%4 == 0
			}
		case "reboot", "maintenance":
			x.hits = within(x.host.name)
		}
		if x.truth == "" || kind != "uplink" && x.hits(at) || x.hits(at) && near != far {
			return x
		}
	}
}

// alike reports whether no connection tells two places apart.
func (f *fleet) alike(one, other string) bool {
	for _, j := range f.jobs {
		for _, c := range j.pairs {
			if within(one)(c) != within(other)(c) {
				return false
			}
		}
	}
	return one != ""
}

func hash(c pair) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.a.address + c.b.address))
	return h.Sum32()
}

// burst has the jobs that a fault hits lose peers, and returns the hosts that are sure. An end that only waits
// notices nothing, a program that exits at once leaves candidates only.
func (f *fleet) burst(x *fault, again bool) map[*host]bool {
	sure := map[*host]bool{}
	exact := again && f.r.IntN(3) == 0 // no neighbour answers
	for _, j := range f.jobs {
		hit := map[*port][]*port{}
		var order []*port
		for _, c := range j.pairs {
			if !x.hits(c) {
				continue
			}
			for _, p := range []pair{c, {c.b, c.a}} {
				if hit[p.a] == nil {
					order = append(order, p.a)
				}
				hit[p.a] = append(hit[p.a], p.b)
			}
		}
		for _, p := range order {
			f.notice(j, p, hit[p], exact, sure)
		}
	}
	return sure
}

func (f *fleet) notice(j *job, p *port, hit []*port, exact bool, sure map[*host]bool) {
	switch n := f.r.Float64(); {
	case exact && n < 0.7:
		for _, peer := range hit {
			sure[p.host] = f.lose(p, peer, "exact") || sure[p.host]
		}
	case n < 0.45:
		for _, peer := range hit {
			sure[p.host] = f.lose(p, peer, "nearly_exact") || sure[p.host]
		}
	case n < 0.7:
		for _, peer := range j.peers[p] {
			f.lose(p, peer, "candidate")
		}
	}
	if !sure[p.host] {
		delete(sure, p.host)
	}
}

// kill ends the processes of a job one after the other: some that are left exceed their retries.
func (f *fleet) kill(j *job) {
	for _, h := range j.hosts {
		for _, p := range h.ports {
			if f.r.Float64() > 0.3 {
				continue
			}
			certainty, part := "candidate", 1.0
			if f.r.Float64() < 0.3 {
				certainty, part = "nearly_exact", 0.3
			}
			for _, peer := range j.peers[p] {
				if f.r.Float64() < part {
					f.lose(p, peer, certainty)
				}
			}
		}
	}
}

// tally counts the faults of a kind.
type tally struct{ faults, placed, few, silent, wrong int }

// play has a fleet go through a fault: a burst, and again each time that the jobs have restarted.
func (f *fleet) play(x *fault) (got map[told][]string, few bool) {
	got = map[told][]string{}
	first, later := map[*host]bool{}, map[*host]bool{}
	start := f.now
	if x.kind == "maintenance" {
		x.host.maintained, x.host.dirty = start+30*time.Minute, true
		maps.Copy(got, f.until(f.now+2*time.Minute, step))
	}
	for n := 0; f.now < start+26*time.Minute; n++ {
		switch {
		case x.kind == "job killed":
			f.kill(x.job)
		case n == 0:
			first = f.burst(x, false)
		default:
			maps.Copy(later, f.burst(x, true))
		}
		restart := time.Duration(3+f.r.IntN(6)) * time.Minute
		if x.kind == "reboot" {
			x.host.down, x.host.dirty = true, true
			maps.Copy(got, f.until(f.now+4*time.Minute, step))
			x.host.down, x.host.dirty, x.host.booted = false, true, f.now
			restart = time.Duration(5+f.r.IntN(8)) * time.Minute
		}
		maps.Copy(got, f.until(f.now+restart, step))
	}
	f.now += time.Hour
	f.until(f.now+3*pause, pause)
	return got, len(first) < 4 || len(later) < 4
}

// TestPlace: faults are placed rightly, and nobody is accused of a reboot, of maintenance or of a job that ends.
func TestPlace(t *testing.T) {
	list := []spec{sampled}
	if *every {
		list = fleets
	}
	var mu sync.Mutex
	all := map[string]*tally{}
	t.Run("play", func(t *testing.T) {
		for n, s := range list {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				f := newFleet(t, s, uint64(n))
				begin := time.Now()
				f.until(30*time.Minute, pause)
				for range s.each {
					for _, kind := range s.kinds() {
						f.assign()
						f.until(f.now+pause, pause)
						x := f.draw(kind)
						got, few := f.play(x)
						mu.Lock()
						if all[kind] == nil {
							all[kind] = &tally{}
						}
						all[kind].add(t, f, x, got, few)
						mu.Unlock()
					}
				}
				t.Logf("%v played in %v", f.now, time.Since(begin).Round(time.Second))
			})
		}
	})
	table, placed, of := tableOf(all)
	t.Log("\n" + table)
	for kind, y := range all {
		if y.wrong > 0 {
			t.Errorf("%s: %d places are wrong", kind, y.wrong)
		}
	}
	if float64(placed) < 0.95*float64(of) {
		t.Errorf("%d of %d placed rightly", placed, of)
	}
	if *write {
		put(t, table)
	}
}

func (y *tally) add(t *testing.T, f *fleet, x *fault, got map[told][]string, few bool) {
	y.faults++
	right, wrong := false, false
	for a, like := range got {
		ok := slices.ContainsFunc(like, func(where string) bool {
			// An uplink is seen through the switches that it leads to.
			return f.alike(where, x.truth) ||
				x.kind == "uplink" && slices.Contains(strings.Fields(where), strings.TrimPrefix(x.truth, "switch "))
		})
		right, wrong = right || ok, wrong || !ok
		if !ok {
			t.Logf("%s: want %q, got %s %q", x.kind, x.truth, a.severity, like)
		}
	}
	switch {
	case wrong:
		y.wrong++
	case right || x.truth == "" && len(got) == 0:
		y.placed++
	case few:
		y.few++
	default:
		y.silent++
		t.Logf("%s: %q is not placed", x.kind, x.truth)
	}
	t.Logf("%s: %+v", x.kind, *y)
}

// tableOf returns the table of docs/verification.md, and how many faults that four hosts report are placed rightly.
func tableOf(all map[string]*tally) (table string, placed, of int) {
	var b strings.Builder
	b.WriteString("| cause | number | placed | fewer than four hosts | not placed | wrong |\n|---|---|---|---|---|---|\n")
	for _, kind := range kinds {
		y := all[kind]
		if y == nil {
			continue
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d |\n", kind, y.faults, y.placed, y.few, y.silent, y.wrong)
		placed, of = placed+y.placed, of+y.faults-y.few
	}
	return b.String(), placed, of
}

// TestHealthy: jobs that end, with and without losses, are nobody's fault.
func TestHealthy(t *testing.T) {
	list, lasts := []spec{sampled}, time.Hour
	if *every {
		list, lasts = fleets[:4], time.Duration(*hours)*time.Hour
	}
	for n, s := range list {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, s, uint64(100+n))
			for f.now < lasts {
				j := f.jobs[f.r.IntN(len(f.jobs))]
				switch f.r.IntN(4) {
				case 0:
					f.kill(j)
				case 1: // the last to leave
					for _, p := range j.hosts[f.r.IntN(len(j.hosts))].ports {
						for _, peer := range j.peers[p] {
							f.lose(p, peer, "candidate")
						}
					}
				case 2:
					f.assign()
				}
				for a, like := range f.until(f.now+time.Duration(4+4*f.r.IntN(6))*time.Minute, pause) {
					t.Errorf("at %v: %s %q", f.now, a.severity, like)
				}
			}
		})
	}
}

// put writes the table into docs/verification.md.
func put(t *testing.T, table string) {
	t.Helper()
	const page, begin, end = "../../docs/verification.md", "<!-- place -->\n", "<!-- end -->"
	text, err := os.ReadFile(page)
	must(t, err)
	head, rest, found := strings.Cut(string(text), begin)
	_, after, ends := strings.Cut(rest, end)
	if !found || !ends {
		t.Fatalf("%s has no %s", page, begin)
	}
	must(t, os.WriteFile(page, []byte(head+begin+table+end+after), 0o644))
}
