//go:build !race

package remedies_test

import (
	"strings"

	"rdma_exporter/internal/setup"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
)

// variant changes a host; it returns false where the host has nothing to change.
type variant struct {
	name   string
	change func(*snapshot.Node) bool
	wants  setup.Wants
}

// ofLanes changes the first netdev with PFC, or all of them.
func ofLanes(all bool, change func(n *snapshot.Node, q *snapshot.NetdevQoS)) func(*snapshot.Node) bool {
	return func(n *snapshot.Node) (changed bool) {
		if n.QoS == nil || n.InfiniBand == nil {
			return false
		}
		for i := range n.QoS.Netdevs {
			if q := &n.QoS.Netdevs[i]; q.PFC != nil && q.PFC.Enabled != [snapshot.Priorities]bool{} && (all || !changed) {
				change(n, q)
				changed = true
			}
		}
		return changed
	}
}

func pfc(priorities ...int) func(*snapshot.Node, *snapshot.NetdevQoS) {
	return func(_ *snapshot.Node, q *snapshot.NetdevQoS) {
		q.PFC.Enabled = [snapshot.Priorities]bool{}
		for _, p := range priorities {
			q.PFC.Enabled[p] = true
		}
	}
}

func class(c uint64) func(*snapshot.Node, *snapshot.NetdevQoS) {
	return func(n *snapshot.Node, q *snapshot.NetdevQoS) {
		for i := range n.QoS.Ports {
			if p := &n.QoS.Ports[i]; p.Device == q.Device && p.Port == q.Port && p.TrafficClass != nil {
				p.TrafficClass = &c
			}
		}
	}
}

func mapTo(dscp, priority int) func(*snapshot.Node, *snapshot.NetdevQoS) {
	return func(_ *snapshot.Node, q *snapshot.NetdevQoS) {
		if q.DSCPs == nil {
			q.DSCPs = &[snapshot.Priorities][]uint8{}
			for d := range uint8(64) {
				q.DSCPs[d>>3] = append(q.DSCPs[d>>3], d)
			}
		}
		for p := range q.DSCPs {
			var kept []uint8
			for _, d := range q.DSCPs[p] {
				if int(d) != dscp {
					kept = append(kept, d)
				}
			}
			q.DSCPs[p] = kept
		}
		q.DSCPs[priority] = append(q.DSCPs[priority], uint8(dscp))
	}
}

func pcp(_ *snapshot.Node, q *snapshot.NetdevQoS) { q.Trust = "pcp" }

func pinned(n *snapshot.Node, q *snapshot.NetdevQoS) {
	for i := range n.QoS.Ports {
		if p := &n.QoS.Ports[i]; p.Device == q.Device && p.Port == q.Port {
			p.PinnedRoCE = "lossless"
		}
	}
}

func alone(n *snapshot.Node, q *snapshot.NetdevQoS) {
	for i := range n.InfiniBand.Devices {
		if d := &n.InfiniBand.Devices[i]; d.Name != q.Device {
			d.FunctionType = ""
		}
	}
	pinned(n, q)
}

func both(changes ...func(*snapshot.Node, *snapshot.NetdevQoS)) func(*snapshot.Node, *snapshot.NetdevQoS) {
	return func(n *snapshot.Node, q *snapshot.NetdevQoS) {
		for _, c := range changes {
			c(n, q)
		}
	}
}

func jobs(name, value string) func(*snapshot.Node) bool {
	return func(n *snapshot.Node) (changed bool) {
		if n.GDR == nil {
			return false
		}
		for i := range n.GDR.Processes {
			if p := &n.GDR.Processes[i]; p.HasNCCL && p.Env != nil {
				p.Env[name] = value
				changed = true
			}
		}
		return changed
	}
}

// port changes the first port of a link layer.
func port(layer string, change func(*snapshot.Node, *snapshot.Device, *snapshot.Port)) func(*snapshot.Node) bool {
	return func(n *snapshot.Node) bool {
		if n.InfiniBand == nil {
			return false
		}
		for i := range n.InfiniBand.Devices {
			d := &n.InfiniBand.Devices[i]
			for j := range d.Ports {
				if p := &d.Ports[j]; p.LinkLayer == layer && len(p.Netdev) > 0 && p.Netdev[0].MTU != nil {
					change(n, d, p)
					return true
				}
			}
		}
		return false
	}
}

func mtu(bytes uint64) func(*snapshot.Node, *snapshot.Device, *snapshot.Port) {
	return func(_ *snapshot.Node, _ *snapshot.Device, p *snapshot.Port) { p.Netdev[0].MTU = &bytes }
}

func flags(first, mode string) func(*snapshot.Node, *snapshot.Device, *snapshot.Port) {
	return func(n *snapshot.Node, d *snapshot.Device, p *snapshot.Port) {
		dir := "sys/class/infiniband/" + d.Name + "/device/net/" + p.Netdev[0].Name + "/"
		n.Setup.Files[dir+"address"] = hostdata.SetupFile{Text: first + ":00:10:49:fe:80"}
		n.Setup.Files[dir+"mode"] = hostdata.SetupFile{Text: mode}
	}
}

func site(pairs ...string) setup.Wants {
	return func(setting, _ string, _ int, _ string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == setting {
				return pairs[i+1]
			}
		}
		return ""
	}
}

var variants = []variant{
	{name: "PFC off", change: ofLanes(false, pfc())},
	{name: "PFC on 4", change: ofLanes(false, pfc(4))},
	{name: "PFC on 3 and 4", change: ofLanes(false, pfc(3, 4))},
	{name: "PFC on 4 on all", change: ofLanes(true, pfc(4))},
	{name: "PFC off on all, pinned", change: ofLanes(true, both(pfc(), pinned))},
	{name: "alone, PFC on 4", change: ofLanes(false, both(pfc(4), alone))},
	{name: "alone, PFC off", change: ofLanes(false, both(pfc(), alone))},
	{name: "alone, class 130", change: ofLanes(false, both(class(130), alone))},
	{name: "trust pcp", change: ofLanes(false, pcp)},
	{name: "trust pcp on all", change: ofLanes(true, pcp)},
	{name: "map 26:4", change: ofLanes(false, mapTo(26, 4))},
	{name: "map 26:4 on all", change: ofLanes(true, mapTo(26, 4))},
	{name: "class 32", change: ofLanes(false, class(32))},
	{name: "class 130 on all", change: ofLanes(true, class(130))},
	{name: "class 0", change: ofLanes(false, class(0))},
	{name: "PFC on 4, trust pcp, map 26:5", change: ofLanes(false, both(pfc(4), pcp, mapTo(26, 5)))},
	{name: "site: PFC 4", change: ofLanes(true, pfc(3)), wants: site("pfc_on_rdma_priority", "4")},
	{name: "site: PFC 4 or none", change: ofLanes(true, pfc(3)), wants: site("pfc_on_rdma_priority", "4|none")},
	{name: "site: no PFC", change: ofLanes(true, pfc(3)), wants: site("pfc_on_rdma_priority", "none")},
	{name: "site: any PFC", change: ofLanes(false, pfc(4)), wants: site("pfc_on_rdma_priority", "any")},
	{name: "site: class 130", change: ofLanes(true, pfc(3)), wants: site("default_traffic_class", "130", "job_traffic_class", "130")},
	{name: "site: map 24:5", change: ofLanes(true, pfc(3)), wants: site("dscp_map", "24:5")},
	{name: "site: map 24:3", change: ofLanes(true, pfc(3)), wants: site("dscp_map", "24:3")},
	{name: "site: trust pcp", change: ofLanes(true, pfc(3)), wants: site("trust_mode", "pcp")},
	{name: "job: class 130", change: jobs("NCCL_IB_TC", "130")},
	{name: "job: class 106", change: jobs("NCCL_IB_TC", "106")},
	{name: "job: class 0", change: jobs("NCCL_IB_TC", "0")},
	{name: "job: class 106, PFC on 4", change: func(n *snapshot.Node) bool {
		return jobs("NCCL_IB_TC", "106")(n) && ofLanes(false, pfc(4))(n)
	}},
	{name: "job: class 96, map 24:4", change: func(n *snapshot.Node) bool {
		return jobs("NCCL_IB_TC", "96")(n) && ofLanes(false, mapTo(24, 4))(n)
	}},
	{name: "ETS shared", change: ofLanes(false, func(_ *snapshot.Node, q *snapshot.NetdevQoS) {
		if q.Classes != nil {
			q.Classes.OfPrio = [snapshot.Priorities]uint64{}
		}
	})},
	{name: "ETS without bandwidth", change: ofLanes(false, func(_ *snapshot.Node, q *snapshot.NetdevQoS) {
		if q.Classes != nil {
			q.Classes.Bandwidth[q.Classes.OfPrio[3]] = 0
		}
	})},
	{name: "congestion notification off, CNPs with RDMA", change: ofLanes(false, func(_ *snapshot.Node, q *snapshot.NetdevQoS) {
		for p := range q.Reaction {
			if q.Reaction[p] != nil {
				q.Reaction[p] = new(uint64(0))
			}
		}
		if q.CNPPriority != nil {
			q.CNPPriority, q.CNPDSCP = new(uint64(3)), new(uint64(24))
		}
	})},
	{name: "MTU 1500", change: port("Ethernet", mtu(1500))},
	{name: "site: MTU 1500", change: port("Ethernet", mtu(1500)), wants: site("netdev_mtu", "1500")},
	{name: "site: MTU of RDMA 2048", change: port("Ethernet", mtu(1500)), wants: site("rdma_active_mtu", "2048")},
	{name: "MTU 4200", change: port("Ethernet", mtu(4200))},
	{name: "IPoIB MTU 1500", change: port("InfiniBand", mtu(1500))},
	{name: "IPoIB connected", change: port("InfiniBand", flags("80", "connected"))},
	{name: "IPoIB, connected wanted", change: port("InfiniBand", flags("80", "datagram")), wants: site("ipoib_mode", "connected", "ipoib_mtu", "65520")},
	{name: "IPoIB, connected wanted, enhanced", change: port("InfiniBand", flags("00", "datagram")), wants: site("ipoib_mode", "connected", "ipoib_mtu", "65520")},
	{name: "IPoIB, only its MTU wanted", change: port("InfiniBand", flags("80", "datagram")), wants: site("ipoib_mtu", "65520")},
	{name: "limits", change: func(n *snapshot.Node) bool {
		n.Setup.Launchers = nil
		for _, name := range setup.Launchers {
			n.Setup.Launchers = append(n.Setup.Launchers, hostdata.Launcher{Name: name, LockedMemory: new(uint64(8 << 20))})
		}
		return n.InfiniBand != nil
	}},
	{name: "permissions", change: func(n *snapshot.Node) bool {
		if n.Modules == nil {
			return false
		}
		for i := range n.Modules.Nodes {
			n.Modules.Nodes[i].Mode = "0600"
		}
		return true
	}},
	{name: "a job outside of the group of the nodes", change: func(n *snapshot.Node) bool {
		if n.Modules == nil || n.GDR == nil {
			return false
		}
		for i := range n.Modules.Nodes {
			n.Modules.Nodes[i].Mode, n.Modules.Nodes[i].Groups = "0660", []uint32{110}
		}
		n.GDR.Processes = append(n.GDR.Processes, accel.Process{
			PID: 1 << 20, Job: "slurm/1000", HasNCCL: true, MayOpen: new(false),
		})
		return true
	}},
	{name: "opensm, no ib_umad", change: func(n *snapshot.Node) bool {
		if n.Modules == nil {
			return false
		}
		n.Setup.Launchers = append(n.Setup.Launchers, hostdata.Launcher{Name: "opensm", Unlimited: true})
		n.Setup.Files["etc/systemd/system/multi-user.target.wants"] = hostdata.SetupFile{Text: "ssh.service"}
		n.Setup.Files["etc/modules-load.d"] = hostdata.SetupFile{}
		n.Setup.Files["usr/lib/systemd/system/opensm.service"] = hostdata.SetupFile{Text: "[Unit]"}
		n.Setup.Files["usr/lib/systemd/system/openibd.service"] = hostdata.SetupFile{Text: "[Unit]"}
		for i := range n.Modules.Modules {
			if x := &n.Modules.Modules[i]; x.Name == "ib_umad" {
				x.Loaded, x.Known = false, true
			}
		}
		return true
	}},
	{name: "ib_umad by hand", change: func(n *snapshot.Node) bool {
		if n.Modules == nil {
			return false
		}
		n.Setup.MADFlags = []string{"--collector.neighbour.subnet"}
		n.Setup.Files["etc/modules-load.d"] = hostdata.SetupFile{}
		delete(n.Setup.Files, "etc/rdma/modules/infiniband.conf")
		for i := range n.Modules.Modules {
			if x := &n.Modules.Modules[i]; x.Name == "ib_umad" {
				x.Loaded, x.Known, x.BuiltIn = true, true, false
			}
		}
		return true
	}},
	{name: "PCIe", change: func(n *snapshot.Node) (changed bool) {
		if n.GDR == nil {
			return false
		}
		for i := range n.GDR.NICs {
			if s := n.GDR.NICs[i].Settings; s != nil {
				s.MaxReadRequest, s.RelaxedOrdering, changed = 512, false, true
			}
		}
		return changed
	}},
	{name: "modules by hand", change: func(n *snapshot.Node) bool {
		for file, f := range n.Setup.Files {
			if strings.HasPrefix(file, "etc/modules-load.d/") || strings.HasPrefix(file, "etc/rdma/") {
				f.Text = "# empty"
				n.Setup.Files[file] = f
			}
		}
		n.Setup.Files["etc/modules-load.d"] = hostdata.SetupFile{}
		n.Setup.Files["proc/sys/kernel/numa_balancing"] = hostdata.SetupFile{Text: "1"}
		return true
	}},
}
