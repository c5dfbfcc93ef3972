package setup

import (
	"testing"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
)

// limitsNode returns a host with one device, and a job that holds it.
func limitsNode() *snapshot.Node {
	return &snapshot.Node{
		InfiniBand: &snapshot.InfiniBand{Devices: []snapshot.Device{{Name: "mlx5_0", FunctionType: snapshot.Physical}}},
		Modules:    &hostdata.Modules{},
		GDR: &accel.GDR{Processes: []accel.Process{
			{PID: 1, Command: "python3", Verbs: []string{"uverbs0"}, Job: "slurm/7", Unlimited: true},
			{PID: 2, Command: "python3", Verbs: []string{"uverbs0"}, Job: "slurm/7", Unlimited: true},
		}},
		Setup: &hostdata.Setup{Files: map[string]hostdata.SetupFile{}},
	}
}

func TestLimits(t *testing.T) {
	mib := func(n uint64) *uint64 { n <<= 20; return &n }
	mode := func(text string) func(*snapshot.Node) {
		return func(n *snapshot.Node) {
			n.Modules.Nodes = []hostdata.NodeClass{{Class: "rdma_cm", Present: 1}, {Class: "uverbs", Present: 2, Mode: text}}
		}
	}
	groups := func(ids ...uint32) func(*snapshot.Node) {
		return func(n *snapshot.Node) { n.Modules.Nodes[1].Groups = ids }
	}
	yes, no := true, false
	job := func(change func(*accel.Process)) func(*snapshot.Node) {
		return func(n *snapshot.Node) { change(&n.GDR.Processes[len(n.GDR.Processes)-1]) }
	}
	// wants adds a job that has no node open.
	wants := func(may *bool, user string) func(*snapshot.Node) {
		return func(n *snapshot.Node) {
			n.InfiniBand.Devices[0].Ports = []snapshot.Port{{Number: 1, Role: "compute", State: pointer(uint64(4))}}
			n.GDR.Processes = append(n.GDR.Processes, accel.Process{
				PID: 3, Job: "slurm/8", GPUs: []int{0}, HasNCCL: true, MayOpen: may, User: user,
			})
		}
	}
	const nodes = `; set: printf 'KERNEL=="uverbs*", SUBSYSTEM=="infiniband_verbs", MODE="0666"\n' > /etc/udev/rules.d/99-rdma-uverbs.rules; ` +
		`udevadm control --reload; udevadm trigger --subsystem-match=infiniband_verbs --action=change`
	checkRows(t, "uverbs_permissions", limitsNode, []rowCase{
		{name: "no nodes"},
		{name: "recorded by an earlier version", node: mode("")},
		{name: "modules not read", node: func(n *snapshot.Node) { n.Modules = nil }},
		{name: "as wanted", node: mode("0666"), want: []string{`host ok "0666" want "0666" by guide`}},
		{name: "differs", node: mode("0600,0666"), want: []string{
			`host differs/info "0600,0666" want "0666" by guide; set: printf 'KERNEL=="uverbs*", SUBSYSTEM=="infiniband_verbs", MODE="0666"\n' > /etc/udev/rules.d/99-rdma-uverbs.rules; ` +
				`udevadm control --reload; udevadm trigger --subsystem-match=infiniband_verbs --action=change`,
		}},
		{name: "a group", node: both(mode("0660"), groups(110)), want: []string{`host ok "0660" want "0660" by guide; the nodes belong to group 110`}},
		{name: "a group, of some", node: both(mode("0660,0666"), groups(110)), want: []string{
			`host ok "0660,0666" want "0660,0666" by guide; the nodes belong to group 110`,
		}},
		{name: "a group that was not recorded", node: mode("0660"), want: []string{`host unknown "" want "0666" by guide; the group of the nodes was not recorded`}},
		{name: "root", node: both(mode("0660"), groups(110, 0)), want: []string{
			`host differs/info "0660" want "0666" by guide; the nodes belong to group 0, root` + nodes,
		}},
		{name: "a group, and nobody may write", node: both(mode("0640"), groups(110)), want: []string{
			`host differs/info "0640" want "0666" by guide` + nodes,
		}},
		{name: "a job outside of the group", node: both(mode("0660"), groups(110), wants(&no, "1001")), want: []string{
			`host differs/info "0660" want "0666" by guide; not in group 110 of the nodes: user 1001 of slurm/8` + nodes,
		}},
		{name: "a user that may not be named", node: both(mode("0660"), groups(110), wants(&no, "")), want: []string{
			`host differs/info "0660" want "0666" by guide; not in group 110 of the nodes: the user of slurm/8` + nodes,
		}},
		{name: "a job in the group", node: both(mode("0660"), groups(110), wants(&yes, "1001")), want: []string{
			`host ok "0660" want "0660" by guide; the nodes belong to group 110`,
		}},
		{name: "a job whose groups are unknown", node: both(mode("0660"), groups(110), wants(nil, "")), want: []string{
			`host unknown "" want "0666" by guide; not known whether in group 110 of the nodes: the user of slurm/8`,
		}},
		{name: "a job that has a node open", node: both(mode("0660"), groups(110), wants(&no, ""), job(func(p *accel.Process) {
			p.Verbs = []string{"uverbs0"}
		})), want: []string{`host ok "0660" want "0660" by guide; the nodes belong to group 110`}},
		{name: "a job that wants sockets", node: both(mode("0660"), groups(110), wants(&no, ""), job(func(p *accel.Process) {
			p.Env = map[string]string{"NCCL_IB_DISABLE": "1"}
		})), want: []string{`host ok "0660" want "0660" by guide; the nodes belong to group 110`}},
		{name: "a pod, which has its own nodes", node: both(mode("0660"), groups(110), wants(&no, ""), job(func(p *accel.Process) {
			p.Job = "kubernetes/1"
		})), want: []string{`host ok "0660" want "0660" by guide; the nodes belong to group 110`}},
		{name: "no compute port", node: both(mode("0660"), groups(110), wants(&no, ""), func(n *snapshot.Node) {
			n.InfiniBand.Devices[0].Ports[0].Role = "other"
		}), want: []string{`host ok "0660" want "0660" by guide; the nodes belong to group 110`}},
		{name: "everyone may", node: both(mode("0666"), wants(nil, "")), want: []string{`host ok "0666" want "0666" by guide`}},
		{name: "group of the site, and a job outside of it", node: both(mode("0660"), groups(110), wants(&no, "")), site: "0660", want: []string{
			`host ok "0660" want "0660" by site`,
		}},
		{name: "group of the site", node: mode("0660"), site: "0660", want: []string{`host ok "0660" want "0660" by site`}},
	})

	launchers := func(l ...hostdata.Launcher) func(*snapshot.Node) {
		return func(n *snapshot.Node) { n.Setup.Launchers = l }
	}
	remedy := func(name string) string {
		dir := "/etc/systemd/system/" + name + ".service.d"
		return "; set: mkdir -p " + dir + `; printf '[Service]\nLimitMEMLOCK=infinity\n' > ` + dir +
			"/memlock.conf; systemctl daemon-reload; systemctl restart " + name +
			" # drain the node first; what runs keeps its limit"
	}
	checkRows(t, "memlock_of_launchers", limitsNode, []rowCase{
		{name: "none"},
		{name: "no device", node: both(launchers(hostdata.Launcher{Name: "slurmd"}), func(n *snapshot.Node) { n.InfiniBand.Devices = nil })},
		{name: "as wanted", node: launchers(hostdata.Launcher{Name: "slurmd", Unlimited: true}), want: []string{`slurmd ok "unlimited" want "unlimited" by guide`}},
		{name: "differs", node: launchers(hostdata.Launcher{Name: "containerd", LockedMemory: mib(8)}), want: []string{
			`containerd differs/info "8388608" want "unlimited" by guide; 8388608 bytes are 8 MiB` + remedy("containerd"),
		}},
		{name: "unreadable", node: launchers(hostdata.Launcher{Name: "slurmd", Unread: "permission"}), want: []string{
			`slurmd unknown "" want "unlimited" by guide; limits of slurmd: permission`,
		}},
		{name: "search not completed", node: func(n *snapshot.Node) { n.Setup.LaunchersUnread = "not completed" }, want: []string{
			`host unknown "" want "unlimited" by guide; search of /proc for the services: not completed`,
		}},
		{name: "sshd beside a scheduler", node: launchers(hostdata.Launcher{Name: "sshd", LockedMemory: mib(8)})},
		{name: "sshd without a scheduler", node: both(launchers(hostdata.Launcher{Name: "sshd", LockedMemory: mib(8)}), func(n *snapshot.Node) { n.GDR.Processes[0].Job = "" }), want: []string{
			`sshd differs/info "8388608" want "unlimited" by guide; 8388608 bytes are 8 MiB` + remedy("sshd"),
		}},
		{name: "limit of the site", node: launchers(hostdata.Launcher{Name: "slurmd", LockedMemory: mib(1 << 16)}), site: "68719476736|unlimited", want: []string{
			`slurmd ok "68719476736" want "68719476736|unlimited" by site; 68719476736 bytes are 64 GiB`,
		}},
	})

	checkRows(t, "memlock_of_jobs", limitsNode, []rowCase{
		{name: "no jobs", node: func(n *snapshot.Node) { n.GDR.Processes = nil }},
		{name: "not read", node: func(n *snapshot.Node) { n.GDR = nil }},
		{name: "without RDMA device", node: func(n *snapshot.Node) {
			n.GDR.Processes = []accel.Process{{PID: 1, HasNCCL: true, LockedMemory: mib(8)}}
		}},
		{name: "as wanted, one row a job", want: []string{`slurm/7 ok "unlimited" want "unlimited" by guide`}},
		{name: "differs", node: func(n *snapshot.Node) {
			n.GDR.Processes[1] = accel.Process{PID: 2, Command: "nccl-test", Verbs: []string{"uverbs0"}, LockedMemory: mib(8)}
		}, want: []string{
			`slurm/7 ok "unlimited" want "unlimited" by guide`,
			`nccl-test differs/info "8388608" want "unlimited" by guide; 8388608 bytes are 8 MiB; set: start jobs with ulimit -l unlimited`,
		}},
		{name: "of a container", node: func(n *snapshot.Node) {
			n.GDR.Processes = []accel.Process{{PID: 2, Verbs: []string{"uverbs0"}, Job: "kubernetes/1", LockedMemory: mib(8)}}
		}, want: []string{
			`kubernetes/1 differs/info "8388608" want "unlimited" by guide; 8388608 bytes are 8 MiB` + remedy("containerd"),
		}},
		{name: "unreadable", node: func(n *snapshot.Node) { n.GDR.Processes = n.GDR.Processes[:1]; n.GDR.Processes[0].Unlimited = false }, want: []string{
			`slurm/7 unknown "" want "unlimited" by guide; /proc/PID/limits of the process was not readable, or was recorded by an earlier version`,
		}},
		{name: "accepted by the site", site: Any},
	})
}
