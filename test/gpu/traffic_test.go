//go:build gpu

package gpu

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// copies copies 200 GiB each from the host to GPU 0, back, and to GPU 1, if there is one.
const copies = `
import torch, time
n = 1 << 30
host = torch.empty(n, dtype=torch.uint8).pin_memory()
gpu = torch.empty(n, dtype=torch.uint8, device="cuda:0")
two = torch.cuda.device_count() > 1
other = torch.empty(n, dtype=torch.uint8, device="cuda:1") if two else None
torch.cuda.synchronize()
print("ready", int(two), int(two and torch.cuda.can_device_access_peer(0, 1)), flush=True)
input()
for name, to, source in (("in", gpu, host), ("out", host, gpu)) + ((("peer", other, gpu),) if two else ()):
    start = time.time()
    for _ in range(200):
        to.copy_(source, non_blocking=True)
    torch.cuda.synchronize()
    print(name, 200 * n, time.time() - start, flush=True)
    input()
`

// busy fills 8 GiB of each GPU and multiplies matrices until its input ends.
const busy = `
import sys, threading, torch
def work(i):
    keep = torch.empty(8 << 30, dtype=torch.uint8, device=i)
    a = torch.randn(8192, 8192, dtype=torch.bfloat16, device=i)
    while not done.is_set():
        for _ in range(20): a @ a
        torch.cuda.synchronize(i)
done = threading.Event()
threads = [threading.Thread(target=work, args=(i,)) for i in range(torch.cuda.device_count())]
[t.start() for t in threads]
print("ready", flush=True)
sys.stdin.read()
done.set()
[t.join() for t in threads]
`

// compute keeps all GPUs busy until stop is called.
func compute(t *testing.T) (stop func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), installed(t, "python3"), "-c", busy)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := said.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(8 * time.Second)
	return func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// TestTrafficIsCounted: the counters include data copied over PCIe and NVLink.
func TestTrafficIsCounted(t *testing.T) {
	e := serve(t, "--collector.gpu.mode=full", "--collector.gpu.interval=1s")
	e.wait(t, "rdma_gpu_info", func(m metrics) bool { return len(m.family("rdma_gpu_info")) > 0 })
	cmd := exec.CommandContext(t.Context(), installed(t, "python3"), "-c", copies)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var report bytes.Buffer
	line := func() (words []string) {
		b := make([]byte, 256)
		n, err := said.Read(b)
		if err != nil {
			t.Fatalf("the program that copies ended: %v", err)
		}
		return strings.Fields(string(b[:n]))
	}
	first := line()
	moved := map[string]float64{}
	before := totals(t, e)
	phases := []string{"in", "out"}
	if first[1] == "1" {
		phases = append(phases, "peer")
	}
	for range phases {
		began := profile(t)
		fmt.Fprintln(in)
		words := line()
		fmt.Fprint(&report, began())
		time.Sleep(2500 * time.Millisecond) // two readings
		after := totals(t, e)
		fmt.Fprintf(&report, "%s: %s bytes in %s s (devices %s, peer access %s)\n",
			words[0], words[1], words[2], first[1], first[2])
		for name, v := range after {
			fmt.Fprintf(&report, "  %s rose by %.0f\n", name, v-before[name])
			moved[words[0]+" "+name] = v - before[name]
		}
		before = after
	}
	fmt.Fprintln(in)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	out(t, "traffic.txt", report.Bytes())
	fmt.Println(report.String())
	const want = 200 << 30
	for what, id := range map[string]string{
		"in": "rdma_gpu_pcie_receive_bytes_total 0", "out": "rdma_gpu_pcie_transmit_bytes_total 0",
	} {
		if v, ok := moved[what+" "+id]; !ok || v < 0.95*want || v > 1.2*want { // including packet headers
			t.Errorf("%s: %s rose by %.0f for %d", what, id, v, want)
		}
	}
	if v := moved["peer rdma_gpu_nvlink_transmit_bytes_total 0"]; first[2] == "1" && (v < want || v > 1.01*want) {
		t.Errorf("NVLinks of GPU 0 have sent %.0f for %d", v, want)
	}
}

// totals returns the byte counters by metric and GPU.
func totals(t *testing.T, e *exporter) map[string]float64 {
	t.Helper()
	m, sums := e.scrape(t), map[string]float64{}
	for _, name := range []string{"pcie_transmit", "pcie_receive", "nvlink_transmit", "nvlink_receive"} {
		metric := "rdma_gpu_" + name + "_bytes_total"
		for _, s := range m.family(metric) {
			for gpu := range 8 {
				if strings.Contains(s, is("gpu", fmt.Sprint(gpu))) {
					sums[fmt.Sprintf("%s %d", metric, gpu)] = m[s]
				}
			}
		}
	}
	return sums
}
