package fabric

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAdapters: adapters whose counters are queried have the metrics that alerts join with: the state, the rate and the
// names of both ends. Each link has end="1" once, and ports that have not answered have no further metrics.
func TestAdapters(t *testing.T) {
	const symbols = "rdma_fabric_port_symbol_errors_total"
	adapter := regexp.MustCompile(`[{,]node_guid="0000:0000:0000:00(09|0b|0c|15|16)"`)
	for _, tt := range []struct {
		adapters bool
		want     []string
	}{
		{false, nil},
		{true, []string{
			`rdma_fabric_link_info{end="2",neighbour="leaf1",neighbour_guid="0000:0000:0000:0001",neighbour_port="9",node="sm",node_guid="0000:0000:0000:0009",port="1"} 1`,
			`rdma_fabric_link_info{end="2",neighbour="leaf1",neighbour_guid="0000:0000:0000:0001",neighbour_port="1",node="gpu-11",node_guid="0000:0000:0000:000b",port="1"} 1`,
			`rdma_fabric_link_info{end="2",neighbour="leaf1",neighbour_guid="0000:0000:0000:0001",neighbour_port="2",node="gpu-12",node_guid="0000:0000:0000:000c",port="1"} 1`,
			`rdma_fabric_link_info{end="2",neighbour="leaf2",neighbour_guid="0000:0000:0000:0002",neighbour_port="1",node="gpu-21",node_guid="0000:0000:0000:0015",port="1"} 1`,
			`rdma_fabric_port_rate_bytes_per_second{node_guid="0000:0000:0000:0009",port="1"} 5e+09`,
			`rdma_fabric_port_rate_bytes_per_second{node_guid="0000:0000:0000:000b",port="1"} 5e+09`,
			`rdma_fabric_port_rate_bytes_per_second{node_guid="0000:0000:0000:000c",port="1"} 5e+09`,
			`rdma_fabric_port_rate_bytes_per_second{node_guid="0000:0000:0000:0015",port="1"} 5e+09`,
			`rdma_fabric_port_state_id{node_guid="0000:0000:0000:0009",port="1"} 4`,
			`rdma_fabric_port_state_id{node_guid="0000:0000:0000:000b",port="1"} 4`,
			`rdma_fabric_port_state_id{node_guid="0000:0000:0000:000c",port="1"} 4`,
			`rdma_fabric_port_state_id{node_guid="0000:0000:0000:0015",port="1"} 4`,
			`rdma_fabric_port_symbol_errors_total{node_guid="0000:0000:0000:0009",port="1"} 0`,
			`rdma_fabric_port_symbol_errors_total{node_guid="0000:0000:0000:000b",port="1"} 0`,
			`rdma_fabric_port_symbol_errors_total{node_guid="0000:0000:0000:000c",port="1"} 0`,
			`rdma_fabric_port_symbol_errors_total{node_guid="0000:0000:0000:0015",port="1"} 0`,
			`rdma_fabric_port_width_lanes{node_guid="0000:0000:0000:0009",port="1"} 4`,
			`rdma_fabric_port_width_lanes{node_guid="0000:0000:0000:000b",port="1"} 4`,
			`rdma_fabric_port_width_lanes{node_guid="0000:0000:0000:000c",port="1"} 4`,
			`rdma_fabric_port_width_lanes{node_guid="0000:0000:0000:0015",port="1"} 4`,
		}},
	} {
		t.Run(fmt.Sprintf("adapters=%v", tt.adapters), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := leafSpine()
				s.nodes[22].ports[1].mute = true
				m := s.monitor()
				m.Adapters = tt.adapters
				startMonitor(t, m)
				time.Sleep(time.Second)
				synctest.Wait()
				var got []string
				once := 0
				for line := range strings.Lines(m.text()) {
					name, _, _ := strings.Cut(line, "{")
					if name == linkInfo.Name && strings.Contains(line, `end="1"`) {
						once++
					}
					of := name == symbols || strings.HasPrefix(name, "rdma_fabric_link_") ||
						strings.HasPrefix(name, "rdma_fabric_port_") && !strings.HasSuffix(name, "_total")
					if of && adapter.MatchString(line) {
						got = append(got, strings.TrimSpace(line))
					}
				}
				if !slices.Equal(got, tt.want) || once != 9 {
					t.Errorf("%d links, got\n%s", once, strings.Join(got, "\n"))
				}
			})
		})
	}
}
