package host

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/words"
)

// gpuFaults are those of GPUs.
var gpuFaults = fault.Kinds{
	"gpu_fabric_degraded/nvlink": {Write: gpuFabricDegraded},
	"gpu_xid/recovery_action":    {Write: gpuXid},
}

// fabricStates say how a GPU is registered with the fabric manager, by state.
var fabricStates = map[string]struct{ headline, sentence, line string }{
	"completed": {line: "registered"},
	"degraded": {
		"registered with an error or unhealthy",
		"The fabric manager has registered the GPU with an error or as unhealthy.",
		"registered with an error or unhealthy",
	},
	"pending": {
		"not registered with the fabric manager",
		"The GPU is not registered with the fabric manager.",
		"not registered (fabric manager not started, or not yet at this GPU)",
	},
}

func gpuFabricDegraded(f *fault.Fault) fault.Text {
	fabric := fabricStates[f.LabelOf(`max by (state) (rdma_gpu_fabric_state{$gpu}) == 1`, "state")]
	up := f.Text(`max by (model) (gpu:rdma_gpu_nvlinks_up:model{$gpu}) `+
		`< on (model) max by (model) (gpu:rdma_gpu_nvlinks_up:model{$host})`, "%v", "")
	expected := f.Text(`max by (model) (gpu:rdma_gpu_nvlinks_up:model{$host}) `+
		`> on (model) max by (model) (gpu:rdma_gpu_nvlinks_up:model{$gpu})`, "%v", "")
	links, impact := "", "NCCL and NVSHMEM run with less NVLink bandwidth, or use PCIe or the network in its place."
	if up != "" {
		links = up + " NVLinks of the GPU are up (expected: " + expected + ", by most GPUs of its model in this host)."
	}
	if fabric.sentence != "" {
		impact = "CUDA does not initialise while a GPU is not registered (cudaErrorSystemNotReady), and jobs fail to start."
	}
	gpu := f.Labels["gpu"]
	t := fault.Text{
		Summary: words.Join(", ", f.Host()+" GPU "+gpu+": NVLink fabric degraded", fabric.headline,
			fault.When(up != "", up+" of "+expected+" NVLinks up")),
		Description: words.Join(" ", fabric.sentence, links, impact,
			"A training job runs at the speed of its slowest GPU."),
		Evidence: nvlinks(f, expected, fabric.line),
		Diagnose: "nvidia-smi nvlink -s -i " + gpu + " ; nvidia-smi -q -i " + gpu + " | grep -A7 'Fabric$' ; " +
			"systemctl status --no-pager nvidia-fabricmanager",
		Action: "If all GPUs of the host are affected, start the fabric manager in the version of the driver. If one GPU " +
			"is affected, drain the host and reset all its GPUs, or reboot it. If the NVLinks stay down, run the field " +
			"diagnosis of the vendor and replace the board.",
		DrainReason: "NCCL of new jobs would fall back to PCIe or the network, or fail to start.",
	}
	if up != "" {
		t.Measured, t.Limit = up+" NVLinks", expected+" NVLinks"
	}
	return t
}

// nvlinks returns the evidence on the NVLinks of the GPU and its registration.
func nvlinks(f *fault.Fault, expected, fabric string) []fault.Line {
	var e fault.Lines
	e.Add("NVLinks", f.Text(`max(rdma_gpu_nvlinks_up{$gpu})`, "%v up.", ""))
	e.Add("Expected", fault.When(expected != "", expected+" up, by most GPUs of this model in the host."))
	e.Add("Fabric", fault.When(fabric != "", fabric+"."))
	for _, r := range f.Rows(`sum by (error) (increase(rdma_gpu_nvlink_errors_total{$gpu}[1h])) > 0`, "error") {
		e.Add("NVLink errors", r.Labels["error"]+" "+fault.Whole(r.Value)+" in 1h.")
	}
	e.Add("XID", f.Text(lastXID, "last %v.", ""))
	e.Add("Recovery action", f.Text(
		`max(rdma_gpu_recovery_action_id{$gpu}) > 0`, "%v, driver-reported (docs/metrics.md).", ""))
	e.Add("Affected GPUs", affected(f,
		`count(ALERTS{alertname="RDMAGPUFabricDegraded",$host})`, `count(count by (UUID) (rdma_gpu_info{$host}))`))
	e.Add("Not evaluated", "NVSwitches, and GPUs without NVML data.")
	return e
}

const lastXID = `max(rdma_gpu_last_xid{$gpu})`

// affected returns how many objects of the host are affected: "2 of 8 on this host."; empty: it is unknown.
func affected(f *fault.Fault, some, all string) string {
	n := f.Text(some, "%v", "")
	return fault.When(n != "", n+f.Text(all, " of %v", "")+" on this host.")
}

// lostReasons say why a GPU is lost; %s is its PCI address.
var lostReasons = map[string]string{
	"off_bus":   "no PCI function at %s",
	"no_driver": "no driver bound to %s",
	"no_handle": "NVML cannot open %s",
}

func gpuLost(f *fault.Fault) fault.Text {
	pci := cmp.Or(f.Labels["pci_bus_id"], f.Labels["gpu"]) // the kernel log names its address
	slot := "$host,pci_bus_id=" + strconv.Quote(pci)
	summary := f.Host() + " GPU " + cmp.Or(f.Labels["gpu"], pci) + ": lost"
	for _, reason := range f.LabelsOf(`max by (reason) (rdma_gpu_lost_info{`+slot+`})`, "reason") {
		summary += ", " + fmt.Sprintf(cmp.Or(lostReasons[reason], "NVML does not list %s any more"), pci)
	}
	driver := ", while the driver responds for others"
	if f.Labels["pci_bus_id"] == "" {
		summary, driver = summary+", according to the kernel log", ""
	}
	nics := f.LabelsOf(`max by (device) (last_over_time(rdma_gpu_nic_affinity_info{`+slot+`}[15m]))`, "device")
	var e fault.Lines
	e.Add("PCI", pci+".")
	e.Add("NIC", fault.When(nics != nil, strings.Join(nics, " ")+" (nearest to this GPU)."))
	e.Add("XID", f.Text(`max(last_over_time(rdma_gpu_last_xid{$gpu}[15m]))`, "last %v.", ""))
	e.Add("GPUs", f.Text(`count(count by (UUID) (rdma_gpu_info{$host}))`, "%v usable on this host.", ""))
	e.Add("Not evaluated", "why the GPU is lost (of NVIDIA, XID 79: fallen off the bus).")
	notAddress := func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF:.", r) }
	return fault.Text{
		Summary: summary,
		Description: "The GPU cannot be used" + driver + ". A job that uses it has failed; a job " +
			"that needs all GPUs of the host does not start.",
		Evidence: e,
		Diagnose: "lspci -vs " + words.Replace(pci, notAddress, -1) +
			" ; journalctl -k -b | grep -iE 'xid|nvrm|amdgpu|pcieport|aer' | tail -40 # as root",
		Action: "Drain the host, then power it off and on; a warm reboot does not reset the slot. If the GPU is lost " +
			"again, run the field diagnosis of the vendor and replace the board.",
		DrainReason: "A job that uses the GPU has failed or hangs.",
	}
}

// recoveries are the recovery actions of the driver, and what to do for each; %s is the GPU.
var recoveries = map[float64]struct{ name, action string }{
	1: {"reset of the GPU", resetGPU},
	2: {"reboot of the host", rebootHost},
	3: {
		"drain of its peer-to-peer jobs (Drain P2P)",
		"Drain the jobs that use this GPU as a peer over NVLink, then check whether the recovery action has changed",
	},
	4: {"drain and reset of the GPU", resetGPU},
	5: {
		"recovery of its IMEX domain",
		"Drain the jobs of the NVLink domain and restart nvidia-imex on its hosts",
	},
	6: {"reset of its PCIe bus", rebootHost},
	7: {"reboot of the host", rebootHost},
}

const (
	resetGPU = "Drain the host, stop what has the GPU open (rdma_exporter gpu release --for 30m ; systemctl stop " +
		"nvidia-dcgm), then run nvidia-smi --gpu-reset -i %s. If the driver refuses to reset a single GPU on NVSwitches, " +
		"reset all: nvidia-smi --gpu-reset"
	rebootHost = "Drain the host and reboot it: a reset of the GPU is not sufficient"
)

func gpuXid(f *fault.Fault) fault.Text {
	recovery, number, gpu := recoveries[f.Value], fault.Plain(f.Value), f.Labels["gpu"]
	required := cmp.Or(recovery.name,
		"recovery action "+number+" of the driver, unknown to this version of rdma_exporter")
	action := cmp.Or(recovery.action, "Follow the documentation of the driver for this recovery action")
	jobs := "Jobs on the GPU have failed or hang, and new ones fail to start"
	drainReason := "Jobs on this GPU have failed or hang, and new ones would fail to start; jobs on the other GPUs of " +
		"the host may finish."
	if f.Value == 3 || f.Value == 4 {
		jobs = "No new jobs may start on the GPU; running ones may continue with reduced GPU resources"
		drainReason = "New jobs must not start on this GPU, while running ones may continue with reduced GPU resources."
	}
	return fault.Text{
		Summary: f.Host() + " GPU " + gpu + ": recovery required, " + required + f.Text(lastXID, " (last XID %v)", ""),
		Description: "The driver reports recovery action " + number + " (" +
			cmp.Or(recovery.name, "unknown to this version of rdma_exporter") + ")" +
			f.Text(lastXID, " after XID error %v", "") + "; 0 (none) is expected. " + jobs + ". One such GPU stalls all " +
			"ranks of a job over several hosts: NICs and fabric are idle then, without a fault.",
		Evidence: evidenceOfRecovery(f, number+" ("+cmp.Or(recovery.name, "unknown")+")"),
		Diagnose: "journalctl -k | grep -i xid | tail -40 ; nvidia-smi -q -i " + gpu + " | grep -i 'recovery action'",
		Action: strings.ReplaceAll(action, "%s", gpu) + ". If the recovery action returns, keep the kernel log and run " +
			"the field diagnosis of the vendor.",
		DrainReason: drainReason,
	}
}

// evidenceOfRecovery returns the evidence on the recovery action of the GPU.
func evidenceOfRecovery(f *fault.Fault, action string) []fault.Line {
	var e fault.Lines
	e.Add("Recovery action", action+", driver-reported (NVML_FI_DEV_GET_GPU_RECOVERY_ACTION).")
	if last, ok := f.Number(lastXID); ok {
		e.Add("XID", "last "+fault.Plain(last)+f.Text(
			`max(rdma_gpu_xid_events_total{$gpu})`, ", %v events since the exporter registered for them", "")+".")
	} else {
		e.Add("XID", "none since the exporter registered for XID events; earlier ones are in the kernel log.")
	}
	for _, r := range f.Rows(
		`max by (device, distance) (rdma_gdr_gpu_info{device!="",$gpu})`, "device", "distance") {
		e.Add("NIC", r.Labels["device"]+", distance "+r.Labels["distance"]+".")
	}
	e.Add("Affected GPUs", affected(f, `count(max by (gpu, UUID) (rdma_gpu_recovery_action_id{$host}) > 0)`,
		`count(max by (gpu, UUID) (rdma_gpu_recovery_action_id{$host}))`))
	e.Add("Not evaluated", "XID errors without a recovery action, and GPUs without NVML data.")
	return e
}
