package ruleplay_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/rules"
	"rdma_exporter/test/ruleplay"
)

// A fleet of hosts with eight ports and GPUs, two of each below a PCIe switch, two functions a card. Each host has a
// port on each of eight leaves.

// place returns the place of a port of a host.
func place(host, n int, leaf string) string {
	return fmt.Sprintf(`rdma_place_info{cluster="a",instance="h%d:1",job="rdma_exporter",device="d%d",port="1",card="c%d",`+
		`pcie_switch="s%d",rail="%d",leaf="%s",subnet="fe80",name="d%d/1"}`, host, n, n/2, n/4, n, leaf, n)
}

// of returns a series of a port, device (n) or host (-1).
func of(metric string, host, n int, more ...string) string {
	l := []string{`cluster="a"`, fmt.Sprintf(`instance="h%d:1"`, host), `job="rdma_exporter"`}
	if n >= 0 {
		l = append(l, fmt.Sprintf(`device="d%d"`, n))
	}
	return metric + "{" + strings.Join(append(l, more...), ",") + "}"
}

const onPort = `port="1"`

// fleet returns hosts with their places, up from the beginning. Their leaves are l0 to l7 by rail, if they are known.
func fleet(hosts int, leaves bool) (out map[string]string) {
	out = map[string]string{}
	for h := range hosts {
		out[of("up", h, -1)] = "1x400"
		for n := range 8 {
			leaf := ""
			if leaves {
				leaf = fmt.Sprintf("l%d", n)
			}
			out[place(h, n, leaf)] = "1x400"
		}
	}
	return out
}

// down returns a port that is down, from a minute to another.
func down(s map[string]string, from, to int, host int, ports ...int) map[string]string {
	for _, n := range ports {
		s[of("port:rdma_port_down:critical", host, n, onPort)] = lasting(from, to)
	}
	return s
}

// lasting returns the samples, one each 30s, of a series that exists between two minutes.
func lasting(from, to int) string {
	return strings.Repeat("_ ", 2*from) + fmt.Sprintf("1x%d _x400", 2*(to-from)-1)
}

// TestPlaces: the faults of incidents, at their places: one for one cause, two for two.
func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		name   string
		series map[string]string
		// want are the faults by the minute: "symptom scope where value", in their order.
		want map[int][]string
	}{
		{
			"one port", down(fleet(1, true), 20, 40, 0, 3),
			map[int][]string{19: nil, 21: {"port_down port h0 d3/1 1"}, 39: {"port_down port h0 d3/1 1"}, 45: nil},
		},
		{"both functions of a card", down(fleet(1, true), 20, 40, 0, 2, 3), map[int][]string{22: {"port_down card h0 card c1 2"}}},
		{
			"two cards below a PCIe switch", down(fleet(1, true), 20, 40, 0, 0, 3),
			map[int][]string{22: {"port_down pcie_switch h0 PCIe switch s0 2"}},
		},
		{"three of eight ports", down(fleet(1, true), 20, 40, 0, 0, 3, 6), map[int][]string{22: {"port_down host h0 3"}}},
		{"half of the ports", down(fleet(1, true), 20, 40, 0, 0, 2, 4, 6), map[int][]string{22: {"port_down host h0 4"}}},
		{
			"half of the ports at the first start", down(fleet(1, true), 0, 40, 0, 0, 2, 4, 6),
			map[int][]string{0: {"port_down host h0 4"}, 30: {"port_down host h0 4"}},
		},
		{
			"two cables, 6m apart", down(down(fleet(1, true), 20, 60, 0, 1), 26, 60, 0, 6),
			map[int][]string{28: {"port_down port h0 d1/1 1", "port_down port h0 d6/1 1"}, 50: {"port_down port h0 d1/1 1", "port_down port h0 d6/1 1"}},
		},
		{
			"ports that come back one by one", down(down(down(fleet(1, true), 20, 30, 0, 0), 20, 36, 0, 3), 20, 40, 0, 6),
			map[int][]string{22: {"port_down host h0 3"}, 33: {"port_down host h0 3"}, 39: {"port_down host h0 3"}, 46: nil},
		},
		{
			"a port after the first is well again", down(down(fleet(1, true), 20, 25, 0, 0), 29, 40, 0, 6),
			map[int][]string{22: {"port_down port h0 d0/1 1"}, 31: {"port_down port h0 d6/1 1"}},
		},
		{
			"a leaf", down(down(down(fleet(5, true), 20, 40, 0, 3), 20, 40, 1, 3), 21, 40, 2, 3),
			map[int][]string{23: {"port_down leaf switch l3 3"}, 39: {"port_down leaf switch l3 3"}, 46: nil},
		},
		{
			"two hosts of a leaf are two", down(down(fleet(5, true), 20, 40, 0, 3), 20, 40, 1, 3),
			map[int][]string{23: {"port_down port h0 d3/1 1", "port_down port h1 d3/1 1"}},
		},
		{
			"a leaf without LLDP is a rail",
			down(down(down(down(fleet(5, false), 20, 40, 0, 3), 20, 40, 1, 3), 20, 40, 2, 3), 20, 40, 3, 3),
			map[int][]string{22: {"port_down rail rail 3 4"}},
		},
		{
			"a leaf, staggered by 3m", down(down(down(fleet(5, true), 20, 40, 0, 3), 22, 40, 1, 3), 23, 40, 2, 3),
			map[int][]string{25: {"port_down leaf switch l3 3"}},
		},
		{
			"a standing fault when its leaf restarts",
			down(down(down(down(fleet(5, true), 5, 60, 4, 3), 20, 24, 0, 3), 20, 24, 1, 3), 20, 24, 2, 3),
			map[int][]string{
				22: {"port_down leaf switch l3 3", "port_down port h4 d3/1 1"}, 40: {"port_down port h4 d3/1 1"},
			},
		},
		{
			"three cables of a leaf, 6m apart", down(down(down(fleet(5, true), 20, 60, 0, 3), 26, 60, 1, 3), 32, 60, 2, 3),
			map[int][]string{40: {"port_down port h0 d3/1 1", "port_down port h1 d3/1 1", "port_down port h2 d3/1 1"}},
		},
		{
			"two ports of each host on a leaf that is down",
			rename(down(down(down(fleet(3, true), 20, 40, 0, 2, 3), 20, 40, 1, 2, 3), 20, 40, 2, 2, 3), `leaf="l2"`, `leaf="l3"`),
			map[int][]string{22: {"port_down leaf switch l3 3"}},
		},
		{
			"no places", down(fleetWithoutPlaces(1), 20, 40, 0, 2, 3),
			map[int][]string{22: {"port_down host h0 2"}},
		},
		{
			"hosts without a subnet manager", onPorts(fleet(8, true), "port:rdma_port_init:subnet_manager", 20, 40),
			map[int][]string{22: {"no_subnet_manager subnet subnet fe80 8"}},
		},
		{
			"hosts without a subnet manager, and the fabric that says so",
			with(onPorts(fleet(8, true), "port:rdma_port_init:subnet_manager", 20, 40),
				`rdma_fabric_subnet_managers{cluster="a",instance="m:2",job="rdma_fabric",state="master"}`, "1x39 0x39 1x400"),
			map[int][]string{22: {"no_subnet_manager host m 1"}},
		},
		{
			"a GPU and NICs below a PCIe switch",
			with(with(down(fleet(1, true), 20, 40, 0, 0), of("device:rdma_device_missing:critical", 0, 0), lasting(20, 40)),
				of("rdma_gpu_lost_info", 0, -1, `gpu="0"`, `UUID="GPU-1"`), lasting(20, 40)),
			map[int][]string{22: {"device_missing host h0 2"}},
		},
		{
			"a hot transceiver, and its link",
			with(with(down(fleet(1, true), 24, 40, 0, 3),
				of("port:rdma_transceiver_temperature:errors", 0, 3, onPort, `netdev="e"`), lasting(20, 24)),
				of("rdma_transceiver_temperature_celsius", 0, 3, onPort, `netdev="e"`), "81x100",
				of("rdma_transceiver_temperature_threshold_celsius", 0, 3, onPort, `netdev="e"`, `level="high_alarm"`), "75x100"),
			map[int][]string{22: {"transceiver_hot port h0 d3/1 1"}, 26: {"transceiver_hot port h0 d3/1 1"}},
		},
		{
			"exporters of four hosts", targets(fleet(6, true), 20, 40, 0, 1, 2, 3),
			map[int][]string{22: {"exporter_down cluster several hosts a 4"}},
		},
		{
			"exporters of three hosts", targets(fleet(6, true), 20, 40, 0, 1, 2),
			map[int][]string{22: {"exporter_down host h0 1", "exporter_down host h1 1", "exporter_down host h2 1"}},
		},
		{
			"a storm, and its victims",
			with(onPorts(fleet(4, true), "port:rdma_pfc_storm_victim:critical", 21, 40),
				of("port:rdma_pfc_storm_source:critical", 0, 0, onPort), lasting(20, 40)),
			map[int][]string{23: {"pfc_storm_source port h0 d0/1 1"}, 39: {"pfc_storm_source port h0 d0/1 1"}},
		},
		{
			"hosts in announced maintenance prove nothing",
			announced(down(down(down(fleet(5, true), 20, 40, 0, 3), 20, 40, 1, 3), 20, 40, 2, 3), 0, 1),
			map[int][]string{23: {"port_down port h0 d3/1 1", "port_down port h1 d3/1 1", "port_down port h2 d3/1 1"}},
		},
		{
			"a gap of 8m, and old faults on three hosts",
			gap(down(down(down(fleet(5, true), 2, 90, 0, 3), 10, 90, 1, 3), 18, 90, 2, 3), 30, 38),
			map[int][]string{29: {"port_down port h0 d3/1 1", "port_down port h1 d3/1 1", "port_down port h2 d3/1 1"}, 41: {"port_down port h0 d3/1 1", "port_down port h1 d3/1 1", "port_down port h2 d3/1 1"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) { playPlaces(t, c.series, c.want) })
	}
}

func fleetWithoutPlaces(hosts int) map[string]string {
	out := map[string]string{}
	for h := range hosts {
		out[of("up", h, -1)] = "1x400"
	}
	return out
}

// with adds series and their values.
func with(s map[string]string, pairs ...string) map[string]string {
	for i := 0; i < len(pairs); i += 2 {
		s[pairs[i]] = pairs[i+1]
	}
	return s
}

// rename replaces a part of all names.
func rename(s map[string]string, old, new string) map[string]string {
	out := map[string]string{}
	for name, values := range s {
		out[strings.ReplaceAll(name, old, new)] = values
	}
	return out
}

// onPorts gives the first port of each host a series.
func onPorts(s map[string]string, metric string, from, to int) map[string]string {
	for h := range 8 {
		if up := of("up", h, -1); s[up] != "" {
			s[of(metric, h, 0, onPort)] = lasting(from, to)
		}
	}
	return s
}

// targets returns exporters that do not answer.
func targets(s map[string]string, from, to int, hosts ...int) map[string]string {
	for _, h := range hosts {
		s[of("up", h, -1)] = fmt.Sprintf("1x%d 0x%d 1x400", 2*from-1, 2*(to-from)-1)
	}
	return s
}

func announced(s map[string]string, hosts ...int) map[string]string {
	for _, h := range hosts {
		s[of("rdma_host_maintenance", h, -1)] = "1x400"
	}
	return s
}

// gap removes all samples between two minutes.
func gap(s map[string]string, from, to int) map[string]string {
	for name, values := range s {
		var out []string
		left := 0
		for f := range strings.FieldsSeq(values) {
			v, times, repeated := strings.Cut(f, "x")
			n := 1
			if repeated {
				n, _ = strconv.Atoi(times)
			}
			if repeated && v != "_" {
				n++
			}
			for range n {
				if left >= 2*from && left < 2*to {
					out = append(out, "_")
				} else {
					out = append(out, v)
				}
				left++
			}
		}
		s[name] = strings.Join(out, " ")
	}
	return s
}

func playPlaces(t *testing.T, input map[string]string, want map[int][]string) {
	t.Helper()
	test := &ruleplay.Test{Interval: "30s"}
	for name, values := range input {
		test.Input = append(test.Input, struct{ Series, Values string }{name, values})
	}
	files, _, err := rules.Node()
	if err != nil {
		t.Fatal(err)
	}
	names := []string{
		"central/leaf.rules.yml", "central/fleet_symptoms.rules.yml", "central/fabric.rules.yml",
		"node/symptoms.rules.yml", "node/faults.rules.yml",
	}
	p := ruleplay.New(t, files, names, 30*time.Second, test)
	last := 0
	for minute := range want {
		last = max(last, minute)
	}
	err = p.Until(t.Context(), time.Duration(last)*time.Minute, func() {
		expected, ok := want[int(p.Now.Minutes())]
		if !ok || p.Now%time.Minute != 0 {
			return
		}
		v, err := p.Ask(t.Context(), "rdma:fault", p.Now)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range v {
			m := s.Metric
			got = append(got, fmt.Sprintf("%s %s %s %v", m.Get("symptom"), m.Get("scope"), m.Get("where"), s.F))
		}
		slices.Sort(got)
		if !slices.Equal(got, expected) {
			t.Errorf("at %v:\n got  %q\n want %q", p.Now, got, expected)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
