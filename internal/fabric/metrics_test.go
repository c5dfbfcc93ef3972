package fabric

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/mad"
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

// TestWiring: a link that is gone has its names also where its port has another link now, and each port has the names
// of one link.
func TestWiring(t *testing.T) {
	newcomer := func(s *subnet, at End) {
		s.nodes[13] = &device{kind: mad.ChannelAdapter, name: "gpu-13 mlx5_0", ports: map[int]*plug{}}
		s.connect(End{13, 1}, at)
	}
	for name, tt := range map[string]struct {
		change func(s *subnet)
		want   []string // what is new
	}{
		"the port of a dark host is taken": {
			func(s *subnet) {
				s.unplug(End{1, 1})
				newcomer(s, End{1, 1})
			},
			[]string{
				"info leaf1/1 end 1 neighbour gpu-13 mlx5_0/1", "missing leaf1/1 end 1 neighbour gpu-11/1 system gpu-11",
				"moved leaf1/1 moved leaf1/1 now gpu-13 mlx5_0/1",
			},
		},
		"a host is moved": {
			func(s *subnet) {
				s.unplug(End{1, 1})
				s.connect(End{11, 1}, End{1, 5})
			},
			[]string{
				"info leaf1/5 end 1 neighbour gpu-11/1", "missing leaf1/1 end 1 neighbour gpu-11/1 system gpu-11",
				"moved leaf1/1 moved gpu-11/1 now leaf1/5",
			},
		},
		"an uplink is moved to another leaf": {
			func(s *subnet) {
				s.unplug(End{1, 3})
				s.connect(End{3, 1}, End{2, 5})
			},
			[]string{
				"info leaf2/5 end 1 neighbour spine1/1", "info spine1/1 end 2 neighbour leaf2/5",
				"missing leaf1/3 end 1 neighbour spine1/1", "missing spine1/1 end 2 neighbour leaf1/3",
				"moved leaf1/3 moved spine1/1 now leaf2/5",
			},
		},
		"the port of an uplink is taken": {
			func(s *subnet) {
				s.unplug(End{1, 3})
				newcomer(s, End{1, 3})
			},
			[]string{
				"info leaf1/3 end 1 neighbour gpu-13 mlx5_0/1", "missing leaf1/3 end 1 neighbour spine1/1",
				"missing spine1/1 end 2 neighbour leaf1/3", "moved leaf1/3 moved leaf1/3 now gpu-13 mlx5_0/1",
			},
		},
		"uplinks are swapped": {
			func(s *subnet) { s.exchange() },
			[]string{
				"info leaf1/3 end 1 neighbour spine2/1", "info leaf1/4 end 1 neighbour spine1/1",
				"info spine1/1 end 2 neighbour leaf1/4", "info spine2/1 end 2 neighbour leaf1/3",
				"rewired leaf1/3 moved spine1/1 now leaf1/4", "rewired leaf1/4 moved spine2/1 now leaf1/3",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := leafSpine()
				m := s.monitor()
				m.Full = time.Minute
				startMonitor(t, m)
				before := wiring(t, m)
				s.mu.Lock()
				tt.change(s)
				s.mu.Unlock()
				time.Sleep(time.Minute)
				synctest.Wait()
				got := slices.DeleteFunc(wiring(t, m), func(l string) bool { return slices.Contains(before, l) })
				if !slices.Equal(got, tt.want) {
					t.Errorf("got %q", got)
				}
			})
		})
	}
}

// wiring returns the series of links in brief: "info NODE/PORT end N neighbour NODE/PORT".
func wiring(t *testing.T, m *Monitor) (out []string) {
	t.Helper()
	names, infos := map[string]string{}, map[string]bool{}
	for _, n := range m.Picture().Known.Nodes {
		names[n.GUID.String()] = n.Description
	}
	series := regexp.MustCompile(`(?m)^rdma_fabric_link_(info|missing|moved|rewired)\{(.*)\} 1$`)
	label := regexp.MustCompile(`(\w+)="([^"]*)"`)
	for _, x := range series.FindAllStringSubmatch(m.text(), -1) {
		l := map[string]string{}
		for _, m := range label.FindAllStringSubmatch(x[2], -1) {
			l[m[1]] = m[2]
		}
		if l["neighbour"] != "" {
			l["neighbour"] += "/" + l["neighbour_port"]
		}
		text := x[1] + " " + names[l["node_guid"]] + "/" + l["port"]
		if x[1] == "info" && infos[text] {
			t.Errorf("twice: %s", text)
		}
		infos[text] = true
		for _, name := range []string{"end", "neighbour", "system", "moved", "now"} {
			if l[name] != "" {
				text += " " + name + " " + l[name]
			}
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}
