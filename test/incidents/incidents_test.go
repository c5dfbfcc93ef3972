// Package incidents plays incidents on small fleets and counts the critical alerts that the rules raise for each. An
// incident has one cause, so that one page is enough. Faults at random places of generated fleets give recall,
// precision and time to detect (make fleet).
package incidents

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

// A Prometheus evaluates its groups in any order and at once: the score has to be the same with -reverse and -workers.
var (
	reverse = flag.Bool("reverse", false, "evaluate the groups in reverse order")
	workers = flag.Int("workers", 1, "groups to evaluate at once")
)

const (
	before = 15 * time.Minute // of a healthy fleet; the rules compare with what was 10m ago
	// Rules are evaluated at each interval for busy after a change, longer than "for" of most alerts; then each quiet,
	// less than the lookback of 5m, so that recorded series do not end.
	busy  = 7 * time.Minute
	quiet = 4 * time.Minute
)

// began is the time of an incident.
var began = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// score is how many distinct label sets of severity critical fire during an incident, before Alertmanager.
type score struct {
	daemon  int // of rules/node on the host that has most
	central int // of all, in a central Prometheus, which evaluates rules/node and rules/central
}

// event changes a fleet at a time of the incident.
type event struct {
	at time.Duration
	do func(*fleet)
}

// must is an alert that has to fire.
type must struct {
	alert string        // with its severity: "critical RDMAPortDown"
	on    string        // objectOf
	by    time.Duration // after the beginning of the incident at the latest
}

// incident is one cause.
type incident struct {
	name   string
	fleet  []spec
	events []event
	lasts  time.Duration
	bar    score
	must   *must // nil: nothing has to come
	// in is the cluster of the incident: nothing fires in others. Empty: not checked.
	in string
	// silent: nothing fires at all. alone: nothing but must.
	silent, alone bool
	least         int  // critical alerts at least: two causes are two pages
	stays         bool // no host is to be emptied: no alert drains by evict
}

// Fleets of 32 hosts: a rack of hosts with 8 ports, one with 4, two with 2.
var (
	mixed        = []int{8, 4, 2}
	roceRails    = []spec{{cluster: "a", hosts: 32, ports: mixed, layer: ethernet}}
	losslessRoCE = []spec{{cluster: "a", hosts: 32, ports: mixed, layer: ethernet, pfc: true}}
	gpuRails     = []spec{{cluster: "a", hosts: 32, ports: mixed, layer: ethernet, gpus: true}}
	roceRacks    = []spec{{cluster: "a", hosts: 32, ports: []int{4}, layer: ethernet, racked: true}}
	ibRails      = []spec{{cluster: "a", hosts: 32, ports: mixed, layer: infiniBand, fabric: true}}
	ibRacks      = []spec{{hosts: 32, ports: []int{4}, layer: infiniBand, racked: true, fabric: true}}
	twoClusters  = []spec{
		{cluster: "a", hosts: 16, ports: mixed, layer: ethernet},
		{cluster: "b", hosts: 16, ports: mixed, layer: ethernet},
	}
	twoFabrics = []spec{
		{cluster: "a", hosts: 16, ports: mixed, layer: infiniBand, fabric: true},
		{cluster: "b", hosts: 16, ports: mixed, layer: infiniBand, fabric: true},
	}
)

// Hosts of the incidents: one with 8 ports, one with 4.
const (
	wide   = 3
	narrow = 12
)

var (
	onePage = score{daemon: 1, central: 1}
	noPage  = score{}
)

// incidents are those of one cause, in the middle of a fleet, and those at the edges of what folds.
var incidents = slices.Concat(causes, edges)

var causes = []incident{
	{
		name: "pulled cable under load, RoCE", fleet: roceRails, bar: onePage, lasts: 20 * time.Minute,
		must:   &must{"critical RDMAPortDown", "device=mlx5_2 instance=gpu-04:10879 port=1", 3 * time.Minute},
		events: []event{{0, unplug(wide, 2)}},
	},
	{
		name: "pulled cable under load, InfiniBand", fleet: ibRails, bar: onePage, lasts: 20 * time.Minute,
		must:   &must{"critical RDMAPortDown", "device=mlx5_2 instance=gpu-13:10879 port=1", 3 * time.Minute},
		events: []event{{0, unplug(narrow, 2)}},
	},
	{
		name: "pulled cable in one of two clusters with the same instances", fleet: twoClusters, bar: onePage,
		lasts: 20 * time.Minute, in: "a",
		must:   &must{"critical RDMAPortDown", "device=mlx5_2 instance=gpu-04:10879 port=1", 3 * time.Minute},
		events: []event{{0, unplug(wide, 2)}},
	},
	{
		name: "flap under load", fleet: roceRails, bar: onePage, lasts: 20 * time.Minute,
		must:   &must{"info RDMALinkFlapping", "device=mlx5_2 instance=gpu-04:10879 port=1", 2 * time.Minute},
		events: []event{{0, unplug(wide, 2)}, {20 * time.Second, plug(wide, 2)}},
	},
	{
		name: "three flaps under load", fleet: ibRails, bar: onePage, lasts: 22 * time.Minute,
		must: &must{"warning RDMALinkFlapping", "device=mlx5_2 instance=gpu-04:10879 port=1", 14 * time.Minute},
		events: []event{
			{0, unplug(wide, 2)},
			{20 * time.Second, plug(wide, 2)},
			{6 * time.Minute, unplug(wide, 2)},
			{6*time.Minute + 20*time.Second, plug(wide, 2)},
			{12 * time.Minute, unplug(wide, 2)},
			{12*time.Minute + 20*time.Second, plug(wide, 2)},
		},
	},
	{
		name: "cable swap without notice under load", fleet: ibRails, bar: onePage, lasts: 20 * time.Minute,
		must:   &must{"critical RDMAPortDown", "device=mlx5_2 instance=gpu-04:10879 port=1", 3 * time.Minute},
		events: []event{{0, unplug(wide, 2)}, {3 * time.Minute, plug(wide, 2)}},
	},
	{
		name: "NIC firmware crash", fleet: roceRails, bar: onePage, lasts: 20 * time.Minute,
		must:   &must{"critical RDMADeviceFailed", "device=mlx5_2 instance=gpu-04:10879", 2 * time.Minute},
		events: []event{{0, crash(wide, 2)}},
	},
	{
		name: "NIC falls off PCIe", fleet: ibRails, bar: onePage, lasts: 20 * time.Minute,
		must:   &must{"critical RDMADeviceMissing", "device=mlx5_2 instance=gpu-04:10879", 5 * time.Minute},
		events: []event{{0, lose(wide, 2)}},
	},
	{
		name: "GPU falls off PCIe", fleet: gpuRails, bar: onePage, lasts: 20 * time.Minute,
		must: &must{
			"critical RDMADeviceMissing",
			"UUID=GPU-00000003-0002 gpu=2 instance=gpu-04:10879", 3 * time.Minute,
		},
		events: []event{{0, loseGPU(wide, 2)}},
	},
	{
		name: "switch upgrade of 4m", fleet: roceRails, bar: onePage, lasts: 20 * time.Minute,
		must:   &must{"critical RDMAPortDown", "leaf=leaf-2", 3 * time.Minute},
		events: []event{{0, leafDown(1)}, {4 * time.Minute, leafUp(1)}}, stays: true,
	},
	{
		name: "leaf of a rail down, RoCE", fleet: roceRails, bar: onePage, lasts: 20 * time.Minute,
		must:   &must{"critical RDMAPortDown", "leaf=leaf-2", 3 * time.Minute},
		events: []event{{0, leafDown(1)}},
	},
	{
		name: "leaf of a rail down, InfiniBand", fleet: ibRails, bar: onePage, lasts: 20 * time.Minute,
		must:   &must{"critical RDMAPortDown", "leaf=leaf-2", 4 * time.Minute},
		events: []event{{0, leafDown(1)}},
	},
	{
		name: "leaf of a rack down, RoCE", fleet: roceRacks, bar: onePage, lasts: 20 * time.Minute,
		must:   &must{"critical RDMAPortDown", "leaf=leaf-2", 3 * time.Minute},
		events: []event{{0, leafDown(1)}},
	},
	{
		name: "leaf of a rack down, InfiniBand", fleet: ibRacks, bar: onePage, lasts: 20 * time.Minute,
		must:   &must{"critical RDMAPortDown", "leaf=leaf-2", 4 * time.Minute},
		events: []event{{0, leafDown(1)}},
	},
	{
		name: "rack power loss", fleet: ibRails, bar: onePage, lasts: 40 * time.Minute,
		must:   &must{"critical RDMAExporterDown", "rack=rack-1", 5 * time.Minute},
		events: []event{{0, powerOff(rack...)}, {25 * time.Minute, boot(rack...)}},
	},
	{
		name: "storm with 30 victims", fleet: losslessRoCE, bar: onePage, lasts: 20 * time.Minute,
		must: &must{
			"critical RDMAPFCStormSource",
			"device=mlx5_0 instance=gpu-04:10879 port=1", 3 * time.Minute,
		},
		events: []event{{0, storm(wide, 0, 30)}, {12 * time.Minute, calm}},
	},
	{
		name: "leaf of a rail down in one of two clusters with the same instances", fleet: twoFabrics, bar: onePage,
		lasts: 16 * time.Minute, in: "a",
		must:   &must{"critical RDMAPortDown", "leaf=leaf-2", 4 * time.Minute},
		events: []event{{0, leafDown(1)}},
	},
	{
		name: "spine down", fleet: ibRails, bar: onePage, lasts: 16 * time.Minute,
		must: &must{
			"critical RDMAFabricSwitchUnreachable",
			"instance=mgmt-1:10880 node_guid=fc6a:1c03:0000:2001", 4 * time.Minute,
		},
		events: []event{{0, spineDown(1)}},
	},
	{
		name: "kernel panic of a host under load", fleet: roceRails, bar: onePage, lasts: 16 * time.Minute,
		must:   &must{"warning RDMAExporterDown", "instance=gpu-04:10879", 5 * time.Minute},
		events: []event{{0, powerOff(wide)}},
	},
	{
		name: "all subnet managers down", fleet: ibRails, bar: onePage, lasts: 16 * time.Minute,
		must:   &must{"critical RDMANoSubnetManager", "instance=mgmt-1:10880", 4 * time.Minute},
		events: []event{{0, managers(gone, gone)}},
	},
	{
		name: "subnet manager failover", fleet: ibRails, bar: noPage, lasts: 20 * time.Minute,
		events: []event{
			{0, managers(gone, standby)},
			{40 * time.Second, managers(gone, master)},
			{12 * time.Minute, managers(standby, master)},
		},
	},
	{
		name: "host rebooting for 25m", fleet: ibRails, bar: noPage, lasts: 35 * time.Minute,
		must:   &must{"warning RDMAExporterDown", "instance=gpu-04:10879", 5 * time.Minute},
		events: []event{{-time.Minute, drain(wide)}, {0, powerOff(wide)}, {25 * time.Minute, boot(wide)}},
	},
	{
		name: "rolling reboot", fleet: ibRails, bar: noPage, lasts: 20 * time.Minute,
		must: &must{"warning RDMAExporterDown", "instance=gpu-02:10879", 5 * time.Minute},
		events: []event{
			{-time.Minute, drain(1, 2)},
			{0, powerOff(1)},
			{6 * time.Minute, boot(1)},
			{8 * time.Minute, powerOff(2)},
			{14 * time.Minute, boot(2)},
		},
	},
	{
		name: "driver reload", fleet: roceRails, bar: noPage, lasts: 20 * time.Minute,
		must:   &must{"info RDMALinkFlapping", "instance=gpu-04:10879", 10 * time.Minute},
		events: []event{{-time.Minute, drain(wide)}, {0, unload(wide)}, {90 * time.Second, load(wide)}},
	},
	{
		name: "cable swap in announced maintenance", fleet: ibRails, bar: noPage, lasts: 20 * time.Minute,
		must: &must{"info RDMALinkFlapping", "device=mlx5_2 instance=gpu-04:10879 port=1", 15 * time.Minute},
		events: []event{
			{-2 * time.Minute, announce(wide)},
			{0, unplug(wide, 2)},
			{4 * time.Minute, plug(wide, 2)},
			{12 * time.Minute, endMaintenance(wide)},
		},
	},
	{
		name: "announced maintenance of a host", fleet: roceRails, bar: noPage, lasts: 30 * time.Minute,
		must: &must{"warning RDMAExporterDown", "instance=gpu-04:10879", 13 * time.Minute},
		events: []event{
			{-2 * time.Minute, announce(wide)},
			{0, unload(wide)},
			{8 * time.Minute, powerOff(wide)},
			{16 * time.Minute, boot(wide)},
			{20 * time.Minute, endMaintenance(wide)},
		},
	},
	{
		name: "job killed", fleet: roceRails, bar: noPage, lasts: 12 * time.Minute,
		must: &must{"info RDMARetriesExceeded", "", 8 * time.Minute}, alone: true, // of the cluster
		events: []event{{0, func(f *fleet) { f.clusters[0].jobs[0].fail(f.now) }}},
	},
	{name: "none, RoCE", fleet: losslessRoCE, bar: noPage, lasts: 10 * time.Minute, silent: true},
	{name: "none, InfiniBand", fleet: ibRails, bar: noPage, lasts: 10 * time.Minute, silent: true},
}

func TestIncidents(t *testing.T) {
	for _, i := range incidents {
		t.Run(i.name, func(t *testing.T) {
			r := play(t, i)
			t.Logf("%s%s", r.line(i), r)
			if got := r.score(); got.daemon > i.bar.daemon || got.central > i.bar.central {
				t.Errorf("daemon %d, central %d; at most %d and %d", got.daemon, got.central, i.bar.daemon, i.bar.central)
			}
			r.check(t, i)
		})
	}
}

// result is what has fired in an incident: label sets, those of rules/central, and when they fired first.
type result struct {
	fired   map[string]labels.Labels
	central map[string]bool
	at      map[string]time.Duration
}

// play has a fleet go through an incident. Exporters are scraped at each interval.
func play(t *testing.T, i incident) result {
	t.Helper()
	f := newFleet(i.fleet...)
	s := newServer(t, f)
	r := result{
		map[string]labels.Labels{},
		map[string]bool{},
		map[string]time.Duration{},
	}
	events, last := slices.Clone(i.events), -before-busy
	for f.now < i.lasts {
		f.step()
		for len(events) > 0 && events[0].at <= f.now {
			events[0].do(f)
			events, last = events[1:], f.now
		}
		for _, c := range f.clusters {
			last = max(last, c.jobs[0].ended)
		}
		if f.now%interval != 0 || f.unwatched {
			continue
		}
		at := began.Add(f.now)
		if err := s.scrape(f, at); err != nil {
			t.Fatal(err)
		}
		if f.now%quiet != 0 && f.now > last+busy {
			continue
		}
		var firing []alert
		if err := s.eval(t.Context(), at, func(a alert) { firing = append(firing, a) }); err != nil {
			t.Fatal(err)
		}
		r.add(firing, f.now)
	}
	if len(events) > 0 {
		t.Fatalf("%d events come after the end", len(events))
	}
	return r
}

// add takes what fires at one moment, without the alerts of hosts whose maintenance is announced: the shipped
// configuration of Alertmanager inhibits them by RDMAMaintenance.
func (r result) add(firing []alert, now time.Duration) {
	planned := map[string]bool{}
	for _, a := range firing {
		planned[hostOf(a.labels)] = planned[hostOf(a.labels)] || a.labels.Get("alertname") == "RDMAMaintenance"
	}
	for _, a := range firing {
		if a.labels.Get("severity") == "none" || planned[hostOf(a.labels)] && !a.central {
			continue
		}
		key := a.labels.String()
		if _, again := r.fired[key]; !again {
			r.at[key] = now
		}
		r.fired[key], r.central[key] = a.labels, a.central
	}
}

func hostOf(l labels.Labels) string { return l.Get("cluster") + " " + l.Get("instance") }

func (r result) count(severity string) (n int) {
	for _, l := range r.fired {
		n += int(where(l.Get("severity") == severity))
	}
	return n
}

func (r result) score() (s score) {
	hosts := map[string]int{}
	for key, l := range r.fired {
		if l.Get("severity") != "critical" {
			continue
		}
		s.central++
		if !r.central[key] {
			hosts[hostOf(l)]++
			s.daemon = max(s.daemon, hosts[hostOf(l)])
		}
	}
	return s
}

// line returns the row of an incident in the table of scores.
func (r result) line(i incident) string {
	s := r.score()
	return fmt.Sprintf("%-68s daemon %d, central %d, warnings %d", i.name, s.daemon, s.central, r.count("warning"))
}

// String lists what has fired: of each alert how many label sets, and of a critical one the first of them.
func (r result) String() string {
	const shown = 3
	kinds := map[string][]string{}
	for key, l := range r.fired {
		kind := l.Get("severity") + " " + l.Get("alertname")
		kinds[kind] = append(kinds[kind], "\n  "+key)
	}
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		sets := kinds[kind]
		fmt.Fprintf(&b, "\n%s: %d", kind, len(sets))
		if strings.HasPrefix(kind, "critical") {
			slices.Sort(sets)
			b.WriteString(strings.Join(sets[:min(shown, len(sets))], ""))
		}
	}
	return b.String()
}

// objectOf returns the object of an alert: "device=mlx5_2 instance=gpu-04:10879 port=1".
func objectOf(l labels.Labels) string {
	var out []string
	l.Range(func(x labels.Label) {
		switch x.Name {
		case "alertname", "cluster", "job", "severity", "drain", "symptom", "reason", "scope", "where":
		default:
			out = append(out, x.Name+"="+x.Value)
		}
	})
	return strings.Join(out, " ")
}

// check holds an incident to what has to come, its own cluster, and to silence.
func (r result) check(t *testing.T, i incident) {
	t.Helper()
	if n := r.count("critical"); n < i.least {
		t.Errorf("%d critical alerts; at least %d", n, i.least)
	}
	if i.alone && len(r.fired) > 1 {
		t.Errorf("%d alerts fire in place of one", len(r.fired))
	}
	if m := i.must; m != nil {
		var late []string
		in := func(key string) bool {
			l := r.fired[key]
			if l.Get("severity")+" "+l.Get("alertname") != m.alert || objectOf(l) != m.on {
				return false
			}
			late = append(late, r.at[key].String())
			return r.at[key] <= m.by
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(r.fired)), in) {
			t.Errorf("no %s on %q by %s; fires after %v", m.alert, m.on, m.by, late)
		}
	}
	for key, l := range r.fired {
		if i.stays && l.Get("drain") == "evict" {
			t.Errorf("evicts: %s", key)
		}
		if i.silent {
			t.Errorf("fires: %s", key)
		}
		if i.in != "" && l.Get("cluster") != i.in {
			t.Errorf("fires in another cluster: %s", key)
		}
	}
}
