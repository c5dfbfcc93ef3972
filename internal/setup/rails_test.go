package setup

import (
	"fmt"
	"strings"
	"testing"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
)

func pointer[T any](v T) *T { return &v }

// rails returns a host with ports of role compute on Ethernet, each with a GPU, PFC on priority 3 and the DSCP map of
// mlx5.
func rails(n int) *snapshot.Node {
	node := &snapshot.Node{
		InfiniBand: &snapshot.InfiniBand{}, QoS: &snapshot.QoS{}, GDR: &accel.GDR{},
		Setup:   &hostdata.Setup{Files: map[string]hostdata.SetupFile{}},
		Modules: &hostdata.Modules{Modules: []hostdata.Module{{Name: "mlx5_core", Loaded: true, Flavour: "ofed"}}},
	}
	for i := range n {
		device, netdev := fmt.Sprintf("mlx5_%d", i), fmt.Sprintf("eth%d", i)
		node.InfiniBand.Devices = append(node.InfiniBand.Devices, snapshot.Device{
			Name: device, Driver: "mlx5_core", NodeType: pointer(uint64(nodeCA)), FunctionType: snapshot.Physical,
			PCIAddress: fmt.Sprintf("0000:%02x:00.0", 16+i),
			Ports: []snapshot.Port{{
				Number: 1, LinkLayer: "Ethernet", Role: "compute", State: pointer(uint64(portActive)), Rate: pointer(400e9),
				Netdev: []snapshot.Netdev{{Name: netdev, MTU: pointer(uint64(9000)), Admin: pointer(true)}},
				RoCEv2: map[string]snapshot.GIDFamily{"ipv4": {Entries: 1, First: 3}, "link_local": {Entries: 1, First: 1}},
			}},
		})
		q := snapshot.NetdevQoS{
			Device: device, Port: 1, Name: netdev, Trust: "dscp", DSCPs: &[snapshot.Priorities][]uint8{},
			PFC: &snapshot.PFC{Capable: 8}, Classes: &snapshot.Classes{},
		}
		q.PFC.Enabled[3] = true
		for d := range uint8(64) {
			q.DSCPs[d>>3] = append(q.DSCPs[d>>3], d)
		}
		for p := range snapshot.Priorities {
			q.Notification[p], q.Reaction[p] = pointer(uint64(1)), pointer(uint64(1))
			q.Classes.OfPrio[p], q.Classes.Algorithm[p], q.Classes.Bandwidth[p] = uint64(p), 2, 12
		}
		q.CNPDSCP, q.CNPPriority = pointer(uint64(48)), pointer(uint64(6))
		node.QoS.Netdevs = append(node.QoS.Netdevs, q)
		node.QoS.Ports = append(node.QoS.Ports, snapshot.PortQoS{Device: device, Port: 1})
		node.GDR.NICs = append(node.GDR.NICs, accel.GDRNIC{Device: device, Active: true})
	}
	return node
}

// startJob starts a process of a job on a GPU that may use the given NICs.
func startJob(n *snapshot.Node, name string, env map[string]string, nics ...int) *accel.Process {
	p := accel.Process{
		PID: 100 + len(n.GDR.Processes), Command: "python3", Verbs: []string{"uverbs0"}, HasNCCL: true, NCCL: "2.27.3",
		Env: env, Conf: map[string]string{}, Job: name,
	}
	n.GDR.Processes = append(n.GDR.Processes, p)
	gpu := len(n.GDR.GPUs)
	n.GDR.GPUs = append(n.GDR.GPUs, accel.GDRGPU{Index: fmt.Sprint(gpu), Process: &p})
	for _, i := range nics {
		n.GDR.Pairs = append(n.GDR.Pairs, accel.GDRPair{GPU: gpu, NIC: i, Eligible: true})
	}
	return &n.GDR.Processes[len(n.GDR.Processes)-1]
}

// portOf returns the port of a device of rails.
func portOf(n *snapshot.Node, i int) *snapshot.Port { return &n.InfiniBand.Devices[i].Ports[0] }

// rowsOf returns the rows of a setting: object state found → wanted basis, with severity and alert of a warning.
func rowsOf(n *snapshot.Node, id string, wants Wants) (out []string) {
	for _, r := range Evaluate(n, wants) {
		if r.Setting != id {
			continue
		}
		text := fmt.Sprintf("%s %s %q want %q %s", r.Object, r.State, r.Found, r.Wanted, r.Basis)
		if r.Severity == "warning" {
			text += " " + r.Alert
		}
		out = append(out, text)
	}
	return out
}

// settingCase is a host and the rows of a setting on it.
type settingCase struct {
	name  string
	id    string
	node  func() *snapshot.Node
	wants string // what the site wants of the setting
	rows  string // lines
}

func run(t *testing.T, cases []settingCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.id+"/"+c.name, func(t *testing.T) {
			var wants Wants
			if c.wants != "" {
				wants = func(id, _ string, _ int, _ string) string {
					if id == c.id {
						return c.wants
					}
					return ""
				}
			}
			n := c.node()
			if got, want := strings.Join(rowsOf(n, c.id, wants), "\n"),
				strings.TrimSpace(strings.ReplaceAll(c.rows, "\t", "")); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			for _, r := range Evaluate(n, wants) {
				if r.Setting == c.id && (r.State == hostdata.SetupDiffers &&
					(r.Remedy == "" || strings.ContainsAny(r.Remedy, "{}")) || r.State == hostdata.SetupUnknown && r.Evidence == "") {
					t.Errorf("no remedy or reason: %+v", r)
				}
			}
		})
	}
}
