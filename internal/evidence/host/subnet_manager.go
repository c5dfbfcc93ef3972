package host

import (
	"strings"

	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/words"
)

// subnetManagerFaults are those of subnet managers.
var subnetManagerFaults = fault.Kinds{
	"no_subnet_manager/port":            {Write: portNoSubnetManager, OfHost: true},
	"host_misconfigured/subnet_manager": {Write: subnetManagerOnComputeHost, OfHost: true},
	"subnet_manager_unstable/changing":  {Write: subnetManagerChanging, OfHost: true},
}

func portNoSubnetManager(f *fault.Fault) fault.Text {
	ports := f.Rows(`port:rdma_port_init:subnet_manager{$host}`, "device", "port")
	active, hasActive := f.Number(`count(max by (device, port) (rdma_port_state_id{$host}) == 4 ` +
		`and max by (device, port) (rdma_port_info{link_layer="InfiniBand",$host}))`)
	var e fault.Lines
	e.Add("Ports", fault.PortNames(ports)+", physical state LinkUp, state INIT.")
	if hasActive {
		e.Add("ACTIVE ports", words.Count(int(active), "InfiniBand port")+
			" of this host; their subnet has a subnet manager.")
	} else {
		e.Add("ACTIVE ports", "no InfiniBand port of this host.")
	}
	e.Add("Not evaluated", "the subnet of these ports (unknown before a port is configured).")
	t := fault.Text{
		Summary: f.Host() + ": " + f.Count("InfiniBand port") + " without subnet manager, link up, state INIT: " +
			fault.PortNames(ports),
		Description: "The link of " + f.Count("InfiniBand port") + " is up (LinkUp) and the state stays INIT: no subnet " +
			"manager has configured " + f.One("it", "them") + " since the link came up. The " +
			f.One("port carries", "ports carry") + " no traffic. Without a subnet manager, connections of ACTIVE ports " +
			"continue, but no port that joins, reboots or fails over becomes ACTIVE.",
		Evidence:    e,
		Diagnose:    "ibstat # as root",
		Action:      startSubnetManager(f, len(ports) > 0, hasActive),
		DrainReason: "Jobs cannot use these ports until a subnet manager has configured them.",
	}
	if len(ports) > 0 {
		t.Diagnose = sminfo(ports[0]) + " ; ibstat " + fault.Pasted(ports[0].Labels["device"]) + " # as root"
	}
	return t
}

// startSubnetManager returns what to do for ports in INIT; active: other InfiniBand ports of the host are ACTIVE.
func startSubnetManager(f *fault.Fault, ports, active bool) string {
	if ports && !f.Has(`port:rdma_port_init:subnet_manager{$host} `+
		`unless on (device) rdma_device_info{function_type=~"virtual|subfunction",$host}`) {
		return "The ports are those of virtual functions: on the hypervisor check their GUIDs and link state policy " +
			"(ip link show), and that the subnet manager runs and supports virtual ports (opensm: virt_enabled 2). In a " +
			"cloud, report the ports to the provider."
	}
	lids := f.LabelsOf(`count_values("lid", rdma_port_sm_lid{$host} > 0 `+
		`and on (device, port) port:rdma_port_init:subnet_manager{$host})`, "lid")
	before, start := "", "Start"
	if len(lids) > 0 {
		before = "Check that the subnet manager that has configured the " + f.One("port", "ports") + " before (LID " +
			strings.Join(lids, ", ") + ") runs and sweeps (sminfo, its log). "
		start = "If not, start"
	}
	if active {
		start = "If other ports of the same subnet are ACTIVE, check switch, switch port and partitions of these ports. " +
			"Else start"
	}
	return before + start +
		" the subnet manager (opensm, UFM, or that of a managed switch), or let its standby take over."
}

func subnetManagerOnComputeHost(f *fault.Fault) fault.Text {
	ports := f.Rows(`port:rdma_port_subnet_manager:unmeant{$host}`, "device", "port")
	masters := f.Rows(`max by (device, port, port_guid) (rdma_port_subnet_manager_info{$host}) `+
		`and on (device, port) port:rdma_port_subnet_manager:unmeant{$host}`, "device", "port")
	var e fault.Lines
	e.Add("Ports", "IsSM set on "+fault.PortNames(ports)+".")
	for _, m := range masters {
		e.Add("Master", "port GUID "+m.Labels["port_guid"]+", in the subnet of "+fault.PortName(m)+".")
	}
	if len(masters) == 0 {
		e.Add("Not evaluated", "the master of the subnet (no data without --collector.neighbour.subnet).")
	}
	t := fault.Text{
		Summary: f.Host() + ": subnet manager runs on this compute host, " + f.One("port", "ports") + " " +
			fault.PortNames(ports),
		Description: "A subnet manager, master or standby, has registered (IsSM) at " + f.Count("InfiniBand port") +
			" of this host with GPUs, and no pin in --config.file expects it. No impact by itself. The subnet loses its " +
			"subnet manager when this host is drained or restarted; several of the same priority compete, and " +
			"RDMASubnetManagerUnstable follows.",
		Evidence: e,
		Diagnose: "saquery -s ; systemctl status opensm # as root",
		Action: "Make sure that another subnet manager, on a switch or a management host, becomes the master, then stop " +
			"and disable this one (systemctl disable --now opensm). If it is intended, pin subnet_manager in --config.file.",
		DrainReason: "Traffic is not affected; another subnet manager has to become the master before a drain.",
	}
	if len(ports) > 0 {
		t.Diagnose = sminfo(ports[0]) + " ; " + t.Diagnose
	}
	return t
}

func subnetManagerChanging(f *fault.Fault) fault.Text {
	ports := f.Rows(`max by (device, port) (port:rdma_port_sm_lid:changes1h{$host}) >= 3`, "device", "port")
	most := f.Text(`max(port:rdma_port_sm_lid:changes1h{$host})`, "%.0f", "")
	var changes []string
	for _, p := range ports {
		changes = append(changes, fault.PortName(p)+" ("+fault.Whole(p.Value)+" changes in an hour, limit 2"+
			f.Of(p).Text(`max(port:rdma_port_sm_lid:active{$port})`, ", subnet manager at LID %.0f", "")+")")
	}
	var e fault.Lines
	e.Add("Ports", strings.Join(changes, " ")+".")
	if active, ok := f.Number(`count(port:rdma_port_sm_lid:active{$host})`); ok {
		e.Add("ACTIVE ports", words.Count(int(active), "InfiniBand port")+" of this host with a subnet manager.")
	}
	e.Add("Not evaluated", "changes between two rounds, other subnet managers of the subnet.")
	t := fault.Text{
		Summary: f.Host() + ": subnet manager of " + f.Count("InfiniBand port") + " changed" +
			fault.When(most != "", " "+most+" times in 1h (limit 2)"),
		Description: "The subnet manager LID of " + f.Count("ACTIVE InfiniBand port") + " changed" +
			fault.When(most != "", " "+most+" times") + " within 1h; a failover is one change, the way back a second. " +
			"Established connections continue. Each takeover sweeps the subnet and may change routes; joins, path queries " +
			"and multicast wait meanwhile, and large jobs start slowly or not at all.",
		Evidence: e,
		Diagnose: "saquery -s # as root",
		Action: "Stop the subnet managers that are not intended to run, and give the others distinct priorities. With " +
			"another master running, stop the one that restarts again and again until its host or link is repaired.",
		DrainReason: "Established connections continue; only new ones wait while a subnet manager takes over.",
	}
	if len(ports) > 0 {
		t.Diagnose = sminfo(ports[0]) + " ; " + t.Diagnose
	}
	if most != "" {
		t.Measured, t.Limit = most+" changes", "2 changes"
	}
	return t
}

// sminfo returns the command that asks the subnet manager of a port.
func sminfo(port fault.Sample) string {
	return "sminfo -C " + fault.Pasted(port.Labels["device"]) + " -P " + port.Labels["port"]
}
