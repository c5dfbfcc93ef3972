package port

import (
	"cmp"
	"strconv"
	"strings"

	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/words"
)

// siblingFaults are those of ports that are set up or connected unlike their siblings.
var siblingFaults = fault.Kinds{
	"port_misconfigured/address":     {Write: addressConflict},
	"port_misconfigured/ipoib":       {Write: ipoibDown},
	"port_misconfigured/link_layer":  {Write: linkLayerDiffers},
	"port_misconfigured/mtu":         {Write: mtuMismatch},
	"port_misconfigured/roce_mtu":    {Write: roceMTULow},
	"port_misconfigured/roce_v2_gid": {Write: roceV2GIDMissing},
	"port_misconfigured/pkey":        {Write: pkeyMissing},
	"host_misconfigured/firmware":    {Write: firmwareDrift},
	"port_miscabled/neighbour":       {Write: portMiscabled, Measure: `port:rdma_port_miscabled:warning{$port}`},
}

func addressConflict(f *fault.Fault) fault.Text {
	n := int(f.Value)
	addresses := words.Count(n, "IPv4 address") + " have"
	if n == 1 {
		addresses = "1 IPv4 address has"
	}
	var e fault.Lines
	e.Add("Neighbours", fault.Plain(f.Value)+" with several MAC addresses, read each hour.")
	for _, r := range f.Rows(`max by (object, value) (rdma_setup_info{setting="arp_of_shared_subnets",$host})`,
		"object") {
		netdevs := r.Labels["object"]
		if netdevs == "all" {
			netdevs = "all RDMA netdevs in a shared subnet"
		}
		e.Add("ARP settings", r.Labels["value"]+" on "+netdevs+".")
	}
	e.Add("Expected", "arp_ignore 1 or 2, arp_announce 2, rp_filter 0 or 2.")
	e.Add("Not evaluated", "IPv6, and which port of the peer has the address.")
	return fault.Text{
		Summary: f.Host() + ": " + words.Count(n, "IPv4 neighbour") +
			" with several MAC addresses on RDMA netdevs of one subnet",
		Description: addresses + " different MAC addresses in the neighbour tables of RDMA netdevs of one subnet " +
			"(expected: one), and arp_ignore or arp_announce of these netdevs permits that any port answers for the " +
			"address of any other. Peers send RDMA packets to a port that does not have the address: connections time out, " +
			"or share one link.",
		Evidence: e,
		Diagnose: "rdma_exporter check --setup ; ip -4 neighbour show",
		Action: "Set arp_ignore=1, arp_announce=2 and rp_filter=2 for the RDMA netdevs of this host and its peers with " +
			"the command of rdma_exporter check --setup, and store them in /etc/sysctl.d. Then clear the neighbours: ip " +
			"neighbour flush dev NETDEV. Or give each rail a subnet of its own.",
		DrainReason: "Running jobs keep their connections; setting sysctls needs no drain.",
	}
}

// firmware is a version that devices of a board run, where not all run the same one.
type firmware struct {
	board, version string
	devices        []string
}

func firmwares(f *fault.Fault) (out []firmware) {
	for _, d := range f.Rows(`device:rdma_device_firmware:known{$host} and on (board_id) count by (board_id) `+
		`(count by (board_id, firmware_version) (device:rdma_device_firmware:known{$host})) > 1`,
		"board_id", "firmware_version", "device") {
		board, version := d.Labels["board_id"], d.Labels["firmware_version"]
		if n := len(out); n == 0 || out[n-1].board != board || out[n-1].version != version {
			out = append(out, firmware{board: board, version: version})
		}
		last := &out[len(out)-1]
		last.devices = append(last.devices, d.Labels["device"]+" ("+cmp.Or(d.Labels["pci_address"], "unknown")+")")
	}
	return out
}

func firmwareDrift(f *fault.Fault) fault.Text {
	var e fault.Lines
	board, boards := "", ""
	for _, w := range firmwares(f) {
		if w.board != board {
			board = w.board
			boards += fault.When(boards != "", "; of") + " board " + board + ":"
		} else {
			boards += ","
		}
		boards += " " + w.version + " on " + strconv.Itoa(len(w.devices))
		e.Add("Firmware", w.version+" of board "+w.board+" on "+strings.Join(w.devices, ", ")+".")
	}
	e.Add("Not evaluated", "which version is correct.")
	return fault.Text{
		Summary: f.Host() + ": different firmware on RDMA devices of" + cmp.Or(boards, " the same board"),
		Description: "RDMA devices of " + words.Count(int(f.Value), "board") + " (board_id) run more than one firmware " +
			"version. No impact by itself. Defaults, congestion control and known errata differ from one device to the " +
			"next, and one rail may be slower than the others without another alert.",
		Evidence: e,
		Diagnose: "grep . /sys/class/infiniband/*/fw_ver /sys/class/infiniband/*/board_id ; mlxfwmanager --query " +
			"# as root, needs MFT",
		Action: "Drain the host in the next maintenance and burn the version of the other hosts on the devices that " +
			"differ. Then reset them (mlxfwreset) or reboot; the new firmware runs only after that.",
		DrainReason: "All devices work; a drain is needed only for the update.",
	}
}

func ipoibDown(f *fault.Fault) fault.Text {
	netdevs, where := f.LabelsOf(`max by (netdev) (rdma_port_ipoib_state_id{$port})`, "netdev"), f.HostPort()
	for _, netdev := range netdevs {
		where += fault.When(netdev != "", " ("+netdev+")")
	}
	siblingsUp := f.Text(`max(port:rdma_port_ipoib:majority{$host} and on (role) port:rdma_port_ipoib:alike{$port})`,
		"%v", "") + " of " +
		f.Text(`count(port:rdma_port_ipoib:alike{$host} and on (role) port:rdma_port_ipoib:alike{$port})`, "%v", "")
	headline, sentence, state := "up, no carrier", "up and has no carrier",
		"up, no carrier: it has not joined the broadcast group of its partition"
	action := "Compare the P_Key of the interface with that of the others and with the partitions of the subnet " +
		"manager (saquery -g lists the groups), and correct the partition. Then set the interface down and up."
	if f.Value == 0 {
		headline, sentence, state = "down", "down", "down"
		action = "Configure the interface like the others (NetworkManager, netplan, systemd-networkd) and set it up."
	}
	var e fault.Lines
	e.Add("State", "interface administratively "+state+".")
	e.Add("Expected", "up, by siblings ("+siblingsUp+" IPoIB interfaces of this role on this host).")
	e.AddKnown("P_Keys", f.Text(`max(rdma_port_pkeys_missing{$port}) > 0`, "%v", ""),
		" pinned missing in the table of the port.")
	e.Add("Not evaluated", "addresses, child interfaces of further P_Keys, hosts on which at most half of the "+
		"interfaces are up.")
	return fault.Text{
		Summary: where + ": IPoIB interface administratively " + headline + ", port ACTIVE (" + siblingsUp +
			" on this host are up)",
		Description: "The port is ACTIVE, but its IPoIB interface is administratively " + sentence + "; " + siblingsUp +
			" IPoIB interfaces of this role on this host are up. RDMA works. What uses IP on this rail fails or waits: " +
			"the bootstrap of NCCL and MPI where NCCL_SOCKET_IFNAME includes it, RDMA CM, storage mounts.",
		Evidence:    e,
		Diagnose:    diagnoseIPoIB(netdevs),
		Action:      action + " If the interface is not used, silence this alert for the port.",
		DrainReason: "RDMA works on the port; only IP over this rail fails.",
	}
}

func diagnoseIPoIB(netdevs []string) string {
	var commands []string
	for _, netdev := range netdevs {
		name := fault.Pasted(netdev)
		commands = append(commands, "ip -d link show dev "+name, "cat /sys/class/net/"+name+"/pkey",
			"dmesg -T | grep "+name)
	}
	return cmp.Or(strings.Join(commands, " ; "), "ip -d link show type ipoib") + " # as root"
}

func linkLayerDiffers(f *fault.Fault) fault.Text {
	layer := cmp.Or(f.OtherLinkLayer(), &fault.LinkLayer{}) // the fault has ended since
	active := f.Has(`rdma_port_state_id{$port} == 4`)
	var e fault.Lines
	e.Add("Link layer", layer.Evidence())
	for _, r := range f.Rows(`max by (role_source) (rdma_port_info{role="compute",$port})`) {
		e.Add("Role", "compute, by "+r.Labels["role_source"]+".")
	}
	e.Add("Not evaluated", "whether the card can change its link layer, ports of other roles.")
	t := fault.Text{
		Summary: f.WhereAll() + ": " + fault.When(!active, "port not ACTIVE, ") + layer.Summary(),
		Description: "The port is configured for " + layer.Has + ", " + layer.Contrast() +
			". The port cannot come up: a switch of the other link layer is at the far end of its cable, which is not at " +
			"fault.",
		Evidence:    e,
		Diagnose:    layer.Diagnose(f),
		Action:      layer.Action(f) + " If it is meant to stay as it is, " + layer.Keep(f) + ".",
		DrainReason: "No job can use this port before the card is reset.",
	}
	if active {
		t.Description = "The port was " + layer.Expected + " and is ACTIVE as " + layer.Has + "; other ports of the same " +
			"board on this host have kept their link layer. Jobs that use all ports alike do not reach their peers over it."
		t.DrainReason = "New jobs cannot use this port together with the others."
	}
	return t
}

func mtuMismatch(f *fault.Fault) fault.Text {
	mtu := fault.Plain(f.Value) + " bytes"
	expected := f.Text(`max(port:rdma_port_mtu:majority{$host} and on (role, board_id) port:rdma_port_mtu:alike{$port})`,
		"%v bytes", "")
	var e fault.Lines
	e.Add("MTU", "netdev "+mtu+f.Text(`max(rdma_port_active_mtu_bytes{$port})`, ", RoCE %v bytes", "")+".")
	e.AddKnown("Expected", expected,
		", by siblings (majority of the ACTIVE RoCE ports of this role on this host).")
	e.Add("Not evaluated", "whether the majority is correct, MTU of switches and of other hosts, IPoIB.")
	return fault.Text{
		Summary: f.WhereAll() + ": MTU " + mtu + fault.When(expected != "", " (expected "+expected+" by siblings)"),
		Description: "The netdev has an MTU of " + mtu +
			fault.When(expected != "", ", most of its siblings on this host "+expected) +
			". The RoCE MTU follows it (4096 bytes at 9000, 1024 at 1500), and smaller packets cost packet rate on both " +
			"ends. Where a switch or the other end drops larger packets, jobs on this rail hang.",
		Evidence: e,
		Measured: fault.When(expected != "", mtu),
		Limit:    expected,
		Diagnose: diagnoseMTU(f),
		Action: "Check that the switch port allows the MTU of the siblings, then set it where the netdev is configured " +
			"(netplan, NetworkManager, ifupdown). Drain the host before: a driver may take the link down for the change. " +
			"If the port is meant to differ, ignore it in --config.file.",
		DrainReason: mtuDrainReason,
	}
}

func roceMTULow(f *fault.Fault) fault.Text {
	mtu := fault.Plain(f.Value) + " bytes"
	netdev := f.Text(`max(rdma_port_mtu_bytes{$port})`, "%v bytes", "")
	rate := f.Text(`max(rdma_port_rate_bytes_per_second{$port}) * 8 / 1e9`, "%v Gb/s", "")
	var e fault.Lines
	e.Add("MTU", "RoCE "+mtu+fault.When(netdev != "", ", netdev "+netdev)+".")
	e.Add("Expected", "RoCE 4096 bytes, for which the netdev needs 4192 bytes (9000 is usual).")
	e.AddKnown("Rate", rate, ".")
	if priorities := f.LabelsOf(`max by (priority) (rdma_port_pfc_enabled{$port})`, "priority"); len(priorities) > 0 {
		e.Add("PFC", "enabled on priority "+strings.Join(priorities, ", ")+".")
	}
	e.Add("Not evaluated", "MTU of switches and of other hosts, ports without priority flow control.")
	return fault.Text{
		Summary: f.WhereAll() + ": RoCE MTU " + mtu + " on a lossless link" + fault.When(rate != "", " of "+rate) +
			" (expected 4096 bytes)",
		Description: "The RoCE MTU is " + mtu + ", of 4096 possible" +
			fault.When(netdev != "", ", since the MTU of the netdev is "+netdev) + ". The same data takes more packets: more " +
			"headers on the wire and more work for both adapters, which may not reach the rate of the link.",
		Evidence: e,
		Measured: mtu,
		Limit:    "4096 bytes",
		Diagnose: diagnoseMTU(f),
		Action: "Raise the MTU of the switches first, then that of the netdevs, host by host. Drain a host before: a " +
			"driver may take the link down for the change. If the MTU is intended, ignore the port in --config.file.",
		DrainReason: mtuDrainReason,
	}
}

const mtuDrainReason = "The port carries traffic; a drain is needed only to change the MTU."

func diagnoseMTU(f *fault.Fault) (out string) {
	for _, netdev := range f.Netdevs() {
		out += "ip -d link show dev " + fault.Pasted(netdev) + " ; "
	}
	return out + "ibv_devinfo -d " + fault.Pasted(f.Labels["device"]) + " | grep mtu"
}

func roceV2GIDMissing(f *fault.Fault) fault.Text {
	var gids []string
	for _, g := range f.Rows(`max by (family) (rdma_port_roce_v2_gid_entries{$port})`, "family") {
		gids = append(gids, fault.Plain(g.Value)+" "+g.Labels["family"])
	}
	var e fault.Lines
	e.Add("GIDs", cmp.Or(strings.Join(gids, ", "), "none")+" (RoCE v2).")
	headline, sentence := "", ""
	if siblings := f.Rows(`port:rdma_port_roce_v2_gid:siblings{$host} and on (role) port:rdma_port_roce:active{$port}`,
		"family"); len(siblings) > 0 {
		family, ports := siblings[0].Labels["family"], fault.Plain(siblings[0].Value)
		headline = " (" + family + ", " + ports + " comparable ports of this host have one)"
		sentence = " of family " + family + "; " + ports + " other ports of its role on this host have one"
		e.Add("Expected", "1 "+family+" or more, by siblings ("+ports+" ACTIVE RoCE ports of this role on this host).")
	}
	e.Add("Not evaluated", "whether an address is correct, virtual functions and devices that serve them.")
	diagnose := "grep . /sys/class/infiniband/" + fault.Pasted(f.Labels["device"]) + "/ports/" + f.Labels["port"] +
		"/gid_attrs/types/* 2>/dev/null"
	for _, netdev := range f.Netdevs() {
		diagnose += " ; ip -br address show dev " + fault.Pasted(netdev)
	}
	return fault.Text{
		Summary: f.WhereAll() + ": RoCE v2 GID missing" + headline,
		Description: "The GID table of the ACTIVE port has no RoCE v2 entry" + sentence + ". Connections over RoCE v2 " +
			"cannot start on this port, or not beyond its own segment. NCCL falls back to other ports or to TCP, or fails.",
		Evidence: e,
		Diagnose: diagnose,
		Action: "Configure the address of the netdev like those of its siblings and set the netdev up; GIDs follow " +
			"within seconds. If the table has RoCE v1 entries only, check that the driver supports RoCE v2. Then restart " +
			"the jobs that use this port.",
		DrainReason: "Only jobs that use RoCE v2 over this port are affected; other ports of the host work.",
	}
}

func pkeyMissing(f *fault.Fault) fault.Text {
	n, partitions := int(f.Value), "these partitions"
	if n == 1 {
		partitions = "this partition"
	}
	var e fault.Lines
	e.Add("P_Keys", fault.Plain(f.Value)+" pinned missing"+
		f.Text(`max(rdma_port_pkey_entries{$port})`, ", %v in the table", "")+".")
	e.Add("Not evaluated", "which P_Key is missing, P_Keys that are not pinned, entries behind eight empty ones.")
	return fault.Text{
		Summary: f.WhereAll() + ": " + words.Count(n, "expected P_Key") + " missing (pinned in --config.file)",
		Description: "The P_Key table of the ACTIVE port is missing " + words.Count(n, "P_Key") + " that --config.file " +
			"pins. The port is not a member of " + partitions + ": connections there cannot be made through it, and an " +
			"IPoIB child interface has no carrier. Other ports of the host are not affected.",
		Evidence: e,
		Diagnose: "grep -v 0x0000 /sys/class/infiniband/" + fault.Pasted(f.Labels["device"]) + "/ports/" + f.Labels["port"] +
			"/pkeys/*",
		Action: "Add the GUID of the port to the partition on all subnet managers (partitions.conf, UFM), as a full " +
			"member where that is pinned, and reload their configuration. If the pin is wrong, correct it in --config.file.",
		DrainReason: "Only jobs that use these partitions over this port are affected.",
	}
}

func portMiscabled(f *fault.Fault) fault.Text {
	expected := f.Rows(`max by (system, port_id) (rdma_port_cabling_info{$netdev})`)
	neighbours := f.Rows(`max by (system, port_id, source) (rdma_port_neighbour_info{source!="cabling",$netdev})`,
		"system", "port_id")
	headline, is, isNot := "", "", ""
	for _, n := range neighbours {
		headline += ", connected to " + fault.FarPort(n)
		is += " " + fault.FarPort(n) + " (" + n.Labels["source"] + ")"
	}
	for _, c := range expected {
		headline += " (expected " + fault.FarPort(c) + " by --config.file)"
		isNot += " " + fault.FarPort(c) + " as"
	}
	return fault.Text{
		Summary: f.AtNetdev() + ": miscabled" + headline,
		Description: "The neighbour of the port is" + cmp.Or(is, " another one") + ", and not" + isNot +
			" in the section cabling of --config.file. The link works. In a rail-optimized fabric, a swapped cable sends " +
			"the traffic of a rail over the spines: its collectives and other jobs are slower.",
		Evidence: evidenceOfCabling(f, expected),
		Diagnose: diagnoseNeighbour(f),
		Action: "Drain the host, compare the labels at both ends of the cable and move it. If all ports of the host " +
			"differ, the host stands in another place than --config.file describes, or the file is outdated: correct the " +
			"file.",
		DrainReason: "The link works until its cable is moved.",
	}
}

func evidenceOfCabling(f *fault.Fault, expected []fault.Sample) (e fault.Lines) {
	for _, c := range expected {
		e.Add("Expected", fault.FarPort(c)+", by --config.file.")
	}
	for _, p := range f.Rows(`max by (device, port, netdev) (rdma_port_neighbour_info{source!="cabling",$host} `+
		`and on (cluster, instance, job, system, port_id) rdma_port_cabling_info{$netdev})`, "device", "port") {
		netdev := p.Labels["netdev"]
		e.Add("Connected there", fault.PortName(p)+fault.When(netdev != "", ", netdev "+netdev)+".")
	}
	e.AddKnown("Miscabled", f.Text(`count(max by (device, port, netdev) (rdma_port_miscabled{$host}) == 1)`, "%v", ""),
		" of "+f.Text(`count(max by (device, port, netdev) (rdma_port_miscabled{$host}))`, "%v", "")+
			" ports of this host with known cabling and neighbour.")
	e.Add("Not evaluated", "whether the cabling or --config.file is correct.")
	return e
}

func diagnoseNeighbour(f *fault.Fault) string {
	if f.Has(`rdma_port_info{link_layer="InfiniBand",$port}`) {
		return "smpquery -C " + fault.Pasted(f.Labels["device"]) + " -D nodedesc 0," + f.Labels["port"] + " # as root"
	}
	netdev := fault.Pasted(f.Labels["netdev"])
	return "networkctl lldp " + netdev + " ; lldpcli show neighbors ports " + netdev
}
