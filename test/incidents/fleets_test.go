package incidents

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"rdma_exporter/test/ruleplay"
)

var (
	every  = flag.Bool("every", false, "all fleets of make fleet, and the healthy week; an hour of CPU time")
	write  = flag.Bool("write", false, "write the table into docs/verification.md")
	fleets = flag.String("fleet", "", "fleets whose name matches this regular expression")
	days   = flag.Int("days", 7, "length of the healthy week with -every")
	faults = flag.String("class", "", "classes of faults whose name matches this regular expression")
)

// generatedFleet is a fleet with faults of each class that fits.
type generatedFleet struct {
	name    string
	spec    spec
	each    int           // faults of each class
	apart   time.Duration // between their starts
	calm    time.Duration // between evaluations while nothing happens
	classes string        // a regular expression
}

// A rack of hosts with four ports, for what siblings show, one with two, others with one.
var (
	fewPorts = []int{4, 2, 1}
	h200     = []string{"hgx-h200-roce"}
	h100     = []string{"dgx-h100-ib"}
)

var generated = []generatedFleet{
	{
		"InfiniBand, rails",
		spec{
			cluster: "ib-rails", hosts: 64, ports: fewPorts, layer: infiniBand, fabric: true, gpus: true, jobs: 8, idle: 1,
			machines: h100, course: training,
		},
		1, 5 * time.Minute, time.Minute, "",
	},
	{
		"RoCE, rails",
		spec{
			cluster: "roce-rails", hosts: 64, ports: fewPorts, layer: ethernet, pfc: true, gpus: true, jobs: 8, idle: 1,
			machines: h200, course: training,
		},
		1, 5 * time.Minute, time.Minute, "",
	},
	{
		"InfiniBand, fat tree of two generations",
		spec{
			cluster: "ib-tree", hosts: 64, ports: fewPorts, layer: infiniBand, racked: true, fabric: true, gpus: true, jobs: 8,
			machines: []string{"dgx-h100-ib", "hgx-b200-nvlink-functions-ok"}, course: training,
		},
		1, 5 * time.Minute, time.Minute, "",
	},
	{
		"RoCE, fat tree, two pods",
		spec{
			cluster: "roce-tree", hosts: 64, ports: fewPorts, layer: ethernet, racked: true, pfc: true, gpus: true,
			jobs: 8, speeds: []float64{1, 0.5}, machines: h200, course: training,
		},
		1, 5 * time.Minute, time.Minute, "",
	},
	{
		"RoCE without LLDP",
		spec{
			cluster: "blind", hosts: 16, ports: []int{2}, layer: ethernet, blind: true, gpus: true, machines: h200,
		},
		1, 5 * time.Minute, time.Minute, "rail",
	},
	{
		"RoCE, more than a day",
		spec{
			cluster: "small", hosts: 8, ports: []int{2}, layer: ethernet, pfc: true, gpus: true, machines: h200,
			course: training,
		},
		1, time.Hour, 4 * time.Minute, "module ageing",
	},
	{
		"RoCE, 1,000 hosts",
		spec{
			cluster: "large", hosts: 1000, ports: []int{1}, layer: ethernet, racked: true, pfc: true, machines: h200,
		},
		1, 4 * time.Minute, 4 * time.Minute, "port down|errors by a cable|leaf dead|rack power|host without PFC",
	},
}

// healthyFleets are those of the healthy week: 64 hosts.
var healthyFleets = []spec{
	{
		cluster: "ib", hosts: 32, ports: fewPorts, layer: infiniBand, fabric: true, gpus: true, jobs: 2, idle: 2,
		machines: []string{"dgx-h100-ib", "hgx-b200-nvlink-functions-ok"}, course: training,
	},
	{
		cluster: "roce", hosts: 32, ports: fewPorts, layer: ethernet, racked: true, pfc: true, gpus: true, jobs: 2, idle: 1,
		speeds: []float64{1, 0.5}, machines: h200, course: training,
	},
}

// The short form: five faults on 64 hosts, and an hour without.
var (
	sampled = generatedFleet{
		"sample",
		spec{
			cluster: "sample", hosts: 64, ports: []int{1}, layer: ethernet, pfc: true, gpus: true, machines: h200,
			course: training,
		},
		1, time.Minute, 4 * time.Minute, "port down|slow link|exporter down|hot module|dark lane",
	}
	sampledHealthy = spec{
		cluster: "healthy", hosts: 64, ports: []int{1}, layer: ethernet, racked: true, pfc: true, gpus: true,
		machines: h200, course: training,
	}
)

// play has a generated fleet go through its faults.
func (g generatedFleet) play(t *testing.T) ([]*fault, []*episode) {
	t.Helper()
	readRecordings(t, g.spec)
	f := newFleet(g.spec)
	all, end := generate(f, rand.New(rand.NewPCG(48, 3)), g.each, g.apart, regexp.MustCompile(cmp.Or(*faults, g.classes)))
	start := time.Now()
	fired := playFleet(t, f, schedule(all), end, time.Minute, g.calm)
	t.Logf("%d faults in %v, played in %v", len(all), end, time.Since(start).Round(time.Second))
	return all, fired
}

// TestFaultsOfFleets: what is injected is found, and nothing else. The bar is for classes whose alert exists.
func TestFaultsOfFleets(t *testing.T) {
	list := []generatedFleet{sampled}
	if *every {
		list = generated
	}
	var mu sync.Mutex
	scores := tallies{}
	t.Run("play", func(t *testing.T) {
		for _, g := range list {
			if !regexp.MustCompile(*fleets).MatchString(g.name) {
				continue
			}
			t.Run(g.name, func(t *testing.T) {
				t.Parallel()
				all, fired := g.play(t)
				mu.Lock()
				defer mu.Unlock()
				scores.add(g.name, all, fired)
			})
		}
	})
	t.Logf("\n%s%s", scores.table(), scores.details())
	for name, y := range scores {
		if !*every && (y.found < y.faults || y.wrong > 0) {
			t.Errorf("%s: %d of %d faults found, %d alerts unexplained", name, y.found, y.faults, y.wrong)
		}
	}
	if *write {
		ruleplay.Write(t, "fleet:faults", scores.table())
	}
}

// TestHealthyFleets: 64 hosts have no critical alert and at most two warnings in a week; in an hour, without -every,
// none.
func TestHealthyFleets(t *testing.T) {
	list, lasts, rare, most := []spec{sampledHealthy}, time.Hour, 4*time.Minute, 0
	if *every {
		list, lasts, rare, most = healthyFleets, time.Duration(*days)*day, 4*time.Minute, 2
	}
	var mu sync.Mutex
	counts := map[string]int{}
	t.Run("play", func(t *testing.T) {
		for _, s := range list {
			if !regexp.MustCompile(*fleets).MatchString(s.cluster) {
				continue
			}
			t.Run(s.cluster, func(t *testing.T) {
				t.Parallel()
				readRecordings(t, s)
				f := newFleet(s)
				fired := playFleet(t, f, noise(f, rand.New(rand.NewPCG(7, 64)), lasts), lasts, time.Minute, rare)
				mu.Lock()
				defer mu.Unlock()
				for _, e := range fired {
					severity := e.labels.Get("severity")
					counts[severity]++
					if severity != "info" {
						t.Logf("%v to %v: %s", e.first, e.last, e)
					}
				}
			})
		}
	})
	if counts["critical"] > 0 || counts["warning"] > most {
		t.Errorf("%d critical, %d warnings; at most 0 and %d", counts["critical"], counts["warning"], most)
	}
	t.Logf("%d critical, %d warnings, %d info", counts["critical"], counts["warning"], counts["info"])
	if *write {
		ruleplay.Write(t, "fleet:week", fmt.Sprintf("Healthy week of 64 hosts: %d critical, %d warnings, %d info.\n",
			counts["critical"], counts["warning"], counts["info"]))
	}
}

// TestScore: an alert of a fault, an effect, one that nothing explains, one that was there before, and a missed fault.
func TestScore(t *testing.T) {
	f := newFleet(smallRoCE...)
	named := func(name string) *class {
		return classes[slices.IndexFunc(classes, func(c *class) bool { return c.name == name })]
	}
	all := []*fault{
		{class: named("port down"), fleet: f, hosts: []int{3}, rail: 2, start: time.Hour, end: 80 * time.Minute},
		{class: named("exporter down"), fleet: f, hosts: []int{5}, start: 2 * time.Hour, end: 3 * time.Hour},
	}
	for _, x := range all {
		x.patterns()
	}
	fired := func(at time.Duration, pairs ...string) *episode {
		return &episode{alert{labels: labels.FromStrings(pairs...)}, time.Hour + at, time.Hour + at}
	}
	down := []string{
		"alertname", "RDMAPortDown", "severity", "critical", "reason", "port", "where", "gpu-04 mlx5_2/1",
	}
	scores := tallies{}
	scores.add("fleet", all, []*episode{
		fired(3*time.Minute, down...),
		fired(-5*time.Minute, down...),
		fired(5*time.Minute, "alertname", "RDMAPortDown", "severity", "critical", "where", "gpu-05 mlx5_2/1"),
		fired(4*time.Minute, "alertname", "RDMAJobSlow", "severity", "warning", "reason", "degraded", "where", "job 1"),
	})
	y := scores.of("port down")
	if y.found != 1 || y.right != 2 || y.wrong != 1 || y.critical != 2 || y.delays[0] != 3*time.Minute {
		t.Errorf("port down: %+v", y)
	}
	if y = scores.of("exporter down"); y.faults != 1 || y.found != 0 {
		t.Errorf("exporter down: %+v", y)
	}
	if y = scores.of("no fault"); y.wrong != 1 {
		t.Errorf("no fault: %+v", y)
	}
}

// TestClassesOfFaults: each class fits a fleet that is played, and its patterns compile there.
func TestClassesOfFaults(t *testing.T) {
	played := map[string]bool{}
	for _, g := range generated {
		g.spec.hosts = min(g.spec.hosts, 32)
		readRecordings(t, g.spec)
		all, _ := generate(newFleet(g.spec), rand.New(rand.NewPCG(1, 1)), 1, time.Minute, regexp.MustCompile(g.classes))
		for _, x := range all {
			played[x.name] = true
		}
	}
	for _, c := range classes {
		if !played[c.name] {
			t.Errorf("%s: in no fleet", c.name)
		}
	}
	if slices.ContainsFunc(classes, func(c *class) bool { return c.want == "" || c.lasts == 0 }) || len(played) < 20 {
		t.Errorf("%d classes, or one without an alert or an end", len(played))
	}
}
