package infiniband

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/role"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/wire"
	"rdma_exporter/internal/transceiver"
)

// placeLines has a line for each place: part, address, upstream, card, switch, rail, leaf, subnet, name.
func placeLines(n *snapshot.Node, m *expect.Memory) (out []string) {
	for _, p := range placesOf(n, m) {
		out = append(out, fmt.Sprintf("%s/%d%s|%s|%s|%s|%s|%s|%s|%s|%s", p.Device, p.Number, p.gpu.Index, p.address,
			p.upstream(), p.card, p.pcieSwitch(), p.rail, p.leaf, p.subnet, p.name))
	}
	return out
}

// placedNIC returns a device behind a PCIe switch of its root port, at the bus of its address.
func placedNIC(name, bus string, ports ...snapshot.Port) snapshot.Device {
	address := "0000:" + bus + ":00.0"
	return snapshot.Device{
		Name: name, PCIAddress: address, NodeGUID: "b83f:d203:0050:00" + bus, FunctionType: snapshot.Physical,
		SystemGUID: "0000:0000:0000:0000",
		Path:       "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/" + address, Ports: ports,
	}
}

func placedPort(job, netdev string) snapshot.Port {
	return snapshot.Port{Number: 1, Role: job, Netdev: []snapshot.Netdev{{Name: netdev}}}
}

func checkPlaces(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%q\nwant\n%q", what, got, want)
	}
}

// TestPlaces: a port with everything known; the storage NIC has no rail; a card of two slots is one; a function of a
// guest has no path.
func TestPlaces(t *testing.T) {
	second := placedNIC("mlx5_1", "04", placedPort("compute", "eth1"))
	second.SystemGUID = "b83f:d203:0050:aaaa"
	direct := placedNIC("mlx5_2", "03", placedPort("other", "eth2"))
	direct.SystemGUID = second.SystemGUID
	guest := snapshot.Device{Name: "efa_0", PCIAddress: "0000:0a:00.0", FunctionType: snapshot.Virtual}
	first := placedNIC("mlx5_9", "02", placedPort("compute", "eth9"))
	first.Ports[0].Subnet = "fe80:0000:0000:0000"
	part := snapshot.Device{
		Name: "mlx5_8", PCIAddress: "0000:02:00.3", PhysicalFunction: "0000:02:00.0", FunctionType: snapshot.Virtual,
	}
	n := &snapshot.Node{
		InfiniBand: &snapshot.InfiniBand{Devices: []snapshot.Device{second, direct, guest, part, first}},
		Neighbours: &snapshot.Neighbours{Ports: []snapshot.PortNeighbour{
			{Device: "mlx5_9", Port: 1, Netdev: "eth9", End: snapshot.End{System: "leaf1", Port: "Eth1/1"}},
			{Device: "mlx5_1", Port: 1, Netdev: "a", End: snapshot.End{System: "leaf3", Port: "Eth1/7"}},
			{Device: "mlx5_1", Port: 1, Netdev: "b", End: snapshot.End{System: "leaf2", Port: "Eth1/8"}},
			{Device: "mlx5_1", Port: 1, Netdev: "c"},
		}},
		Optics: &wire.Optics{Cages: []wire.Cage{
			{Device: "mlx5_9", Port: 1, Netdev: "eth9", Module: &transceiver.Module{SerialNumber: "MT2301X01234"}},
		}},
	}
	checkPlaces(t, "all", placeLines(n, expect.NewMemory(expect.Data{})),
		"mlx5_1/0|0000:04:00.0|0000:02:00.0|0000:03:00|0000:01:00.0|1|||mlx5_1 0000:04:00.0",
		"mlx5_1/1|0000:04:00.0|0000:02:00.0|0000:03:00|0000:01:00.0|1|leaf2+leaf3||mlx5_1/1 eth1 at leaf2+leaf3 Eth1/7+Eth1/8",
		"mlx5_2/0|0000:03:00.0|0000:02:00.0|0000:03:00|0000:01:00.0||||mlx5_2 0000:03:00.0",
		"mlx5_2/1|0000:03:00.0|0000:02:00.0|0000:03:00|0000:01:00.0||||mlx5_2/1 eth2",
		"efa_0/0|0000:0a:00.0||0000:0a:00|||||efa_0 0000:0a:00.0",
		"mlx5_8/0|0000:02:00.3||0000:02:00||0|||mlx5_8 0000:02:00.3",
		"mlx5_9/0|0000:02:00.0|0000:02:00.0|0000:02:00|0000:01:00.0|0|||mlx5_9 0000:02:00.0",
		"mlx5_9/1|0000:02:00.0|0000:02:00.0|0000:02:00|0000:01:00.0|0|leaf1|fe80:0000:0000:0000|"+
			"mlx5_9/1 eth9 at leaf1 Eth1/1, module MT2301X01234")
	hops := func(function string) []accel.PCIeHop {
		return []accel.PCIeHop{{Address: "0000:00:01.0"}, {Address: function}}
	}
	lost := &snapshot.Node{
		PCIe: &accel.PCIe{GPUs: []accel.GPUPath{
			{Index: "0", UUID: "GPU-a", Hops: hops("0000:1b:00.0")}, {Index: "1", Hops: hops("0000:43:00.0")}, {Index: "2"},
		}},
		GPUs: &accel.GPUs{
			NVML: accel.NVML{GPUs: []accel.GPU{{Index: 0, UUID: "GPU-a", PCIAddress: "0000:1b:00.0"}}},
			Lost: []accel.LostGPU{
				{GPUName: accel.GPUName{Index: "1", UUID: "GPU-b"}, PCIAddress: "0000:43:00.0"},
			},
		},
	}
	checkPlaces(t, "a GPU that NVML does not list, in the PCI tree", placeLines(lost, expect.NewMemory(expect.Data{})),
		"/00|0000:1b:00.0|0000:00:01.0|0000:1b:00|||||GPU 0 0000:1b:00.0",
		"/01|0000:43:00.0|0000:00:01.0|0000:43:00|||||GPU 1 0000:43:00.0")
	checkPlaces(t, "nothing read", placeLines(&snapshot.Node{}, expect.NewMemory(expect.Data{})))
}

// TestPlacesAreRemembered: a link that goes down keeps its leaf, a device and a GPU that go keep all, also after a
// restart. What is accepted as absent is forgotten.
func TestPlacesAreRemembered(t *testing.T) {
	at := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	nic, other := placedNIC("mlx5_0", "03", placedPort("compute", "eth0")), placedNIC("mlx5_1", "04",
		placedPort("compute", "eth1"))
	gpu := accel.GPUName{Index: "5", UUID: "GPU-5"}
	n := &snapshot.Node{
		InfiniBand: &snapshot.InfiniBand{Devices: []snapshot.Device{nic, other}},
		Neighbours: &snapshot.Neighbours{Ports: []snapshot.PortNeighbour{
			{Device: "mlx5_0", Port: 1, Netdev: "eth0", End: snapshot.End{System: "leaf1", Port: "Eth1/1"}},
			{Device: "mlx5_1", Port: 1, Netdev: "eth1", End: snapshot.End{System: "leaf2", Port: "Eth1/1"}},
		}},
		PCIe: &accel.PCIe{GPUs: []accel.GPUPath{{Index: gpu.Index, UUID: gpu.UUID, Hops: []accel.PCIeHop{
			{Address: "0000:00:01.0"}, {Address: "0000:01:00.0"}, {Address: "0000:02:01.0"}, {Address: "0000:1b:00.0"},
		}}}},
	}
	const here = "5|0000:1b:00.0|0000:02:01.0|0000:1b:00|0000:01:00.0||||GPU 5 0000:1b:00.0"
	m := expect.NewMemory(expect.Data{})
	guid := nic.NodeGUID
	name := expect.LinkID(guid, nic.PCIAddress, 1, "")
	m.See(at, "boot", functionsOf(n.InfiniBand.Devices))
	m.Observe(at, []expect.NamedLink{{Link: expect.Link{ID: name, Active: true}, Device: "mlx5_0", Port: 1}})
	m.Learn(name, expect.RoleRecord{Device: "mlx5_0", Port: 1, Verdict: role.Verdict{Role: "compute"}})
	m.SeeGPUs([]expect.GPURecord{{Index: 5, UUID: gpu.UUID, PCIAddress: "0000:1b:00.0"}})
	const second = "mlx5_1/1|0000:04:00.0|0000:02:00.0|0000:04:00|0000:01:00.0|1|leaf2||mlx5_1/1 eth1 at leaf2 Eth1/1"
	if got := placeLines(n, m); len(got) != 5 || got[3] != second || got[4] != "/0"+here {
		t.Fatalf("%q", got)
	}
	b, err := json.Marshal(m.Data())
	if err != nil {
		t.Fatal(err)
	}
	var stored expect.Data
	if err := json.Unmarshal(b, &stored); err != nil {
		t.Fatal(err)
	}
	after := expect.NewMemory(stored)
	gone := &snapshot.Node{
		InfiniBand: &snapshot.InfiniBand{
			Devices: []snapshot.Device{other},
			Missing: []snapshot.MissingDevice{
				{Name: "mlx5_0", PCIAddress: nic.PCIAddress, NodeGUID: guid, Reason: "not_on_pci"},
				{Name: "pinned", Reason: "not_on_pci"},
			},
		},
		GPUs: &accel.GPUs{Lost: []accel.LostGPU{
			{GPUName: gpu, PCIAddress: "0000:1b:00.0", Reason: accel.GPUOffBus},
		}},
	}
	checkPlaces(t, "after a restart, the link down, the device and the GPU gone", placeLines(gone, after),
		"mlx5_1/0|0000:04:00.0|0000:02:00.0|0000:04:00|0000:01:00.0|1|||mlx5_1 0000:04:00.0",
		second,
		"mlx5_0/0|0000:03:00.0|0000:02:00.0|0000:03:00|0000:01:00.0|0|||mlx5_0 0000:03:00.0",
		"mlx5_0/1|0000:03:00.0|0000:02:00.0|0000:03:00|0000:01:00.0|0|leaf1||mlx5_0/1 at leaf1 Eth1/1",
		"pinned/0||||||||pinned",
		"/0"+here)
	after.See(at, "boot", functionsOf(gone.InfiniBand.Devices))
	after.Observe(at, nil)
	after.SeeGPUs(nil)
	if _, _, err := after.Accept(nil, false); err != nil {
		t.Fatal(err)
	}
	for id := range after.Data().Places {
		if id == name || id == expect.FunctionID(guid, nic.PCIAddress) || id == expect.GPUID(gpu.UUID) {
			t.Errorf("%s is remembered after it was accepted", id)
		}
	}
	if got := after.Data().Places[expect.LinkID(other.NodeGUID, other.PCIAddress, 1, "")]; got.Leaf != "leaf2" {
		t.Errorf("the place of a device that is there is forgotten: %+v", got)
	}
}

// TestRacks: the host has a place, also with nothing in it, and all parts are in its rack. Another configuration takes
// effect in the next round. Without an entry, and where the host name is unknown, the rack is empty.
func TestRacks(t *testing.T) {
	const (
		racks = "racks:\n- {match: {hostname: gpu-*}, rack: r7 \"row 3\"}\n- {match: {hostname: gpu-2}, rack: 8}\n"
		efa   = `rdma_place_info{card="0000:0a:00",device="efa_0",name="efa_0 0000:0a:00.0",pci_address="0000:0a:00.0"`
	)
	nothing := &snapshot.Node{}
	n := &snapshot.Node{InfiniBand: &snapshot.InfiniBand{Devices: []snapshot.Device{
		{Name: "efa_0", PCIAddress: "0000:0a:00.0", FunctionType: snapshot.Virtual},
	}}}
	for _, x := range []struct {
		name, config, hostname string
		node                   *snapshot.Node
		want                   []string
	}{
		{"no configuration", "", "gpu-1", n, []string{`rdma_place_info{name="gpu-1"} 1`, efa + "} 1"}},
		{"an entry", racks, "gpu-1", n, []string{
			`rdma_place_info{name="gpu-1",rack="r7 \"row 3\""} 1`, efa + `,rack="r7 \"row 3\""} 1`,
		}},
		{"the last entry", racks, "gpu-2", n, []string{`rdma_place_info{name="gpu-2",rack="8"} 1`, efa + `,rack="8"} 1`}},
		{"no entry", racks, "cpu-1", n, []string{`rdma_place_info{name="cpu-1"} 1`, efa + "} 1"}},
		{"the host name is unknown", racks, "", n, []string{"rdma_place_info 1", efa + "} 1"}},
		{"nothing read", racks, "gpu-2", nothing, []string{`rdma_place_info{name="gpu-2",rack="8"} 1`}},
	} {
		t.Run(x.name, func(t *testing.T) {
			store := &site.Store{}
			c := New(shared.NewState(shared.Options{Site: store, Hostname: x.hostname}))
			places := func(config string) []string {
				conf, err := site.Parse([]byte(config))
				if err != nil {
					t.Fatal(err)
				}
				store.Replace(conf)
				return collectortest.Samples(c.Descs, func(s metric.Sink) { c.Derive(x.node, s) })
			}
			checkPlaces(t, x.name, places(x.config), x.want...)
			moved := places("racks: [{match: {hostname: " + strconv.Quote(x.hostname+"*") + "}, rack: other}]")
			if got := strings.Count(strings.Join(moved, "\n"), `rack="other"`); x.hostname != "" && got != len(x.want) {
				t.Errorf("after a reload: %q", moved)
			}
		})
	}
}

// BenchmarkPlaces is the cost in a round of a host with eight NICs and eight GPUs.
func BenchmarkPlaces(b *testing.B) {
	n := &snapshot.Node{InfiniBand: &snapshot.InfiniBand{}, Neighbours: &snapshot.Neighbours{}, PCIe: &accel.PCIe{}}
	for i := range 8 {
		name, bus := "mlx5_"+strconv.Itoa(i), fmt.Sprintf("%02x", 0x10+i)
		nic := placedNIC(name, bus, placedPort("compute", "eth"+strconv.Itoa(i)))
		n.InfiniBand.Devices = append(n.InfiniBand.Devices, nic)
		n.Neighbours.Ports = append(n.Neighbours.Ports,
			snapshot.PortNeighbour{Device: name, Port: 1, Netdev: "eth", End: snapshot.End{System: "leaf1", Port: "Eth1/1"}})
		n.PCIe.GPUs = append(n.PCIe.GPUs, accel.GPUPath{
			Index: strconv.Itoa(i), UUID: "GPU-" + strconv.Itoa(i),
			Hops: []accel.PCIeHop{
				{Address: "0000:00:01.0"},
				{Address: "0000:01:00.0"},
				{Address: "0000:02:01.0"},
				{Address: "0000:" + bus + ":00.0"},
			},
		})
	}
	m := expect.NewMemory(expect.Data{})
	for b.Loop() {
		if got := placesOf(n, m); len(got) != 24 {
			b.Fatal(len(got))
		}
	}
}
