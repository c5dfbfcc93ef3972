package place

import (
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rdma_exporter/test/ruleplay"
)

var (
	every = flag.Bool("every", false, "all fleets and 1,000 healthy hours")
	write = flag.Bool("write", false, "write the table into docs/verification.md")
)

var fleets = []spec{
	{name: "rails, 64 hosts", hosts: 64, ports: 4, unit: 32, each: 10, healthy: 120 * time.Hour},
	{
		name: "rails, 256 hosts, Slurm", hosts: 256, ports: 4, unit: 32, slurm: true, blind: 0.1, each: 3,
		healthy: 20 * time.Hour,
	},
	{name: "fat tree, 64 hosts, Slurm", hosts: 64, ports: 2, slurm: true, each: 18, healthy: 600 * time.Hour},
	{
		name: "fat tree, 128 hosts, Slurm", hosts: 128, ports: 2, slurm: true, blind: 0.1, each: 9,
		healthy: 250 * time.Hour,
	},
	{name: "rails, 1,000 hosts", hosts: 1000, ports: 2, unit: 64, blind: 0.1, each: 1, healthy: 10 * time.Hour},
}

// sampled is the short form.
var sampled = spec{
	name: "fat tree, sample", hosts: 64, ports: 1, slurm: true, each: 1, healthy: stretch,
	only: []string{"host", "leaf", "job killed"},
}

// stretch is how long a healthy fleet is played: what is old costs time.
const stretch = 10 * time.Hour

// fault is one cause.
type fault struct {
	kind  string
	truth string // empty: nobody
	hits  func(pair) bool
	host  *host
	job   *job
	// twins are smaller places that have all connections that are hit too. lone: a job that ends has four fifths of its
	// losses there too.
	twins []string
	lone  bool
}

var kinds = []string{
	"port", "host", "leaf", "uplink", "pair of leaves", "rail", "spine layer", "reboot", "maintenance", "job killed",
}

var innocent = []string{"reboot", "maintenance", "job killed"}

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
			if slices.Contains(p.places(), where) {
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
		if x.host = at.a.host; kind == "host" && x.host.blind {
			continue // nobody knows whose addresses these are
		}
		near, far := at.leaves()
		switch kind {
		case "port":
			x.truth = at.a.places()[0]
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
			f.compare(x)
			return x
		}
	}
}

// scopes are the kinds of places by size.
var scopes = []string{"port", "address ", "gpu-", "switches ", "switch ", "rail ", "rack ", "between "}

func scope(where string) int {
	if strings.Contains(where, "/") {
		return 0
	}
	return slices.IndexFunc(scopes, func(s string) bool { return strings.HasPrefix(where, s) })
}

// compare finds what no loss can tell from the fault.
func (f *fleet) compare(x *fault) {
	if x.truth == "" {
		return
	}
	var hit []pair
	all, ports, there := 0, 0, 0
	for _, j := range f.jobs {
		before := len(hit)
		for _, c := range j.pairs {
			if x.hits(c) {
				hit = append(hit, c)
			}
		}
		if len(hit) == before {
			continue
		}
		all += len(j.pairs)
		for p := range j.peers {
			ports++
			if slices.Contains(p.places(), x.truth) {
				there++
			}
		}
	}
	// The centre does not know who is connected, but the ports of a job.
	elsewhere := float64(ports-there) / float64(ports)
	x.lone = float64(len(hit)) >= 0.8*float64(all) || 1-elsewhere*elsewhere >= 0.8
	near, far := hit[0].leaves()
	places := slices.Concat(hit[0].a.places(), hit[0].b.places(), []string{"switches " + near + " and " + far})
	for _, where := range places {
		if scope(where) <= scope(x.truth) && !f.alike(where, x.truth) &&
			!slices.ContainsFunc(hit, func(c pair) bool { return !within(where)(c) }) {
			x.twins = append(x.twins, where)
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
type tally struct{ faults, placed, beside, alike, few, silent, wrong int }

// play has a fleet go through a fault: a burst, and again each time that the jobs have restarted.
func (f *fleet) play(x *fault) (got map[told][]string, few bool) {
	got = map[told][]string{}
	var bursts []burst
	start := f.now
	if x.kind == "maintenance" {
		x.host.maintained, x.host.dirty = start+30*time.Minute, true
		maps.Copy(got, f.until(f.now+2*time.Minute, step))
	}
	for n := 0; f.now < start+26*time.Minute; n++ {
		if x.kind == "job killed" {
			f.kill(x.job)
		} else {
			bursts = append(bursts, burst{f.now, f.burst(x, n > 0)})
		}
		restart := time.Duration(3+f.r.IntN(6)) * time.Minute
		if x.kind == "reboot" {
			maps.Copy(got, f.reboot(x.host))
			restart = time.Duration(5+f.r.IntN(8)) * time.Minute
		}
		maps.Copy(got, f.until(f.now+restart, step))
	}
	return got, !twice(bursts)
}

// burst has the hosts that were sure.
type burst struct {
	at   time.Duration
	sure map[*host]bool
}

// twice reports whether four hosts were sure within 10m, and four 10m later.
func twice(bursts []burst) bool {
	first := day
	for i, b := range bursts {
		sure := map[*host]bool{}
		for _, other := range bursts[:i+1] {
			if b.at-other.at < 10*time.Minute {
				maps.Copy(sure, other.sure)
			}
		}
		if len(sure) >= 4 {
			if b.at-first >= 10*time.Minute {
				return true
			}
			first = min(first, b.at)
		}
	}
	return false
}

// TestPlace: faults are placed rightly, and nobody is accused of a reboot, of maintenance or of a job that ends.
func TestPlace(t *testing.T) {
	list := []spec{sampled}
	if *every {
		list = fleets
	}
	r := readRules(t)
	var mu sync.Mutex
	all := map[string]*tally{}
	t.Run("play", func(t *testing.T) {
		for n, s := range list {
			t.Run(s.name, func(t *testing.T) {
				for i := range s.each {
					for k, kind := range s.kinds() {
						t.Run(kind, func(t *testing.T) {
							t.Parallel()
							f := newFleet(t, r, s, uint64(10_000*n+100*i+k))
							x := f.draw(kind)
							got, few := f.play(x)
							mu.Lock()
							defer mu.Unlock()
							if all[kind] == nil {
								all[kind] = &tally{}
							}
							all[kind].add(t, f, x, got, few)
						})
					}
				}
			})
		}
	})
	table := tableOf(all)
	t.Log("\n" + table)
	for kind, y := range all {
		if slices.Contains(innocent, kind) && y.wrong > 0 {
			t.Errorf("%s: %d places are accused", kind, y.wrong)
		}
		if placed, of := y.told(); float64(placed) < 0.95*float64(of) {
			t.Errorf("%s: %d of %d placed rightly", kind, placed, of)
		}
	}
	if *write {
		ruleplay.Write(t, "place", table)
	}
}

func (y *tally) add(t *testing.T, f *fleet, x *fault, got map[told][]string, few bool) {
	y.faults++
	same := func(where string) bool {
		// An uplink is seen through the switches that it leads to.
		return f.alike(where, x.truth) ||
			x.kind == "uplink" && slices.Contains(strings.Fields(where), strings.TrimPrefix(x.truth, "switch "))
	}
	right, beside, twin, wrong := false, false, false, false
	for a, like := range got {
		switch {
		case same(a.where):
			right = true
		case slices.ContainsFunc(like, same):
			beside = true
		case slices.ContainsFunc(like, func(where string) bool { return slices.Contains(x.twins, where) }):
			twin = true
		default:
			wrong = true
			t.Logf("%s: want %q, got %s %q", x.kind, x.truth, a.severity, like)
		}
	}
	switch {
	case wrong:
		y.wrong++
	case right || x.truth == "":
		y.placed++
	case beside:
		y.beside++
	case twin || x.lone || len(x.twins) > 0:
		y.alike++
	case few:
		y.few++
	default:
		y.silent++
		t.Logf("%s: %q is not placed", x.kind, x.truth)
	}
	t.Logf("%s: %+v", x.kind, *y)
}

// told returns how many faults that can be told are, and their number.
func (y *tally) told() (placed, of int) { return y.placed + y.beside, y.faults - y.alike - y.few }

func tableOf(all map[string]*tally) string {
	var b strings.Builder
	b.WriteString("| cause | number | named | named after \"or\" | cannot be told | fewer than four hosts " +
		"| not named | wrong |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for _, kind := range kinds {
		if y := all[kind]; y != nil {
			fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %d |\n",
				kind, y.faults, y.placed, y.beside, y.alike, y.few, y.silent, y.wrong)
		}
	}
	return b.String()
}

// TestHealthy: what is usual in a fleet is nobody's fault. Jobs end, are killed, or end again and again; hosts reboot
// or are in maintenance; connections are lost alone.
func TestHealthy(t *testing.T) {
	list := []spec{sampled}
	if *every {
		list = fleets
	}
	r := readRules(t)
	var mu sync.Mutex
	var hours time.Duration
	events, losses, accused := 0, 0, 0
	t.Run("play", func(t *testing.T) {
		for n, s := range list {
			t.Run(s.name, func(t *testing.T) {
				for i := range uint64(s.healthy / stretch) {
					t.Run(fmt.Sprint(i), func(t *testing.T) {
						t.Parallel()
						f, happened := newFleet(t, r, s, 1_000_000+1000*uint64(n)+i), 0
						for ; f.now < stretch; happened++ {
							until := f.now + time.Duration(4+4*f.r.IntN(20))*time.Minute
							got := f.happen()
							maps.Copy(got, f.until(until, pause))
							for a, like := range got {
								t.Errorf("at %v: %s %q", f.now, a.severity, like)
							}
							mu.Lock()
							accused += len(got)
							mu.Unlock()
						}
						mu.Lock()
						defer mu.Unlock()
						hours, events, losses = hours+f.now, events+happened, losses+f.losses
					})
				}
			})
		}
	})
	line := fmt.Sprintf("%.0f hours, %d events, %d lost peers: %d accused.\n", hours.Hours(), events, losses, accused)
	t.Log(line)
	if *write {
		ruleplay.Write(t, "healthy", line)
	}
}

// happen has one usual event happen.
func (f *fleet) happen() map[told][]string {
	j := f.jobs[f.r.IntN(len(f.jobs))]
	h := j.hosts[f.r.IntN(len(j.hosts))]
	gone := &fault{hits: within(h.name)}
	got := map[told][]string{}
	switch f.r.IntN(7) {
	case 0:
		f.assign()
	case 1:
		f.kill(j)
	case 2:
		for range 3 {
			f.kill(j)
			maps.Copy(got, f.until(f.now+time.Duration(3+f.r.IntN(6))*time.Minute, pause))
		}
	case 3: // the last to leave
		for _, p := range h.ports {
			for _, peer := range j.peers[p] {
				f.lose(p, peer, "candidate")
			}
		}
	case 4:
		c := j.pairs[f.r.IntN(len(j.pairs))]
		f.lose(c.a, c.b, "nearly_exact")
	case 5:
		f.burst(gone, false)
		maps.Copy(got, f.reboot(h))
	case 6:
		h.maintained, h.dirty = f.now+30*time.Minute, true
		maps.Copy(got, f.until(f.now+2*time.Minute, step))
		f.burst(gone, f.r.IntN(2) == 0)
	}
	return got
}

// reboot has a host down for 4m.
func (f *fleet) reboot(h *host) map[told][]string {
	h.down, h.dirty = true, true
	got := f.until(f.now+4*time.Minute, step)
	h.down, h.dirty, h.booted = false, true, f.now
	return got
}
