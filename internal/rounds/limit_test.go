package rounds

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"rdma_exporter/collector"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

var (
	portProbe = &exposition.Desc{Name: "port_probe", Scope: exposition.ScopePort, Labels: []string{"device", "port"}}
	hostProbe = &exposition.Desc{Name: "host_probe", Scope: exposition.ScopeHost}
)

// withParts returns a scheduler with two series for each of ten devices, and one for the host. All devices but mlx5_0
// and mlx5_9 are virtual functions or subfunctions.
func withParts(t *testing.T, l Limits, metrics map[string]bool, leftOut ...string) *Scheduler {
	t.Helper()
	r := &snapshot.Reduced{Parts: map[string]bool{}, Metrics: metrics, LeftOut: leftOut}
	for i := 1; i < 9; i++ {
		r.Parts[fmt.Sprintf("mlx5_%d", i)] = true
	}
	c := &collector.Collector{
		Name: "c", Descs: []*exposition.Desc{probe, portProbe, hostProbe},
		Read: func(_ context.Context, _ *host.Host, n *snapshot.Node, done func(error)) {
			n.Reduced = r
			done(nil)
		},
		Emit: func(_ *snapshot.Node, s collector.Sink) {
			s.Emit(hostProbe, 1)
			for i := range 10 {
				device := fmt.Sprintf("mlx5_%d", i)
				s.Emit(probe, 1, device)
				s.Emit(portProbe, 1, device, "1")
			}
		},
	}
	s := New(context.WithoutCancel(t.Context()),
		Options{Host: &host.Host{}, Collectors: []*collector.Collector{c}, Timeout: 10e9, Limits: l})
	of := func(name string) coverage.Need { return coverage.Need{Metric: name} }
	unseen := coverage.New([]coverage.Alert{{Name: "A", Need: of("port_probe")}, {Name: "B", Need: of("host_probe")}},
		[]coverage.Metric{{Desc: portProbe, Collectors: []string{"c"}}, {Desc: hostProbe, Collectors: []string{"c"}}})
	s.Coverage = func() *coverage.Detector { return unseen }
	return s
}

// devicesIn returns the devices with a series of a metric.
func devicesIn(p *Picture, metric string) string {
	var out []string
	for _, f := range p.Families {
		for labels := range f.Samples() {
			if f.Head.Desc.Name == metric {
				out = append(out, strings.TrimPrefix(labels[0], "mlx5_"))
			}
		}
	}
	return strings.Join(out, "")
}

// limitsIn returns the limits, each with its value and the excess.
func limitsIn(text string) string {
	var out []string
	for _, limit := range []string{"devices", "series"} {
		_, value, ok := strings.Cut(text, fmt.Sprintf("\nrdma_exporter_limit{limit=%q} ", limit))
		_, by, _ := strings.Cut(text, fmt.Sprintf("\nrdma_exporter_limit_exceeded_by{limit=%q} ", limit))
		if ok {
			out = append(out, limit+":"+strings.Fields(value)[0]+":"+strings.Fields(by)[0])
		}
	}
	return strings.Join(out, " ")
}

// TestLimits: whole devices are left out, parts first, from the end. Metrics and alerts report it.
func TestLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		limits   Limits
		leftOut  []string
		devices  string // with series
		exceeded string
		limited  bool
	}{
		"no limits":       {Limits{}, nil, "0123456789", "", false},
		"within":          {Limits{10, 21}, nil, "0123456789", "devices:10:0 series:21:0", false},
		"one series more": {Limits{0, 20}, nil, "012345679", "series:20:2", true},
		"half":            {Limits{0, 10}, nil, "0129", "series:10:12", true},
		"physical ones":   {Limits{0, 3}, nil, "0", "series:3:18", true},
		"devices":         {Limits{10, 0}, []string{"mlx5_10", "mlx5_11"}, "0123456789", "devices:10:2", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := withParts(t, tc.limits, nil, tc.leftOut...)
			for range 2 { // the second round reuses the series of the first
				p, err := s.Collect(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				exceeded := limitsIn(textOf(p))
				got, again := devicesIn(p, "probe"), devicesIn(p, "port_probe")
				if got != tc.devices || again != tc.devices || !strings.Contains(textOf(p), "host_probe 1") {
					t.Errorf("devices %s and %s, want %s", got, again, tc.devices)
				}
				if exceeded != tc.exceeded {
					t.Errorf("limits %s, want %s", exceeded, tc.exceeded)
				}
				limited := strings.Contains(textOf(p), `rdma_detection_unavailable{alert="A",reason="limit"} 1`)
				if limited != tc.limited || strings.Contains(textOf(p), `alert="B"`) {
					t.Errorf("not evaluated: %v", p.Coverage)
				}
			}
		})
	}
}

// TestMetricsOfParts: of virtual functions and subfunctions only the wanted metrics are exposed.
func TestMetricsOfParts(t *testing.T) {
	p, err := withParts(t, Limits{}, map[string]bool{"probe": true}).Collect(t.Context(), nil)
	if err != nil || devicesIn(p, "probe") != "0123456789" || devicesIn(p, "port_probe") != "09" {
		t.Errorf("%v\n%s", err, textOf(p))
	}
}
