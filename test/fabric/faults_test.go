//go:build e2e

package fabric

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// cluster has 128 hosts and 12 switches.
var cluster = tree{spines: 4, leaves: 8, hosts: 16}

// full is the rate of a link in the cluster: 4X EDR.
const full = 100e9 / 8

// compareLists compares ends of links, or other lists.
func compareLists(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// unreachable returns the names of nodes that a sweep did not reach.
func (m samples) unreachable() (out []string) {
	for sample, v := range m {
		if strings.HasPrefix(sample, "rdma_fabric_node_info{") && v == 1 {
			if l := labels(sample); m[`rdma_fabric_node_reachable{node_guid="`+l["node_guid"]+`"}`] == 0 {
				out = append(out, l["node"])
			}
		}
	}
	slices.Sort(out)
	return out
}

// healthy fails unless the fabric has no faults.
func (m samples) healthy(t *testing.T, f tree) {
	t.Helper()
	compareLists(t, "gone", m.ends("rdma_fabric_link_missing", positive))
	compareLists(t, "not ACTIVE", m.ends("rdma_fabric_port_state_id", func(v float64) bool { return v != 4 }))
	compareLists(t, "slow", m.ends("rdma_fabric_port_rate_bytes_per_second", func(v float64) bool { return v != full }))
	compareLists(t, "narrow", m.ends("rdma_fabric_port_width_lanes", func(v float64) bool { return v != 4 }))
	compareLists(t, "ought to be slow",
		m.ends("rdma_fabric_link_enabled_rate_bytes_per_second", func(v float64) bool { return v != full }))
	compareLists(t, "set apart", m.ends("rdma_fabric_link_settings_differ", positive))
	compareLists(t, "unreachable", m.unreachable())
	for sample, number := range map[string]int{
		"rdma_fabric_links": f.links(), `rdma_fabric_nodes{node_type="switch"}`: f.leaves + f.spines,
		`rdma_fabric_nodes{node_type="channel_adapter"}`: f.leaves * f.hosts,
		`rdma_fabric_unanswered{request="node"}`:         0, `rdma_fabric_unanswered{request="port"}`: 0,
		`rdma_fabric_unanswered{request="counters"}`: 0, `rdma_fabric_unanswered{request="subnet_manager"}`: 0,
		`rdma_fabric_subnet_managers{state="master"}`: 1, "rdma_fabric_sweep_failed": 0,
	} {
		if v, ok := m[sample]; !ok || v != float64(number) {
			t.Errorf("%s is %v, want %d", sample, v, number)
		}
	}
}

// lid of a switch, by its name.
func (s *subnet) lid(t *testing.T, name string) string {
	t.Helper()
	out, err := s.tool("iblinkinfo", "-l")
	must(t, err)
	for line := range strings.Lines(out) {
		if _, rest, found := strings.Cut(line, name+`" `); found &&
			strings.HasPrefix(strings.TrimLeft(strings.SplitN(line, `"`, 2)[1], " "), name) {
			return strings.Fields(rest)[0]
		}
	}
	t.Fatalf("iblinkinfo does not name %s", name)
	return ""
}

// active waits until the tools show a number of ACTIVE link ends.
func (s *subnet) active(t *testing.T, ends int) {
	t.Helper()
	eventually(t, "the subnet manager", func() string {
		out, err := s.tool("iblinkinfo", "-l")
		if n := strings.Count(out, "Active/"); err != nil || n != ends {
			return fmt.Sprintf("%d ends of links are ACTIVE, want %d: %v", n, ends, err)
		}
		return ""
	})
}

// set changes a port by ibportstate. The subnet manager is stopped meanwhile: ports of this simulator that it
// configures come up with their initial values. The returned function resumes it.
func (s *subnet) set(t *testing.T, name, port, what, value string) (goOn func()) {
	t.Helper()
	must(t, s.sm.Process.Signal(syscall.SIGSTOP))
	_, err := s.tool("ibportstate", s.lid(t, name), port, what, value)
	must(t, err)
	return func() { must(t, s.sm.Process.Signal(syscall.SIGCONT)) }
}

// TestFaults injects one fault after the other. The first sweep that starts afterwards shows it on its link and no
// other, and the first one after the repair shows no fault.
func TestFaults(t *testing.T) {
	s := simulate(t, cluster)
	s.manage(t)
	e := s.export(t, "--fabric.interval=1s")
	e.next(t).healthy(t, cluster)

	t.Run("a host's link is gone", func(t *testing.T) {
		const there = "leaf000/3 node0002 mlx5_0/1"
		s.do(t, "Unlink %q[3]", leafName(0))
		s.active(t, 2*cluster.links()-2)
		m := e.next(t)
		compareLists(t, "gone", m.ends("rdma_fabric_link_missing", positive), there)
		compareLists(t, "down", m.ends("rdma_fabric_port_state_id", func(v float64) bool { return v == 1 }), there)
		compareLists(t, "unreachable", m.unreachable(), "node0002 mlx5_0")
		s.do(t, "ReLink %q[3]", leafName(0))
		s.active(t, 2*cluster.links())
		e.next(t).healthy(t, cluster)
	})
	t.Run("a link between switches is gone", func(t *testing.T) {
		ends := []string{"leaf002/18 spine001/3", "spine001/3 leaf002/18"}
		s.do(t, "Unlink %q[3]", spineName(1))
		s.active(t, 2*cluster.links()-2)
		m := e.next(t)
		compareLists(t, "gone", m.ends("rdma_fabric_link_missing", positive), ends...)
		compareLists(t, "unreachable", m.unreachable())
		s.do(t, "ReLink %q[3]", spineName(1))
		s.active(t, 2*cluster.links())
		e.next(t).healthy(t, cluster)
	})
	t.Run("a switch is gone", func(t *testing.T) {
		var ends []string
		for l := range cluster.leaves {
			ends = append(ends, fmt.Sprintf("leaf%03d/19 spine002/%d", l, l+1), fmt.Sprintf("spine002/%d leaf%03d/19", l+1, l))
		}
		s.do(t, "Unlink %q", spineName(2))
		s.active(t, 2*(cluster.links()-cluster.leaves))
		m := e.next(t)
		compareLists(t, "gone", m.ends("rdma_fabric_link_missing", positive), ends...)
		compareLists(t, "unreachable", m.unreachable(), "spine002")
		s.do(t, "ReLink %q", spineName(2))
		s.active(t, 2*cluster.links())
		e.next(t).healthy(t, cluster)
	})
	t.Run("a link is narrow", func(t *testing.T) {
		ends := []string{"leaf004/17 spine000/5", "spine000/5 leaf004/17"}
		goOn := s.set(t, "leaf004", "17", "width", "1")
		m := e.next(t)
		compareLists(t, "narrow", m.ends("rdma_fabric_port_width_lanes", func(v float64) bool { return v == 1 }), ends...)
		compareLists(t, "slow",
			m.ends("rdma_fabric_port_rate_bytes_per_second", func(v float64) bool { return v == full/4 }), ends...)
		compareLists(t, "ought to be narrow",
			m.ends("rdma_fabric_link_enabled_width_lanes", func(v float64) bool { return v != 4 }), ends...)
		compareLists(t, "set apart", m.ends("rdma_fabric_link_settings_differ", positive), ends...)
		s.set(t, "leaf004", "17", "width", "3")
		goOn()
		e.next(t).healthy(t, cluster)
	})
	t.Run("a link is slow", func(t *testing.T) {
		const there = "leaf005/9 node0088 mlx5_0/1"
		goOn := s.set(t, "leaf005", "9", "espeed", "1") // FDR
		m := e.next(t)
		compareLists(
			t,
			"slow",
			m.ends("rdma_fabric_port_rate_bytes_per_second", func(v float64) bool { return v == 56e9/8 }),
			there,
		)
		compareLists(t, "set apart", m.ends("rdma_fabric_link_settings_differ", positive), there)
		s.set(t, "leaf005", "9", "espeed", "3")
		goOn()
		e.next(t).healthy(t, cluster)
	})
	t.Run("errors", func(t *testing.T) {
		for _, c := range []struct{ field, metric string }{
			{"SymbolErrorCounter", "symbol_errors"},
			{"LinkErrorRecoveryCounter", "link_error_recoveries"},
			{"LinkDownedCounter", "link_downed"},
			{"PortRcvErrors", "receive_errors"},
			{"PortRcvRemotePhysicalErrors", "receive_remote_physical_errors"},
			{"VL15Dropped", "vl15_dropped"},
			{"PortXmitConstraintErrors", "transmit_constraint_errors"},
			{"LocalLinkIntegrityErrors", "local_link_integrity_errors"},
			{"ExcessiveBufferOverrunErrors", "excessive_buffer_overrun_errors"},
			{"PortXmitWait", "transmit_wait_ticks"},
		} {
			s.do(t, "PerformanceSet %q[7] PortCounters.%s=11", leafName(6), c.field)
		}
		m := e.next(t)
		for _, name := range strings.Fields(`symbol_errors link_error_recoveries link_downed receive_errors receive_remote_physical_errors vl15_dropped
			transmit_constraint_errors local_link_integrity_errors excessive_buffer_overrun_errors transmit_wait_ticks`) {
			compareLists(t, name, m.ends("rdma_fabric_port_"+name+"_total", func(v float64) bool { return v == 11 }),
				"leaf006/7 node0102 mlx5_0/1")
			compareLists(t, name+" elsewhere",
				m.ends("rdma_fabric_port_"+name+"_total", func(v float64) bool { return v != 11 && v != 0 }))
		}
	})
	t.Run("no subnet manager", func(t *testing.T) {
		must(t, s.sm.Process.Signal(syscall.SIGKILL))
		m := e.next(t)
		if n, ok := m[`rdma_fabric_subnet_managers{state="master"}`]; !ok || n != 0 {
			t.Errorf("%v master subnet managers, %v", n, ok)
		}
		compareLists(t, "gone", m.ends("rdma_fabric_link_missing", positive))
		s.manage(t)
		e.next(t).healthy(t, cluster)
	})
}

// accept accepts a missing link in the running exporter.
func (s *subnet) accept(link string) (string, error) {
	cmd := exec.Command("/proc/self/exe", "accept", "--state.dir="+s.dir+"/state", link)
	cmd.Env = append(os.Environ(), program+"=1", underFilter)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestMemory: a link that disappeared while the exporter was down is reported at once, with its names, and a killed
// exporter keeps its memory. What is accepted is removed at once.
func TestMemory(t *testing.T) {
	s := simulate(t, tree{2, 2, 4})
	s.manage(t)
	e := s.export(t, "--fabric.interval=1s")
	e.next(t).healthy(t, s.tree)
	must(t, exec.Command("kill", "-KILL", fmt.Sprint(e.pid)).Run())
	kept, err := os.ReadFile(s.dir + "/state/fabric/state.v1.json")
	must(t, err)
	if want := fmt.Sprintf("\"from\":{\"device\":%q,\"port\":1,", hostName(s.leaves*s.hosts-1)); !strings.Contains(
		string(kept), want,
	) {
		t.Errorf("the port of the sweeps is not saved: %.1000s", kept)
	}
	s.do(t, "Unlink %q[2]", leafName(1))
	s.active(t, 2*s.links()-2)
	e = s.export(t, "--fabric.interval=1s")
	m := e.next(t)
	compareLists(t, "gone", m.ends("rdma_fabric_link_missing", positive), "leaf001/2 node0005 mlx5_0/1")
	compareLists(t, "unreachable", m.unreachable(), "node0005 mlx5_0")

	if out, err := s.accept("leaf001/3"); err == nil ||
		out != "rdma_exporter accept: leaf001/3: the link of this port is not missing\n" {
		t.Errorf("accepts a link that is there: %v, %s", err, out)
	}
	if out, err := s.accept("leaf001/2"); err != nil || !strings.Contains(out, "leaf001/2 to node0005 mlx5_0/1\n") {
		t.Errorf("%v, %s", err, out)
	}
	compareLists(t, "gone at once", e.scrape(t).ends("rdma_fabric_link_missing", positive))
	m = e.next(t)
	compareLists(t, "gone", m.ends("rdma_fabric_link_missing", positive))
	compareLists(t, "unreachable", m.unreachable())
}

// TestWiring: swapped cables are new wiring, until they are put back. A dark host stays missing while its port has
// another link, until it is accepted.
func TestWiring(t *testing.T) {
	s := simulate(t, tree{2, 2, 4})
	s.manage(t)
	e := s.export(t, "--fabric.interval=1s")
	e.next(t).healthy(t, s.tree)
	// plug connects the cables of two ports of the second leaf to two hosts.
	plug := func(one, other int) {
		for _, port := range []int{1, 2} {
			s.do(t, "Unlink %q[%d]", leafName(1), port)
		}
		s.do(t, "Link %q[1] %q[1]", leafName(1), hostName(one))
		s.do(t, "Link %q[2] %q[1]", leafName(1), hostName(other))
		s.active(t, 2*s.links())
	}
	plug(5, 4)
	m := e.next(t)
	compareLists(t, "gone", m.ends("rdma_fabric_link_missing", positive))
	compareLists(t, "rewired", m.ends("rdma_fabric_link_rewired", positive),
		"leaf001/1 node0005 mlx5_0/1, node0004 mlx5_0/1 to leaf001/2",
		"leaf001/2 node0004 mlx5_0/1, node0005 mlx5_0/1 to leaf001/1")
	plug(4, 5)
	m = e.next(t)
	m.healthy(t, s.tree)
	compareLists(t, "put back", m.ends("rdma_fabric_link_rewired", positive))

	s.do(t, "Unlink %q[1]", leafName(1))
	s.do(t, "Unlink %q[2]", leafName(1))
	s.do(t, "Link %q[1] %q[1]", leafName(1), hostName(5))
	s.active(t, 2*s.links()-2)
	m = e.next(t)
	compareLists(t, "gone", m.ends("rdma_fabric_link_missing", positive),
		"leaf001/1 node0004 mlx5_0/1", "leaf001/2 node0005 mlx5_0/1")
	compareLists(t, "there", m.ends("rdma_fabric_link_moved", positive),
		"leaf001/1 node0005 mlx5_0/1, leaf001/1 to node0005 mlx5_0/1", ", node0005 mlx5_0/1 to leaf001/1")
	if out, err := s.accept("leaf001/1"); err != nil || !strings.Contains(out, "leaf001/1 to node0004 mlx5_0/1\n") {
		t.Errorf("%v, %s", err, out)
	}
	compareLists(t, "accepted", e.next(t).ends("rdma_fabric_link_missing", positive), "leaf001/2 node0005 mlx5_0/1")
}

// TestNoPort: a failed sweep is reported, and so is a recovered one.
func TestNoPort(t *testing.T) {
	s := simulate(t, tree{1, 2, 2})
	s.manage(t)
	e := s.export(t, "--fabric.interval=1s", "--fabric.timeout=50ms")
	e.next(t).healthy(t, s.tree)
	s.do(t, "Unlink %q", hostName(3)) // the one that the exporter sweeps from
	eventually(t, "the own link", func() string {
		if m := e.scrape(t); m["rdma_fabric_sweep_failed"] != 1 {
			return fmt.Sprint(m["rdma_fabric_links"], " links")
		}
		return ""
	})
	if r, err := http.Get("http://" + e.address + "/-/healthy"); err != nil || r.StatusCode != http.StatusOK {
		t.Error(r, err)
	}
	s.do(t, "ReLink %q", hostName(3))
	s.active(t, 2*s.links())
	e.next(t).healthy(t, s.tree)
}

// TestFDR10: links that iblinkinfo shows as FDR10 are reported as FDR10.
func TestFDR10(t *testing.T) {
	f := tree{spines: 1, leaves: 2, hosts: 2}
	file := "devid=0xc738\n" + strings.ReplaceAll(f.netFile(), linkCounters, "\tw=3 s=7 e=0 # \"far\" lid 0 4xFDR10\n")
	s := simulateFile(t, f, file)
	s.manage(t)
	out, err := s.tool("iblinkinfo", "-l")
	must(t, err)
	if n := strings.Count(out, "FDR10"); n != 2*f.links() {
		t.Fatalf("iblinkinfo knows %d ends at FDR10, want %d:\n%s", n, 2*f.links(), out)
	}
	e := s.export(t, "--fabric.interval=1s")
	m := e.next(t)
	if n := len(m.ends("rdma_fabric_port_fdr10", positive)); n != f.leaves*(f.hosts+2*f.spines) {
		t.Errorf("%d ends at FDR10", n)
	}
	compareLists(t, "slow", m.ends("rdma_fabric_port_rate_bytes_per_second", func(v float64) bool { return v != 40e9/8 }))
	if text := get(t, "http://"+e.address+"/"); !strings.Contains(text, "40 Gb/s 4X FDR10") {
		t.Errorf("the page does not say so: %s", text)
	}
}
