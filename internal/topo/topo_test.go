package topo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/terminal"
)

func u(v uint64) *uint64 { return &v }

func hop(address string, speed float64, width, maxWidth uint64) accel.PCIeHop {
	return accel.PCIeHop{Address: address, Speed: speed * 1e9, MaxSpeed: 32e9, Width: width, MaxWidth: maxWidth}
}

// nested returns a host with a switch below another: a NIC on the upper one, a GPU with a degraded link on the lower
// one.
func nested() *snapshot.Node {
	up := []accel.PCIeHop{hop("0000:15:01.0", 32, 16, 16), hop("0000:16:00.0", 32, 16, 16)}
	nic := append(up[:2:2], hop("0000:17:00.0", 32, 16, 16), hop("0000:18:00.0", 32, 16, 16))
	gpu := append(up[:2:2], hop("0000:17:01.0", 32, 16, 16), hop("0000:19:00.0", 32, 16, 16),
		hop("0000:1a:00.0", 2.5, 8, 16), hop("0000:1b:00.0", 2.5, 8, 16))
	pair := accel.GDRPair{
		Topology: "PXB", Distance: "PXB", Mechanism: "peermem", Eligible: true, Send: "staging", Receive: "direct",
		Reason: "pre_ampere_send", Words: "words", Remedy: "remedy",
	}
	return &snapshot.Node{
		PCIe: &accel.PCIe{Devices: []accel.PCIePath{{Device: "mlx5_0", Hops: nic}}},
		GDR: &accel.GDR{
			Driver: "535.183.06", Flavour: "proprietary", Peermem: "nvidia_peermem", NCCL: "2.22.3",
			NICs: []accel.GDRNIC{{
				Device: "mlx5_0", PCIAddress: "0000:18:00.0", Role: "compute", Root: "pci0000:15", CPUs: "0-31", Active: true,
				RedirectAt: []string{"0000:17:01.0"},
				Path:       []string{"0000:15:01.0", "0000:16:00.0", "0000:17:00.0", "0000:18:00.0"},
			}},
			GPUs: []accel.GDRGPU{
				{Index: "0", PCIAddress: "0000:1b:00.0", Model: "Tesla V100-SXM2-32GB", Root: "pci0000:15", Hops: gpu, Best: pair},
			},
			Pairs: []accel.GDRPair{pair},
		},
		InfiniBand: &snapshot.InfiniBand{Devices: []snapshot.Device{
			{Name: "mlx5_0", Ports: []snapshot.Port{{Number: 1, State: u(4), Rate: new(400e9), Netdev: []snapshot.Netdev{{Name: "e0", Wire: "w"}}}, {Number: 2, State: u(4), Rate: new(400e9)}}},
			{Name: "rxe0", Ports: []snapshot.Port{{Number: 1, State: u(4), Rate: new(1e9)}}},
		}},
	}
}

func TestDraw(t *testing.T) {
	const want = `gpu-1: 1 GPU, 1 RDMA device
GPU driver 535.183.06 proprietary, peer memory module nvidia_peermem, evaluated for NCCL 2.22.3

NUMA node 0, CPUs 0-31
  └─ 15:01.0 ─ 16:00.0  switch, x16 32 GT/s
     ├─ 17:00.0 ─ 18:00.0  mlx5_0, 800 Gb/s, compute, PCIe 504 Gb/s, x16 32 GT/s
     │    !! ACS redirection at 0000:17:01.0: data between GPU and NIC passes the root complex
     │    !! PCIe bandwidth 504 Gb/s, port rate 800 Gb/s, limited by 0000:15:01.0
     └─ 17:01.0 ─ 19:00.0 ─ 1a:00.0 ─ 1b:00.0  GPU 0 Tesla V100-SXM2-32GB, x8 2.5 GT/s
          !! link 0000:1a:00.0 - 0000:1b:00.0 is x8 2.5 GT/s, both ends support x16 32 GT/s

       mlx5_0
GPU 0  PXB receive
receive: GPUDirect RDMA for receiving, sent through host memory

GPU 0 mlx5_0
  words (pre_ampere_send), mechanism peermem
  Action: remedy
`
	var b strings.Builder
	m := New("gpu-1", nested())
	if err := m.Draw(&b, terminal.Style{}); err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
	for _, n := range m.Functions {
		if n.Redirect != (n.Address == "0000:17:01.0") {
			t.Errorf("%+v", n)
		}
	}
}

// TestWireOfTwoFunctions: functions that report the same physical port count as one link.
func TestWireOfTwoFunctions(t *testing.T) {
	n := nested()
	n.GDR.GPUs, n.GDR.Pairs = nil, nil
	n.GDR.NICs = append(n.GDR.NICs, n.GDR.NICs[0])
	n.GDR.NICs[1].Device, n.GDR.NICs[1].PCIAddress = "mlx5_1", "0000:28:00.0"
	n.PCIe.Devices = append(n.PCIe.Devices, n.PCIe.Devices[0])
	n.PCIe.Devices[1].Device = "mlx5_1"
	second := n.InfiniBand.Devices[0]
	second.Name = "mlx5_1"
	n.InfiniBand.Devices = append(n.InfiniBand.Devices, second)
	got := map[string][]string{}
	for _, nic := range New("gpu-1", n).NICs {
		got[nic.Device] = append(got[nic.Device], nic.Marks...)
	}
	acs := []string{"ACS redirection at 0000:17:01.0: data between GPU and NIC passes the root complex"}
	if want := map[string][]string{"mlx5_0": acs, "mlx5_1": acs}; !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRateOf(t *testing.T) {
	member := func(rate *float64, up bool) snapshot.Netdev {
		return snapshot.Netdev{Member: true, Rate: rate, Up: &up}
	}
	for name, c := range map[string]struct {
		port snapshot.Port
		want float64
	}{
		"of the port":                 {snapshot.Port{Rate: new(400e9), Netdev: []snapshot.Netdev{{Rate: new(1e9)}}}, 400e9},
		"of the members of a bond":    {snapshot.Port{Rate: new(100e9), Netdev: []snapshot.Netdev{member(new(100e9), true), member(new(100e9), true)}}, 200e9},
		"of those with link":          {snapshot.Port{Rate: new(100e9), Netdev: []snapshot.Netdev{member(new(100e9), true), member(new(100e9), false)}}, 100e9},
		"of the port, if theirs fail": {snapshot.Port{Rate: new(100e9), Netdev: []snapshot.Netdev{member(nil, true), member(nil, true)}}, 100e9},
		"unknown":                     {snapshot.Port{}, 0},
	} {
		if got := rateOf(&c.port); got != c.want {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
	}
}

// TestRateUnknown: the rate of an ACTIVE port that reports none is unknown, not 0.
func TestRateUnknown(t *testing.T) {
	n := nested()
	for i := range n.InfiniBand.Devices[0].Ports {
		n.InfiniBand.Devices[0].Ports[i].Rate = nil
	}
	var b strings.Builder
	err := New("gpu-1", n).Draw(&b, terminal.Style{})
	if err != nil || !strings.Contains(b.String(), "mlx5_0, ACTIVE, rate unknown, compute") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestNoDevice: GPUs are shown at their places, with the reason why nothing is evaluated.
func TestNoDevice(t *testing.T) {
	n := nested()
	n.InfiniBand, n.PCIe, n.GDR.NICs, n.GDR.Pairs = nil, nil, nil, nil
	n.GDR.GPUs[0].Best = accel.GDRPair{NIC: -1, Reason: "no_nic", Words: "no RDMA device on this host"}
	n.GDR.GPUs[0].NUMA = 1
	const want = `gpu-1: 1 GPU, 0 RDMA devices
GPU driver 535.183.06 proprietary, peer memory module nvidia_peermem, evaluated for NCCL 2.22.3

NUMA node 1
  └─ 15:01.0 ─ 16:00.0 ─ 17:01.0 ─ 19:00.0 ─ 1a:00.0 ─ 1b:00.0  GPU 0 Tesla V100-SXM2-32GB, x8 2.5 GT/s
       !! link 0000:1a:00.0 - 0000:1b:00.0 is x8 2.5 GT/s, both ends support x16 32 GT/s

GPU 0
  no RDMA device on this host (no_nic)
`
	var b strings.Builder
	if err := New("gpu-1", n).Draw(&b, terminal.Style{}); err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestNothingRead(t *testing.T) {
	var b strings.Builder
	const want = "this host: 0 GPUs, 0 RDMA devices\n"
	if err := New("", &snapshot.Node{}).Draw(&b, terminal.Style{}); err != nil || b.String() != want {
		t.Errorf("%v %q", err, b.String())
	}
}

// TestDrawWidth: at 80 columns and more each line fits, below its branch; the matrix is in blocks of NICs, and nothing
// is lost at any width.
func TestDrawWidth(t *testing.T) {
	n := nested()
	g := n.GDR
	for i := range 11 {
		nic := g.NICs[0]
		nic.Device = fmt.Sprintf("mlx5_交换_%d", i+1)
		g.NICs, g.Pairs = append(g.NICs, nic), append(g.Pairs, g.Pairs[0])
	}
	words := func(text string) map[string]bool {
		out := map[string]bool{}
		for _, w := range strings.Fields(text) {
			out[w] = true
		}
		return out
	}
	draw := func(width int) string {
		var b strings.Builder
		if err := New("gpu-1", n).Draw(&b, terminal.Style{Width: width}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	whole := draw(0)
	for width, heads := range map[int]int{0: 1, 1: 12, 20: 12, 80: 3, 200: 1} {
		got := draw(width)
		if !maps.Equal(words(got), words(whole)) {
			t.Errorf("%d: other words:\n%s", width, got)
		}
		if n := strings.Count(got, "\nGPU 0  "); n != heads {
			t.Errorf("%d: %d blocks of NICs, want %d\n%s", width, n, heads, got)
		}
		for line := range strings.Lines(got) {
			if w := terminal.Width(strings.TrimSuffix(line, "\n")); width >= 80 && w > width {
				t.Errorf("%d: %d columns: %s", width, w, line)
			}
		}
	}
	const branch = "     │    !! ACS redirection at 0000:17:01.0: data between GPU and NIC passes\n" +
		"     │       the root complex\n"
	if got := draw(80); !strings.Contains(got, branch) {
		t.Error(got)
	}
}
