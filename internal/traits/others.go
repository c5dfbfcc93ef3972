package traits

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/setup/software"
	"rdma_exporter/internal/setup/values"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/words"
)

var ofQoS = []struct {
	entry
	value func(*snapshot.NetdevQoS) string
}{
	{entry{setting: "pfc_on_rdma_priority", affects: Lossless}, func(q *snapshot.NetdevQoS) string {
		if q.PFC == nil {
			return ""
		}
		return enabled(func(i int) bool { return q.PFC.Enabled[i] })
	}},
	{entry{setting: "trust_mode", affects: Lossless}, func(q *snapshot.NetdevQoS) string { return q.Trust }},
	{entry{setting: "dscp_map", affects: Lossless}, dscpMap},
	{entry{setting: "receive_buffers"}, func(q *snapshot.NetdevQoS) string {
		if q.Buffers == nil {
			return ""
		}
		return fmt.Sprintf("%d bytes, by priority %d", q.Buffers.Sizes, q.Buffers.OfPrio)
	}},
	{entry{setting: "dcbx"}, func(q *snapshot.NetdevQoS) string { return strings.Join(q.DCBX, " ") }},
	{entry{setting: "ecn_on_rdma_priority"}, func(q *snapshot.NetdevQoS) string {
		if !slices.ContainsFunc(q.Notification[:], func(n *uint64) bool { return n != nil }) {
			return ""
		}
		on := func(n *uint64) bool { return n != nil && *n == 1 }
		return enabled(func(i int) bool { return on(q.Notification[i]) && on(q.Reaction[i]) })
	}},
	{entry{setting: "cnp"}, func(q *snapshot.NetdevQoS) string {
		if q.CNPDSCP == nil || q.CNPPriority == nil {
			return ""
		}
		return fmt.Sprintf("DSCP %d, priority %d", *q.CNPDSCP, *q.CNPPriority)
	}},
}

// enabled lists the priorities for which something is on.
func enabled(on func(int) bool) string {
	var priorities []int
	for i := range snapshot.Priorities {
		if on(i) {
			priorities = append(priorities, i)
		}
	}
	return values.ListOrNone(priorities)
}

const none = "none"

// dscpMap lists the DSCPs that are mapped to a priority: 0-7:0 26:3.
func dscpMap(q *snapshot.NetdevQoS) string {
	if q.DSCPs == nil {
		return ""
	}
	var of [64]string // priority
	for priority, dscps := range q.DSCPs {
		for _, d := range dscps {
			if int(d) < len(of) {
				of[d] = words.Join(",", of[d], fmt.Sprint(priority))
			}
		}
	}
	var parts []string
	for first := 0; first < len(of); {
		last := first
		for last+1 < len(of) && of[last+1] == of[first] {
			last++
		}
		switch {
		case of[first] == "":
		case first == last:
			parts = append(parts, fmt.Sprintf("%d:%s", first, of[first]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d:%s", first, last, of[first]))
		}
		first = last + 1
	}
	return cmp.Or(strings.Join(parts, " "), none)
}

func (l *list) addQoS(n *snapshot.Node) {
	if n.QoS == nil {
		return
	}
	for d, p := range ports(n) {
		for i := range n.QoS.Netdevs {
			if q := &n.QoS.Netdevs[i]; q.Device == d.Name && q.Port == p.Number {
				for _, x := range ofQoS {
					l.add(x.entry, p.Role, q.Name, x.value(q))
				}
			}
		}
		for i := range n.QoS.Ports {
			if q := &n.QoS.Ports[i]; q.Device == d.Name && q.Port == p.Number {
				l.add(entry{setting: "default_traffic_class", affects: Lossless}, p.Role,
					fmt.Sprintf("%s/%d", d.Name, p.Number), number(q.TrafficClass))
			}
		}
	}
}

func (l *list) addEthernet(n *snapshot.Node) {
	if n.Ethernet == nil {
		return
	}
	for d, p := range ports(n) {
		for i := range n.Ethernet.Netdevs {
			nd := &n.Ethernet.Netdevs[i]
			if nd.Device != d.Name || nd.Port != p.Number || nd.LinkLayer != "Ethernet" {
				continue
			}
			l.add(entry{setting: "fec", live: true}, p.Role, nd.Netdev, nd.FECCode)
			if nd.Pause != nil && nd.Pause.RX != nil && nd.Pause.TX != nil {
				l.add(entry{setting: "global_pause"}, p.Role, nd.Netdev,
					"receive "+values.OnOff(*nd.Pause.RX != 0)+", transmit "+values.OnOff(*nd.Pause.TX != 0))
			}
		}
	}
}

var ofNICs = []struct {
	entry
	value func(*accel.GDR, *accel.GDRNIC) string
}{
	{entry{setting: "max_read_request"}, func(_ *accel.GDR, d *accel.GDRNIC) string {
		if d.Settings == nil {
			return ""
		}
		return fmt.Sprint(d.Settings.MaxReadRequest)
	}},
	{entry{setting: "max_payload"}, func(_ *accel.GDR, d *accel.GDRNIC) string {
		if d.Settings == nil {
			return ""
		}
		return fmt.Sprint(d.Settings.MaxPayload)
	}},
	{entry{setting: "relaxed_ordering"}, func(_ *accel.GDR, d *accel.GDRNIC) string {
		if d.Settings == nil {
			return ""
		}
		return values.OnOff(d.Settings.RelaxedOrdering)
	}},
	{entry{setting: "acs", affects: GPUDirect}, func(_ *accel.GDR, d *accel.GDRNIC) string {
		if d.Redirect == nil {
			return ""
		}
		return values.OnOff(*d.Redirect)
	}},
	{entry{setting: "gpu_direct_mechanism", affects: GPUDirect}, func(g *accel.GDR, d *accel.GDRNIC) string {
		if len(g.GPUs) == 0 || d.DMABUF == nil || d.Role != computeRole {
			return ""
		}
		var have []string
		if *d.DMABUF {
			have = append(have, "dmabuf")
		}
		if g.Peermem != "" || g.PeerClient != "" && g.PeerClient != "unknown" {
			have = append(have, "peermem")
		}
		if len(have) == 0 {
			return none
		}
		return strings.Join(have, " + ")
	}},
}

func (l *list) addNICs(n *snapshot.Node) {
	if n.GDR == nil {
		return
	}
	for i := range n.GDR.NICs {
		d := &n.GDR.NICs[i]
		role, physical := l.roles[d.Device]
		if !physical {
			continue
		}
		for _, x := range ofNICs {
			l.add(x.entry, role, d.Device, x.value(n.GDR, d))
		}
	}
}

// distances between a GPU and a NIC, the nearest first: terms of nvidia-smi topo -m and of NCCL.
var distances = []string{"PIX", "PXB", "P2C", "PHB", "NODE", "SYS"}

func (l *list) addGPUs(n *snapshot.Node) {
	if n.GDR == nil {
		return
	}
	nearest := map[int]int{}
	for i := range n.GDR.Pairs {
		p := &n.GDR.Pairs[i]
		if at := slices.Index(distances, p.Topology); at >= 0 {
			if best, ok := nearest[p.GPU]; !ok || at < best {
				nearest[p.GPU] = at
			}
		}
	}
	for gpu, at := range nearest {
		l.add(entry{setting: "gpu_nic_distance", affects: GPUDirect}, "", "GPU "+n.GDR.GPUs[gpu].Index, distances[at])
	}
}

var ofHost = []struct {
	entry
	value func(*snapshot.Node) string
}{
	{entry{setting: "kernel"}, func(n *snapshot.Node) string {
		if n.Setup == nil {
			return ""
		}
		return software.Release(n.Setup.Files)
	}},
	{entry{setting: "compute_ports"}, func(n *snapshot.Node) string {
		if n.InfiniBand == nil || len(n.InfiniBand.Missing) > 0 || IsPart(n) { // other metrics report those
			return ""
		}
		count := 0
		for _, p := range ports(n) {
			if p.Role == computeRole {
				count++
			}
		}
		return fmt.Sprint(count)
	}},
	{entry{setting: "gpus", live: true}, func(n *snapshot.Node) string {
		if n.GDR == nil || len(n.GDR.GPUs) == 0 {
			return ""
		}
		return fmt.Sprint(len(n.GDR.GPUs))
	}},
	{entry{setting: "gpu_driver"}, func(n *snapshot.Node) string {
		if n.GDR == nil {
			return ""
		}
		return n.GDR.Driver
	}},
	{entry{setting: "nccl_conf"}, func(n *snapshot.Node) string {
		if n.Setup == nil {
			return ""
		}
		conf, ok := n.Setup.Files.Text(ncclConf)
		if !ok && n.Setup.Files.Unread(ncclConf) != "" {
			return ""
		}
		var parts []string
		for name, value := range nccl.ParseConf(conf) {
			parts = append(parts, name+"="+value)
		}
		if len(parts) == 0 {
			return none
		}
		slices.Sort(parts)
		return strings.Join(parts, " ")
	}},
}

const ncclConf = "etc/nccl.conf" // as in setup.Files

func (l *list) addHost(n *snapshot.Node) {
	for _, x := range ofHost {
		l.add(x.entry, "", "host", x.value(n))
	}
	if n.Modules == nil {
		return
	}
	for i := range n.Modules.Modules {
		if m := &n.Modules.Modules[i]; m.Driver && m.Loaded && m.Flavour != "" && !strings.HasSuffix(m.Name, "_compat") {
			l.add(entry{setting: "driver"}, m.Name, m.Name, words.Join(" ", m.Flavour, m.Version))
		}
	}
}
