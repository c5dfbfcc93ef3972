package host

import (
	"strconv"
	"strings"

	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/words"
)

// exporterFaults are those of the exporter itself.
var exporterFaults = fault.Kinds{
	"exporter_degraded/store":         {Write: alertStoreDegraded},
	"exporter_degraded/collector":     {Write: collectorFailing},
	"exporter_degraded/cpu":           {Write: exporterCPUStarved},
	"exporter_degraded/limit":         {Write: exporterLimitReached},
	"exporter_degraded/gpus_paused":   {Write: gpuMonitoringPaused},
	"exporter_degraded/gpus_released": {Write: gpusReleased},
	"exporter_degraded/notifications": {Write: notificationsDropped},
	"exporter_degraded/port":          {Write: portUnreadable},
	"exporter_degraded/reload":        {Write: reloadFailed},
	"exporter_degraded/state":         {Write: stateNotWritten},
}

func collectorFailing(f *fault.Fault) fault.Text {
	collectors := f.LabelsOf(`max by (collector) (rdma_scrape_collector_success{$host}) == 0`, "collector")
	var e fault.Lines
	for _, c := range collectors {
		e.Add("Collector", c+".")
	}
	for _, r := range f.Rows(`sum by (collector, device, reason) (increase(rdma_scrape_errors_total{$host}[10m])) > 0 `+
		`and on (collector) max by (collector) (rdma_scrape_collector_success{$host}) == 0`,
		"collector", "device", "reason") {
		device := r.Labels["device"]
		e.Add("Errors", fault.Whole(r.Value)+" in 10m, collector "+r.Labels["collector"]+
			fault.When(device != "", ", device "+device)+", reason "+r.Labels["reason"]+".")
	}
	e.Add("Not evaluated", "everything that "+f.One("this collector reads", "these collectors read")+".")
	return fault.Text{
		Summary: f.Host() + ": " + f.Count("collector") + " of rdma_exporter failing: " + strings.Join(collectors, ", "),
		Description: f.Count("collector") + " of the exporter " + f.One("gives", "give") + " no result. What " +
			f.One("it reads", "they read") + " is unknown, and faults there are not reported. Jobs are not affected by this.",
		Evidence: e,
		Diagnose: "curl -s http://localhost:10879/metrics | grep -E 'rdma_scrape_(collector_success|errors_total)' ; " +
			"journalctl -u rdma_exporter -n 50",
		Action: "For reason permission, add the missing capability or mount to the unit or container. For other reasons " +
			"follow the runbook, or disable the collector (--no-collector.NAME).",
		DrainReason: "Only monitoring is missing; no fault of the host is known.",
	}
}

func exporterCPUStarved(f *fault.Fault) fault.Text {
	wait := fault.Percent(f.Value)
	var e fault.Lines
	e.Add("CPU wait", wait+" of last 5m.")
	if late, ok := f.Number(`count(max by (device) (rdma_scrape_collector_late{$host,device!=""}) == 1)`); ok {
		e.Add("Not read in time", words.Count(int(late), "device")+".")
	}
	return fault.Text{
		Summary: f.Host() + ": rdma_exporter waiting for a CPU " + wait + " of last 5m (limit 25%)",
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

func portUnreadable(f *fault.Fault) fault.Text {
	var e fault.Lines
	for _, r := range f.Rows(`max by (collector) (rdma_scrape_quarantined_items{$device}) > 0`, "collector") {
		e.Add("Not read", words.Count(int(r.Value), "item")+" of collector "+r.Labels["collector"]+
			": the driver returned errors twice.")
	}
	e.Add("Not evaluated", "all rules on this port, without its state.")
	return fault.Text{
		Summary: f.Where() + ": port state not readable, ACTIVE before",
		Description: "The port was ACTIVE, and the driver no longer reports its state. No other alert on the port can " +
			"fire. If the driver has lost the device, jobs on it have failed.",
		Evidence: e,
		Diagnose: f.ShowLink() +
			" ; journalctl -u rdma_exporter -n 50 ; journalctl -k -n 50",
		Action: "If rdma link shows the port, restart the exporter, which reads everything again. If it does not, drain " +
			"the host, then reset the device, load its driver again, or reboot.",
		DrainReason: "The state of the port is unknown, and it may still carry jobs.",
	}
}

func alertStoreDegraded(f *fault.Fault) fault.Text {
	var e fault.Lines
	e.Add("Store", "degraded, directory alerting of the state directory.")
	e.Add("Not evaluated", "after a restart, rules that need more history than the time since.")
	return fault.Text{
		Summary: f.Host() + ": rdma_exporter keeps its alert history in memory only",
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

func exporterLimitReached(f *fault.Fault) fault.Text {
	var e fault.Lines
	var left []string
	for _, r := range f.Rows(`max by (limit) (rdma_exporter_limit_exceeded_by{$host}) > 0`, "limit") {
		n := fault.Whole(r.Value) + " " + r.Labels["limit"]
		left = append(left, n)
		limit := `max(rdma_exporter_limit{$host,limit=` + strconv.Quote(r.Labels["limit"]) + `})`
		e.Add("Left out", n+f.Text(limit, " (limit %.0f)", "")+".")
	}
	e.Add("Not evaluated", "the devices that are left out.")
	return fault.Text{
		Summary: f.Host() + ": " + strings.Join(left, " and ") + " not monitored, more than rdma_exporter reads",
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

func gpuMonitoringPaused(f *fault.Fault) fault.Text {
	var e fault.Lines
	if since, ok := f.Number(`max(rdma_gpu_release_start_timestamp_seconds{$host})`); ok {
		e.Add("Pause", "on request (rdma_exporter gpu release), since "+fault.UTC(since)+".")
	}
	if left, ok := f.Number(`max(rdma_gpu_released_seconds{$host})`); ok {
		e.Add("End", "in "+fault.Lasting(left)+".")
	}
	e.Add("Not evaluated", "NVLink, PCIe links and XID errors of all GPUs of this host.")
	return fault.Text{
		Summary: f.Host() + ": GPUs not monitored, paused on request for " + fault.Lasting(f.Value) + " (limit 1h)",
		Description: "GPU monitoring has been paused on request for " + fault.Lasting(
			f.Value,
		) + ", longer than maintenance of " +
			"a GPU takes. There are no metrics of any GPU of this host: NVLink, PCIe links of GPUs and XID errors are not " +
			"evaluated. RDMA devices are.",
		Evidence: e,
		Diagnose: "rdma_exporter gpu status",
		Action: "When the maintenance is done, run rdma_exporter gpu resume on the host. Otherwise announce the " +
			"maintenance: rdma_exporter maintenance start --for 2h.",
		DrainReason: "Only monitoring of the GPUs is missing, as requested.",
	}
}

func gpusReleased(f *fault.Fault) fault.Text {
	var e fault.Lines
	e.Add("Pause", "on request (rdma_exporter gpu release), ended.")
	for _, r := range f.Rows(
		`sum by (reason) (increase(rdma_scrape_errors_total{collector="gpu",$host}[10m])) > 0`, "reason") {
		e.Add("Errors", fault.Whole(r.Value)+" in 10m, reason "+r.Labels["reason"]+".")
	}
	e.Add("Not evaluated", "NVLink, PCIe links and XID errors of all GPUs of this host.")
	return fault.Text{
		Summary: f.Host() + ": GPUs not monitored, the pause on request has ended and no GPU is read",
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

func notificationsDropped(f *fault.Fault) fault.Text {
	waiting := fault.Whole(f.Value)
	var e fault.Lines
	e.Add("Notifications", waiting+" waiting, none accepted in 10m.")
	e.Add("Alertmanagers", f.Text(`max(rdma_alerting_alertmanagers{$host})`, "%v configured.", ""))
	return fault.Text{
		Summary: f.Host() + ": no Alertmanager accepts the alerts of rdma_exporter, " + waiting + " waiting",
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

func reloadFailed(f *fault.Fault) fault.Text {
	var e fault.Lines
	e.Add("Configuration", "the last reload failed.")
	if loaded, ok := f.Number(`max(rdma_config_last_reload_success_timestamp_seconds{$host})`); ok {
		e.Add("In force", "configuration of "+fault.UTC(loaded)+".")
	}
	return fault.Text{
		Summary: f.Host() + ": reload of rdma_exporter failed, previous configuration stays in force",
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

func stateNotWritten(f *fault.Fault) fault.Text {
	var e fault.Lines
	e.Add("State", "the last write failed.")
	if f.Has(`max(rdma_alerting_store_degraded{$host}) == 1`) {
		e.Add("Alert history", "kept in memory only.")
	}
	e.Add("Not evaluated", "after a restart, devices and links that were lost before it.")
	return fault.Text{
		Summary: f.Host() + ": rdma_exporter cannot write its state directory",
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
