package host

import (
	"cmp"
	"fmt"
	"strings"

	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/words"
)

// deviceFaults are those of RDMA devices.
var deviceFaults = fault.Kinds{
	"device_failed/command_timeout":  {Write: commandTimeouts},
	"device_failed/firmware":         {Write: deviceFirmwareError},
	"device_failed/recovered":        {Write: firmwareErrorRecovered},
	"device_failed/stopped":          {Write: deviceStopped},
	"device_failed/unresponsive":     {Write: readStuck},
	"device_failed/transmit_timeout": {Write: transmitTimeout},
	"device_hot/critical_limit":      {Write: deviceHot},
	"device_hot/reported":            {Write: highTemperature},
	"device_missing/gone":            {Write: deviceMissing, Measure: `rdma_gpu_lost_info{$gpu}`},
	"host_misconfigured/renamed":     {Write: deviceRenamed, OfHost: true},
	"pcie_errors/iommu":              {Write: iommuFault},
}

const (
	firmwareReporters = `max by (reporter) ` +
		`(rdma_device_health_state{state="error",reporter=~"fw|fw_fatal|hw",$device}) == 1`
	firmwareMessages = "mlx5|bnxt|health|syndrome|assert"
)

func deviceFirmwareError(f *fault.Fault) fault.Text {
	reporters := f.LabelsOf(firmwareReporters, "reporter")
	dump := ""
	if address := functionOfDevice(f); address != "" {
		first := "fw_fatal"
		if len(reporters) > 0 {
			first = reporters[0]
		}
		dump = " (devlink health dump show pci/" + address + " reporter " + first + ")"
	}
	return fault.Text{
		Summary: words.Join(" ", f.HostDevice()+": firmware error, devlink health reporter",
			strings.Join(reporters, ", "), "in state error"),
		Description: "The driver has reported an error of the firmware or the hardware to devlink and has not " +
			"recovered from it. With reporter fw_fatal or hw the function is out of service: jobs on it have failed or " +
			"hang, and commands that query the firmware (ethtool, devlink, ip link) can hang. After a recovery, jobs " +
			"that had the device open must restart.",
		Evidence: evidenceOfReporters(f, reporters),
		Diagnose: diagnoseFirmware(f, firmwareMessages),
		Action: "Drain the host. Save dmesg and the dump of the reporter for the vendor" + dump + ", then power-cycle " +
			"the host. If the error returns on the same card, update its firmware, then replace the card.",
		DrainReason: "Jobs on this device have failed or hang.",
	}
}

func evidenceOfReporters(f *fault.Fault, reporters []string) fault.Lines {
	var e fault.Lines
	for _, r := range reporters {
		e.Add("Reporter", r+", state error"+healthTotal(f, "errors", r, ", errors %v")+
			healthTotal(f, "recoveries", r, ", recoveries %v")+".")
	}
	if n, ok := f.Number(`count(max by (device) ` +
		`(rdma_device_health_state{state="error",reporter=~"fw|fw_fatal|hw",$host}) == 1)`); ok {
		e.Add("Host devices", fault.Plain(n)+f.Text(`count(max by (device) (rdma_device_health_state{$host}))`, " of %v", "")+
			" in state error.")
	}
	e.Add("Not evaluated", "the cause in the dump of the reporter, other functions of the card.")
	return e
}

func firmwareErrorRecovered(f *fault.Fault) fault.Text {
	var reporters []string
	var e fault.Lines
	for _, row := range f.Rows(`sum by (reporter) `+
		`(increase(rdma_device_health_errors_total{reporter=~"fw|fw_fatal|hw",$device}[10m])) > 0`, "reporter") {
		r := row.Labels["reporter"]
		reporters = append(reporters, r)
		e.Add("Reporter", r+", errors "+fault.Whole(row.Value)+" in 10m"+
			healthTotal(f, "errors", r, ", %v since the driver was loaded")+
			healthTotal(f, "recoveries", r, ", recoveries %v")+".")
	}
	e.Add("Not evaluated", "the cause in the dump of the reporter.")
	return fault.Text{
		Summary: f.HostDevice() + ": firmware error, recovered, " + fault.Whole(f.Value) + " reported in 10m (" +
			words.Join(" ", "devlink health reporter", strings.Join(reporters, ", ")) + ")",
		Description: "The driver has reported " + fault.RoundCount(
			f.Value,
			"error",
		) + " of the firmware or the hardware to " +
			"devlink within 10m, and the reporter is healthy again. Jobs that ran on this device at that time have " +
			"failed. They must restart: the recovery can have made a new RDMA device.",
		Evidence: e,
		Measured: fault.Whole(f.Value),
		Limit:    "0",
		Diagnose: diagnoseFirmware(f, firmwareMessages),
		Action: "Read the time and the cause of the error in dmesg, and compare the firmware version with that of " +
			"other hosts. If the error returns on the same card, drain the host, update the firmware, then replace " +
			"the card.",
		DrainReason: "The device has recovered and new jobs can use it.",
	}
}

// healthTotal returns a count of a reporter of the device, of errors or recoveries, in a format.
func healthTotal(f *fault.Fault, of, reporter, format string) string {
	return f.Text(fmt.Sprintf(`max(rdma_device_health_%s_total{reporter=%q,$device})`, of, reporter), format, "")
}

// functionOfDevice returns the PCI address that the device has or had within an hour.
func functionOfDevice(f *fault.Fault) string {
	return f.LabelOf(`max by (pci_address) (last_over_time(rdma_device_info{pci_address!="",$device}[1h]))`, "pci_address")
}

// diagnoseFirmware returns commands that show messages of the kernel and the health of the device.
func diagnoseFirmware(f *fault.Fault, messages string) string {
	out := "dmesg -T | grep -iE '" + messages + "' | tail -40"
	if address := functionOfDevice(f); address != "" {
		out += " ; timeout 10 devlink health show pci/" + address
	}
	return out + " # as root"
}

// lastSeen is when a missing device was seen, by the label seen.
var lastSeen = map[string]string{
	"this_boot":    "this boot (lost while the host was running)",
	"earlier_boot": "an earlier boot (missing since the host started)",
	"siblings":     "never (expected because functions like it have an RDMA device)",
	"":             "never (expected by the configuration)",
}

func deviceMissing(f *fault.Fault) fault.Text {
	if f.Labels["gpu"] != "" {
		return gpuLost(f)
	}
	summary := f.HostDevice() + ": RDMA device missing"
	var e fault.Lines
	for _, r := range f.Rows(`max by (pci_address, node_guid, reason, seen) (rdma_device_missing_info{$device})`) {
		headline, reason := whyMissing(r)
		summary += ", " + headline
		e.Add("Reason", reason+".")
		e.Add("Last seen", cmp.Or(lastSeen[r.Labels["seen"]], lastSeen[""])+".")
	}
	if f.Has(probeFailed) {
		summary += ", its driver failed to probe it"
	}
	e.Add("Host devices", f.Text(`count(max by (device) (rdma_device_present{$host}) == 1)`, "%v present.", ""))
	e.Add("Not evaluated", "ports, cables and transceivers of the device.")
	lspci := ""
	if a := f.LabelOf(`max by (pci_address) (rdma_device_missing_info{pci_address!="",$device} or `+unprobed+`)`,
		"pci_address"); a != "" {
		lspci = "lspci -vs " + a + " ; "
	}
	return fault.Text{
		Summary: summary,
		Description: "The inventory or the configuration expects this device, and it is not present. Jobs that need all " +
			"devices do not start, or run without it and slower: the GPU next to it uses another NIC.",
		Evidence:    e,
		Diagnose:    lspci + "journalctl -k -b | grep -iE 'mlx5|bnxt|irdma|pcie|aer' | tail -40 # as root",
		Action:      bringBack(f),
		DrainReason: "Jobs that need this device have failed or do not start.",
	}
}

// unprobed is the function for which the kernel log reports why it has no RDMA device.
const (
	unprobed       = `rdma_kernel_log_unresolved{kind=~"probe_failed|no_address_space",$device}`
	probeFailed    = `rdma_kernel_log_unresolved{kind="probe_failed",$device}`
	noAddressSpace = `rdma_kernel_log_unresolved{kind="no_address_space",$device}`
)

// whyMissing says why a device is missing, for a headline and as evidence.
func whyMissing(r fault.Sample) (headline, reason string) {
	address := r.Labels["pci_address"]
	switch {
	case r.Labels["reason"] == "not_on_pci":
		return "no PCI function" + fault.When(address != "", " at "+address), "no function responds at its PCI address"
	case r.Labels["reason"] == "no_driver":
		return "no driver bound" + fault.When(address != "", " to "+address),
			"its PCI function is present, and no driver is bound to it"
	case r.Labels["seen"] == "never":
		return "configured and never present on this host", "the card is not installed, or the configured name is wrong"
	}
	return "its driver is bound and has registered none", "its driver is bound and has not created an RDMA device"
}

// bringBack says how to bring back a missing device.
func bringBack(f *fault.Fault) string {
	never := f.Has(`rdma_device_missing_info{seen="never",$device}`)
	var out string
	switch {
	case f.Has(noAddressSpace):
		out = "Enable Above 4G Decoding (64-bit BARs) in the firmware setup of the host and update that firmware, then boot."
	case f.Has(probeFailed):
		out = "Read the error of the driver in the kernel log. Power the host off and on; if the probe fails again, update " +
			"firmware and driver, then replace the card."
	case never:
		out = "Compare the name in the configuration with rdma_exporter inventory list and lspci. If the name is right, " +
			"reseat the card, then replace it."
	case f.Has(`rdma_device_missing_info{reason="no_driver",$device}`):
		out = "Find in the kernel log why the driver did not bind. Power the host off and on; if the driver still does " +
			"not bind, replace the card."
	case f.Has(`rdma_device_missing_info{reason="no_rdma_device",$device}`):
		out = "Load the RDMA module of the driver (mlx5_ib, bnxt_re, irdma) and check the kernel log for its errors. If " +
			"the device stays missing, power the host off and on."
	default:
		out = "Drain the host, then power it off and on; a warm reboot does not reset the slot. If the device stays " +
			"missing, reseat the card, then replace it."
	}
	if f.Has(`rdma_device_missing_info{seen="siblings",$device}`) {
		return out + " If the function has no driver on purpose, ignore it in --config.file (match: device)."
	}
	return out + fault.When(!never && f.Has(`rdma_device_missing_info{$device}`),
		" If the device was removed on purpose, run rdma_exporter accept "+fault.Pasted(f.Labels["device"])+".")
}

// stuck is what a read hangs in.
type stuck struct {
	name, object string
	effect       string // on processes
	notEvaluated string
	again        string // what to do if it returns
	unaffected   string // why jobs need not leave the host
}

var (
	stuckDevice = stuck{
		name: "device", object: "this device",
		effect:       "Jobs on the device are likely to hang, and processes that use it may not be killable.",
		notEvaluated: "counters of this device; its state is the last one read, and is dropped after 10m.",
		again:        "If the fault returns on the same device, replace the device and send dmesg to the vendor.",
		unaffected:   "No port of this device was ACTIVE: jobs are not known to depend on it.",
	}
	stuckSubsystem = stuck{
		name: "RDMA subsystem", object: "the RDMA subsystem",
		effect:       "Other processes that query RDMA devices can hang as well.",
		notEvaluated: "what these collectors read.",
		again:        "If the fault returns, send dmesg to the vendor of the driver.",
		unaffected:   "No single device is known to be affected: jobs continue.",
	}
)

func readStuck(f *fault.Fault) fault.Text {
	in, where := stuckSubsystem, f.Host()
	if f.Labels["device"] != "" {
		in, where = stuckDevice, f.HostDevice()
	}
	collectors := strings.Join(
		f.LabelsOf(`max by (collector) (rdma_scrape_collector_stuck{$device}) == 1`, "collector"), ", ")
	var e fault.Lines
	e.Add("Collectors", collectors+".")
	if in == stuckDevice {
		e.Add("Ports", fault.When(f.Has(`max(device:rdma_port_was_active:kept{$device}) == 1`),
			"at least one of the device was ACTIVE."))
		e.Add("Host devices", f.Text(`count(max by (device) (rdma_scrape_collector_stuck{$host}) == 1)`,
			"%v with stuck reads.", ""))
	}
	e.Add("Not evaluated", in.notEvaluated)
	t := fault.Text{
		Summary: where + ": " + in.name + " unresponsive, a read hangs in the kernel (collector " + collectors + ")",
		Description: "A read of " + in.object + " waits for a kernel lock or for firmware that does not respond, and " +
			"cannot be cancelled. " + in.effect + " If the lock is the network lock of the kernel, ip, DHCP and " +
			"container networking hang too.",
		Evidence: e,
		Diagnose: "dmesg -T | grep -iE 'mlx5|bnxt|irdma|health|timeout|hung' | tail -40 ; " +
			"ps -eLo pid,stat,wchan:32,comm | awk '$2 ~ /D/' # as root",
		Action: "Let the driver recover (mlx5 resets its function within minutes); otherwise power-cycle the host. " +
			in.again,
		DrainReason: in.unaffected,
	}
	if f.Has(`device:rdma_read_stuck:critical{$device}`) {
		t.Action = "Drain the host. " + t.Action
		t.DrainReason = "Jobs on this device are likely to hang, and their processes may not be killable."
	}
	return t
}

func deviceHot(f *fault.Fault) fault.Text {
	limit, limited := f.Number(`min(` +
		`max by (sensor) (rdma_device_temperature_threshold_celsius{level="critical",$device}) ` +
		`<= max by (sensor) (rdma_device_temperature_celsius{$device}))`)
	now := fmt.Sprintf("%.1f °C", f.Value)
	var e fault.Lines
	for _, r := range f.Rows(`max by (sensor) (rdma_device_temperature_celsius{$device})`, "sensor") {
		sensor := r.Labels["sensor"]
		of := fmt.Sprintf(`max(rdma_device_temperature_threshold_celsius{level="critical",$device,sensor=%q})`, sensor)
		e.Add("Sensor "+sensor, fmt.Sprintf("%.1f °C", r.Value)+f.Text(of, ", limit %v °C", "")+".")
	}
	e.Add("Not evaluated", "sensors without a limit of their own.")
	t := fault.Text{
		Summary: f.HostDevice() + ": adapter at " + now +
			fault.When(limited, " (limit "+fault.Plain(limit)+" °C, by the adapter)"),
		Description: "A temperature sensor of the adapter reports " + now + " and has reached its own critical limit" +
			fault.When(limited, " of "+fault.Plain(limit)+" °C") + ". The adapter throttles, loses its links or shuts down to " +
			"protect itself; transceivers beside it age faster.",
		Evidence: e,
		Diagnose: "sensors ; ipmitool sdr type Fan ; ipmitool sdr type Temperature # as root",
		Action: "Check that fans run and that blanks and air guides are in place, clean filters and heat sinks, and " +
			"compare with the adapters beside it at the same load. If the temperature keeps rising, drain the host.",
		DrainReason: "The adapter carries traffic; a drain is needed only if its temperature keeps rising.",
	}
	if limited {
		t.Measured, t.Limit = now, fmt.Sprintf("%.1f °C", limit)
	}
	return t
}

// stoppedBy says what has stopped, by the kind of its message.
var stoppedBy = map[string]string{
	"firmware_stopped": "firmware stopped",
	"recovery_failed":  "the driver could not recover it",
	"function_dead":    "PCI function does not respond",
}

func deviceStopped(f *fault.Fault) fault.Text {
	var what []string
	for _, kind := range f.LabelsOf(`max by (kind) (rdma_kernel_log_unresolved{$device})`, "kind") {
		if text := stoppedBy[kind]; text != "" {
			what = append(what, text)
		}
	}
	return fault.Text{
		Summary: words.Join(", ", f.HostDevice()+": device stopped", strings.Join(what, ", ")),
		Description: "The kernel log reports that the device stopped working, and no recovery since. Its ports can still be " +
			"ACTIVE: jobs on it fail or hang, and commands that query the firmware can hang.",
		Evidence: fault.Lines{{Name: "Not evaluated", Text: "the cause inside the firmware."}},
		Diagnose: diagnoseFirmware(f, firmwareMessages+"|irdma|ionic|efa|aer"),
		Action: "Drain the host, save dmesg for the vendor, then reload the driver; if the device does not return, power the " +
			"host off and on. If it stops again, update firmware and driver, then replace the card.",
		DrainReason: "Jobs on this device have failed or hang.",
	}
}

func highTemperature(f *fault.Fault) fault.Text {
	var e fault.Lines
	for _, r := range f.Rows(`max by (sensor) (rdma_device_temperature_celsius{$device})`, "sensor") {
		e.Add("Sensor "+r.Labels["sensor"], fmt.Sprintf("%.1f °C", r.Value)+".")
	}
	e.Add("Not evaluated", "sensors that the driver does not expose.")
	return fault.Text{
		Summary: f.HostDevice() + ": high temperature reported by the firmware, " +
			fault.RoundCount(f.Value, "kernel message") + " in 15m",
		Description: "The firmware reports a sensor above its limit. The adapter throttles, loses its links or shuts down to " +
			"protect itself.",
		Evidence: e,
		Measured: fault.Whole(f.Value),
		Limit:    "0",
		Diagnose: "sensors ; ipmitool sdr type Fan ; ipmitool sdr type Temperature # as root",
		Action: "Check fans, blanks, filters and heat sinks, and compare with the adapters beside it. If messages go on, " +
			"drain the host.",
		DrainReason: "The adapter carries traffic; a drain is needed only if its temperature keeps rising.",
	}
}

func deviceRenamed(f *fault.Fault) fault.Text {
	accept := ""
	for _, device := range f.LabelsOf(`max by (device) (rdma_device_renamed_info{$host})`, "device") {
		accept += " " + fault.Pasted(device)
	}
	have := " have"
	if f.Value == 1 {
		have = " has"
	}
	return fault.Text{
		Summary: f.Host() + ": " + words.Count(int(f.Value), "RDMA device") + " renamed since an earlier boot",
		Description: words.Count(int(f.Value), "PCI function") + have +
			" another RDMA device name than in an earlier boot. All devices work, but a job that selects devices by name " +
			"(NCCL_IB_HCA=mlx5_3, UCX_NET_DEVICES) sends over another rail, over a storage NIC, or across sockets, " +
			"without an error.",
		Evidence: renamedDevices(f),
		Diagnose: "rdma_exporter inventory list ; ls -l /sys/class/infiniband",
		Action: fault.When(f.Has(`rdma_device_present{$host} == 0`), "Bring back the missing device first, by the steps of "+
			"RDMADeviceMissing: with it, the names return at the next boot. ") +
			"Correct the names in NCCL_IB_HCA, UCX_NET_DEVICES, the configuration of scheduler and containers and " +
			"--config.file, or have udev name devices by PCI address (rdma_rename NAME_PCI, " +
			"60-rdma-persistent-naming.rules). Then accept the new names: rdma_exporter accept" + accept + ".",
		DrainReason: "All devices work; only jobs that select devices by name are affected.",
	}
}

func renamedDevices(f *fault.Fault) fault.Lines {
	var e fault.Lines
	for _, r := range f.Rows(`max by (device, earlier_device, pci_address) (rdma_device_renamed_info{$host})`,
		"pci_address") {
		device := r.Labels["device"]
		text := "PCI " + r.Labels["pci_address"] + " is " + device + ", was " + r.Labels["earlier_device"]
		for _, guid := range f.LabelsOf(fmt.Sprintf(`max by (node_guid) (rdma_device_info{$host,device=%q})`, device),
			"node_guid") {
			text += ", GUID " + cmp.Or(guid, "unknown")
		}
		e.Add("Renamed", text+".")
	}
	if missing := f.LabelsOf(`max by (device) (rdma_device_present{$host}) == 0`, "device"); len(missing) > 0 {
		e.Add("Missing", strings.Join(missing, " ")+" (a missing device moves the names of those behind it).")
	}
	e.Add("Not evaluated", "the source of the names (kernel or udev), names of network interfaces.")
	return e
}

func commandTimeouts(f *fault.Fault) fault.Text {
	n := fault.Whole(f.Value)
	return fault.Text{
		Summary: f.HostDevice() + ": " + n + " firmware commands timed out in 15m (limit 3)",
		Description: "The driver has logged " + n + " commands that the firmware did not answer (limit: 3 in 15m). Each " +
			"timed-out command of mlx5 leaks a slot of the command queue. When none is left, the device can create and " +
			"destroy no resources: jobs on it do not start, and do not end.",
		Evidence: fault.Lines{
			{Name: "Not evaluated", Text: "why the firmware does not answer, and how many slots are left."},
		},
		Measured: n,
		Limit:    "3",
		Diagnose: diagnoseFirmware(f, "timeout|leak|timed ?out"),
		Action: "Read in dmesg which commands time out. If more follow, drain the host when its job ends and reset the " +
			"device (mlxfwreset, or a power cycle). If timeouts return on the same card, update its firmware, then " +
			"replace it.",
		DrainReason: "Jobs that run go on until a resource is created or destroyed.",
	}
}

func iommuFault(f *fault.Fault) fault.Text {
	return fault.Text{
		Summary: f.HostDevice() + ": IOMMU refused DMA, " + fault.RoundCount(f.Value, "kernel message") + " in 15m",
		Description: "The IOMMU has refused accesses of " + f.Labels["device"] + " to memory: the address is not mapped " +
			"for this device. The transfer has failed, or its data is lost. Causes are a bug of the driver or of a " +
			"module that registers memory (GPUDirect RDMA), a device that goes on after its driver was unloaded, or a " +
			"wrong setting of IOMMU or BIOS.",
		Evidence: fault.Lines{{Name: "Not evaluated", Text: "the address and its owner."}},
		Measured: fault.Whole(f.Value),
		Limit:    "0",
		Diagnose: "dmesg -T | grep -iE 'DMAR|AMD-Vi|IO_PAGE_FAULT|smmu' | tail -40 ; cat /proc/cmdline # as root",
		Action: "Compare the times of the faults with the start and the end of jobs. If they come with GPUDirect RDMA, " +
			"compare the versions of GPU driver, nvidia-peermem and RDMA driver with those of hosts without faults. Set " +
			"iommu=pt if the vendor requires it.",
		DrainReason: "Transfers that the IOMMU permits continue.",
	}
}

func transmitTimeout(f *fault.Fault) fault.Text {
	diagnose := "dmesg -T | grep -iE 'watchdog|tx.?timeout|transmit' | tail -40"
	for _, netdev := range f.LabelsOf(`max by (netdev) (rdma_port_info{netdev!="",$device})`, "netdev") {
		diagnose += " ; ethtool -S " + fault.Pasted(netdev) + " | grep -E 'pause|timeout|recover'"
	}
	return fault.Text{
		Summary: f.HostDevice() + ": transmit queue timed out, " + fault.RoundCount(f.Value, "kernel message") + " in 15m",
		Description: "A transmit queue of the netdev of " + f.Labels["device"] + " made no progress for seconds while " +
			"its link was up, and the driver has reset the queue. The cause is a lost interrupt, a paused link, or " +
			"firmware that has stopped. TCP and connection setup over this device stall; RDMA queues may be affected too.",
		Evidence: fault.Lines{{Name: "Not evaluated", Text: "queues of RDMA, which the kernel does not watch."}},
		Measured: fault.Whole(f.Value),
		Limit:    "0",
		Diagnose: diagnose + " # as root",
		Action: "Check whether the switch pauses the link (RDMAPFCStormVictim), and read the lines around the message in " +
			"dmesg. If the timeout returns, reload the driver when no job runs, then update firmware and driver.",
		DrainReason: "The driver has reset the queue, and traffic continues.",
	}
}
