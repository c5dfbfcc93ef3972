//go:build bench

package bench

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/machine"
	"rdma_exporter/test/program"
)

// sizes are the numbers of ports of the trees.
var sizes = []int{1, 8, 32, 256}

// The programs compared on each tree, by row.
const (
	// The files that ours reads in each scrape; the other programs read most of theirs every half minute or less often.
	floorCounters = iota
	oursCounters
	theirsCounters
	oursFour
	theirsFour
	oursAll
	oursRules
)

// commandsOn returns the programs for a tree, in the order of the rows, with the same number of processors. The floor
// reads the same files as ours.
func commandsOn(t *testing.T, x *tree, procs string) ([]command, []figures) {
	t.Helper()
	p := "--runtime.gomaxprocs=" + procs
	quiet := []string{"--no-alerting", p}
	some := append(quiet, "--collector.disable-defaults", "--collector.infiniband", "--collector.hwcounters")
	c := []command{
		oursCounters:   exporter("rdma_exporter: infiniband, hwcounters", x, some...),
		theirsCounters: nodeExporter("node_exporter: infiniband", x, p, "--collector.infiniband"),
		oursFour: exporter("rdma_exporter: infiniband, hwcounters, ethernet, pcie, sensors", x,
			append(slices.Clone(some), "--collector.ethernet", "--collector.pcie", "--collector.sensors")...),
		theirsFour: nodeExporter("node_exporter: infiniband, ethtool, netclass, hwmon", x, p, "--collector.infiniband",
			"--collector.ethtool", "--collector.netclass", "--collector.hwmon"),
		oursAll:   exporter("rdma_exporter: all collectors", x, quiet...),
		oursRules: exporter("rdma_exporter: all collectors, rules evaluated", x, p, "--alerting.interval=2m"),
	}
	counted := make([]figures, len(c))
	for i := range c {
		if c[i].argv != nil {
			counted[i].count(t, c[i])
		}
	}
	c[floorCounters] = floorOf(t, "floor: files of the next row", counted[oursCounters].files)
	counted[floorCounters].count(t, c[floorCounters])
	return c, counted
}

// measured returns the figures of all programs on a tree.
func measured(t *testing.T, hca machine.Model, ports int, procs string) (out []figures) {
	t.Helper()
	x := newTree(t, hca, ports)
	commands, counted := commandsOn(t, x, procs)
	out = compare(t, x, commands)
	for i := range out {
		out[i].calls, out[i].files = counted[i].calls, counted[i].files
		if n := counted[i].series; n < out[i].series*99/100 {
			t.Errorf("%s answers %d series while its system calls are counted, %d otherwise", out[i].name, n, out[i].series)
		}
	}
	return out
}

// TestCost measures everything, writes it into the document, and checks the budgets.
func TestCost(t *testing.T) {
	r := report{"machine": machineText(t)}
	var b budgets

	scrapes := newTable("ports", "", "wall, ms", "CPU, ms", "system calls", "files read", "allocations", "bytes", "series",
		"private memory, MiB", "resident, MiB")
	rounds := newTable("ports", "CPU per round, ms", "private memory, MiB", "resident, MiB")
	bySize := map[int][]figures{}
	for _, ports := range sizes {
		t.Run(fmt.Sprintf("%d ports", ports), func(t *testing.T) { // ends its programs
			bySize[ports] = measured(t, roce(), ports, "2")
		})
		for _, f := range bySize[ports] {
			t.Logf("%d ports: %s: %.3f ms CPU, %.3f ms, %.0f calls, %d files",
				ports, f.name, median(f.cpu), median(f.wall), f.calls, len(f.files))
			scrapes.row(fmt.Sprint(ports), f.name, number(median(f.wall)), number(median(f.cpu)), number(f.calls),
				orNone(len(f.files)), orNone(int(f.allocations+0.5)),
				fmt.Sprint(f.bytes), fmt.Sprint(f.series), mib(f.memory.Anon), mib(f.memory.All))
		}
	}
	for _, ports := range sizes {
		t.Run(fmt.Sprintf("rules of %d ports", ports), func(t *testing.T) {
			cpu, memory := round(t, newTree(t, roce(), ports))
			rounds.row(fmt.Sprint(ports), number(cpu), mib(memory.Anon), mib(memory.All))
		})
	}
	r["scrapes"], r["rounds"] = scrapes.String(), rounds.String()

	var one, two []figures
	t.Run("one processor", func(t *testing.T) { one = measured(t, infiniBand(), 8, "1") })
	t.Run("two processors", func(t *testing.T) { two = measured(t, infiniBand(), 8, "2") })
	if t.Failed() {
		t.FailNow()
	}
	b.cost(one, two)
	b.growth(bySize[8], bySize[256])
	b.series(t)
	b.memory(bySize[8])
	b.rules(t)
	b.page(t)
	b.elsewhere()
	r["budgets"] = b.table()
	r.put(t)
	b.hold(t)
}

// benchmarks runs benchmarks of a package and returns the results by unit.
func benchmarks(t *testing.T, binary, dir, pattern string) map[string]float64 {
	t.Helper()
	c := exec.Command(program.Built(t, file("bin", binary), "make bench-build builds it"), "-test.run=^$",
		"-test.bench="+pattern, "-test.benchtime=1x", "-test.count=1")
	if pattern != "TwoHours" {
		c.Args = append(c.Args, "-test.benchtime=2s")
	}
	c.Env = append(os.Environ(), "GOGC=25", "GOMAXPROCS=2") // as serve with alerting
	c.Dir, c.Stderr = file(dir), os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", binary, err, out)
	}
	found := map[string]float64{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(f[0], "Benchmark"), "-")
		for i := 2; i+1 < len(f); i += 2 {
			var v float64
			_, err := fmt.Sscan(f[i], &v)
			must(t, err)
			found[name+" "+f[i+1]] = v
		}
	}
	return found
}
