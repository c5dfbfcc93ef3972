package host

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/gdr/transport"
	"rdma_exporter/internal/words"
)

// gpuDirectFaults are those of GPUDirect RDMA and of its settings.
var gpuDirectFaults = fault.Kinds{
	"host_misconfigured/acs":              {Write: acsRedirect, OfHost: true},
	"host_misconfigured/iommu":            {Write: iommuTranslating, OfHost: true},
	"host_misconfigured/locked_memory":    {Write: lockedMemoryLow},
	"host_misconfigured/nic_place":        {Write: nicMisplaced},
	"host_misconfigured/numa":             {Write: numaMisplaced, OfHost: true},
	"host_misconfigured/pcie_settings":    {Write: pcieSettings},
	"gpu_direct_staging/staging":          {Write: gpuDirectStaging, OfHost: true},
	"gpu_direct_staging/sockets":          {Write: transportFallback, OfHost: true},
	"gpu_direct_unavailable/no_mechanism": {Write: gpuDirectUnavailable, OfHost: true},
	"gpu_direct_unavailable/job_settings": {Write: gpuDirectDisabled, OfHost: true},
	"port_misconfigured/job_gid":          {Write: jobGIDMismatch, OfHost: true},
}

func acsRedirect(f *fault.Fault) fault.Text {
	var e fault.Lines
	for _, d := range f.Rows(`device:rdma_gdr:near{$host} `+
		`and on (device) rdma_device_pcie_settings_info{acs_redirect="true",virtual="false",$host}`, "device") {
		gpus := f.Of(d).LabelsOf(`max by (gpu) (rdma_gdr_gpu_info{distance=~"PIX|PXB",$device})`, "gpu")
		e.Add("Device "+d.Labels["device"], words.Join(", ", pciAddress(f.Of(d)),
			"near GPU "+strings.Join(gpus, ", GPU ")+"."))
	}
	e.Add("Not evaluated", "ports whose configuration space is not readable (CAP_SYS_ADMIN); traffic between GPUs.")
	devices := f.Count("RDMA device")
	return fault.Text{
		Summary: f.Host() + ": PCIe ACS redirects traffic between GPUs and " + devices + " through the root complex",
		Description: "ACS redirection is enabled on PCIe switch ports between GPUs and " + devices + " (expected: " +
			"disabled). Peer-to-peer traffic passes the root complex instead of the switch. GPUDirect RDMA has half of the " +
			"bandwidth or less, less still where the IOMMU translates.",
		Evidence: e,
		Diagnose: "rdma_exporter topo ; lspci -vvv | grep -E '^[0-9a-f]|ACSCtl' # as root; ReqRedir+ is redirection",
		Action: "Disable ACS in the firmware setup. If it has no such option, clear ACS after each boot with setpci on " +
			"the switch ports that rdma_exporter topo lists, or set pci=config_acs= on the kernel command line (Linux 6.11 " +
			"and newer). Keep ACS on hosts of virtual machines and ignore the device's alerts there.",
		DrainReason: "Jobs run, over several hosts with less bandwidth; drain the host only to change the setting.",
	}
}

func iommuTranslating(f *fault.Fault) fault.Text {
	var e fault.Lines
	for _, d := range f.Rows(
		`max by (device, iommu) (rdma_device_pcie_settings_info{iommu=~"DMA|DMA-FQ",virtual="false",$host}) `+
			`and on (device) device:rdma_gdr:near{$host}`, "device") {
		e.Add("Device "+d.Labels["device"], words.Join(", ", pciAddress(f.Of(d)), "IOMMU group type "+d.Labels["iommu"]+"."))
	}
	e.Add("Expected", "IOMMU group type identity (passthrough).")
	e.Add("Not evaluated", "devices that share no PCIe switch with a GPU.")
	devices := f.Count("RDMA device")
	return fault.Text{
		Summary: f.Host() + ": IOMMU translates DMA of " + devices + " below the PCIe switch of a GPU",
		Description: "The IOMMU group of " + devices + " below the PCIe switch of a GPU is of type DMA or DMA-FQ " +
			"(expected: identity). Traffic between NIC and GPU passes the IOMMU, and its cache misses cost bandwidth. With " +
			"some GPU drivers GPUDirect RDMA does not work at all.",
		Evidence: e,
		Diagnose: "grep . /sys/class/infiniband/*/device/iommu_group/type ; cat /proc/cmdline",
		Action: "Boot with iommu=pt (passthrough). If no virtual machine needs the IOMMU, it can be disabled in the " +
			"firmware setup instead.",
		DrainReason: "Jobs run with less bandwidth; drain the host only for the reboot.",
	}
}

const usesDMABUF = `rdma_gdr_gpu_info{mechanism="dmabuf",$host}`

func gpuDirectStaging(f *fault.Fault) fault.Text {
	t := fault.Text{
		Summary: f.Host() + ": job sends data of " + gpuCount(f) +
			" through host memory although GPUDirect RDMA is available",
		Description: gpuCount(f) + " " + f.One("runs", "run") + " an NCCL job whose NIC is busy, but none of their GPU " +
			"memory is registered with a NIC although GPUDirect RDMA is available. Jobs over several hosts run at a " +
			"fraction of the bandwidth and use memory bandwidth of the CPUs. NCCL logs no error.",
		Evidence: staging(f),
		Diagnose: "rdma_exporter topo ; cat /sys/module/nvidia_peermem/refcnt # 0: no registration",
		Action: "Compare the job's container with one that uses GPUDirect RDMA: /dev/infiniband, " +
			"/sys/module/nvidia_peermem/version and the NCCL version inside it. Load nvidia_peermem before the job starts. " +
			"Run the job with NCCL_DEBUG=INFO: channels with GPUDirect RDMA are logged with GDRDMA.",
		DrainReason: "The host works; the job runs at a fraction of the bandwidth.",
	}
	if f.Has(usesDMABUF) {
		t.Diagnose = "rdma_exporter topo"
		t.Action = "Run the job with NCCL_DEBUG=INFO: channels with GPUDirect RDMA are logged with GDRDMA. Compare " +
			"NCCL_NET_GDR_LEVEL, NCCL_DMABUF_ENABLE, the NCCL version and the CUDA version inside its container with " +
			"those of a job that uses GPUDirect RDMA."
	}
	return t
}

// staging returns the evidence on GPUs whose data passes host memory.
func staging(f *fault.Fault) []fault.Line {
	var e fault.Lines
	for _, g := range f.Rows(`gpu:rdma_gdr:staging{$host}`, "gpu") {
		at := f.Of(g)
		pci := pciAddress(at)
		parts := []string{
			uuid(g), "NIC " + g.Labels["device"] + fault.When(pci != "", " ("+pci+")"),
			at.Text(`max(rate(rdma_port_receive_bytes_total{$device}[5m])) * 8 / 1e9`, "receives %.1f Gb/s", ""),
			at.Text(`max(rate(rdma_port_transmit_bytes_total{$device}[5m])) * 8 / 1e9`, "transmits %.1f Gb/s", ""),
			at.Text(`max(rdma_port_rate_bytes_per_second{$device}) * 8 / 1e9`, "rate %.0f Gb/s", ""),
		}
		for _, p := range at.Rows(
			`max by (reason, workload, command, nccl_version) (rdma_gdr_gpu_transport_info{$gpu})`, "workload", "command") {
			parts = append(parts, process(p), fault.When(p.Labels["reason"] == "host_memory_registered",
				"has registered host memory only since its start (eBPF)"))
		}
		e.Add("GPU "+g.Labels["gpu"], words.Join(", ", parts...)+".")
	}
	e = append(e, registered(f))
	e = append(e, f.JobSettings("nccl_gdr_level|nccl_ib_hca|nccl_topo_file")...)
	e.Add("Not evaluated", "jobs whose settings or registrations are not readable; jobs with net plugins; DMA-BUF in "+
		"use without eBPF programs (CAP_BPF and CAP_PERFMON) or --collector.gdr.bufinfo.")
	return e
}

// registered returns the evidence on memory registered with NICs.
func registered(f *fault.Fault) fault.Line {
	var memory []string
	for _, m := range f.Rows(
		`sum by (mechanism) (rdma_gdr_registered_bytes{mechanism!="peermem",$host})`, "mechanism") {
		memory = append(memory, m.Labels["mechanism"]+" "+fault.Binary(m.Value)+"B")
	}
	if memory != nil {
		return fault.Line{Name: "Registered memory", Text: strings.Join(memory, ", ") + "."}
	}
	registrations := ""
	for _, r := range f.Rows(`max by (source) (rdma_gdr_live_registrations{source!="dmabuf",$host})`, "source") {
		registrations += r.Labels["source"] + " " + fault.Plain(r.Value) + ", "
	}
	return fault.Line{Name: "Registrations", Text: registrations + "DMA-BUF none or unavailable."}
}

func gpuDirectUnavailable(f *fault.Fault) fault.Text {
	e, remedies := lostGPUs(f, `gpu:rdma_gdr:lost{kind="mechanism",$host}`)
	_, refused := refusedModules(f, `=~"nvidia.*|nv_peer_mem"`)
	e = append(e, refused...)
	e.Add("Not evaluated", "environment of running jobs; net plugins; virtual machines without a topology file.")
	modules := "lsmod | grep -E 'nvidia|ib_core' ; head -1 /proc/driver/nvidia/version"
	if f.Has(`gpu:rdma_gdr:lost{reason=~"kernel_without_p2pdma|gpu_bar_small",$host}`) {
		modules = "lsmod | grep -E 'amdgpu|ib_core' ; grep -E 'PCI_P2PDMA|DMABUF_MOVE_NOTIFY' /boot/config-$(uname -r)"
	}
	return fault.Text{
		Summary: f.Host() + ": " + gpuCount(f) + " without GPUDirect RDMA, data is copied through host memory",
		Description: gpuCount(f) + " " + f.One("has", "have") + " no mechanism by which a NIC accesses GPU memory: neither " +
			"a peer memory module nor DMA-BUF. NCCL copies the data through host memory: jobs over several hosts run at a " +
			"fraction of the bandwidth, and all other hosts of the job wait.",
		Evidence:    e,
		Diagnose:    "rdma_exporter topo ; " + modules,
		Action:      cmp.Or(remedies, "Run rdma_exporter topo and remedy the reason that it reports."),
		DrainReason: "Jobs run, over several hosts at a fraction of the bandwidth.",
	}
}

func gpuDirectDisabled(f *fault.Fault) fault.Text {
	e, remedies := lostGPUs(f, `gpu:rdma_gdr:lost{kind="settings",$host}`)
	e = append(e, f.JobSettings("nccl_gdr_level|nccl_ib_hca|nccl_topo_file")...)
	e.Add("Not evaluated", "jobs whose settings are not readable; net plugins; virtual machines without a topology file.")
	return fault.Text{
		Summary: f.Host() + ": NCCL settings of a job disable GPUDirect RDMA of " + gpuCount(f) +
			", data is copied through host memory",
		Description: "NCCL settings of a job, or of nccl.conf, disable GPUDirect RDMA of " + gpuCount(f) + ", which this " +
			"host supports. A job over several hosts runs at a fraction of the bandwidth, and all its other hosts wait.",
		Evidence:    e,
		Diagnose:    "rdma_exporter topo ; rdma_exporter check --setup",
		Action:      cmp.Or(remedies, "Run rdma_exporter topo and remove the setting that it reports."),
		DrainReason: "The host works; the settings are of the job.",
	}
}

// lostGPUs returns lines for the obstacles of the GPUs of an expression and for these GPUs, and the remedies.
func lostGPUs(f *fault.Fault, gpus string) (e fault.Lines, remedies string) {
	e, remedies = obstacles(f, gpus)
	for _, g := range f.Rows(`max by (gpu, UUID, device, distance) (rdma_gdr_gpu_info{$host} `+
		`and on (gpu, UUID) `+gpus+`)`, "gpu") {
		nic := "no eligible NIC"
		if g.Labels["device"] != "" {
			nic = "nearest eligible NIC " + g.Labels["device"] + " (distance " + cmp.Or(g.Labels["distance"], "unknown") + ")"
		}
		e.Add("GPU "+g.Labels["gpu"], uuid(g)+", "+nic+".")
	}
	return e, remedies
}

// obstacles returns lines for the obstacles of the GPUs of an expression in the order of removal, each with the path
// after it, and the remedies in that order.
func obstacles(f *fault.Fault, gpus string) (e fault.Lines, remedies string) {
	var seen []string
	for _, r := range f.Rows(`count by (step, reason, after) (rdma_gdr_gpu_obstacle_info{$host} `+
		`and on (gpu, UUID) `+gpus+`)`, "step", "reason") {
		reason, after := transport.Reason(r.Labels["reason"]), transport.Reason(r.Labels["after"])
		path := after.Words()
		if strings.HasPrefix(string(after), "direct") {
			path = "direct"
		}
		e.Add("Obstacle "+r.Labels["step"], reason.Words()+" ("+string(reason)+", "+words.Count(int(r.Value), "GPU")+
			"). Path without it: "+path+" ("+string(after)+").")
		if remedy := reason.Remedy(); remedy != "" && !slices.Contains(seen, remedy) {
			seen = append(seen, remedy)
			remedies = words.Join(" ", remedies, strings.ToUpper(remedy[:1])+remedy[1:]+".")
		}
	}
	if n := len(f.Rows(`rdma_gdr_gpu_possible{direction="receive",$host} == 0 and on (gpu, UUID) ` + gpus)); n > 0 {
		e.Add("Hardware", "no slot near enough for GPUDirect RDMA of "+words.Count(n, "GPU")+", by the PCI tree.")
	}
	return e, remedies
}

func transportFallback(f *fault.Fault) fault.Text {
	e, remedies := reasonsOf(f, `count by (reason) (`+
		`rdma_gdr_gpu_transport_info{reason=~"ib_disabled|net_socket|no_rdma_device",$host})`)
	for _, g := range f.Rows(`gpu:rdma_gdr:sockets{$host}`, "gpu") {
		parts := []string{uuid(g), "no eligible NIC"}
		if nic := g.Labels["device"]; nic != "" {
			parts[1] = "NIC " + nic + " not used"
		}
		processes := f.Of(g).Rows(
			`max by (workload, command, nccl_version) (rdma_gdr_gpu_transport_info{$gpu})`, "workload", "command")
		parts = append(parts, words.Map(processes, process)...)
		e.Add("GPU "+g.Labels["gpu"], strings.Join(parts, ", ")+".")
	}
	e = append(e, f.JobSettings("nccl_ib_hca|nccl_socket_ifname")...)
	e.Add("Not evaluated",
		"jobs whose launcher and scheduler do not report the number of nodes; jobs inside an NVLink domain of several hosts.")
	return fault.Text{
		Summary: f.Host() + ": job over several nodes sends data of " + gpuCount(f) + " over sockets instead of RDMA",
		Description: gpuCount(
			f,
		) + " " + f.One(
			"runs",
			"run",
		) + " an NCCL job over several nodes that holds no RDMA device, " +
			"while an interface carries much traffic of the kernel (expected: RDMA). The job runs at the speed of " +
			"sockets over that network, and can saturate it.",
		Evidence:    e,
		Diagnose:    "rdma_exporter topo ; ls -l /dev/infiniband # inside the job's container",
		Action:      cmp.Or(remedies, "Run the job with NCCL_DEBUG=INFO and read its NET/ lines."),
		DrainReason: "The host works; the job runs at a fraction of the bandwidth.",
	}
}

// reasonsOf returns lines for the numbers of GPUs by reason, and the remedies.
func reasonsOf(f *fault.Fault, expr string) (e fault.Lines, remedies string) {
	for _, r := range f.Rows(expr, "reason") {
		reason := transport.Reason(r.Labels["reason"])
		e.Add("Reason", reason.Words()+" ("+string(reason)+", "+words.Count(int(r.Value), "GPU")+").")
		if remedy := reason.Remedy(); remedy != "" {
			remedies = words.Join(" ", remedies, strings.ToUpper(remedy[:1])+remedy[1:]+".")
		}
	}
	return e, remedies
}

func jobGIDMismatch(f *fault.Fault) fault.Text {
	var e fault.Lines
	for _, r := range f.Rows(`max by (device, port, gid_index, gid_type, workload) (rdma_gdr_job_gid_info{$host}) `+
		`and on (device, port) port:rdma_gdr:gid_mismatch{$host}`, "device", "port", "workload") {
		entry := "empty"
		if r.Labels["gid_type"] == "roce_v1" {
			entry = "RoCE v1"
		}
		text := "job " + cmp.Or(r.Labels["workload"], "unknown") + " selects GID index " + r.Labels["gid_index"] +
			" (" + entry + ")"
		for _, right := range f.Of(r).Rows(
			`max by (family) (rdma_port_roce_v2_gid_index{family!="link_local",$port})`, "family") {
			text += ", RoCE v2 over " + right.Labels["family"] + " is index " + fault.Plain(right.Value)
		}
		e.Add("Port "+fault.PortName(r), text+".")
	}
	e.Add("Not evaluated", "jobs whose settings are not readable.")
	at, ports := "*/ports/*", f.Count("RDMA port")
	if r := f.Rows(`port:rdma_gdr:gid_mismatch{$host}`, "device", "port"); len(r) > 0 {
		at = fault.Pasted(r[0].Labels["device"]) + "/ports/" + r[0].Labels["port"]
	}
	return fault.Text{
		Summary: f.Host() + ": NCCL_IB_GID_INDEX of a job selects GIDs other than RoCE v2 on " + ports,
		Description: "NCCL_IB_GID_INDEX of a job selects a GID table entry that is RoCE v1 or empty on " + ports +
			" (expected: RoCE v2). RoCE v1 is not routed and is in no lossless class of switches that classify by DSCP: " +
			"connections fail with retry counter exceeded, or are slow. With an empty entry ibv_modify_qp fails.",
		Evidence: e,
		Diagnose: "rdma_exporter topo ; grep . /sys/class/infiniband/" + at + "/gid_attrs/types/* 2>/dev/null",
		Action: "Remove NCCL_IB_GID_INDEX from the job's environment and from nccl.conf: NCCL 2.21 and newer select RoCE " +
			"v2 by default. With an older NCCL set the index of RoCE v2, which may differ between hosts.",
		DrainReason: "The setting is of the job, other jobs on this host are not affected.",
	}
}

func lockedMemoryLow(f *fault.Fault) fault.Text {
	limit := fmt.Sprintf("%.4g MiB", f.Value/(1<<20))
	var e fault.Lines
	e.Add("Locked memory", "limit "+limit+", the lowest of all processes that hold an RDMA device.")
	e.Add("Expected", "64 MiB or more.")
	e.Add("Not evaluated", "processes that are not readable (CAP_SYS_PTRACE); how much memory each registers.")
	return fault.Text{
		Summary: f.Host() + ": locked memory limit of a process with an RDMA device is " + limit + " (minimum 64 MiB)",
		Description: "The lowest locked memory limit (RLIMIT_MEMLOCK) of the processes that hold an RDMA device is " +
			limit + " (minimum 64 MiB). Above it ibv_reg_mr and ibv_create_cq fail with ENOMEM, in NCCL as " +
			`"Call to ibv_reg_mr failed". Small jobs may run.`,
		Evidence: e,
		Measured: limit,
		Limit:    "64 MiB",
		Diagnose: `rdma_exporter topo --json | grep -E '"(pid|command|locked_memory_limit_bytes)"'`,
		Action: "Raise memlock for jobs: PropagateResourceLimitsExcept=MEMLOCK in slurm.conf, LimitMEMLOCK=infinity in " +
			"the unit of the scheduler's daemon, ulimits of the container.",
		DrainReason: "The limit is of the job, only jobs that register more memory fail.",
	}
}

func nicMisplaced(f *fault.Fault) fault.Text {
	others := f.Text(`count(count by (gpu, UUID) (gpu:rdma_gdr:paired{$host}))`, "%v other GPUs", "")
	var e fault.Lines
	for _, g := range f.Rows(`gpu:rdma_gdr:unpaired{$host}`, "gpu", "device") {
		e.Add("GPU "+g.Labels["gpu"], uuid(g)+", nearest NIC "+g.Labels["device"]+
			" (distance "+g.Labels["distance"]+").")
	}
	for _, d := range f.Rows(`device:rdma_gdr:unpaired{$host}`, "device") {
		e.Add("NIC "+d.Labels["device"], "PCI "+cmp.Or(d.Labels["pci_address"], "unknown")+", near no GPU.")
	}
	steps, _ := obstacles(f, `gpu:rdma_gdr:unpaired{$host}`)
	e = append(e, steps...)
	e.Add("Expected", fault.When(others != "", "a NIC below its PCIe host bridge, by "+others+" of this host."))
	e = append(e, f.JobSettings("nccl_ib_hca|nccl_topo_file")...)
	e.Add("Not evaluated", "which NIC belongs to which GPU.")
	return fault.Text{
		Summary: f.Host() + ": " + f.Count("GPU") + " without an RDMA NIC below " + f.One("its", "their") +
			" PCIe host bridge" + fault.When(others != "", " ("+others+" have a NIC there)"),
		Description: f.Count("GPU") + " " + f.One("has", "have") + " no RDMA NIC below " + f.One("its", "their") +
			" PCIe host bridge" + fault.When(others != "", ", "+others+" of this host have a NIC there") + ", and a NIC " +
			"of the same board is near no GPU: it is in the wrong slot or on the wrong riser cable. Data of the GPU passes the " +
			"host bridge, with NCCL through host memory, and each collective waits for its slowest rank.",
		Evidence: e,
		Diagnose: "rdma_exporter topo ; nvidia-smi topo -m",
		Action: "Compare the PCIe slots and riser cables with a host of the same kind. Drain the host, power it off and " +
			"move the NIC below the PCIe switch of its GPU.",
		DrainReason: "Jobs run, limited by the GPU without near NIC; drain the host only to move the NIC.",
	}
}

func numaMisplaced(f *fault.Fault) fault.Text {
	var e fault.Lines
	for _, g := range f.Rows(`count by (gpu, UUID) (gpu:rdma_gdr:far{$host})`, "gpu") {
		var nics []string
		for _, n := range f.Of(g).Rows(`gpu:rdma_gdr:far{$gpu}`, "device") {
			nic := n.Labels["device"]
			for _, r := range f.Of(n).Rows(`max by (numa_node, pci_address) (rdma_device_info{$device})`) {
				nic += " (PCI " + cmp.Or(r.Labels["pci_address"], "unknown") +
					", NUMA node " + cmp.Or(r.Labels["numa_node"], "unknown") + ")"
			}
			nics = append(nics, nic)
		}
		e.Add(
			"GPU "+g.Labels["gpu"],
			uuid(g)+", nearest NIC"+fault.When(len(nics) != 1, "s")+" "+strings.Join(nics, ", ")+".",
		)
	}
	steps, _ := obstacles(f, `gpu:rdma_gdr:far{$host}`)
	e = append(e, steps...)
	e.Add("Not evaluated", "whether a job uses GPUs and RDMA together.")
	return fault.Text{
		Summary: f.Host() + ": nearest RDMA NIC of " + f.Count("GPU") + " is on another NUMA node",
		Description: "The nearest RDMA NIC of " + f.Count("GPU") + " is on another NUMA node, a distance over which NCCL " +
			"does not use GPUDirect RDMA. Their data is copied through host memory and crosses the link between the " +
			"processors.",
		Evidence: e,
		Diagnose: "rdma_exporter topo ; nvidia-smi topo -m",
		Action: "Drain the host, power it off and move the NIC into a slot of the GPUs' socket, if possible below the " +
			"same PCIe switch. If no job uses GPUs and RDMA together, ignore the device's alerts in the configuration file.",
		DrainReason: "Jobs run, data of these GPUs is copied through host memory; drain the host only to move the NIC.",
	}
}

func pcieSettings(f *fault.Fault) fault.Text {
	var e fault.Lines
	headline, sentence := "", ""
	for _, own := range f.Rows(`device:rdma_pcie_settings:alike{$device}`) {
		read, order := readsAndOrder(own)
		headline += ", MaxReadReq " + read + " bytes, relaxed ordering " + order
		sentence += ": MaxReadReq " + read + " bytes and relaxed ordering " + order
		e.Add("Settings", "MaxReadReq "+read+" bytes, relaxed ordering "+order+".")
		for _, most := range f.Rows(
			`device:rdma_pcie_settings:majority{$host,board_id=` + strconv.Quote(own.Labels["board_id"]) + `}`) {
			read, order := readsAndOrder(most)
			headline += " (expected " + read + " bytes, " + order + ")"
			sentence += ", expected " + read + " bytes and " + order
			e.Add("Expected", "MaxReadReq "+read+" bytes, relaxed ordering "+order+", by "+fault.Plain(most.Value)+" siblings.")
		}
	}
	e.Add("Not evaluated", "which of the settings is right.")
	device := "$(basename $(readlink /sys/class/infiniband/" + fault.Pasted(f.Labels["device"]) + "/device))"
	address := f.LabelOf(`max by (pci_address) (rdma_device_info{$device,pci_address!=""})`, "pci_address")
	return fault.Text{
		Summary: f.Host() + " " + f.Labels["device"] + ": PCIe settings differ from most devices of the same board" +
			headline,
		Description: "PCIe settings of this device differ from more than half of the devices of its board in this host" +
			sentence + ". Smaller reads or strict ordering cost from a few percent to half of the bandwidth on fast ports.",
		Evidence: e,
		Diagnose: "lspci -vvv -s " + cmp.Or(address, device) + " | grep -A2 DevCtl # as root",
		Action: "Apply the settings of the siblings to this device: vendor's tuning script, mlxconfig or firmware " +
			"setup.",
		DrainReason: "The device works, with less bandwidth at most.",
	}
}

// readsAndOrder returns PCIe settings: the maximum read request in bytes, and whether relaxed ordering is enabled.
func readsAndOrder(s fault.Sample) (bytes, order string) {
	order = s.Labels["relaxed_ordering"]
	order = cmp.Or(map[string]string{"true": "enabled", "false": "disabled"}[order], order, "unknown")
	return s.Labels["max_read_request"], order
}

// gpuCount returns how many of the GPUs the alert is on: "2 of 8 GPUs".
func gpuCount(f *fault.Fault) string {
	return fault.Plain(f.Value) + f.Text(`count(max by (gpu, UUID) (rdma_gdr_gpu_info{$host}))`, " of %v", "") + " GPUs"
}

// pciAddress returns the PCI address of the device; empty: the device has no data.
func pciAddress(f *fault.Fault) string {
	for _, r := range f.Rows(`max by (pci_address) (rdma_device_info{$device})`) {
		return "PCI " + cmp.Or(r.Labels["pci_address"], "unknown")
	}
	return ""
}

// process describes the one that holds a GPU, with its job.
func process(s fault.Sample) string {
	return "job " + cmp.Or(s.Labels["workload"], "unknown") + ", process " + cmp.Or(s.Labels["command"], "unknown") +
		", NCCL " + cmp.Or(s.Labels["nccl_version"], "of unknown version")
}

func uuid(gpu fault.Sample) string { return cmp.Or(gpu.Labels["UUID"], "UUID unknown") }
