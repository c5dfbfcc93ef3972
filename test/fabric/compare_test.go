//go:build e2e

package fabric

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lane are the rates of a lane as printed by iblinkinfo, and as the kernel reports them, in Gb/s.
var lane = map[string]float64{"2.5": 2.5, "5.0": 5, "10.0": 10, "14.0625": 14, "25.78125": 25, "53.125": 50}

func laneName(rate float64) string {
	for name, r := range lane {
		if r == rate {
			return name
		}
	}
	return fmt.Sprint(rate)
}

var (
	states   = map[float64]string{1: "Down", 2: "Initialize", 3: "Armed", 4: "Active"}
	physical = map[float64]string{2: "Polling", 3: "Disabled", 5: "LinkUp"}

	downLine = regexp.MustCompile(`^0x([0-9a-f]{16}) " *(\S[^"]*)" +\d+ +(\d+)\[ *\] ==\( +(\w+)/ *(\w+)\)==>`)
	upLine   = regexp.MustCompile(`^0x([0-9a-f]{16}) " *(\S[^"]*)" +\d+ +(\d+)\[ *\] ==\( *(\d+)X +([0-9.]+) Gbps +(\w+)/ *(\w+)\)==> +0x[0-9a-f]{16} +\d+ +(\d+)\[ *\] "([^"]*)" \((.*)\)`)
)

// linkLines returns the lines of iblinkinfo about switches, without LIDs and far GUIDs, with single blanks.
func linkLines(out string) (lines []string) {
	for line := range strings.Lines(out) {
		if strings.Contains(strings.SplitN(line, "==", 2)[0], " mlx5_") { // an adapter: the same link from its other end
			continue
		}
		if f := upLine.FindStringSubmatch(line); f != nil {
			lines = append(lines, fmt.Sprintf("%s %s/%s %sX %s %s/%s %s/%s (%s)",
				f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[9], f[8], strings.TrimSpace(f[10])))
		} else if f := downLine.FindStringSubmatch(line); f != nil {
			lines = append(lines, fmt.Sprintf("%s %s/%s %s/%s", f[1], f[2], f[3], f[4], f[5]))
		} else {
			lines = append(lines, "not understood: "+line)
		}
	}
	slices.Sort(lines)
	return lines
}

// linkLines returns the same lines from the metrics.
func (m samples) linkLines() (lines []string) {
	for sample := range m {
		if !strings.HasPrefix(sample, "rdma_fabric_link_info{") {
			continue
		}
		l := labels(sample)
		if strings.Contains(l["node"], " mlx5_") { // as above
			continue
		}
		port := fmt.Sprintf("{node_guid=%q,port=%q}", l["node_guid"], l["port"])
		guid := strings.ReplaceAll(l["node_guid"], ":", "")
		state := states[m["rdma_fabric_port_state_id"+port]] + "/" + physical[m["rdma_fabric_port_physical_state_id"+port]]
		width, up := m["rdma_fabric_port_width_lanes"+port]
		if !up {
			lines = append(lines, fmt.Sprintf("%s %s/%s %s", guid, l["node"], l["port"], state))
			continue
		}
		rate := m["rdma_fabric_port_rate_bytes_per_second"+port] * 8 / 1e9 / width
		widest := m["rdma_fabric_link_supported_width_lanes"+port]
		fastest := m["rdma_fabric_link_supported_rate_bytes_per_second"+port] * 8 / 1e9 / widest
		var could []string
		if widest > width {
			could = append(could, fmt.Sprintf("Could be %vX", widest))
		}
		if fastest > rate {
			could = append(could, "Could be "+laneName(fastest)+" Gbps")
		}
		lines = append(lines, fmt.Sprintf("%s %s/%s %vX %s %s %s/%s (%s)", guid, l["node"], l["port"], width, laneName(rate),
			state, l["neighbour"], l["neighbour_port"], strings.Join(could, " ")))
	}
	slices.Sort(lines)
	return lines
}

// pma are the counter names of ibqueryerrors.
var pma = map[string]string{
	"SymbolErrorCounter": "symbol_errors", "LinkErrorRecoveryCounter": "link_error_recoveries",
	"LinkDownedCounter": "link_downed", "PortRcvErrors": "receive_errors",
	"PortRcvRemotePhysicalErrors": "receive_remote_physical_errors",
	"PortRcvSwitchRelayErrors":    "receive_switch_relay_errors", "PortXmitDiscards": "transmit_discards",
	"PortXmitConstraintErrors": "transmit_constraint_errors", "PortRcvConstraintErrors": "receive_constraint_errors",
	"LocalLinkIntegrityErrors":     "local_link_integrity_errors",
	"ExcessiveBufferOverrunErrors": "excessive_buffer_overrun_errors", "VL15Dropped": "vl15_dropped",
	"PortXmitWait": "transmit_wait_ticks",
}

var (
	errorsOf   = regexp.MustCompile(`^Errors for .*"([^"]*)"`)
	errorsPort = regexp.MustCompile(`^ +GUID 0x[0-9a-f]+ port (\d+):(.*)`)
	oneError   = regexp.MustCompile(`\[(\w+) == (\d+)`)
)

// errorLines returns the lines of ibqueryerrors, one per counter.
func errorLines(out string) (lines []string) {
	node := ""
	for line := range strings.Lines(out) {
		if f := errorsOf.FindStringSubmatch(line); f != nil {
			node = f[1]
		} else if f := errorsPort.FindStringSubmatch(line); f != nil {
			for _, e := range oneError.FindAllStringSubmatch(f[2], -1) {
				lines = append(lines, fmt.Sprintf("%s/%s %s %s", node, f[1], pma[e[1]], e[2]))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// errorLines returns the same lines from the metrics.
func (m samples) errorLines() (lines []string) {
	nodes := map[string]string{}
	for sample := range m {
		if strings.HasPrefix(sample, "rdma_fabric_node_info{") {
			l := labels(sample)
			nodes[l["node_guid"]] = l["node"]
		}
	}
	for sample, v := range m {
		for _, name := range pma {
			if v > 0 && strings.HasPrefix(sample, "rdma_fabric_port_"+name+"_total{") {
				l := labels(sample)
				lines = append(lines, fmt.Sprintf("%s/%s %s %v", nodes[l["node_guid"]], l["port"], name, v))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// difference returns the lines that only one of the two has.
func difference(got, want []string) string {
	var out []string
	for _, l := range got {
		if !slices.Contains(want, l) {
			out = append(out, "only here: "+l)
		}
	}
	for _, l := range want {
		if !slices.Contains(got, l) {
			out = append(out, "only there: "+l)
		}
	}
	if len(out) > 10 {
		out = append(out[:10], fmt.Sprint(len(out)-10, " more"))
	}
	return strings.Join(out, "\n")
}

// TestCompare: each line of iblinkinfo about a switch port, and each counter of ibqueryerrors, agrees with the metrics
// and vice versa, on a fabric with faults of all kinds.
func TestCompare(t *testing.T) {
	s := simulate(t, cluster)
	s.manage(t)
	e := s.export(t, "--fabric.interval=1s", "--fabric.adapter-counters")
	e.next(t)
	s.do(t, "Unlink %q[3]", spineName(1))
	s.do(t, "Unlink %q[5]", leafName(3))
	s.active(t, 2*cluster.links()-4)
	eventually(t, "new routes", func() string { // misrouted requests count as discards
		if n := e.next(t)[`rdma_fabric_unanswered{request="counters"}`]; n != 0 {
			return fmt.Sprint(n, " ports are not reached")
		}
		return ""
	})
	s.set(t, "leaf004", "17", "width", "1")
	s.set(t, "leaf005", "9", "espeed", "1")
	i := 0
	for field := range pma {
		// Counted by the simulator itself.
		if field == "PortRcvSwitchRelayErrors" || field == "PortXmitDiscards" || field == "PortRcvErrors" {
			continue
		}
		i++
		s.do(t, "PerformanceSet %q[%d] PortCounters.%s=%d", leafName(i%8), i, field, i)
		s.do(t, "PerformanceSet %q[1] PortCounters.%s=%d", hostName(i), field, i+1)
	}
	eventually(t, "the same as the tools", func() string {
		links, err := s.tool("iblinkinfo", "-l")
		must(t, err)
		errors, _ := s.tool("ibqueryerrors", "--skip-sl") // fails if it has found errors
		m := e.next(t)
		want := linkLines(links)
		if len(want) != cluster.leaves*(cluster.hosts+2*cluster.spines) {
			return fmt.Sprintf("iblinkinfo has %d lines on ports of switches: %q", len(want), want[:min(3, len(want))])
		}
		if d := difference(m.linkLines(), want); d != "" {
			return "links:\n" + d
		}
		wantErrors := errorLines(errors)
		if len(wantErrors) < 2*i {
			return fmt.Sprintf("ibqueryerrors has %d counters:\n%s", len(wantErrors), errors)
		}
		if d := difference(m.errorLines(), wantErrors); d != "" {
			return "errors:\n" + d
		}
		t.Logf("the same: %d lines on links, %d counters", len(want), len(wantErrors))
		return ""
	})
	must(t, s.sm.Process.Signal(syscall.SIGCONT))
}

// TestLarge: 2,048 hosts are found and all their counters read by at most 34,000 requests, which take 3.4 s at the
// default rate of 10,000 per second, and the rules evaluated, within 600 MiB (MemoryMax of the unit: 1 GiB).
func TestLarge(t *testing.T) {
	s := simulate(t, tree{spines: 32, leaves: 64, hosts: 32})
	s.manage(t)
	before, start := cpu(t, s.sim), time.Now()
	e := s.export(t, "--fabric.interval=1h", "--fabric.full-interval=1h", "--fabric.adapter-counters",
		"--fabric.rate=20000")
	ready := time.Since(start)
	eventually(t, "an evaluation", func() string {
		if !strings.Contains(get(t, "http://"+e.address+"/metrics"), "\nrdma_alerting_rounds_total ") {
			return "none"
		}
		return ""
	})
	m := e.scrape(t)
	took, peak := m["rdma_fabric_sweep_duration_seconds"], e.peak(t)
	t.Logf("%d nodes, %d links: %.2f s, of which the simulator %.2f s of CPU and the exporter %.2f s with a scrape; %v requests; %d MiB at most; %d samples; ready after %s",
		s.nodes(), s.links(), took, cpu(t, s.sim)-before, cpu(t, e.pid), m["rdma_fabric_requests_total"], peak, len(m),
		ready.Round(time.Millisecond))
	m.healthy(t, s.tree)
	start = time.Now()
	page := get(t, "http://"+e.address+"/")
	t.Logf("the page: %d bytes in %s", len(page), time.Since(start).Round(time.Millisecond))
	if len(page) > 100<<10 || !strings.Contains(page, "96 switches, 2048 adapters, 0 routers, 4096 links") {
		t.Errorf("the page has %d bytes, or is of another fabric", len(page))
	}
	if n := m["rdma_fabric_requests_total"]; n > 34_000 {
		t.Errorf("%v requests", n)
	}
	if peak > 600 {
		t.Errorf("%d MiB", peak)
	}
}

// cpu returns the processor time of a process in seconds.
func cpu(t *testing.T, pid int) float64 {
	t.Helper()
	_, rest, _ := strings.Cut(read(t, fmt.Sprintf("/proc/%d/stat", pid)), ") ")
	f := strings.Fields(rest)
	ticks := 0.
	for _, i := range []int{11, 12} { // utime, stime
		v, err := strconv.ParseFloat(f[i], 64)
		must(t, err)
		ticks += v
	}
	return ticks / 100
}
