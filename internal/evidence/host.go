package evidence

import (
	"strconv"
	"strings"

	"rdma_exporter/internal/words"
)

// hostTexts are those of GPUs, GPUDirect, subnet managers and the exporter.
var hostTexts = map[string]func(*Fault) Text{
	"gpu_fabric_degraded/nvlink": gpuFabricDegraded,
	"gpu_xid/recovery_action":    gpuXid,

	"host_misconfigured/acs":              acsRedirect,
	"gpu_direct_staging/staging":          gpuDirectStaging,
	"gpu_direct_unavailable/no_mechanism": gpuDirectUnavailable,
	"host_misconfigured/iommu":            iommuTranslating,
	"port_misconfigured/job_gid":          jobGIDMismatch,
	"host_misconfigured/locked_memory":    lockedMemoryLow,
	"host_misconfigured/nic_place":        nicMisplaced,
	"host_misconfigured/numa":             numaMisplaced,
	"host_misconfigured/pcie_settings":    pcieSettings,
	"gpu_direct_staging/sockets":          transportFallback,

	"no_subnet_manager/port":            portNoSubnetManager,
	"host_misconfigured/subnet_manager": subnetManagerOnComputeHost,
	"subnet_manager_unstable/changing":  subnetManagerChanging,

	"exporter_degraded/store":         alertStoreDegraded,
	"exporter_degraded/collector":     collectorFailing,
	"exporter_degraded/cpu":           exporterCPUStarved,
	"exporter_degraded/limit":         exporterLimitReached,
	"exporter_degraded/gpus_paused":   gpuMonitoringPaused,
	"exporter_degraded/gpus_released": gpusReleased,
	"exporter_degraded/notifications": notificationsDropped,
	"exporter_degraded/port":          portUnreadable,
	"exporter_degraded/reload":        reloadFailed,
	"exporter_degraded/state":         stateNotWritten,
}

func portNoSubnetManager(f *Fault) Text {
	ports := f.rows(`port:rdma_port_init:subnet_manager{$host}`, "device", "port")
	active, hasActive := f.number(`count(max by (device, port) (rdma_port_state_id{$host}) == 4 ` +
		`and max by (device, port) (rdma_port_info{link_layer="InfiniBand",$host}))`)
	var e lines
	e.add("Ports", portNames(ports)+", physical state LinkUp, state INIT.")
	if hasActive {
		e.add("ACTIVE ports", words.Count(int(active), "InfiniBand port")+
			" of this host; their subnet has a subnet manager.")
	} else {
		e.add("ACTIVE ports", "no InfiniBand port of this host.")
	}
	e.add("Not evaluated", "the subnet of these ports (unknown before a port is configured).")
	t := Text{
		Summary: f.host() + ": " + f.count("InfiniBand port") + " without subnet manager, link up, state INIT: " +
			portNames(ports),
		Description: "The link of " + f.count("InfiniBand port") + " is up (LinkUp) and the state stays INIT: no subnet " +
			"manager has configured " + f.one("it", "them") + " since the link came up. The " +
			f.one("port carries", "ports carry") + " no traffic. Without a subnet manager, connections of ACTIVE ports " +
			"continue, but no port that joins, reboots or fails over becomes ACTIVE.",
		Evidence:    e,
		Diagnose:    "ibstat # as root",
		Action:      f.startSubnetManager(len(ports) > 0, hasActive),
		DrainReason: "Jobs cannot use these ports until a subnet manager has configured them.",
	}
	if len(ports) > 0 {
		t.Diagnose = sminfo(ports[0]) + " ; ibstat " + pasted(ports[0].Labels["device"]) + " # as root"
	}
	return t
}

// startSubnetManager is what to do for ports in INIT; active: other InfiniBand ports of the host are ACTIVE.
func (f *Fault) startSubnetManager(ports, active bool) string {
	if ports && !f.has(`port:rdma_port_init:subnet_manager{$host} `+
		`unless on (device) rdma_device_info{function_type=~"virtual|subfunction",$host}`) {
		return "The ports are those of virtual functions: on the hypervisor check their GUIDs and link state policy " +
			"(ip link show), and that the subnet manager runs and supports virtual ports (opensm: virt_enabled 2). In a " +
			"cloud, report the ports to the provider."
	}
	lids := f.labels(`count_values("lid", rdma_port_sm_lid{$host} > 0 `+
		`and on (device, port) port:rdma_port_init:subnet_manager{$host})`, "lid")
	before, start := "", "Start"
	if len(lids) > 0 {
		before = "Check that the subnet manager that has configured the " + f.one("port", "ports") + " before (LID " +
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

func subnetManagerOnComputeHost(f *Fault) Text {
	ports := f.rows(`port:rdma_port_subnet_manager:unmeant{$host}`, "device", "port")
	masters := f.rows(`max by (device, port, port_guid) (rdma_port_subnet_manager_info{$host}) `+
		`and on (device, port) port:rdma_port_subnet_manager:unmeant{$host}`, "device", "port")
	var e lines
	e.add("Ports", "IsSM set on "+portNames(ports)+".")
	for _, m := range masters {
		e.add("Master", "port GUID "+m.Labels["port_guid"]+", in the subnet of "+portName(m)+".")
	}
	if len(masters) == 0 {
		e.add("Not evaluated", "the master of the subnet (no data without --collector.neighbour.subnet).")
	}
	t := Text{
		Summary: f.host() + ": subnet manager runs on this compute host, " + f.one("port", "ports") + " " +
			portNames(ports),
		Description: "A subnet manager, master or standby, has registered (IsSM) at " + f.count("InfiniBand port") +
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

func subnetManagerChanging(f *Fault) Text {
	ports := f.rows(`max by (device, port) (port:rdma_port_sm_lid:changes1h{$host}) >= 3`, "device", "port")
	most := f.text(`max(port:rdma_port_sm_lid:changes1h{$host})`, "%.0f", "")
	var changes []string
	for _, p := range ports {
		changes = append(changes, portName(p)+" ("+whole(p.Value)+" changes in an hour, limit 2"+
			f.of(p).text(`max(port:rdma_port_sm_lid:active{$port})`, ", subnet manager at LID %.0f", "")+")")
	}
	var e lines
	e.add("Ports", strings.Join(changes, " ")+".")
	if active, ok := f.number(`count(port:rdma_port_sm_lid:active{$host})`); ok {
		e.add("ACTIVE ports", words.Count(int(active), "InfiniBand port")+" of this host with a subnet manager.")
	}
	e.add("Not evaluated", "changes between two rounds, other subnet managers of the subnet.")
	t := Text{
		Summary: f.host() + ": subnet manager of " + f.count("InfiniBand port") + " changed" +
			when(most != "", " "+most+" times in 1h (limit 2)"),
		Description: "The subnet manager LID of " + f.count("ACTIVE InfiniBand port") + " changed" +
			when(most != "", " "+most+" times") + " within 1h; a failover is one change, the way back a second. " +
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

// sminfo is the command that asks the subnet manager of a port.
func sminfo(port Sample) string {
	return "sminfo -C " + pasted(port.Labels["device"]) + " -P " + port.Labels["port"]
}

func collectorFailing(f *Fault) Text {
	collectors := f.labels(`max by (collector) (rdma_scrape_collector_success{$host}) == 0`, "collector")
	var e lines
	for _, c := range collectors {
		e.add("Collector", c+".")
	}
	for _, r := range f.rows(`sum by (collector, device, reason) (increase(rdma_scrape_errors_total{$host}[10m])) > 0 `+
		`and on (collector) max by (collector) (rdma_scrape_collector_success{$host}) == 0`,
		"collector", "device", "reason") {
		device := r.Labels["device"]
		e.add("Errors", whole(r.Value)+" in 10m, collector "+r.Labels["collector"]+
			when(device != "", ", device "+device)+", reason "+r.Labels["reason"]+".")
	}
	e.add("Not evaluated", "everything that "+f.one("this collector reads", "these collectors read")+".")
	return Text{
		Summary: f.host() + ": " + f.count("collector") + " of rdma_exporter failing: " + strings.Join(collectors, ", "),
		Description: f.count("collector") + " of the exporter " + f.one("gives", "give") + " no result. What " +
			f.one("it reads", "they read") + " is unknown, and faults there are not reported. Jobs are not affected by this.",
		Evidence: e,
		Diagnose: "curl -s http://localhost:10879/metrics | grep -E 'rdma_scrape_(collector_success|errors_total)' ; " +
			"journalctl -u rdma_exporter -n 50",
		Action: "For reason permission, add the missing capability or mount to the unit or container. For other reasons " +
			"follow the runbook, or disable the collector (--no-collector.NAME).",
		DrainReason: "Only monitoring is missing; no fault of the host is known.",
	}
}

func exporterCPUStarved(f *Fault) Text {
	wait := percent(f.Value)
	var e lines
	e.add("CPU wait", wait+" of last 5m.")
	if late, ok := f.number(`count(max by (device) (rdma_scrape_collector_late{$host,device!=""}) == 1)`); ok {
		e.add("Not read in time", words.Count(int(late), "device")+".")
	}
	return Text{
		Summary: f.host() + ": rdma_exporter waiting for a CPU " + wait + " of last 5m (limit 25%)",
		Description: "The exporter was ready to run and waited for a CPU for " + wait + " of the last 5m (limit 25%). " +
			"Its reads miss their deadlines, although no device is known to hang. Faults are reported late or not at all. " +
			"Jobs are not affected.",
		Evidence: e,
		Measured: wait,
		Limit:    "25%",
		Diagnose: "cat /proc/loadavg /proc/pressure/cpu ; systemctl show rdma_exporter -p CPUQuotaPerSecUSec " +
			"-p ControlGroup ; grep throttled /sys/fs/cgroup/system.slice/rdma_exporter.service/cpu.stat",
		Action: "If throttled_usec increases, raise the CPU limit of the unit or container (CPUQuota=, " +
			"resources.limits.cpu). Otherwise reduce the load of the host, or reserve a core for system services.",
		DrainReason: "Only monitoring is delayed; no fault of the host is known.",
	}
}

func portUnreadable(f *Fault) Text {
	var e lines
	for _, r := range f.rows(`max by (collector) (rdma_scrape_quarantined_items{$device}) > 0`, "collector") {
		e.add("Not read", words.Count(int(r.Value), "item")+" of collector "+r.Labels["collector"]+
			": the driver returned errors twice.")
	}
	e.add("Not evaluated", "all rules on this port, without its state.")
	return Text{
		Summary: f.where() + ": port state not readable, ACTIVE before",
		Description: "The port was ACTIVE, and the driver no longer reports its state. No other alert on the port can " +
			"fire. If the driver has lost the device, jobs on it have failed.",
		Evidence: e,
		Diagnose: f.showLink() +
			" ; journalctl -u rdma_exporter -n 50 ; journalctl -k -n 50",
		Action: "If rdma link shows the port, restart the exporter, which reads everything again. If it does not, drain " +
			"the host, then reset the device, load its driver again, or reboot.",
		DrainReason: "The state of the port is unknown, and it may still carry jobs.",
	}
}

func alertStoreDegraded(f *Fault) Text {
	var e lines
	e.add("Store", "degraded, directory alerting of the state directory.")
	e.add("Not evaluated", "after a restart, rules that need more history than the time since.")
	return Text{
		Summary: f.host() + ": rdma_exporter keeps its alert history in memory only",
		Description: "The directory alerting of the state directory cannot be used (rdma_alerting_store_degraded is 1). " +
			"Rules are evaluated. A restart loses 2h of history: pending alerts start anew, and rates need their ranges " +
			"again.",
		Evidence: e,
		Diagnose: "journalctl -u rdma_exporter | grep -i store | tail ; df -h /var/lib/rdma_exporter ; " +
			"ls -l /var/lib/rdma_exporter/alerting",
		Action: "Free the space that the log names, or make the state directory writable. The exporter tries again every " +
			"minute, and moves its history there.",
		DrainReason: "The fabric is evaluated, and no fault of the host is known.",
	}
}

func exporterLimitReached(f *Fault) Text {
	var e lines
	var left []string
	for _, r := range f.rows(`max by (limit) (rdma_exporter_limit_exceeded_by{$host}) > 0`, "limit") {
		n := whole(r.Value) + " " + r.Labels["limit"]
		left = append(left, n)
		limit := `max(rdma_exporter_limit{$host,limit=` + strconv.Quote(r.Labels["limit"]) + `})`
		e.add("Left out", n+f.text(limit, " (limit %.0f)", "")+".")
	}
	e.add("Not evaluated", "the devices that are left out.")
	return Text{
		Summary: f.host() + ": " + strings.Join(left, " and ") + " not monitored, more than rdma_exporter reads",
		Description: "The host has more RDMA devices or series than the exporter reads. Devices beyond the limit have no " +
			"metrics, and no alert on them can fire. Virtual functions and subfunctions beside their physical function are " +
			"left out first.",
		Evidence: e,
		Diagnose: "ls /sys/class/infiniband | wc -l ; curl -s http://localhost:10879/metrics | grep rdma_exporter_limit",
		Action: "Raise --limit.devices or --limit.series together with the memory limit (docs/install.md), or exclude " +
			"devices with --device.exclude.",
		DrainReason: "Only monitoring is missing; no fault of the host is known.",
	}
}

func gpuMonitoringPaused(f *Fault) Text {
	var e lines
	if since, ok := f.number(`max(rdma_gpu_release_start_timestamp_seconds{$host})`); ok {
		e.add("Pause", "on request (rdma_exporter gpu release), since "+utc(since)+".")
	}
	if left, ok := f.number(`max(rdma_gpu_released_seconds{$host})`); ok {
		e.add("End", "in "+lasting(left)+".")
	}
	e.add("Not evaluated", "NVLink, PCIe links and XID errors of all GPUs of this host.")
	return Text{
		Summary: f.host() + ": GPUs not monitored, paused on request for " + lasting(f.Value) + " (limit 1h)",
		Description: "GPU monitoring has been paused on request for " + lasting(f.Value) + ", longer than maintenance of " +
			"a GPU takes. There are no metrics of any GPU of this host: NVLink, PCIe links of GPUs and XID errors are not " +
			"evaluated. RDMA devices are.",
		Evidence: e,
		Diagnose: "rdma_exporter gpu status",
		Action: "When the maintenance is done, run rdma_exporter gpu resume on the host. Otherwise announce the " +
			"maintenance: rdma_exporter maintenance start --for 2h.",
		DrainReason: "Only monitoring of the GPUs is missing, as requested.",
	}
}

func gpusReleased(f *Fault) Text {
	var e lines
	e.add("Pause", "on request (rdma_exporter gpu release), ended.")
	for _, r := range f.rows(
		`sum by (reason) (increase(rdma_scrape_errors_total{collector="gpu",$host}[10m])) > 0`, "reason") {
		e.add("Errors", whole(r.Value)+" in 10m, reason "+r.Labels["reason"]+".")
	}
	e.add("Not evaluated", "NVLink, PCIe links and XID errors of all GPUs of this host.")
	return Text{
		Summary: f.host() + ": GPUs not monitored, the pause on request has ended and no GPU is read",
		Description: "GPU monitoring was paused on request (rdma_exporter gpu release), the pause has ended, and no GPU " +
			"has been read since. There are no metrics of any GPU of this host: NVLink, PCIe links of GPUs and XID errors " +
			"are not evaluated. RDMA devices are.",
		Evidence: e,
		Diagnose: "nvidia-smi ; journalctl -u rdma_exporter | grep -iE 'nvml|gpu' | tail",
		Action: "Restart the exporter: after a driver update it needs the new library. If nvidia-smi fails too, drain " +
			"the host and repair the driver.",
		DrainReason: "Only monitoring of the GPUs is missing, unless nvidia-smi fails as well.",
	}
}

func notificationsDropped(f *Fault) Text {
	waiting := whole(f.Value)
	var e lines
	e.add("Notifications", waiting+" waiting, none accepted in 10m.")
	e.add("Alertmanagers", f.text(`max(rdma_alerting_alertmanagers{$host})`, "%v configured.", ""))
	return Text{
		Summary: f.host() + ": no Alertmanager accepts the alerts of rdma_exporter, " + waiting + " waiting",
		Description: "No Alertmanager has accepted an alert of this host for 10m, and each request failed. " + waiting +
			" alerts wait and are sent again every 10s. Alerts of this host reach no receiver, this one included, except " +
			"from a central Prometheus. The page of the exporter, rdma_exporter check and a central Prometheus still show " +
			"its alerts.",
		Evidence: e,
		Diagnose: "journalctl -u rdma_exporter | grep -i alertmanager | tail ; " +
			"curl -s http://localhost:10879/metrics | grep rdma_alerting_",
		Action: "Correct --alerting.alertmanager-url or --alerting.alertmanager-config-file, the network to the " +
			"Alertmanager, or start it. The log of the exporter has the error and its remedy. Waiting alerts are sent " +
			"again every 10s.",
		DrainReason: "Only notifications are missing; no fault of the host is known by this alert.",
	}
}

func reloadFailed(f *Fault) Text {
	var e lines
	e.add("Configuration", "the last reload failed.")
	if loaded, ok := f.number(`max(rdma_config_last_reload_success_timestamp_seconds{$host})`); ok {
		e.add("In force", "configuration of "+utc(loaded)+".")
	}
	return Text{
		Summary: f.host() + ": reload of rdma_exporter failed, previous configuration stays in force",
		Description: "The last reload of the configuration, the rule files or the Alertmanager file failed. The change " +
			"has no effect: an object that is to be ignored still alerts, a new pin is not evaluated. A restart of the " +
			"exporter with the broken file fails.",
		Evidence: e,
		Diagnose: "journalctl -u rdma_exporter | grep -i configuration | tail ; " +
			"rdma_exporter check-config /etc/rdma_exporter/rdma_exporter.yml",
		Action:      "Correct the file at the line that the log names, then run systemctl reload rdma_exporter.",
		DrainReason: "Rules are evaluated with the previous configuration, and no fault of the host is known.",
	}
}

func stateNotWritten(f *Fault) Text {
	var e lines
	e.add("State", "the last write failed.")
	if f.has(`max(rdma_alerting_store_degraded{$host}) == 1`) {
		e.add("Alert history", "kept in memory only.")
	}
	e.add("Not evaluated", "after a restart, devices and links that were lost before it.")
	return Text{
		Summary: f.host() + ": rdma_exporter cannot write its state directory",
		Description: "The last write of the state file failed (rdma_state_last_write_successful is 0). Rules are " +
			"evaluated. A restart of the exporter loses what it remembers since the last successful write: a device or " +
			"link that was lost before the restart is not reported as missing afterwards.",
		Evidence: e,
		Diagnose: "journalctl -u rdma_exporter -n 50 ; df -h /var/lib/rdma_exporter ; ls -ld /var/lib/rdma_exporter",
		Action: "Free space on the disk, end a second exporter with the same --state.dir, or make the directory writable " +
			"for the user of the exporter and restart it.",
		DrainReason: "The fabric is evaluated, and no fault of the host is known.",
	}
}

// count is the number of objects that the alert is on, with their noun: "2 ports".
func (f *Fault) count(noun string) string { return words.Count(int(f.Value), noun) }

// one is the first text if the alert is on one object, else the second.
func (f *Fault) one(one, several string) string {
	if f.Value == 1 {
		return one
	}
	return several
}
