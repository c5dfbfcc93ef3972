package alerting_test

import (
	"fmt"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/rules"
)

// BenchmarkRound appends and judges a round of 3,000 series of a healthy node, 8 ports among them.
func BenchmarkRound(b *testing.B) {
	files, names, err := rules.Node()
	if err != nil {
		b.Fatal(err)
	}
	e, err := alerting.New(alerting.Options{Dir: b.TempDir(), Instance: instance, Rules: files, Files: names})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	var families []*dto.MetricFamily
	for i := range 8 {
		device := fmt.Sprintf("mlx5_%d", i)
		families = append(families,
			gauge("rdma_port_state_id", 4, "device", device, "port", "1"),
			gauge("rdma_port_physical_state_id", 5, "device", device, "port", "1"),
			gauge("rdma_port_was_active", 1, "device", device, "port", "1"),
			gauge("rdma_port_info", 1, "device", device, "port", "1", "netdev", "ib0", "link_layer", "InfiniBand", "role", "compute"))
	}
	var counters []*dto.Counter
	for f := range 62 {
		family := &dto.MetricFamily{Name: ptr(fmt.Sprintf("rdma_port_example_%d_total", f)), Type: ptr(dto.MetricType_COUNTER)}
		for s := range 48 {
			c := &dto.Counter{Value: ptr(0.0)}
			counters = append(counters, c)
			family.Metric = append(family.Metric, &dto.Metric{
				Label:   labelPairs([]string{"device", fmt.Sprintf("mlx5_%d", s%8), "port", "1", "priority", fmt.Sprint(s / 8)}),
				Counter: c,
			})
		}
		families = append(families, family)
	}
	now := t0()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(15 * time.Second)
		for i, c := range counters {
			*c.Value += float64(i % 7 * 1000)
		}
		step(b, e, now, families...)
	}
}
