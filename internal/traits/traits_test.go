package traits

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/setup"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
)

// host has two lossless RoCE ports and a GPU.
func host(device string) *snapshot.Node {
	n := &snapshot.Node{
		InfiniBand: &snapshot.InfiniBand{}, QoS: &snapshot.QoS{},
		GDR:  &accel.GDR{Driver: "580.1", GPUs: []accel.GDRGPU{{Index: "0"}}},
		GPUs: &accel.GPUs{NVML: accel.NVML{GPUs: []accel.GPU{{Model: "H200"}}}},
		Setup: &hostdata.Setup{Files: hostdata.SetupFiles{
			vendorFile: {Text: "Dell Inc."}, productFile: {Text: "XE9680"}, "proc/sys/kernel/osrelease": {Text: "6.8.0"},
		}},
	}
	for i := range 2 {
		name := fmt.Sprint(device, i)
		n.InfiniBand.Devices = append(n.InfiniBand.Devices, snapshot.Device{
			Name: name, BoardID: "MT_1", Firmware: "28.43", FunctionType: snapshot.Physical,
			Ports: []snapshot.Port{{
				Number: 1, LinkLayer: "Ethernet", Role: computeRole, Rate: new(400e9),
				Netdev: []snapshot.Netdev{{Name: "eth" + name, MTU: new(uint64(9000))}},
			}},
		})
		q := snapshot.NetdevQoS{
			Device: name, Port: 1, Name: "eth" + name, Trust: "dscp", PFC: &snapshot.PFC{},
			DSCPs: &[snapshot.Priorities][]uint8{0: {1, 0, 2}, 3: {26}},
		}
		q.PFC.Enabled[3] = true
		n.QoS.Netdevs = append(n.QoS.Netdevs, q)
		n.GDR.NICs = append(n.GDR.NICs,
			accel.GDRNIC{Device: name, Role: computeRole, DMABUF: new(true), Redirect: new(false)})
		n.GDR.Pairs = append(n.GDR.Pairs, accel.GDRPair{NIC: i, Topology: []string{"SYS", "PIX"}[i]})
	}
	return n
}

// text is one line for each trait, without the names of objects.
func text(h Host) (out []string) {
	for _, t := range h.Traits {
		line := fmt.Sprintf("%s %s=%s ×%d %s", t.Setting, t.Role, t.Value, len(t.Objects), t.Affects)
		out = append(out, strings.TrimRight(line, " "))
	}
	return out
}

func TestTraits(t *testing.T) {
	h := Of(host("mlx5_"))
	if h.Kind != "Dell Inc. XE9680, H200, MT_1" {
		t.Errorf("kind %q", h.Kind)
	}
	want := []string{
		"acs compute=off ×2 gpu_direct",
		"compute_ports =2 ×1",
		"dscp_map compute=0-2:0 26:3 ×2 lossless",
		"firmware compute=MT_1 28.43 ×2",
		"gpu_direct_mechanism compute=dmabuf ×2 gpu_direct",
		"gpu_driver =580.1 ×1",
		"gpu_nic_distance =PIX ×1 gpu_direct",
		"gpus =1 ×1",
		"kernel =6.8.0 ×1",
		"link_layer compute=Ethernet ×2",
		"nccl_conf =none ×1",
		"netdev_mtu compute=9000 ×2",
		"pfc_on_rdma_priority compute=3 ×2 lossless",
		"rate compute=400 Gb/s ×2",
		"trust_mode compute=dscp ×2 lossless",
	}
	if got := text(h); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestAlike: what hosts may have in their own way is no trait; what differs on one port is.
func TestAlike(t *testing.T) {
	for name, k := range map[string]struct {
		change func(*snapshot.Node)
		more   []string // lines that the first host does not have
	}{
		"nothing": {func(*snapshot.Node) {}, nil},
		"PFC of one port": {
			func(n *snapshot.Node) { n.QoS.Netdevs[1].PFC.Enabled[3] = false },
			[]string{"pfc_on_rdma_priority compute=3 ×1 lossless", "pfc_on_rdma_priority compute=none ×1 lossless"},
		},
		"PFC not reported": {func(n *snapshot.Node) { n.QoS.Netdevs[0].PFC, n.QoS.Netdevs[1].PFC = nil, nil }, nil},
		"an ignored port": {
			func(n *snapshot.Node) {
				n.QoS.Netdevs[1].Trust = "pcp"
				n.InfiniBand.Ignored = []snapshot.PortID{{Device: n.InfiniBand.Devices[1].Name}}
			},
			[]string{
				"compute_ports =1 ×1", "dscp_map compute=0-2:0 26:3 ×1 lossless", "firmware compute=MT_1 28.43 ×1",
				"gpu_direct_mechanism compute=dmabuf ×1 gpu_direct", "acs compute=off ×1 gpu_direct",
				"link_layer compute=Ethernet ×1", "netdev_mtu compute=9000 ×1", "pfc_on_rdma_priority compute=3 ×1 lossless",
				"rate compute=400 Gb/s ×1", "trust_mode compute=dscp ×1 lossless",
			},
		},
		"a missing device": {
			func(n *snapshot.Node) { n.InfiniBand.Missing = []snapshot.MissingDevice{{Name: "mlx5_9"}} }, nil,
		},
		"a device that does not answer": {
			func(n *snapshot.Node) {
				n.InfiniBand.Devices[1].Ports = nil
				n.Devices = []snapshot.DeviceRead{{Device: "other1", Stuck: true}}
			},
			[]string{
				"dscp_map compute=0-2:0 26:3 ×1 lossless", "firmware compute=MT_1 28.43 ×1",
				"gpu_direct_mechanism compute=dmabuf ×1 gpu_direct", "acs compute=off ×1 gpu_direct",
				"link_layer compute=Ethernet ×1", "netdev_mtu compute=9000 ×1", "pfc_on_rdma_priority compute=3 ×1 lossless",
				"rate compute=400 Gb/s ×1", "trust_mode compute=dscp ×1 lossless",
			},
		},
		"settings of check --setup, and of a job": {
			func(n *snapshot.Node) {
				n.Setup.Rows = []hostdata.SetupRow{
					{Setting: "iommu_mode", Device: "other0", Object: "0000:1a:00.0", Found: "identity"},
					{Setting: "trust_mode", Device: "other0", Found: "twice"},
					{Setting: "irq_locality", Device: "other0", Found: "40 %"},
					{Setting: "memlock_of_launchers", Found: "", State: hostdata.SetupUnknown},
					{Setting: "nccl_qps", Domain: string(setup.Job), Object: "slurm/7", Found: "4"},
				}
			},
			[]string{"iommu_mode compute=identity ×1 gpu_direct", "nccl_qps slurm/7=4 ×1"},
		},
		"a line break": {
			func(n *snapshot.Node) { n.GDR.Driver = "580\n.1" }, []string{"gpu_driver =580 .1 ×1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := host("other")
			k.change(n)
			first, more := text(Of(host("mlx5_"))), []string{}
			for _, line := range text(Of(n)) {
				if !slices.Contains(first, line) {
					more = append(more, line)
				}
			}
			for _, line := range k.more {
				if !slices.Contains(more, line) {
					t.Errorf("no line %q: %q", line, more)
				}
			}
			if len(more) != len(k.more) {
				t.Errorf("%q, want %q", more, k.more)
			}
		})
	}
}

// TestKindStays: a host whose GPUs do not answer for a time, or which lacks a device, stays of its kind as far as the
// rest tells.
func TestKindStays(t *testing.T) {
	n := host("mlx5_")
	n.InfiniBand.Devices = n.InfiniBand.Devices[:1]
	if got, want := Of(n).Kind, Of(host("mlx5_")).Kind; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if h := Of(&snapshot.Node{}); h.Kind != "" || len(h.Traits) != 0 {
		t.Errorf("of a node that is not read: %+v", h)
	}
}
