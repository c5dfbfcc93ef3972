package collector

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/exposition"
)

// allDescs returns the Descs of all collectors, each once: the traffic of a port has two sources.
func allDescs() (out []*metric.Desc) {
	for _, c := range All(shared.Options{}) {
		for _, d := range c.Descs {
			if !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}

var (
	legacyName  = regexp.MustCompile(`^rdma_[a-z0-9_]+[a-z0-9]$`)
	legacyLabel = regexp.MustCompile(`^(?:[a-z][a-z_]*|UUID)$`) // UUID is the DCGM exporter's
)

func TestDescs(t *testing.T) {
	reserved := []string{"job", "instance", "cluster", "le", "quantile"}
	seen := map[string]bool{}
	if n := len(allDescs()); n < 250 {
		t.Errorf("%d metrics", n)
	}
	for _, d := range allDescs() {
		if seen[d.Name] {
			t.Errorf("%s: there are two", d.Name)
		}
		seen[d.Name] = true
		if !legacyName.MatchString(d.Name) || strings.Contains(d.Name, "__") {
			t.Errorf("%s: not a name for every Prometheus", d.Name)
		}
		if (d.Type == exposition.Counter) != strings.HasSuffix(d.Name, "_total") {
			t.Errorf("%s: %s", d.Name, d.Type)
		}
		if d.Help == "" || !strings.HasSuffix(d.Help, ".") || d.Source == "" || d.Scope == "" {
			t.Errorf("%s: help %q, source %q, scope %q", d.Name, d.Help, d.Source, d.Scope)
		}
		for i, l := range d.Labels {
			if !legacyLabel.MatchString(l) || slices.Contains(reserved, l) || slices.Contains(d.Labels[:i], l) {
				t.Errorf("%s: label %q", d.Name, l)
			}
		}
		if strings.HasPrefix(d.Name, "rdma_port_") &&
			(len(d.Labels) < 2 || d.Labels[0] != "device" || d.Labels[1] != "port") {
			t.Errorf("%s: a port's labels are %q", d.Name, d.Labels)
		}
	}
}

func TestPromlintHasNothingToSay(t *testing.T) {
	descs := allDescs()
	s := exposition.NewSink(descs)
	s.Begin()
	for _, d := range descs {
		if d.Type == exposition.Histogram {
			s.EmitHistogram(d, exposition.HistogramValue{Counts: make([]uint64, len(d.Bounds)+1)}, d.Labels...)
			continue
		}
		s.Emit(d, 1, d.Labels...)
	}
	families := s.End()
	if len(families) != len(descs) {
		t.Fatalf("%d families of %d", len(families), len(descs))
	}
	problems, err := promlint.NewWithMetricFamilies(slices.Collect(exposition.DTO(families))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
