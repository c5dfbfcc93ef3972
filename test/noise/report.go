package main

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// result is the result of the blocks of a kind.
type result struct {
	name     string
	gaps     gaps
	exporter time.Duration // its CPU time
}

// report returns a table for docs/noise.md, with a description of the machine.
func report(o *options, results []result, before, after string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d processors, thread on %d, %d blocks of %s each, exporter on %s, machine %s, load %s at the start, %s at the end.\n\n",
		runtime.NumCPU(), o.cpu, o.blocks, o.length, map[bool]string{true: "any", false: fmt.Sprint(o.pin)}[o.pin < 0],
		cmp.Or(o.machine, "this host"), before, after)
	b.WriteString("| exporter | time lost | gaps ≥ 16 µs a second | ≥ 128 µs | ≥ 1 ms | ≥ 8 ms | longest | displaced a second | CPU of the exporter |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		g, seconds := &r.gaps, r.gaps.watched.Seconds()
		fmt.Fprintf(&b, "| %s | %.3f %% |", r.name, 100*g.lost.Seconds()/seconds)
		for _, n := range []int{4, 7, 10, 13} {
			fmt.Fprintf(&b, " %.3g |", float64(g.atLeast(n))/seconds)
		}
		fmt.Fprintf(&b, " %s | %.3g | %.3f %% |\n",
			g.longest.Round(10*time.Microsecond), float64(g.switched)/seconds, 100*r.exporter.Seconds()/seconds)
	}
	return b.String()
}

// load returns the load average of the last minute, for readers of the figures.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(b), " ")
	return one
}
