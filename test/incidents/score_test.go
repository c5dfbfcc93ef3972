package incidents

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// linger is how long an alert may be of a fault that has ended: rules look back an hour, and keep what fired.
const linger = 80 * time.Minute

// episode is an alert from its first to its last evaluation.
type episode struct {
	alert
	first, last time.Duration
}

// generate puts faults into a fleet: of each class that fits n, one after the other, at places that no other fault has.
func generate(
	f *fleet, source *rand.Rand, n int, apart time.Duration, pattern *regexp.Regexp,
) (all []*fault, end time.Duration) {
	s := f.clusters[0].spec
	var queue []*class
	for range n {
		for _, i := range source.Perm(len(classes)) {
			if c := classes[i]; (c.fits == nil || c.fits(s)) && pattern.MatchString(c.name) {
				queue = append(queue, c)
			}
		}
	}
	// Those that affect others wait until the others have ended.
	slices.SortStableFunc(queue, func(a, b *class) int { return cmp.Compare(int(where(a.alone)), int(where(b.alone))) })
	at := time.Duration(0)
	for _, c := range queue {
		x := &fault{class: c, fleet: f}
		if c.alone {
			at = max(at, end) + linger/2
		}
		x.hosts = place(source, s, c, func(host int) bool {
			return c.alone || !slices.ContainsFunc(all, func(other *fault) bool {
				return at < other.end+linger/2 && slices.Contains(other.hosts, host) ||
					at < other.start+linger/2 && f.host(other.hosts[0]).job == f.host(host).job
			})
		})
		x.start, x.end = at, at+c.lasts
		ports := len(f.host(x.hosts[0]).ports)
		for _, n := range x.hosts {
			ports = min(ports, len(f.host(n).ports))
		}
		x.rail = source.IntN(ports)
		x.patterns()
		all = append(all, x)
		at, end = at+apart, max(end, x.end)
	}
	return all, end + 10*time.Minute
}

// place returns hosts for a fault: those of a rack, or any with a job, better those whose job has no other fault.
func place(source *rand.Rand, s spec, c *class, free func(int) bool) (hosts []int) {
	n := 1
	if c.hosts != nil {
		n = c.hosts(s)
	}
	if c.whole || c.leaf && s.racked {
		from := source.IntN(max(1, s.hosts/rackSize-1)) * rackSize
		return hostsBetween(from, min(from+n, s.hosts))
	}
	if n == s.hosts {
		return source.Perm(s.hosts)
	}
	var others []int
	for _, host := range source.Perm(s.hosts) {
		switch {
		case s.isIdle(host) || s.ports[min(host/rackSize, len(s.ports)-1)] < c.ports:
		case free(host):
			hosts = append(hosts, host)
		default:
			others = append(others, host)
		}
	}
	return append(hosts, others...)[:n]
}

// schedule returns the events of faults.
func schedule(all []*fault) (events []event) {
	for _, x := range all {
		if x.begin != nil {
			events = append(events, event{x.start, func(*fleet) { x.begin(x) }})
		}
		if x.more != nil {
			for _, e := range x.more(x) {
				events = append(events, event{x.start + e.at, e.do})
			}
		}
		end := x.class.end
		if end == nil {
			end = heal
		}
		events = append(events, event{x.end, func(*fleet) { end(x) }})
	}
	return events
}

// playFleet plays a fleet until an end and returns what fires. Exporters are scraped each step; rules are evaluated
// each step for busy after an event and else at each rare.
func playFleet(t *testing.T, f *fleet, events []event, end, step, rare time.Duration) (out []*episode) {
	t.Helper()
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	s := newServer(t, f)
	open := map[string]*episode{}
	last := -before - busy
	for f.now < end {
		f.step()
		for len(events) > 0 && events[0].at <= f.now {
			events[0].do(f)
			events, last = events[1:], f.now
		}
		if f.now%step != 0 {
			continue
		}
		at := began.Add(f.now)
		if err := s.scrape(f, at); err != nil {
			t.Fatal(err)
		}
		if f.now%rare != 0 && f.now > last+busy {
			continue
		}
		var firing []alert
		if err := s.eval(t.Context(), at, func(a alert) { firing = append(firing, a) }); err != nil {
			t.Fatal(err)
		}
		planned := map[string]bool{}
		for _, a := range firing {
			planned[hostOf(a.labels)] = planned[hostOf(a.labels)] || a.labels.Get("alertname") == "RDMAMaintenance"
		}
		for _, a := range firing {
			if a.labels.Get("severity") == "none" || planned[hostOf(a.labels)] {
				continue
			}
			key := a.labels.String()
			e := open[key]
			if e == nil || f.now > e.last+rare {
				e = &episode{alert: a, first: f.now}
				open[key], out = e, append(out, e)
			}
			e.last = f.now
		}
	}
	return out
}

// tally is the score of a class.
type tally struct {
	faults, found      int
	right, wrong       int // alerts
	critical, warning  int // notifications of its faults
	info               int
	delays             []time.Duration
	missed, unexpected []string
}

type tallies map[string]*tally

func (s tallies) of(name string) *tally {
	if s[name] == nil {
		s[name] = &tally{}
	}
	return s[name]
}

// add scores what has fired in a fleet.
func (s tallies) add(fleetName string, all []*fault, fired []*episode) {
	found := map[*fault]time.Duration{}
	slices.SortFunc(fired, func(a, b *episode) int { return cmp.Compare(a.first, b.first) })
	for _, e := range fired {
		text := e.String()
		during := func(x *fault) bool { return x.start <= e.first && e.first <= x.end+max(linger, x.remembered) }
		is := func(match func(*fault) bool) *fault {
			for _, x := range slices.Backward(all) {
				if during(x) && match(x) {
					return x
				}
			}
			return nil
		}
		x := is(func(x *fault) bool { return x.want.MatchString(text) })
		if x != nil {
			if _, again := found[x]; !again && e.first <= x.end {
				found[x] = max(0, e.first-x.start)
			}
		} else {
			x = is(func(x *fault) bool {
				return slices.ContainsFunc(x.also, func(r *regexp.Regexp) bool { return r.MatchString(text) })
			})
		}
		severity := e.labels.Get("severity")
		if x != nil {
			y := s.of(x.name)
			y.right++
			y.critical += int(where(severity == "critical"))
			y.warning += int(where(severity == "warning"))
			y.info += int(where(severity == "info"))
			continue
		}
		// Of the fault whose alert it resembles, or that has begun last.
		x = is(func(x *fault) bool { return strings.Contains(x.want.String(), e.labels.Get("alertname")) })
		if x == nil {
			x = is(func(*fault) bool { return true })
		}
		name := "no fault"
		if x != nil {
			name = x.name
		}
		y := s.of(name)
		y.wrong++
		y.critical += int(where(severity == "critical"))
		y.warning += int(where(severity == "warning"))
		y.info += int(where(severity == "info"))
		y.unexpected = append(y.unexpected, fmt.Sprintf("%s: at %v to %v: %s", fleetName, e.first, e.last, text))
	}
	for _, x := range all {
		y := s.of(x.name)
		y.faults++
		if delay, ok := found[x]; ok {
			y.found++
			y.delays = append(y.delays, delay)
		} else {
			y.missed = append(y.missed, fmt.Sprintf("%s: %v to %v: %s", fleetName, x.start, x.end, x.want))
		}
	}
}

// details lists what was missed and what was wrong.
func (s tallies) details() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s)) {
		for _, m := range s[name].missed {
			fmt.Fprintf(&b, "\n%s missed: %s", name, m)
		}
		for _, m := range s[name].unexpected {
			fmt.Fprintf(&b, "\n%s unexpected: %s", name, m)
		}
	}
	return b.String()
}

// table is that of docs/verification.md.
func (s tallies) table() string {
	var b strings.Builder
	b.WriteString("| fault | number | recall | precision | critical | warning | info | time to detect | longest |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(s)) {
		y := s[name]
		mean := func(n int) string {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/float64(max(1, y.faults))), ".0")
		}
		slices.Sort(y.delays)
		median, longest := "", ""
		if n := len(y.delays); n > 0 {
			median, longest = short(y.delays[n/2]), short(y.delays[n-1])
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %s | %s | %s |\n", name, y.faults, ratio(y.found, y.faults),
			ratio(y.right, y.right+y.wrong), mean(y.critical), mean(y.warning), mean(y.info), median, longest)
	}
	return b.String()
}

func ratio(n, of int) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(n)/float64(of))
}

func short(d time.Duration) string { return strings.TrimSuffix(d.Round(time.Minute).String(), "0s") }
