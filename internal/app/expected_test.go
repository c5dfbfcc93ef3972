package app

import (
	"strings"
	"testing"
)

// TestHealthyLinksOfMachines: on every healthy machine an ACTIVE link has at least the rate and the width that are expected
// of it, or nothing is expected.
func TestHealthyLinksOfMachines(t *testing.T) {
	pairs := []struct{ has, expected string }{
		{"rdma_port_rate_bytes_per_second", "rdma_port_expected_rate_bytes_per_second"},
		{"rdma_port_width_lanes", "rdma_port_expected_width_lanes"},
		{"rdma_bond_member_rate_bytes_per_second", "rdma_bond_member_expected_rate_bytes_per_second"},
	}
	eachMachine(t, func(t *testing.T, name string) {
		r := played(t, name)
		if len(r.findings) > 0 {
			return
		}
		values := map[string]map[string]float64{} // metric → labels → value
		for _, f := range r.values {
			of := map[string]float64{}
			for _, m := range f.GetMetric() {
				var link []string
				for _, l := range m.GetLabel() {
					link = append(link, l.GetValue())
				}
				of[strings.Join(link, "/")] = m.GetGauge().GetValue()
			}
			values[f.GetName()] = of
		}
		for _, pair := range pairs {
			for link, has := range values[pair.has] {
				want, ok := values[pair.expected][link]
				if !ok {
					continue
				}
				if want > has {
					t.Errorf("%s of %s is %g, and %g are expected", pair.has, link, has, want)
				}
			}
		}
	})
}
