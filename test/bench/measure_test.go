//go:build bench

package bench

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/process"
)

// figures are those of a program on a tree, per scrape unless noted.
type figures struct {
	name          string
	wall, cpu     []float64 // milliseconds, the median of each block
	nothing       float64   // wall time of an answer without metrics, milliseconds; 0: not measured
	calls         float64   // system calls; 0: not counted
	files         []string  // files read
	allocations   float64
	bytes, series int
	memory        process.Memory // of the process, after all scrapes
}

func median(d []float64) float64 {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

// ratio returns the cost of a relative to b: the median over adjacent blocks.
func ratio(a, b []float64) float64 {
	var r []float64
	for i := range a {
		r = append(r, a[i]/b[i])
	}
	return median(r)
}

// scrapesOf returns the number of scrapes per block, with about the same duration for each size.
func scrapesOf(ports int) int { return max(2, min(60, 480/ports)) }

// compare starts programs on a tree and scrapes them in alternating blocks, so that a change in the machine's speed
// affects all of them. Traffic continues between scrapes.
func compare(t *testing.T, x *tree, commands []command) (out []figures) {
	t.Helper()
	var programs []*server
	for _, c := range commands {
		p := c.start(t)
		programs = append(programs, p)
		out = append(out, figures{name: c.name})
		for range 20 { // initial reads are done, and the heap has reached its size
			p.get(t, "/metrics")
		}
	}
	scrapes := scrapesOf(x.ports)
	made := make([]float64, len(programs))
	for range *blocks {
		for i, p := range programs {
			f := &out[i]
			began, err := process.CPU(p.cmd.Process.Pid)
			must(t, err)
			var walls []float64
			for range scrapes {
				must(t, x.traffic.Flow())
				body, took := p.get(t, "/metrics")
				f.bytes, f.series = len(body), series(body)
				walls = append(walls, took.Seconds()*1e3)
			}
			ended, err := process.CPU(p.cmd.Process.Pid)
			must(t, err)
			f.wall, f.cpu = append(f.wall, median(walls)), append(f.cpu, float64(ended-began)/1e6/float64(scrapes))
		}
	}
	for i, p := range programs {
		f := &out[i]
		var err error
		f.memory, err = process.Resident(p.cmd.Process.Pid)
		must(t, err)
		if commands[i].env == nil { // the floor makes none
			made[i] = p.allocations(t)
			asking := p.allocations(t) - made[i]
			for range scrapes {
				p.get(t, "/metrics")
			}
			f.allocations = (p.allocations(t) - made[i] - 2*asking) / float64(scrapes)
			var walls []float64
			for range scrapes {
				_, took := p.get(t, commands[i].small)
				walls = append(walls, took.Seconds()*1e3)
			}
			f.nothing = median(walls)
		}
	}
	return out
}

// count adds the system calls, counted in another process, since tracing slows it down.
func (f *figures) count(t *testing.T, c command) {
	t.Helper()
	p, stop := c.trace(t)
	defer stop()
	evaluates := slices.ContainsFunc(c.argv, func(arg string) bool { return strings.HasPrefix(arg, "--alerting.") })
	for ready := 0; ready < 2; {
		body, _ := p.get(t, "/metrics")
		if !evaluates || bytes.Contains(body, []byte("rdma_alerting_rounds_total")) { // after the first round
			ready++
		}
	}
	f.calls, f.files = p.during(2, func() {
		body, _ := p.get(t, "/metrics")
		f.series = series(body)
	})
}

// round returns the CPU time of a round of the engine in milliseconds, including collection and evaluation.
func round(t *testing.T, x *tree) (cpu float64, m process.Memory) {
	t.Helper()
	p := exporter("rules", x, "--alerting.interval=1s").start(t)
	after := func(n float64) (rounds float64, spent time.Duration) { // CPU time of n rounds
		for range 600 {
			body, _ := p.get(t, "/metrics?collect[]=modules")
			if rounds, _ = sample(body, "rdma_alerting_rounds_total"); rounds >= n {
				spent, err := process.CPU(p.cmd.Process.Pid)
				must(t, err)
				return rounds, spent
			}
			time.Sleep(200 * time.Millisecond)
		}
		t.Fatalf("%v rounds in two minutes, want %v", rounds, n)
		return 0, 0
	}
	first, began := after(3)
	last, ended := after(first + 10)
	memory, err := process.Resident(p.cmd.Process.Pid)
	must(t, err)
	return float64(ended-began) / 1e6 / (last - first), memory
}
