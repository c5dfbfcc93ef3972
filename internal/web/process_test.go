package web

import (
	"math"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"rdma_exporter/internal/exposition"
)

// TestProcess: the metrics are those of client_golang's process collector, and so are their values, as far as they are
// constant.
func TestProcess(t *testing.T) {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	want, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Collect(exposition.DTO(newProcess().families()))
	if len(got) != len(want) || len(want) != len(processDescs) {
		t.Fatalf("%d metrics, %d of the library, %d described", len(got), len(want), len(processDescs))
	}
	for i, w := range want {
		g := got[i]
		if g.GetName() != w.GetName() || g.GetHelp() != w.GetHelp() || g.GetType() != w.GetType() || len(g.Metric) != 1 {
			t.Errorf("%v, want %v", g, w)
			continue
		}
		a, b := g.Metric[0].GetGauge().GetValue()+g.Metric[0].GetCounter().GetValue(),
			w.Metric[0].GetGauge().GetValue()+w.Metric[0].GetCounter().GetValue()
		near := map[string]float64{
			"process_cpu_seconds_total": 1, "process_open_fds": 2, "process_resident_memory_bytes": 8 << 20,
			"process_virtual_memory_bytes":        512 << 20,
			"process_network_receive_bytes_total": 64 << 20, "process_network_transmit_bytes_total": 64 << 20,
		}[w.GetName()]
		if math.Abs(a-b) > near {
			t.Errorf("%s: %v, %v of the library", w.GetName(), a, b)
		}
	}
}

// BenchmarkProcess compares with client_golang's process collector. Both depend on the number of processors, over which
// the kernel sums net/netstat.
func BenchmarkProcess(b *testing.B) {
	library := prometheus.NewRegistry()
	library.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	own := newProcess()
	for name, f := range map[string]func() error{
		"process": func() error { own.families(); return nil },
		"library": func() error { _, err := library.Gather(); return err },
		"golang":  func() error { _, err := own.golang.Gather(); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
