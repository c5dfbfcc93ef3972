package link

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/words"
)

// downFaults are those of ports that are down.
var downFaults = fault.Kinds{
	"port_down/port":           {Write: portDown},
	"port_down/administrative": {Write: portSetDown},
	"port_down/plane":          {Write: planeDegraded},
}

// portState is a state of a port with what it means.
type portState struct{ name, remark string }

var portStates = map[float64]portState{
	1: {"DOWN", ""},
	2: {"INIT", ""},
	3: {"ARMED", "the subnet manager has not finished"},
	5: {"ACTIVE_DEFER", "link failing"},
}

var physicalStates = map[float64]portState{
	1: {"Sleep", ""},
	2: {"Polling", "no signal from the far end"},
	3: {"Disabled", "Ethernet drivers report it for any link down"},
	4: {"Training", ""},
	5: {"LinkUp", ""},
	6: {"LinkErrorRecovery", ""},
}

// stateOf returns a state of a table, or else its number.
func stateOf(states map[float64]portState, id float64) portState {
	if s, ok := states[id]; ok {
		return s
	}
	return portState{fault.Plain(id), ""}
}

// explained returns the name with the remark.
func (s portState) explained() string { return s.name + fault.When(s.remark != "", " ("+s.remark+")") }

const (
	physicalState = `max(rdma_port_physical_state_id{$port})`
	adminNetdevs  = `max by (netdev) (rdma_port_admin_up{$port})`
	portLinkUp    = `(` + physicalState + ` == 5 or max(rdma_port_state_id{$port} > 1 < 4) unless ` + physicalState + `)`
	virtualPort   = `rdma_device_info{function_type="virtual",$device}`
)

func portDown(f *fault.Fault) fault.Text {
	setDown := f.Has(`port:rdma_port_down:administrative{$port}`)
	name, physical := stateOf(portStates, f.Value).name, ""
	if id, ok := f.Number(physicalState); ok {
		physical = ", physical state " + stateOf(physicalStates, id).name
	}
	layer := f.OtherLinkLayer()
	if layer != nil {
		physical += ", " + layer.Summary()
	}
	action, elsewhere := actionOfDown(f, setDown, layer)
	t := fault.Text{
		Summary: f.Where() + ": port state " + name + ", expected ACTIVE" + physical +
			fault.When(setDown, ", netdev administratively down"),
		Description: "The port state is " + name + "; ACTIVE is expected. Connections over the port break after the " +
			"retries of the transport (NCCL: seconds to minutes), and collective jobs abort or hang. New jobs do not " +
			"start, or run without the bandwidth of this port.",
		Evidence: evidenceOfDown(f, setDown, layer),
		Diagnose: diagnoseDown(f),
		Action: action + " If the port is to stay without a link, run rdma_exporter accept " +
			fault.Pasted(f.Labels["device"]) + ".",
		Elsewhere: elsewhere,
	}
	switch {
	case setDown:
		t.DrainReason = noFaultKnown
	case f.Has(`port:rdma_job:survive{$port}`):
		t.DrainReason = runsOn(f)
		t.Evidence = append(t.Evidence, fault.Line{Name: "Jobs", Text: t.DrainReason})
	case f.Has(`port:rdma_port_role:compute{$port}`):
		t.DrainReason = "Jobs that use this port have failed or hang; new ones do not start, or run slower."
	default:
		t.DrainReason = "This is not a compute port: jobs keep their compute network."
	}
	return t
}

// runsOn says on how many ports the jobs of a port that failed go on.
func runsOn(f *fault.Fault) string {
	rails := f.Text(`count(rdma_port_state_id{$host} == 4 and on (device, port) port:rdma_port_role:compute{$host})`, "%v", "0")
	all := f.Text(`count(port:rdma_port_role:compute{$host})`, " of %v compute ports", " compute ports")
	return "NCCL fails over: jobs run on with " + rails + all + ". New jobs would have less bandwidth."
}

const noFaultKnown = "The interface is administratively down: no fault is known."

// portSetDown tells of a port that somebody has set down.
func portSetDown(f *fault.Fault) fault.Text {
	var e fault.Lines
	e.Add("State", stateOf(portStates, f.Value).name+".")
	addNetdevsSetDown(f, &e)
	e.Add("Not evaluated", "cable, transceiver and switch port.")
	netdevs := f.LabelsOf(adminNetdevs, "netdev")
	show := func(netdev string) string { return "ip -br link show dev " + fault.Pasted(netdev) }
	return fault.Text{
		Summary: f.Where() + ": port down, netdev administratively down",
		Description: "The port is not ACTIVE because all of its netdevs are administratively down. Jobs cannot use this " +
			"port until a netdev is administratively up, and jobs that need all ports do not start.",
		Evidence:    e,
		Diagnose:    strings.Join(words.Map(netdevs, show), " ; "),
		Action:      setUp(f),
		DrainReason: noFaultKnown,
	}
}

func addNetdevsSetDown(f *fault.Fault, e *fault.Lines) {
	for _, netdev := range f.LabelsOf(adminNetdevs, "netdev") {
		e.Add("Netdev", netdev+", administratively down.")
	}
}

// setUp returns the action that sets the netdevs of the port up.
func setUp(f *fault.Fault) string {
	command := func(netdev string) string { return "ip link set " + fault.Pasted(netdev) + " up" }
	return "Set the interface up when the maintenance is finished: " +
		strings.Join(words.Map(f.LabelsOf(adminNetdevs, "netdev"), command), ", ") + "."
}

func evidenceOfDown(f *fault.Fault, setDown bool, layer *fault.LinkLayer) fault.Lines {
	var e fault.Lines
	e.Add("State", stateOf(portStates, f.Value).explained()+".")
	if id, ok := f.Number(physicalState); ok {
		e.Add("Physical state", stateOf(physicalStates, id).explained()+".")
	}
	if setDown {
		addNetdevsSetDown(f, &e)
	}
	if layer != nil {
		e.Add("Link layer", layer.Evidence())
	}
	reasons := `max by (netdev, reason, detail) (rdma_port_link_down_reason_info{$port})`
	for _, r := range f.Rows(reasons, "netdev", "reason", "detail") {
		e.Add("Reason", words.Join(", ", r.Labels["reason"], r.Labels["detail"])+
			" (driver-reported, "+r.Labels["netdev"]+").")
	}
	addTransceivers(f, &e)
	switch {
	case f.Has(`max(rdma_port_was_active{$port}) == 1`):
		e.Add("Expected", "ACTIVE, as before.")
	case f.Has(`rdma_port_pinned_active{$port}`):
		e.Add("Expected", "ACTIVE, by the configuration.")
	default:
		e.Add("Expected", "ACTIVE, by most compute ports of this host.")
	}
	e.Add("Link losses", f.Text(lossesIn1h+` > 0`, "%.0f in 1h.", ""))
	if uptime, ok := f.Number(`max(rdma_host_uptime_seconds{$host})`); ok {
		e.Add("Uptime", fault.Lasting(uptime)+".")
	}
	if down, ok := f.Number(`count(port:rdma_port_down:unexpected{$host})`); ok {
		ports := f.Text(`count(max by (device, port) (rdma_port_state_id{$host}))`, " of %v", "")
		e.Add("Host ports", fault.Plain(down)+ports+" not ACTIVE although expected.")
	}
	e.Add(
		"Not evaluated",
		"the switch port"+fault.When(!f.Has(`rdma_transceiver_info{$port}`), ", cable and transceiver")+".",
	)
	return e
}

// addTransceivers adds what the transceivers of the port say.
func addTransceivers(f *fault.Fault, e *fault.Lines) {
	for _, netdev := range f.LabelsOf(`max by (netdev) (rdma_transceiver_state{state="absent",$port})`, "netdev") {
		e.Add("Cage", netdev+" has no transceiver (driver-reported).")
	}
	for _, t := range f.Rows(`max by (netdev) (rdma_transceiver_temperature_celsius{$port})`, "netdev") {
		e.Add("Temperature", fmt.Sprintf("%.1f °C, transceiver in %s.", t.Value, t.Labels["netdev"]))
	}
	powers := map[string][]string{} // by netdev
	for _, lane := range f.Rows(`max by (netdev, lane) (rdma_transceiver_receive_power_dbm{$port})`, "lane") {
		netdev := lane.Labels["netdev"]
		powers[netdev] = append(powers[netdev], fmt.Sprintf("%.1f", lane.Value))
	}
	for _, netdev := range slices.Sorted(maps.Keys(powers)) {
		e.Add("Receive power", strings.Join(powers[netdev], ", ")+" dBm by lane, transceiver in "+netdev+".")
	}
}

func diagnoseDown(f *fault.Fault) string {
	out := f.ShowLink()
	if f.Has(ethernetPort) {
		for _, netdev := range f.Netdevs() {
			out += " ; ethtool " + fault.Pasted(netdev)
		}
	} else {
		out += " ; cat " + portFiles(f) + "/phys_state"
	}
	if f.Has(portLinkUp) && f.Has(`rdma_port_info{link_layer="InfiniBand",$port}`) {
		out += " ; sminfo -C " + fault.Pasted(f.Labels["device"]) + " -P " + f.Labels["port"]
	}
	mlx4 := `max by (pci_address) (rdma_device_info{driver=~"mlx4.*",pci_address!="",$device})`
	for _, address := range f.LabelsOf(mlx4, "pci_address") {
		out += " ; grep . /sys/bus/pci/devices/" + address + "/mlx4_port*"
	}
	return out + fault.When(f.Has(`rdma_bond_member_up{$port}`), " ; grep . /proc/net/bonding/*") +
		" ; dmesg -T | grep -iE 'mlx|bnxt|irdma|ionic|efa|link' | tail -20 # as root"
}

func actionOfDown(f *fault.Fault, setDown bool, layer *fault.LinkLayer) (action string, elsewhere bool) {
	if setDown {
		return setUp(f), true
	}
	if layer != nil {
		return "The cable is not at fault: the port has another link layer than its switch. " + layer.Action(f), true
	}
	for _, c := range causesOfDown {
		if f.Has(c.found) {
			return strings.ReplaceAll(c.action, "$device", fault.Pasted(f.Labels["device"])), true
		}
	}
	return "Check that the switch port is enabled. Reseat the cable at both ends, then swap it, then the transceiver, " +
		"then the switch port.", false
}

// causesOfDown are causes of a port that is down, with what to do; $device is its name. The first one found counts.
var causesOfDown = []struct{ found, action string }{
	{
		`rdma_device_info{driver=~"efa|mana|erdma",$device}`,
		"The device has no cable: drain the host, stop and start the instance, which moves it to other hardware, and " +
			"report the device to the provider.",
	},
	{
		`rdma_device_info{driver=~"rxe|siw",$device}`,
		"The device is software on top of a netdev: repair the link of that one. A software device that no job needs is " +
			"removed by rdma link delete.",
	},
	{
		`rdma_device_info{function_type="subfunction",$device}`,
		"The port is that of a subfunction: on the host of its physical function check its state (devlink port show) and " +
			"the port of the physical function. " + repairIfBothDown,
	},
	{virtualPort + ` and on () ` + ethernetPort, onHypervisor("", repairIfBothDown)},
	{
		virtualPort + ` and on () ` + portLinkUp,
		onHypervisor(" and GUIDs", "The link is up: check that the subnet manager supports virtual ports "+
			"(opensm: virt_enabled 2)."),
	},
	{virtualPort, onHypervisor(" and GUIDs", repairIfBothDown)},
	{
		`rdma_bond_member_up{$port} == 1`,
		"Members of the bond have link, so that no cable is at fault. Check the bond: its interface set up, LACP on the " +
			"switch, the state of each member (/proc/net/bonding).",
	},
	{
		portLinkUp + ` and on () ` + ethernetPort,
		"The link is up, so that no cable is at fault. Check the netdev and the messages of the driver " +
			"(ip -s link, dmesg).",
	},
	{
		portLinkUp,
		"The link is up, so that no cable is at fault. Check the subnet manager (sminfo, its log) and whether it manages " +
			"this port: partition, GUID, policy.",
	},
	{
		`rdma_transceiver_state{state="fault",$port} == 1`,
		"Reseat the transceiver, which reports a fault, then replace it.",
	},
	{
		`rdma_transceiver_state{state="absent",$port} == 1 ` +
			`unless on (cluster, instance, job) rdma_transceiver_info{$port}`,
		"Insert a transceiver or cable into the cage.",
	},
	{
		`rdma_device_info{driver=~"mlx4.*",$device}`,
		"Compare the port type first (mlx4_port1, mlx4_port2 of the PCI device: ib, eth or auto): with another type than " +
			"that of the switch no link comes up. If they agree, check the switch port and the cable.",
	},
	{
		`rdma_port_physical_state_id{$port} == 3 ` +
			`and on (cluster, instance, job, device, port) rdma_port_info{link_layer="InfiniBand",$port}`,
		"The port is disabled, or no cable is connected. Connect the cable, and enable the port at both ends: " +
			"mlxlink -d $device -a UP here, ibportstate LID PORT enable for the switch port. Then check the firmware " +
			"settings of the adapter.",
	},
}

const repairIfBothDown = "Repair a cable only if that port is down as well."

// onHypervisor returns the action for a port of a virtual function.
func onHypervisor(settings, then string) string {
	return "The port is that of a virtual function: on the hypervisor check its link state policy" + settings +
		" (ip link show) and the port of its physical function. " + then + " In a cloud, report the port to the provider."
}

func planeDegraded(f *fault.Fault) fault.Text {
	active, some := f.Number(`device:rdma_device_planes:active{$device}`)
	expected, of := f.Value, ""
	if lost, ok := f.Number(`device:rdma_device_planes:lost{$device}`); ok {
		expected = lost + active
		of = " of " + fault.Plain(expected)
	}
	link, effect := "degraded", "The link has a part of its bandwidth, and collectives wait for their slowest link."
	reason := "Jobs continue on the other planes with less bandwidth."
	if !some {
		link, effect = "down", "Jobs that use this link fail or hang."
		reason = "This is not a compute device: jobs keep their compute network."
		if f.Has(`port:rdma_port_role:compute{$device}`) {
			reason = "Jobs that use this link have failed or hang."
		}
	}
	return fault.Text{
		Summary: f.Host() + " " + f.Labels["device"] + ": link " + link + ", " + fault.Plain(active) + of +
			" expected planes (ports of this device) ACTIVE",
		Description: words.Count(int(f.Value), "plane") + " of the link " + isOrAre(f.Value == 1) + " not ACTIVE " +
			"although expected; " + fault.Plain(active) + " " + isOrAre(some && active <= 1) + " ACTIVE. " + effect,
		Evidence: evidenceOfPlanes(f),
		Measured: fault.Plain(active),
		Limit:    fault.Plain(expected),
		Diagnose: "rdma link show | grep -w " + fault.Pasted(f.Labels["device"]),
		Action: "If all planes of one cable are lost, reseat the cable, then swap the cable or the transceiver. If one " +
			"plane is lost on many hosts, repair the switch or the subnet manager of that plane. If the planes were taken " +
			"out of use on purpose, run rdma_exporter accept " + fault.Pasted(f.Labels["device"]) + ".",
		DrainReason: reason,
	}
}

func isOrAre(one bool) string {
	if one {
		return "is"
	}
	return "are"
}

func evidenceOfPlanes(f *fault.Fault) fault.Lines {
	var e fault.Lines
	var lost []string
	for _, port := range f.LabelsOf(`port:rdma_port_down:unexpected{$device}`, "port") {
		lost = append(lost, f.Labels["device"]+"/"+port)
	}
	e.Add("Lost planes", strings.Join(lost, ", ")+".")
	e.Add("Planes", f.Text(`count(max by (port) (rdma_port_state_id{$device}))`, "%v on this device.", ""))
	e.Add("Expected", "planes that were ACTIVE before or that the configuration pins.")
	e.Add("Not evaluated", "cable, transceiver and switches.")
	return e
}
