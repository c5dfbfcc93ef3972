//go:build bench

package bench

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"
)

// budgets are limits of the program's cost, in the order of the table.
type budgets []budget

type budget struct {
	what   string
	most   float64 // maximum; 0: minimum is least, or without that reported only
	least  float64
	figure float64
	unit   string
	known  string // reason for exceeding it: does not fail, and is in the table
	where  string // the test that checks it, if it is another one
}

func (b budget) met() bool {
	return b.where != "" || b.figure >= b.least && (b.most == 0 || b.figure <= b.most)
}

func (b *budgets) add(x budget) { *b = append(*b, x) }

// cost is the ratio to node_exporter's infiniband collector with one processor, its default. Two processors cost both
// more, and this program more than the other: threads are woken for little work.
func (b *budgets) cost(one, two []figures) {
	for i, f := range [][]figures{one, two} {
		procs, least := []string{"one CPU", "two CPUs"}[i], []float64{5, 0}[i]
		ours, theirs := f[oursCounters], f[theirsCounters]
		b.add(budget{
			what:  "CPU of node_exporter's infiniband collector relative to rdma_exporter, same files, 8 InfiniBand ports, " + procs,
			least: least, figure: ratio(theirs.cpu, ours.cpu), unit: " times",
		})
		b.add(budget{
			what: "the same, wall time", least: least, figure: ratio(theirs.wall, ours.wall), unit: " times",
			known: fmt.Sprintf("%s of %s ms pass for an answer without metrics too",
				number(ours.nothing), number(median(ours.wall))),
		})
		b.add(budget{
			what:   "the same, wall time beyond that of an answer without metrics",
			figure: (median(theirs.wall) - theirs.nothing) / (median(ours.wall) - ours.nothing), unit: " times",
		})
	}
	ours := two[oursCounters]
	b.add(budget{
		what: "system calls per file read, whole process", most: 1.5, figure: ours.calls / float64(len(ours.files)),
	})
}

// growth counts as linear if 256 ports cost at most 32 times as much as 8: memory accesses and branches then miss the
// processor's caches.
func (b *budgets) growth(small, large []figures) {
	const why = "not all of the 15,104 files stay open: [below](#cost-of-a-scrape)"
	for _, i := range []int{oursCounters, oursAll} {
		b.add(budget{
			what: "CPU of 256 ports relative to 32 times 8 ports, " + small[i].name, most: 1.3,
			figure: median(large[i].cpu) / 32 / median(small[i].cpu), unit: " times", known: why,
		})
	}
}

// series are those of recorded machines with all their data.
func (b *budgets) series(t *testing.T) {
	for _, m := range []struct {
		name string
		most float64
	}{{"hgx-h200-roce", 2500}, {"dgx-h100-ib", 1650}} {
		t.Run(m.name, func(t *testing.T) {
			p := command{name: m.name, argv: []string{
				file("bin/rdma_exporter"), "serve", "--log.level=error", "--replay=" + file("fixtures/sysfs", m.name+".txtar"),
				"--no-alerting", "--no-web.exporter-metrics",
			}}.start(t)
			body, _ := p.get(t, "/metrics")
			b.add(budget{what: "series of the recorded machine " + m.name, most: m.most, figure: float64(series(body))})
		})
	}
}

// memory is private memory, which the kernel cannot reclaim without swap. Resident memory has the pages of the program
// file too, and is reported only.
func (b *budgets) memory(f []figures) {
	for _, x := range []struct {
		row  int
		most float64
	}{{oursCounters, 16}, {oursAll, 20}, {oursRules, 30}} {
		m := f[x.row].memory
		b.add(budget{
			what: "private memory, " + f[x.row].name + ", 8 ports", most: x.most,
			figure: float64(m.Anon) / (1 << 20), unit: " MiB",
		})
		b.add(budget{what: "the same, resident (with the program file)", figure: float64(m.All) / (1 << 20), unit: " MiB"})
	}
}

// rules evaluate 3,000 series for two hours at 15 s, in one go.
func (b *budgets) rules(t *testing.T) {
	f := benchmarks(t, "bench-alerting.test", "internal/alerting", "TwoHours")
	b.add(budget{
		what: "CPU of a round of the rules, 3,000 series", most: 50, figure: f["TwoHours ms-CPU/round"], unit: " ms",
	})
	b.add(budget{what: "private memory after two hours of rounds", most: 30, figure: f["TwoHours MiB-own"], unit: " MiB"})
	b.add(budget{
		what: "the same, resident (with the program file)", figure: f["TwoHours MiB-resident"], unit: " MiB",
	})
	b.add(budget{what: "opening a two-hour store, all samples read", figure: f["TwoHours ms/open"], unit: " ms"})
}

// page is that of 8 GPUs and 8 NICs with two hours of history.
func (b *budgets) page(t *testing.T) {
	f := benchmarks(t, "bench-page.test", "test/machines", "Page$|History$")
	b.add(budget{what: "rendering the HTML page, 8 GPUs and 8 NICs", most: 50, figure: f["Page ns/op"] / 1e6, unit: " ms"})
	b.add(budget{what: "history queries of the page, at most every 2s", figure: f["History ns/op"] / 1e6, unit: " ms"})
}

// elsewhere are budgets checked by other tests.
func (b *budgets) elsewhere() {
	b.add(budget{
		what:  "a scrape answers by its deadline, with partial data if the kernel hangs",
		where: "`make test`: internal/rounds/isolation_test.go",
	})
	b.add(budget{
		what: "no growth over time: memory, descriptors, goroutines, files", where: "`make soak`: [below](#soak-test)",
	})
}

func (b budgets) table() string {
	x := newTable("budget", "", "measured", "met")
	for _, y := range b {
		limit, figure, met := "at most "+number(y.most)+y.unit, number(y.figure)+y.unit, "yes"
		switch {
		case y.where != "":
			limit, figure, met = "", y.where, "yes"
		case y.least > 0:
			limit = "at least " + number(y.least) + y.unit
		case y.most == 0:
			limit, met = "", ""
		}
		if !y.met() {
			met = "**no**"
			if y.known != "" {
				met += ": " + y.known
			}
		}
		x.row(y.what, limit, figure, met)
	}
	return x.String()
}

// hold fails for each exceeded budget without a known reason.
func (b budgets) hold(t *testing.T) {
	t.Helper()
	for _, x := range b {
		if !x.met() && x.known == "" {
			t.Errorf("%s: %s%s", x.what, number(x.figure), x.unit)
		}
	}
}

// sample returns the value of a series without labels, and whether there is one.
func sample(body []byte, name string) (v float64, ok bool) {
	_, rest, found := bytes.Cut(body, []byte("\n"+name+" "))
	text, _, _ := bytes.Cut(rest, []byte("\n"))
	v, err := strconv.ParseFloat(string(text), 64)
	return v, found && err == nil
}
