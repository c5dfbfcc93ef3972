//go:build e2e

package fabric

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/replay"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/umad"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/test/fabric/ibsim"
)

// fabricNode is a host of the simulated fabric: files of sysfs, and the simulator instead of umad.
type fabricNode struct {
	*host.Host
	collectors []*collector.Collector
	asked      atomic.Int64 // datagrams
}

// counted counts the datagrams of a transport.
type counted struct {
	mad.Transport
	n *atomic.Int64
}

func (c counted) Send(d *mad.Datagram, timeout time.Duration) error {
	c.n.Add(1)
	return c.Transport.Send(d, timeout)
}

// node has the files of an HCA whose only port is that of a host in the net file. symbol_error is a 16-bit file.
func (s *subnet) node(t *testing.T, i int, symbolErrors int) *fabricNode {
	t.Helper()
	const class = "-- sys/class/infiniband/mlx5_0"
	var b strings.Builder
	b.WriteString("-- capture.json --\n{\"version\":1,\"rounds\":[\"0s\"]}\n" + class +
		"/device -> ../../../devices/pci0000:00/0000:18:00.0 --\n")
	for name, text := range map[string]string{
		"node_type": "1: CA", "node_guid": "b83f:d203:0050:a1c0", "ports/1/state": "4: ACTIVE",
		"ports/1/phys_state": "5: LinkUp", "ports/1/link_layer": "InfiniBand",
		"ports/1/lid": fmt.Sprintf("%#x", s.lidOf(t, i)), "ports/1/sm_lid": "0x1", "ports/1/lid_mask_count": "0",
		"ports/1/cap_mask": "0x2651e848",
		"ports/1/rate":     "100 Gb/sec (4X EDR)", "ports/1/counters/symbol_error": fmt.Sprint(symbolErrors),
	} {
		fmt.Fprintf(&b, "%s/%s --\n%s\n", class, name, text)
	}
	b.WriteString("-- sys/devices/pci0000:00/0000:18:00.0/vendor --\n0x15b3\n-- sys/devices/pci0000:00/0000:18:00.0/device --\n0x1021\n")
	a, err := capture.Parse([]byte(b.String()))
	must(t, err)
	p, err := replay.Play(a, time.Now())
	must(t, err)
	t.Cleanup(func() { must(t, p.Close()) })
	n := &fabricNode{Host: p.Host()}
	n.Now, n.Budget = time.Now, nil
	n.Subnet = umad.NewSubnet(func(string, int, ...uint8) (mad.Transport, error) {
		t, err := ibsim.Dial(s.socket, hostName(i))
		return counted{t, &n.asked}, err
	})
	n.collectors = slices.DeleteFunc(collector.All(collector.Options{
		AskSubnet: true, MADCounters: collector.CountersByMAD,
	}), func(c *collector.Collector) bool {
		return c.Name != "infiniband" && c.Name != "neighbour"
	})
	return n
}

// read reads a round, and returns samples and failures.
func (n *fabricNode) read(t *testing.T) (samples, []string) {
	t.Helper()
	out, failed := samples{}, []string(nil)
	for _, c := range n.collectors {
		picture := &snapshot.Node{}
		done := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		c.Read(ctx, n.Host, picture, func(err error) { done <- err })
		must(t, <-done)
		cancel()
		sink := exposition.NewSink(c.Descs)
		sink.Begin()
		c.Emit(picture, sink)
		maps.Copy(out, parse(t, string(exposition.AppendText(nil, sink.End())), "rdma_"))
		for _, i := range picture.Issues {
			failed = append(failed, fmt.Sprint(i.Err))
		}
	}
	return out, failed
}

// lidOf returns the LID of a host.
func (s *subnet) lidOf(t *testing.T, i int) uint16 {
	t.Helper()
	p, err := ibsim.Dial(s.socket, hostName(i))
	must(t, err)
	c := mad.NewClient(p, mad.Options{})
	info, err := c.PortInfo(t.Context(), mad.Local(), 1)
	must(t, err)
	must(t, c.Close())
	return info.LID
}

// TestOwnCounters: the counters of the local port take two datagrams per round, and four more in the first: what its
// agent and its FEC support, and the settings of the port.
// A simulated port has 64-bit counters for data only.
func TestOwnCounters(t *testing.T) {
	s := simulate(t, tree{spines: 1, leaves: 2, hosts: 2})
	s.manage(t)
	const port = `{device="mlx5_0",port="1"}`
	s.do(t, "PerformanceSet %q[1] PortCounters.SymbolErrorCounter=7", hostName(2))
	s.do(t, "PerformanceSet %q[1] PortCounters.LinkDownedCounter=3", hostName(2))
	s.do(t, "PerformanceSet %q[1] PortCounters.PortXmitWait=11", hostName(2))
	n := s.node(t, 2, 7)
	n.collectors = n.collectors[:1]
	other, there := s.node(t, 0, 0), &host.Agent{LID: s.lidOf(t, 2), Port: 1}
	var before samples
	for i, want := range []int64{6, 2, 2} {
		_, err := other.Subnet.Counters(t.Context(), "mlx5_0", 1, there) // causes traffic of the port
		must(t, err)
		n.asked.Store(0)
		m, failed := n.read(t)
		if got := n.asked.Load(); got != want || failed != nil {
			t.Errorf("round %d: %d datagrams, want %d; %q", i, got, want, failed)
		}
		for name, v := range map[string]float64{
			"symbol_errors": 7, "link_downed": 3, "transmit_wait_ticks": 11, "link_error_recoveries": 0,
		} {
			if got, ok := m["rdma_port_"+name+"_total"+port]; !ok || got != v {
				t.Errorf("round %d: %s is %v, %v; want %v", i, name, got, ok, v)
			}
		}
		for _, name := range []string{"receive_bytes", "transmit_packets"} {
			if name = "rdma_port_" + name + "_total" + port; m[name] <= before[name] {
				t.Errorf("round %d: %s is %v after %v", i, name, m[name], before[name])
			}
		}
		before = m
	}
	start := time.Now()
	const rounds = 200
	for range rounds {
		n.read(t)
	}
	t.Logf("%s a round", (time.Since(start) / rounds).Round(time.Microsecond))

	n = s.node(t, 2, 9) // the file is higher than the agent's counter: it counts something else
	n.collectors = n.collectors[:1]
	if m, failed := n.read(t); m["rdma_port_symbol_errors_total"+port] != 9 || len(failed) != 1 ||
		!strings.Contains(failed[0], "counters of the agent differ from those of the driver: MAD 7, file 9 before and 9 after it") {
		t.Errorf("%v %q", m["rdma_port_symbol_errors_total"+port], failed)
	}
}

// TestFarCounters: errors that are set on a switch port appear on the host behind it and on no other; the subnet
// manager appears on all.
func TestFarCounters(t *testing.T) {
	s := simulate(t, tree{spines: 1, leaves: 2, hosts: 2})
	s.manage(t)
	s.do(t, "PerformanceSet %q[2] PortCounters.SymbolErrorCounter=123", leafName(1))
	s.do(t, "PerformanceSet %q[2] PortCounters.LinkErrorRecoveryCounter=4", leafName(1))
	s.do(t, "PerformanceSet %q[2] PortCounters.PortXmitWait=99", leafName(1))
	var managers []float64
	for i := range s.leaves * s.hosts {
		n := s.node(t, i, 0)
		m, failed := n.read(t)
		if failed != nil {
			t.Errorf("host %d: %q", i, failed)
		}
		symbols, recoveries, waits := 0., 0., 0.
		if i == 3 {
			symbols, recoveries, waits = 123, 4, 99
		}
		for sample, v := range map[string]float64{
			`rdma_port_neighbour_errors_total{device="mlx5_0",port="1",error="symbol_errors"}`:         symbols,
			`rdma_port_neighbour_errors_total{device="mlx5_0",port="1",error="link_error_recoveries"}`: recoveries,
			`rdma_port_neighbour_errors_total{device="mlx5_0",port="1",error="link_downed"}`:           0,
			`rdma_port_neighbour_transmit_wait_ticks_total{device="mlx5_0",port="1"}`:                  waits,
			`rdma_port_subnet_manager_info{device="mlx5_0",port="1",port_guid="0000:0000:0010:0001"}`:  1,
			`rdma_port_subnet_manager_state_id{device="mlx5_0",port="1"}`:                              float64(mad.SMMaster),
		} {
			if got, ok := m.find(sample); !ok || got != v {
				t.Errorf("host %d: %s is %v, %v; want %v", i, sample, got, ok, v)
			}
		}
		activity, _ := m.find(`rdma_port_subnet_manager_activity_total{device="mlx5_0",port="1"}`)
		managers = append(managers, activity)
	}
	if managers[0] == 0 || !slices.IsSorted(managers) {
		t.Errorf("activity %v", managers)
	}
	n := s.node(t, 3, 0)
	must(t, s.sm.Process.Signal(syscall.SIGSTOP))
	awaitStopped(t, s.sm.Process.Pid)
	if m, failed := n.read(t); len(failed) != 1 || !strings.Contains(failed[0], "query SMInfo of lid 1: no answer") {
		t.Errorf("a subnet manager that hangs: %q", failed)
	} else if _, ok := m.find(`rdma_port_subnet_manager_state_id{device="mlx5_0",port="1"}`); ok {
		t.Error("a subnet manager that hangs has a state")
	}
	must(t, s.sm.Process.Signal(syscall.SIGCONT))
}

// find looks up a sample regardless of the order of labels.
func (m samples) find(sample string) (float64, bool) {
	name, want := sample[:strings.IndexByte(sample, '{')], labels(sample)
	for s, v := range m {
		if strings.HasPrefix(s, name+"{") && maps.Equal(labels(s), want) {
			return v, true
		}
	}
	return 0, false
}

// awaitStopped waits until all threads of a process have stopped: those running on a busy processor continue briefly.
func awaitStopped(t *testing.T, pid int) {
	t.Helper()
	stopped := func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		must(t, err)
		return !slices.ContainsFunc(threads, func(file string) bool {
			text, err := os.ReadFile(file)
			_, state, _ := strings.Cut(string(text), ") ")
			return err == nil && !strings.HasPrefix(state, "T")
		})
	}
	for deadline := time.Now().Add(10 * time.Second); !stopped(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the process does not stop")
		}
	}
}
