// Package place plays losses of peers on fleets of 64 to 1,000 hosts on a virtual clock, and counts how often the
// central rules place their cause rightly (make place).
package place

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	promrules "github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"

	"rdma_exporter/rules"
	"rdma_exporter/test/ruleplay"
)

const (
	cluster = "c"
	// scrapes are each step after a change, each pause while nothing changes: less than the lookback of 5m.
	step, pause = 2 * time.Minute, 4 * time.Minute
	day         = 24 * time.Hour
	maxLost     = 64        // peers that an exporter keeps
	lossPause   = time.Hour // after which a loss begins an incident
	rackSize    = 8
)

var began = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// spec describes a fleet.
type spec struct {
	name         string
	hosts, ports int
	// unit is how many hosts share the leaves of their rails; 0: a leaf for each rack (fat tree).
	unit  int
	slurm bool
	// healthy is how long TestHealthy plays.
	healthy time.Duration
	blind   float64  // part of the hosts without eBPF
	each    int      // faults of each kind
	only    []string // kinds; nil: all
}

// port is a port of a host with its place.
type port struct {
	host             *host
	number           int
	address          string
	leaf, rail, rack string
	info, peers, gid series
	connected        int
}

func (p *port) where() string { return fmt.Sprintf("%s mlx5_%d/1", p.host.name, p.number) }

// places returns what has a port, by size. Of a host without eBPF the addresses are known alone.
func (p *port) places() []string {
	own := p.where()
	if p.host.blind {
		own = "address " + p.address
	}
	return []string{own, p.host.name, "switch " + p.leaf, "rail " + p.rail, "rack " + p.rack}
}

// series is one series of an exporter.
type series struct {
	labels labels.Labels
	ref    storage.SeriesRef
	there  bool
}

// lost is what an exporter has of a peer that was lost.
type lost struct {
	total, start series
	count        float64
	first, last  time.Duration
}

type host struct {
	name               string
	ports              []*port
	blind, down, dirty bool          // dirty: what changes slowly has changed
	booted, maintained time.Duration // when; until when

	up, uptime, maintenance, end, job series
	gone                              []series
	lost                              map[string]*lost
}

// pair is a connection.
type pair struct{ a, b *port }

func (p pair) leaves() (string, string) { return min(p.a.leaf, p.b.leaf), max(p.a.leaf, p.b.leaf) }

// job is a job with the connections of its ranks.
type job struct {
	hosts []*host
	pairs []pair
	peers map[*port][]*port
}

type fleet struct {
	spec
	t      *testing.T
	r      *rand.Rand
	e      *ruleplay.Engine
	hosts  []*host
	jobs   []*job
	now    time.Duration
	read   time.Duration // when series that change slowly were scraped
	app    storage.Appender
	losses int
	moved  time.Duration // when a peer was lost last
}

func newFleet(t *testing.T, r *ruleplay.Rules, s spec, seed uint64) *fleet {
	t.Helper()
	f := &fleet{spec: s, t: t, r: rand.New(rand.NewPCG(seed, 49)), read: -time.Hour}
	for n := range s.hosts {
		f.hosts = append(f.hosts, f.newHost(n))
	}
	f.e = ruleplay.Start(t, r, step, nil)
	f.assign()
	f.until(8*time.Minute, pause)
	return f
}

// readRules returns the rules that the alert reads and that can have a result here.
func readRules(t *testing.T) *ruleplay.Rules {
	t.Helper()
	r := ruleplay.NewRules()
	files, names, err := rules.Both()
	must(t, err)
	r.Read(t, files, names)
	known := map[string]bool{}
	for name := range strings.FieldsSeq(`up rdma_place_info rdma_port_gid_info rdma_port_peers rdma_host_uptime_seconds
		rdma_host_maintenance rdma_host_maintenance_end_timestamp_seconds rdma_port_job_info rdma_port_peer_lost_total
		rdma_port_peer_lost_start_time_seconds`) {
		known[name] = true
	}
	r.Prune(t, known)
	r.Focus(t, "RDMARetriesExceeded", "rdma:loss:like")
	return r
}

func (f *fleet) newHost(n int) *host {
	h := &host{
		name: fmt.Sprintf("gpu-%04d", n+1), blind: f.r.Float64() < f.spec.blind, booted: -day, lost: map[string]*lost{},
	}
	h.up, h.uptime, h.maintenance = h.series("up"), h.series("rdma_host_uptime_seconds"), h.series("rdma_host_maintenance")
	h.end = h.series("rdma_host_maintenance_end_timestamp_seconds")
	for i := range f.ports {
		p := &port{host: h, number: i, address: fmt.Sprintf("10.%d.%d.%d", i, n/250, n%250+1), rail: strconv.Itoa(i)}
		p.rack = fmt.Sprintf("r%d", n/rackSize)
		p.leaf = "leaf-" + p.rack
		if f.unit > 0 {
			p.leaf = fmt.Sprintf("leaf-%d-%d", n/f.unit, i)
		}
		at := []string{"device", fmt.Sprintf("mlx5_%d", i), "port", "1"}
		p.info = h.series("rdma_place_info", append(at, "leaf", p.leaf, "rail", p.rail, "rack", p.rack, "name", p.where())...)
		p.gid, p.peers = h.series("rdma_port_gid_info", append(at, "gid", p.address)...), h.series("rdma_port_peers", at...)
		h.ports = append(h.ports, p)
	}
	return h
}

func (h *host) series(name string, more ...string) series {
	return series{labels: labels.FromStrings(append([]string{
		model.MetricNameLabel, name, "cluster", cluster, "instance", h.name + ":10879", "job", "rdma_exporter",
	}, more...)...)}
}

// assign gives the hosts to jobs of random sizes, packed as a scheduler does.
func (f *fleet) assign() {
	f.jobs = nil
	for _, h := range f.hosts {
		for _, p := range h.ports {
			p.connected = 0
		}
	}
	for at := 0; at < len(f.hosts); {
		n := min(sizes[f.r.IntN(len(sizes))], len(f.hosts)-at, max(24, len(f.hosts)/4))
		j := &job{hosts: f.hosts[at : at+n], peers: map[*port][]*port{}}
		f.connect(j)
		for _, h := range j.hosts {
			if h.job.there {
				h.gone = append(h.gone, h.job)
			}
			h.dirty = true
			h.job = h.series("rdma_port_job_info", "device", "mlx5_0", "port", "1", "scheduler", "slurm",
				"job_id", fmt.Sprint(int(f.now.Minutes()), "-", at))
		}
		f.jobs, at = append(f.jobs, j), at+n
	}
}

var sizes = []int{4, 8, 12, 16, 24, 32, 64, 128}

// connect makes a ring, a ring and a tree, or all to all, on each rail. With all to all, few pairs are between rails.
func (f *fleet) connect(j *job) {
	n, pattern, seen := len(j.hosts), f.r.IntN(3), map[pair]bool{}
	add := func(i, k, rail, other int) {
		x := pair{j.hosts[i].ports[rail], j.hosts[k].ports[other]}
		if i == k || seen[x] || seen[pair{x.b, x.a}] {
			return
		}
		seen[x], j.pairs = true, append(j.pairs, x)
		j.peers[x.a], j.peers[x.b] = append(j.peers[x.a], x.b), append(j.peers[x.b], x.a)
		x.a.connected++
		x.b.connected++
	}
	for rail := range f.ports {
		for i := range n {
			add(i, (i+1)%n, rail, rail)
			if pattern == 1 {
				add(i, i/2, rail, rail)
			}
			for k := range i * (pattern / 2) {
				add(i, k, rail, rail)
			}
			if pattern == 2 && f.r.IntN(8) == 0 {
				add(i, f.r.IntN(n), rail, f.r.IntN(f.ports))
			}
		}
	}
}

func (f *fleet) append(s *series, there bool, v float64) {
	if !there {
		if !s.there {
			return
		}
		v = math.Float64frombits(value.StaleNaN)
	}
	ref, err := f.app.Append(s.ref, s.labels, began.Add(f.now).UnixMilli(), v)
	must(f.t, err)
	s.ref, s.there = ref, there
}

// scrape appends what all exporters serve.
func (f *fleet) scrape() {
	f.app = f.e.DB.Appender(context.Background())
	all := f.now-f.read >= pause
	if all {
		f.read = f.now
	}
	for _, h := range f.hosts {
		if all || h.dirty || f.now-h.booted < time.Hour {
			f.scrapeHost(h)
		}
		for _, l := range h.lost {
			if all || f.now-l.last < 15*time.Minute || h.down {
				f.append(&l.total, !h.down, l.count)
				f.append(&l.start, !h.down, float64(began.Add(l.first).Unix()))
			}
		}
	}
	must(f.t, f.app.Commit())
}

func (f *fleet) scrapeHost(h *host) {
	up := 1.0
	if h.down {
		up = 0
	}
	f.append(&h.up, true, up)
	f.append(&h.uptime, !h.down, (f.now - h.booted).Seconds())
	f.append(&h.maintenance, !h.down && f.now < h.maintained, 1)
	f.append(&h.end, !h.down && f.now < h.maintained, float64(began.Add(h.maintained).Unix()))
	for i := range h.gone {
		f.append(&h.gone[i], false, 0)
	}
	f.append(&h.job, !h.down && f.slurm, 1)
	h.gone, h.dirty = nil, false
	for _, p := range h.ports {
		f.append(&p.info, !h.down, 1)
		f.append(&p.gid, !h.down && !h.blind, 1)
		f.append(&p.peers, !h.down && !h.blind, float64(p.connected))
	}
}

// lose has an exporter count a lost peer, if it has eBPF.
func (f *fleet) lose(p, peer *port, certainty string) bool {
	h := p.host
	if h.blind || h.down {
		return false
	}
	key := fmt.Sprint(p.number, " ", peer.address, " ", certainty)
	l := h.lost[key]
	if l == nil {
		if len(h.lost) >= maxLost {
			f.forget(h)
		}
		more := []string{
			"device", fmt.Sprintf("mlx5_%d", p.number), "port", "1", "peer", peer.address, "certainty", certainty,
		}
		l = &lost{
			total: h.series("rdma_port_peer_lost_total", more...),
			start: h.series("rdma_port_peer_lost_start_time_seconds", more...),
			first: f.now, last: f.now,
		}
		h.lost[key] = l
	}
	if f.now-l.last > lossPause {
		l.first = f.now
	}
	l.last, l.count = f.now, l.count+1
	f.losses++
	f.moved = f.now
	return true
}

// forget removes the peer that was lost longest ago.
func (f *fleet) forget(h *host) {
	keys := slices.Sorted(maps.Keys(h.lost))
	oldest := slices.MinFunc(keys, func(a, b string) int { return cmp.Compare(h.lost[a].last, h.lost[b].last) })
	h.gone = append(h.gone, h.lost[oldest].total, h.lost[oldest].start)
	h.dirty = true
	delete(h.lost, oldest)
}

// told is an alert with a place that fires, and what explains as much.
type told struct{ where, severity string }

// until plays to a time and returns the alerts with a place that fire meanwhile, with what cannot be told apart.
func (f *fleet) until(end, pace time.Duration) map[told][]string {
	out := map[told][]string{}
	for ; f.now < end; f.now += pace {
		f.scrape()
		if f.now+pace < end && f.now-f.moved > 24*time.Minute {
			continue // nothing can change
		}
		must(f.t, f.e.Eval(context.Background(), began.Add(f.now)))
		for _, g := range f.e.Groups {
			for _, r := range g.AlertingRules() {
				r.ForEachActiveAlert(func(a *promrules.Alert) {
					x := told{a.Labels.Get("where"), a.Labels.Get("severity")}
					if a.State != promrules.StateFiring || a.Labels.Get("scope") == "" || out[x] != nil {
						return
					}
					v, err := f.e.Query(context.Background(), "rdma:loss:like", began.Add(f.now))
					must(f.t, err)
					out[x] = []string{x.where}
					for _, s := range v {
						out[x] = append(out[x], s.Metric.Get("where"))
					}
				})
			}
		}
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
