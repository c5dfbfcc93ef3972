//go:build bench

// Package bench compares what a scrape costs with node_exporter's infiniband collector, on the same files, in the same run.
package bench

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	devices = 9
	blocks  = 15 // measured, alternating
	scrapes = 60 // in a block
)

var pma = strings.Fields(`symbol_error link_error_recovery link_downed port_rcv_errors port_rcv_remote_physical_errors port_rcv_switch_relay_errors
 port_xmit_discards port_xmit_constraint_errors port_rcv_constraint_errors local_link_integrity_errors excessive_buffer_overrun_errors VL15_dropped
 port_xmit_data port_rcv_data port_xmit_packets port_rcv_packets port_xmit_wait unicast_xmit_packets unicast_rcv_packets multicast_xmit_packets
 multicast_rcv_packets`)

var hw = strings.Fields(`duplicate_request implied_nak_seq_err lifespan local_ack_timeout_err np_cnp_sent np_ecn_marked_roce_packets out_of_buffer
 out_of_sequence packet_seq_err req_cqe_error req_cqe_flush_error req_remote_access_errors req_remote_invalid_request resp_cqe_error
 resp_cqe_flush_error resp_local_length_error resp_remote_access_errors rnr_nak_retry_err roce_adp_retrans roce_adp_retrans_to roce_slow_restart
 roce_slow_restart_cnps roce_slow_restart_trans rp_cnp_handled rp_cnp_ignored rx_write_requests`)

// tree writes a sysfs of 9 devices with 21 PMA counters and 26 hw_counters each.
func tree(t *testing.T) string {
	dir := t.TempDir()
	for d := range devices {
		base := filepath.Join(dir, "class/infiniband", fmt.Sprintf("mlx5_%d", d))
		write := func(name, content string) {
			p := filepath.Join(base, name)
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(content+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for name, content := range map[string]string{
			"board_id": "MT_0000000838", "fw_ver": "28.43.2566", "hca_type": "MT4129", "node_type": "1: CA", "node_guid": fmt.Sprintf("b83f:d203:0050:a1c%d", d),
			"ports/1/state": "4: ACTIVE", "ports/1/phys_state": "5: LinkUp", "ports/1/rate": "400 Gb/sec (4X NDR)", "ports/1/link_layer": "InfiniBand",
			"ports/1/lid": "0x11", "ports/1/sm_lid": "0x1", "ports/1/lid_mask_count": "0", "ports/1/sm_sl": "0", "ports/1/cap_mask": "0xa751e848",
		} {
			write(name, content)
		}
		for i, name := range pma {
			write("ports/1/counters/"+name, strconv.Itoa(1000*i+d))
		}
		for i, name := range hw {
			write("ports/1/hw_counters/"+name, strconv.Itoa(1000*i+d))
		}
	}
	return dir
}

// program is an exporter that runs, and one connection to it.
type program struct {
	name string
	cmd  *exec.Cmd
	url  string
}

func start(t *testing.T, name, address string, command ...string) *program {
	cmd := exec.Command(command[0], command[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: make bench installs it", err)
	}
	p := &program{name: name, cmd: cmd, url: "http://" + address + "/metrics"}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	for range 200 {
		if c, err := net.DialTimeout("tcp", address, 50*time.Millisecond); err == nil {
			c.Close()
			return p
		}
		<-time.After(25 * time.Millisecond)
	}
	t.Fatalf("%s does not listen on %s", name, address)
	return nil
}

// client asks for plain text: compression costs both programs the same again, and hides what collecting costs.
var client = &http.Client{Transport: &http.Transport{DisableCompression: true}}

func (p *program) scrape(t *testing.T, n int) (bytes int) {
	for range n {
		resp, err := client.Get(p.url)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d, %v", p.url, resp.StatusCode, err)
		}
		bytes = len(b)
	}
	return bytes
}

// cpu is the time that all threads of a process have run, to the nanosecond (proc/PID/task/TID/schedstat).
func cpu(t *testing.T, pid int) time.Duration {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		t.Fatalf("no schedstat of process %d: %v", pid, err)
	}
	var sum time.Duration
	for _, f := range tasks {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(b))[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

func resident(pid int) string {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "?"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if v, ok := strings.CutPrefix(s.Text(), "VmRSS:"); ok {
			return strings.TrimSpace(v)
		}
	}
	return "?"
}

func address(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func ours(t *testing.T, dir, procs string) *program {
	a := address(t)
	return start(t, "rdma_exporter, GOMAXPROCS "+procs, a, "../../bin/rdma_exporter", "--log.level=error", "--path.sysfs="+dir, "--collector.disable-defaults",
		"--collector.infiniband", "--collector.hwcounters", "--no-web.exporter-metrics", "--collect.min-interval=0s", "--runtime.gomaxprocs="+procs, "--web.listen-address="+a)
}

func theirs(t *testing.T, dir, procs string) *program {
	a := address(t)
	return start(t, "node_exporter, GOMAXPROCS "+procs, a, "../../bin/node_exporter", "--log.level=error", "--path.sysfs="+dir, "--collector.disable-defaults",
		"--collector.infiniband", "--web.disable-exporter-metrics", "--runtime.gomaxprocs="+procs, "--web.listen-address="+a)
}

func median(d []float64) float64 {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

// TestCPU holds the budget: a fifth of node_exporter's CPU at the same number of processors. Blocks of scrapes alternate, so
// that a machine that changes its speed changes it for all.
func TestCPU(t *testing.T) {
	dir := tree(t)
	for _, procs := range []string{"1", "2"} {
		a, b := ours(t, dir, procs), theirs(t, dir, procs)
		var ratio, mine, other []float64
		var size [2]int
		a.scrape(t, 100)
		b.scrape(t, 100)
		for range blocks {
			var cost [2]float64
			for i, p := range []*program{a, b} {
				before := cpu(t, p.cmd.Process.Pid)
				size[i] = p.scrape(t, scrapes)
				cost[i] = float64(cpu(t, p.cmd.Process.Pid)-before) / scrapes / 1e6
			}
			mine, other, ratio = append(mine, cost[0]), append(other, cost[1]), append(ratio, cost[1]/cost[0])
		}
		t.Logf("%s: %.3f ms CPU a scrape, %d bytes, %s resident", a.name, median(mine), size[0], resident(a.cmd.Process.Pid))
		t.Logf("%s: %.3f ms CPU a scrape, %d bytes, %s resident", b.name, median(other), size[1], resident(b.cmd.Process.Pid))
		t.Logf("ratio %.2f", median(ratio))
		if median(ratio) < 5 {
			t.Errorf("GOMAXPROCS %s: node_exporter costs %.2f times as much, want 5 or more", procs, median(ratio))
		}
	}
}

// TestSyscalls holds the budget: 1.5 system calls for each file read, all those of the process counted, network included.
func TestSyscalls(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Fatalf("%v: apt-get install strace", err)
	}
	dir := tree(t)
	counts := func(n int) map[string]int {
		a := address(t)
		out := filepath.Join(t.TempDir(), "strace")
		cmd := exec.Command(strace, "-f", "-c", "-o", out, "../../bin/rdma_exporter", "--log.level=error", "--path.sysfs="+dir, "--collector.disable-defaults",
			"--collector.infiniband", "--collector.hwcounters", "--no-web.exporter-metrics", "--collect.min-interval=0s", "--web.listen-address="+a)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p := &program{url: "http://" + a + "/metrics"}
		for range 400 {
			if c, err := net.DialTimeout("tcp", a, 50*time.Millisecond); err == nil {
				c.Close()
				break
			}
			<-time.After(25 * time.Millisecond)
		}
		p.scrape(t, n)
		_ = exec.Command("pkill", "-INT", "-P", strconv.Itoa(cmd.Process.Pid)).Run()
		_ = cmd.Wait()
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]int{}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) >= 5 && f[len(f)-1] != "total" {
				if n, err := strconv.Atoi(f[3]); err == nil {
					m[f[len(f)-1]] = n
				}
			}
		}
		return m
	}
	few, many := counts(10), counts(110)
	var names []string
	total := 0.0
	for name, n := range many {
		names = append(names, name)
		total += float64(n-few[name]) / 100
	}
	slices.SortFunc(names, func(a, b string) int { return (many[b] - few[b]) - (many[a] - few[a]) })
	for _, name := range names[:min(len(names), 8)] {
		t.Logf("%-12s %7.2f a scrape", name, float64(many[name]-few[name])/100)
	}
	files := float64(many["pread64"]-few["pread64"]) / 100
	t.Logf("%.0f files, %.0f system calls, %.2f a file", files, total, total/files)
	if files < devices*(21+25) || total/files > 1.5 {
		t.Errorf("%.0f files, %.2f system calls a file, want at most 1.5", files, total/files)
	}
}
