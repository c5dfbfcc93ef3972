package alerting_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/rules"
	"rdma_exporter/test/machines"
)

// largeNode is 3,000 series of a healthy node with 8 ports. next is its next round.
func largeNode() (next func() []*dto.MetricFamily) {
	var families []*dto.MetricFamily
	for i := range 8 {
		device := fmt.Sprintf("mlx5_%d", i)
		families = append(families,
			gauge("rdma_port_state_id", 4, "device", device, "port", "1"),
			gauge("rdma_port_physical_state_id", 5, "device", device, "port", "1"),
			gauge("rdma_port_was_active", 1, "device", device, "port", "1"),
			gauge("rdma_port_info", 1, "device", device, "port", "1", "netdev", "ib0", "link_layer",
				"InfiniBand", "role", "compute"))
	}
	var counters []*dto.Counter
	for f := range 62 {
		metrics := &dto.MetricFamily{
			Name: ptr(fmt.Sprintf("rdma_port_example_%d_total", f)), Type: ptr(dto.MetricType_COUNTER),
		}
		for s := range 48 {
			c := &dto.Counter{Value: ptr(0.0)}
			counters = append(counters, c)
			metrics.Metric = append(metrics.Metric, &dto.Metric{
				Label:   labelPairs([]string{"device", fmt.Sprintf("mlx5_%d", s%8), "port", "1", "priority", fmt.Sprint(s / 8)}),
				Counter: c,
			})
		}
		families = append(families, metrics)
	}
	return func() []*dto.MetricFamily {
		for i, c := range counters {
			*c.Value += float64(i % 7 * 1000)
		}
		return families
	}
}

// engineOnNode has the embedded rules.
func engineOnNode(b *testing.B, dir string) *alerting.Engine {
	b.Helper()
	files, names, err := rules.Node()
	if err != nil {
		b.Fatal(err)
	}
	e, err := alerting.New(alerting.Options{Dir: dir, Instance: instance, Rules: files, Files: names})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// BenchmarkRound appends and evaluates a round.
func BenchmarkRound(b *testing.B) {
	e := engineOnNode(b, b.TempDir())
	defer e.Close()
	next, now := largeNode(), t0()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(15 * time.Second)
		stepTo(b, e, now, next()...)
	}
}

// BenchmarkRoundOfMachine appends and evaluates the last round of a recorded machine with 8 ports and 8 GPUs, every 15
// s: CPU time of a round.
func BenchmarkRoundOfMachine(b *testing.B) {
	m, sched := machines.Open(b, machines.Fixture("hgx-h200-roce"))
	now := m.Player.Last()
	if err := m.Seek(now); err != nil {
		b.Fatal(err)
	}
	p, err := sched.Collect(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	e := engineOnNode(b, b.TempDir())
	defer e.Close()
	families := slices.Collect(exposition.DTO(p.Families))
	before := cpu(b)
	for b.Loop() {
		now = now.Add(15 * time.Second)
		stepTo(b, e, now, families...)
	}
	b.ReportMetric((cpu(b)-before).Seconds()*1e3/float64(b.N), "ms-CPU/round")
	b.ReportMetric(float64(e.Stats().Series), "series")
}

// BenchmarkTwoHours fills the history and reports its cost: CPU time of a round including block writes and garbage
// collection, resident memory of the process, and the time to reopen the store.
func BenchmarkTwoHours(b *testing.B) {
	const rounds = 2 * 60 * 4
	for b.Loop() {
		dir := b.TempDir()
		e := engineOnNode(b, dir)
		next, now := largeNode(), t0()
		before := cpu(b)
		for range rounds {
			now = now.Add(15 * time.Second)
			stepTo(b, e, now, next()...)
		}
		b.ReportMetric((cpu(b)-before).Seconds()*1e3/rounds, "ms-CPU/round")
		b.ReportMetric(memory(b, "VmRSS:"), "MiB-resident")
		b.ReportMetric(memory(b, "RssAnon:"), "MiB-own") // the rest is the program file
		b.ReportMetric(float64(e.Stats().Series), "series")
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		e = engineOnNode(b, dir)
		b.ReportMetric(time.Since(start).Seconds()*1e3, "ms/open")
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memory returns a figure of this process in /proc/self/status, in MiB.
func memory(b *testing.B, what string) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), what)
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		b.Fatal(err)
	}
	return kib / 1024
}

// BenchmarkClockSet sets the clock when the history is full: CPU time of the round that moves all samples.
func BenchmarkClockSet(b *testing.B) {
	for b.Loop() {
		clock, next := newHostClock(), largeNode()
		e, err := alerting.New(alerting.Options{
			Dir: b.TempDir() + "/store", Scratch: b.TempDir(), Instance: instance, Rules: fstest.MapFS{}, Clock: clock.read,
		})
		if err != nil {
			b.Fatal(err)
		}
		round := func() {
			if clock.run(15 * time.Second); e.Append(clock.Wall, slices.Values(next())) != nil {
				b.Fatal("not appended")
			}
		}
		for range 2 * 60 * 4 {
			round()
		}
		clock.set(time.Hour)
		before := cpu(b)
		round()
		b.ReportMetric((cpu(b)-before).Seconds()*1e3, "ms-CPU/set")
		b.ReportMetric(memory(b, "VmHWM:"), "MiB-highest")
		if from, to := e.Observed(); to.Sub(from) < time.Hour {
			b.Errorf("observed for %s", to.Sub(from))
		}
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
