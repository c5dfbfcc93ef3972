//go:build !race

package machines

import (
	"strconv"
	"strings"
	"testing"
)

// TestHealthyLinksOfMachines: on every healthy machine an ACTIVE link has at least the rate and the width that are
// expected of it, or no expectation.
func TestHealthyLinksOfMachines(t *testing.T) {
	pairs := []struct{ has, expected string }{
		{"rdma_port_rate_bytes_per_second", "rdma_port_expected_rate_bytes_per_second"},
		{"rdma_port_width_lanes", "rdma_port_expected_width_lanes"},
		{"rdma_bond_member_rate_bytes_per_second", "rdma_bond_member_expected_rate_bytes_per_second"},
	}
	Each(t, func(t *testing.T, name string) {
		r := played(t, name)
		if len(r.findings) > 0 {
			return
		}
		values := map[string]map[string]float64{} // metric → labels → value
		for _, line := range r.series {
			metric, rest, _ := strings.Cut(line, "{")
			link, text, ok := strings.Cut(rest, "} ")
			v, err := strconv.ParseFloat(text, 64)
			if !ok || err != nil {
				continue
			}
			if values[metric] == nil {
				values[metric] = map[string]float64{}
			}
			values[metric][link] = v
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
