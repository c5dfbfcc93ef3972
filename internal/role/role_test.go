package role

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/pci"
)

// belowPort returns a function below its own root port.
func belowPort(root, bus string) string {
	return fmt.Sprintf("sys/devices/pci%s:%s/%s:%s:00.0/%s:%s:00.0", root, bus, root, bus, root, bus[:1]+"f")
}

func gpuAt(path string, numa int, coupled bool) gdr.GPU {
	chain := pci.Functions(path)
	return gdr.GPU{Address: chain[len(chain)-1], Vendor: 0x10de, Place: pci.PlaceOf(path, numa), Coupled: coupled}
}

// nic has one port, at full rate if it is up.
func nic(name, path string, numa int, board string, rate float64, up bool) NIC {
	n := NIC{
		NIC: gdr.NIC{Device: name, Ports: []gdr.Port{{Number: 1, Active: up}}}, Kind: Kind{board, "Ethernet", 1}, Path: path,
		Function: "0", Rate: rate,
	}
	if path != "" {
		n.Place = pci.PlaceOf(path, numa)
	}
	return n
}

// machine has GPUs, with or without known paths.
func machine(virtual bool, gpus ...string) *Machine {
	m := &Machine{Machine: gdr.Machine{Virtual: virtual}, GPUPaths: gpus}
	for _, p := range gpus {
		m.GPUs = append(m.GPUs, gpuAt(p, 0, false))
	}
	return m
}

func words(roles [][]Verdict) string {
	var out []string
	for _, ports := range roles {
		for _, v := range ports {
			out = append(out, strings.TrimSuffix(string(v.Role)+"/"+string(v.Source), "/"))
		}
	}
	return strings.Join(out, " ")
}

const gigabit = 1e9

func TestOf(t *testing.T) {
	const gpuPath = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0"
	const onSwitch = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0"
	apart := func(i int) string { return belowPort(fmt.Sprintf("%04x", i+1), "20") }
	second := func(n NIC) NIC { n.Function = "1"; return n }
	routed := func(n NIC) NIC { n.DefaultRoute = true; return n }
	emulated := func(n NIC) NIC { n.Emulated = true; return n }
	flat := func(i int) string { return fmt.Sprintf("sys/devices/pci0000:00/0000:00:%02x.0", i) }
	file, err := nccl.ParseTopology(strings.NewReader(`<system version="1"><cpu numaid="0">
		<pci busid="0000:00:aa.0"><pci busid="0000:00:01.0"/><pci busid="0000:00:11.0"/></pci></cpu><cpu numaid="1"><pci busid="0000:00:12.0"/></cpu></system>`))
	if err != nil {
		t.Fatal(err)
	}
	withFile := machine(true, flat(1))
	withFile.Topology = file
	for _, c := range []struct {
		name string
		m    *Machine
		nics []NIC
		want string
	}{
		{"one switch", machine(false, gpuPath), []NIC{nic("a", onSwitch, 0, "X", 400*gigabit, true), nic("b", apart(0), 0, "X", 400*gigabit, true)}, "compute/gpudirect other/gpudirect"},
		{"a dead port is what it was", machine(false, gpuPath), []NIC{nic("a", onSwitch, 0, "X", 0, false), nic("b", apart(0), 0, "X", 400*gigabit, true)}, "compute/gpudirect other/gpudirect"},
		{"NODE, all alike", machine(false, apart(9)), []NIC{nic("a", apart(0), 0, "X", 0, false), nic("b", apart(1), 0, "X", 200*gigabit, true)}, "compute/gpudirect compute/gpudirect"},
		{"NODE, one slower board", machine(false, apart(9)), []NIC{nic("a", apart(0), 0, "X", 400*gigabit, true), nic("b", apart(1), 0, "Y", 100*gigabit, true)}, "compute/gpudirect other/gpudirect"},
		{"NODE, a board never ACTIVE", machine(false, apart(9)), []NIC{nic("a", apart(0), 0, "X", 400*gigabit, true), nic("b", apart(1), 0, "Y", 0, false)}, "compute/gpudirect other/gpudirect"},
		{
			"NODE, all of the larger board DOWN", machine(false, apart(9)),
			[]NIC{nic("a", apart(0), 0, "X", 0, false), nic("b", apart(1), 0, "X", 0, false), nic("c", apart(2), 0, "Y", 25*gigabit, true)},
			"compute/gpudirect compute/gpudirect other/gpudirect",
		},
		{
			"NODE, a smaller board of the same rate", machine(false, apart(9)),
			[]NIC{nic("a", apart(0), 0, "X", 400*gigabit, true), nic("b", apart(1), 0, "X", 0, false), nic("c", apart(2), 0, "Y", 400*gigabit, true)},
			"compute/gpudirect compute/gpudirect other/gpudirect",
		},
		{"NODE, the default route", machine(false, apart(9)), []NIC{routed(nic("a", apart(0), 0, "X", 400*gigabit, true)), nic("b", apart(1), 0, "X", 400*gigabit, true)}, "other/gpudirect compute/gpudirect"},
		{"SYS where another GPU has a nearer one", machine(false, gpuPath), []NIC{nic("a", onSwitch, 0, "X", 400*gigabit, true), nic("b", apart(0), 1, "X", 400*gigabit, true)}, "compute/gpudirect other/gpudirect"},
		{"SYS alone", machine(false, gpuPath), []NIC{nic("b", apart(0), 1, "X", 400*gigabit, true)}, "compute/gpudirect"},
		{"a flat virtual machine", machine(true, flat(1)), []NIC{nic("a", flat(2), 0, "X", 0, true)}, "unknown"},
		{
			"a flat virtual machine, by siblings", machine(true, flat(1)),
			[]NIC{emulated(nic("a", flat(2), 0, "X", 0, true)), emulated(nic("b", flat(3), 0, "X", 0, true)), emulated(nic("c", flat(4), 0, "X", 0, false)), emulated(nic("d", flat(5), 0, "Y", 0, true))},
			"compute/siblings compute/siblings compute/siblings unknown",
		},
		{"a topology file", withFile, []NIC{nic("a", flat(0x11), 0, "X", 0, false), nic("b", flat(0x12), 0, "Y", 0, true)}, "compute/topology_file other/topology_file"},
		{"two of four", machine(false), []NIC{nic("a", apart(0), 0, "X", gigabit, true), nic("b", apart(1), 0, "X", gigabit, true), nic("c", apart(2), 0, "X", 0, false), nic("d", apart(3), 0, "X", 0, false)}, "unknown unknown unknown unknown"},
		{"three of four", machine(false), []NIC{nic("a", apart(0), 0, "X", gigabit, true), nic("b", apart(1), 0, "X", gigabit, true), nic("c", apart(2), 0, "X", gigabit, true), nic("d", apart(3), 0, "X", 0, false)}, "compute/siblings compute/siblings compute/siblings compute/siblings"},
		{
			"second ports without a cable", machine(false),
			[]NIC{
				nic("a", apart(0), 0, "X", gigabit, true), nic("b", apart(1), 0, "X", gigabit, true),
				nic("c", apart(2), 0, "X", gigabit, false),
				second(nic("d", apart(0), 0, "X", 0, false)), second(nic("e", apart(1), 0, "X", 0, false)),
				second(nic("f", apart(2), 0, "X", 0, false)),
			},
			"compute/siblings compute/siblings compute/siblings unknown unknown unknown",
		},
		{"no board", machine(false), []NIC{nic("a", "", 0, "", gigabit, true), nic("b", "", 0, "", gigabit, true), nic("c", "", 0, "", gigabit, true)}, "unknown unknown unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := words(Of(c.m, c.nics)); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

func TestCoupledGPUs(t *testing.T) {
	m := machine(false)
	m.GPUs = []gdr.GPU{gpuAt(belowPort("0008", "00"), 0, true), gpuAt(belowPort("0018", "00"), 1, true)}
	nics := []NIC{
		nic("a", belowPort("0000", "00"), 0, "X", 0, false), nic("b", belowPort("0002", "00"), 0, "X", 400*gigabit, true),
		nic("c", belowPort("0010", "00"), 1, "X", 400*gigabit, true),
	}
	if got := words(Of(m, nics)); got != "compute/gpudirect compute/gpudirect compute/gpudirect" {
		t.Error(got)
	}
}

func TestKeep(t *testing.T) {
	learned := Verdict{pci.Compute, GPUDirect}
	for _, c := range []struct{ now, want Verdict }{
		{unknown, learned},
		{Verdict{pci.Other, GPUDirect}, learned},
		{Verdict{pci.Other, PCIeSwitch}, learned},
		{Verdict{pci.Other, TopologyFile}, Verdict{pci.Other, TopologyFile}},
		{Verdict{pci.Compute, Siblings}, Verdict{pci.Compute, Siblings}},
		{Verdict{pci.NVLinkManagement, VPD}, Verdict{pci.NVLinkManagement, VPD}},
	} {
		if got := learned.Keep(c.now); got != c.want {
			t.Errorf("%v: %v, want %v", c.now, got, c.want)
		}
	}
	if got := (Verdict{}).Keep(unknown); got != unknown {
		t.Error(got)
	}
}

// TestPeers: at least three ACTIVE, and more than half.
func TestPeers(t *testing.T) {
	var nics []NIC
	for i, up := range []bool{true, true, true, false} {
		first, other := nic(fmt.Sprint(i), "", 0, "X", 0, up), nic(fmt.Sprint(i), "", 0, "X", 0, false)
		other.Function = "1"
		nics = append(nics, first, other)
	}
	all := func(int, int) bool { return true }
	if got := fmt.Sprint(Peers(nics, all)); got != "[[true] [false] [true] [false] [true] [false] [true] [false]]" {
		t.Error(got)
	}
	for c, want := range map[[2]int]bool{ // ACTIVE ports, of all
		{2, 3}: false, {3, 3}: true, {3, 5}: true, {3, 6}: false, {4, 6}: true, {4, 8}: false, {5, 8}: true,
	} {
		var alike []NIC
		for i := range c[1] {
			alike = append(alike, nic(fmt.Sprint(i), "", 0, "X", 0, i < c[0]))
		}
		for i, ports := range Peers(alike, all) {
			if !slices.Equal(ports, []bool{want}) {
				t.Errorf("%d of %d: port %d: %t", c[0], c[1], i, ports)
			}
		}
	}
	if got := fmt.Sprint(Peers(nics[:6], func(i, _ int) bool { return i != 4 })); strings.Contains(got, "true") {
		t.Error(got)
	}
}
