package collector

import (
	"slices"
	"strconv"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// gpuLabels are the names that the DCGM exporter gives the index of NVML and the UUID.
func gpuLabels(more ...string) []string { return append([]string{"gpu", "UUID"}, more...) }

var (
	gpuDriverInfo = &Desc{
		Name: "rdma_gpu_driver_info", Type: gauge, Scope: scopeHost,
		Help:   "NVIDIA driver that NVML talks to, and the newest CUDA that it can, always 1. Absent while NVML does not answer.",
		Labels: []string{"version", "cuda_version"},
		Source: "nvmlSystemGetDriverVersion, nvmlSystemGetCudaDriverVersion_v2",
	}
	gpuAge = &Desc{
		Name: "rdma_gpu_reading_age_seconds", Type: gauge, Unit: "seconds", Scope: scopeHost,
		Help:   "Age of the reading of NVML that this scrape serves: it is made in the background, --collector.gpu.interval.",
		Source: "the exporter",
	}
	gpuReleased = &Desc{
		Name: "rdma_gpu_released_seconds", Of: "rdma_gpu_released_seconds", Type: gauge, Unit: "seconds", Scope: scopeHost,
		Help:   "Time for which the exporter holds no GPU yet, on request (POST /-/gpu/release). All else of rdma_gpu_* is absent meanwhile. Absent while it holds them.",
		Source: "the exporter",
	}
	gpuHidden = &Desc{
		Name: "rdma_gpu_hidden", Beside: "rdma_gpu_driver_info", Type: gauge, Scope: scopeHost,
		Help:   "1 of a GPU that the PCI tree has and NVML does not show: it has fallen off its bus, another driver has it, or it is left out of the exporter's container. Absent for others.",
		Labels: []string{"pci_bus_id"},
		Source: "/sys/bus/pci/devices, nvmlDeviceGetPciInfo",
	}
	gpuInfo = &Desc{
		Name: "rdma_gpu_info", Of: "rdma_gpu_info", Asks: host.SourceNVML.Name(), Type: gauge, Scope: scopeGPU,
		Help:   "NVIDIA GPU, always 1. gpu and UUID are those of the DCGM exporter; pci_bus_id is the PCI address as in sysfs.",
		Labels: gpuLabels("pci_bus_id", "model", "serial_number", "numa_node"),
		Source: "nvmlDeviceGetPciInfo, nvmlDeviceGetName, nvmlDeviceGetSerial; /sys/bus/pci/devices/ADDRESS/numa_node",
	}
	gpuIgnored = &Desc{
		Name: "rdma_gpu_ignored", Beside: "rdma_gpu_info", Type: gauge, Scope: scopeGPU,
		Help:   "A GPU whose faults raise no alert, because --config.file says so; always 1, absent for others. Told of GPUs that NVML has shown.",
		Labels: gpuLabels(),
		Source: "--config.file",
	}
	gpuNVLinkErrors = &Desc{
		Name: "rdma_gpu_nvlink_errors_total", Beside: "rdma_gpu_nvlinks_up", Type: counter, Scope: scopeGPU,
		Help:   "Errors on the NVLinks of a GPU. error: recovery, a link was trained anew, which stops its traffic; recovery_failed, it went down then; full mode adds replay, crc (before Hopper crc_flit and crc_data), receive. Kinds that the GPU does not count are absent: Blackwell has receive and recovery_failed.",
		Labels: gpuLabels("error"),
		Source: "NVML_FI_DEV_NVLINK_ERROR_DL_*, NVML_FI_DEV_NVLINK_*_ERROR_COUNT_TOTAL, NVML_FI_DEV_NVLINK_COUNT_*",
	}
	gpuFabricState = &Desc{
		Name: "rdma_gpu_fabric_state", Asks: host.SourceNVML.Name(), Beside: "rdma_gpu_nvlinks_up", Type: gauge, Scope: scopeGPU,
		Help:   "Registration of a GPU with the fabric of its NVSwitches, 1 for the state it is in. state: completed; degraded, completed with an error, or with a health that NVML calls degraded or limited; pending, not started or in progress: the GPU has no NVLink peers. Absent for GPUs without such a fabric.",
		Labels: gpuLabels("state"),
		Source: "nvmlDeviceGetGpuFabricInfoV: state, status, health",
	}
	gpuThrottle = &Desc{
		Name: "rdma_gpu_throttle", Type: gauge, Scope: scopeGPU,
		Help:   "Whether a reason keeps the clocks of a GPU down. Full mode only. reason: sw_power_cap, hw_slowdown, sync_boost, sw_thermal, hw_thermal, hw_power_brake, board_limit, reliability.",
		Labels: gpuLabels("reason"),
		Source: "nvmlDeviceGetCurrentClocksEventReasons",
	}
	gpuRemappedRows = &Desc{
		Name: "rdma_gpu_remapped_rows", Type: gauge, Scope: scopeGPU,
		Help:   "Rows of a GPU's memory that spare ones stand in for. Full mode only. error: correctable, uncorrectable.",
		Labels: gpuLabels("error"),
		Source: "nvmlDeviceGetRemappedRows",
	}
	gpuRowState = &Desc{
		Name: "rdma_gpu_row_remapping", Type: gauge, Scope: scopeGPU,
		Help:   "Whether rows of a GPU's memory are in a state. Full mode only. state: pending, a remapping waits for a reset of the GPU; failed, no spare row was left.",
		Labels: gpuLabels("state"),
		Source: "nvmlDeviceGetRemappedRows",
	}
)

// gpuFigure is a metric with one value a GPU; nil is absent.
type gpuFigure struct {
	*Desc
	full  bool // in full mode only
	value func(*snapshot.GPU) *float64
}

// gpuFigures are the metrics of single values. Outside full mode are those that tell of the fabric: NVLinks, PCIe, and whether a GPU is
// fit to use them.
var gpuFigures = []gpuFigure{
	gpuUint("rdma_gpu_nvlinks_up", gauge, "", false, "NVLinks of a GPU that are up. Absent for GPUs without NVLinks.",
		"NVML_FI_DEV_NVLINK_GET_STATE or nvmlDeviceGetNvLinkState, of all links", func(g *snapshot.GPU) *uint64 { return g.NVLinksUp }),
	gpuUint("rdma_gpu_xid_events_total", counter, "", false, "XID errors of a GPU since the exporter listens, each counted as it comes.",
		"events nvmlEventTypeXidCriticalError", func(g *snapshot.GPU) *uint64 { return g.XIDs }),
	gpuUint("rdma_gpu_last_xid", gauge, "", false, "Code of the last XID error of a GPU since the exporter listens. Absent before the first.",
		"events nvmlEventTypeXidCriticalError", func(g *snapshot.GPU) *uint64 { return g.LastXID }),
	needed(gpuUint("rdma_gpu_recovery_action_id", gauge, "", false, "What a GPU needs in order to recover: 0 nothing, 1 reset, 2 reboot of the node, 3 drain of its peers, 4 drain and reset, 5 recovery of the IMEX domain, 6 reset of its PCIe bus, 7 reboot of the system.",
		"NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", func(g *snapshot.GPU) *uint64 { return g.RecoveryAction })),
	gpuUint("rdma_gpu_pcie_generation", gauge, "", false, "PCIe generation that the link of a GPU runs at. An idle GPU is at 1 to save power: no fault.",
		"nvmlDeviceGetCurrPcieLinkGeneration", func(g *snapshot.GPU) *uint64 { return g.PCIeGeneration }),
	gpuUint("rdma_gpu_pcie_max_generation", gauge, "", false, "Newest PCIe generation that GPU and slot can.",
		"nvmlDeviceGetMaxPcieLinkGeneration", func(g *snapshot.GPU) *uint64 { return g.PCIeMaxGeneration }),
	gpuUint("rdma_gpu_pcie_width_lanes", gauge, "lanes", false, "PCIe lanes that a GPU uses.",
		"nvmlDeviceGetCurrPcieLinkWidth", func(g *snapshot.GPU) *uint64 { return g.PCIeWidth }),
	gpuUint("rdma_gpu_pcie_max_width_lanes", gauge, "lanes", false, "Most PCIe lanes that GPU and slot can.",
		"nvmlDeviceGetMaxPcieLinkWidth", func(g *snapshot.GPU) *uint64 { return g.PCIeMaxWidth }),
	gpuUint("rdma_gpu_pcie_transmit_bytes_total", counter, "bytes", false, "Bytes that a GPU has sent over PCIe, overhead of packets included, since the exporter reads it. Measured by the driver's performance monitor (Hopper and later): its counter has 32 bits, which wrap in a tenth of a second.",
		"nvmlGpmMetricsGet: NVML_GPM_METRIC_PCIE_TX_PER_SEC; NVML_FI_DEV_PCIE_COUNT_TX_BYTES where it has 64 bits", func(g *snapshot.GPU) *uint64 { return g.PCIeTransmit }),
	gpuUint("rdma_gpu_pcie_receive_bytes_total", counter, "bytes", false, "Bytes that a GPU has received over PCIe, overhead of packets included, since the exporter reads it. Measured as those that it has sent.",
		"nvmlGpmMetricsGet: NVML_GPM_METRIC_PCIE_RX_PER_SEC; NVML_FI_DEV_PCIE_COUNT_RX_BYTES where it has 64 bits", func(g *snapshot.GPU) *uint64 { return g.PCIeReceive }),
	gpuUint("rdma_gpu_pcie_replays_total", counter, "", false, "Packets that a GPU has sent again over PCIe.",
		"NVML_FI_DEV_PCIE_REPLAY_COUNTER", func(g *snapshot.GPU) *uint64 { return g.PCIeReplays }),
	gpuUint("rdma_gpu_nvlinks", gauge, "", true, "NVLinks that a GPU has, those that lead nowhere among them. Full mode only.",
		"NVML_FI_DEV_NVLINK_LINK_COUNT", func(g *snapshot.GPU) *uint64 { return g.NVLinks }),
	gpuUint("rdma_gpu_nvlink_transmit_bytes_total", counter, "bytes", false, "Bytes of data that a GPU has sent over NVLink.",
		"NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", func(g *snapshot.GPU) *uint64 { return g.NVLinkTransmit }),
	gpuUint("rdma_gpu_nvlink_receive_bytes_total", counter, "bytes", false, "Bytes of data that a GPU has received over NVLink.",
		"NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", func(g *snapshot.GPU) *uint64 { return g.NVLinkReceive }),
	gpuFloat("rdma_gpu_temperature_celsius", "celsius", "Temperature of a GPU. Full mode only.",
		"nvmlDeviceGetTemperature", func(g *snapshot.GPU) *float64 { return g.Temperature }),
	gpuFloat("rdma_gpu_power_watts", "watts", "Power that a GPU draws. Full mode only.",
		"nvmlDeviceGetPowerUsage", func(g *snapshot.GPU) *float64 { return g.Power }),
	gpuFloat("rdma_gpu_utilization_ratio", "ratio", "Share of the last second or less in which a kernel ran on a GPU. Full mode only.",
		"nvmlDeviceGetUtilizationRates", func(g *snapshot.GPU) *float64 { return g.Utilization }),
	gpuUint("rdma_gpu_memory_used_bytes", gauge, "bytes", true, "Memory of a GPU in use, what the driver reserves left out. Full mode only.",
		"nvmlDeviceGetMemoryInfo_v2", func(g *snapshot.GPU) *uint64 { return g.MemoryUsed }),
	gpuUint("rdma_gpu_memory_total_bytes", gauge, "bytes", true, "Memory of a GPU. Full mode only.",
		"nvmlDeviceGetMemoryInfo_v2", func(g *snapshot.GPU) *uint64 { return g.MemoryTotal }),
	gpuUint("rdma_gpu_bar1_used_bytes", gauge, "bytes", true, "Memory of a GPU that is mapped for other PCI devices and the processor. Full mode only.",
		"nvmlDeviceGetBAR1MemoryInfo", func(g *snapshot.GPU) *uint64 { return g.BAR1Used }),
	gpuUint("rdma_gpu_bar1_total_bytes", gauge, "bytes", true, "Memory of a GPU that can be mapped at a time. Full mode only.",
		"nvmlDeviceGetBAR1MemoryInfo", func(g *snapshot.GPU) *uint64 { return g.BAR1Total }),
}

func gpuFloat(name, unit, help, source string, value func(*snapshot.GPU) *float64) gpuFigure {
	return gpuFigure{&Desc{Name: name, Type: gauge, Unit: unit, Scope: scopeGPU, Help: help, Labels: gpuLabels(), Source: source}, true, value}
}

// needed is a figure that a rule asks for and that some drivers do not tell.
func needed(f gpuFigure) gpuFigure {
	f.Beside, f.Of, f.Asks = "", "rdma_gpu_info", host.SourceNVML.Name()
	return f
}

func gpuUint(name string, kind exposition.Type, unit string, full bool, help, source string, value func(*snapshot.GPU) *uint64) gpuFigure {
	d := &Desc{Name: name, Beside: "rdma_gpu_info", Asks: host.SourceNVML.Name(), Type: kind, Unit: unit, Scope: scopeGPU, Help: help, Labels: gpuLabels(), Source: source}
	return gpuFigure{d, full, func(g *snapshot.GPU) *float64 {
		n := value(g)
		if n == nil {
			return nil
		}
		f := float64(*n)
		return &f
	}}
}

func gpuDescs() []*Desc {
	out := []*Desc{gpuDriverInfo, gpuAge, gpuReleased, gpuHidden, gpuInfo, gpuIgnored, gpuNVLinkErrors, gpuFabricState, gpuThrottle, gpuRemappedRows, gpuRowState}
	for _, f := range gpuFigures {
		out = append(out, f.Desc)
	}
	return out
}

// fabricErrors are the kinds of errors on NVLinks outside full mode: those that stop traffic.
var fabricErrors = []string{"recovery", "recovery_failed"}

// throttleReasons are the bits nvmlClocksEventReason* that are limits. Idling and a clock that somebody asked for are none.
var throttleReasons = []struct {
	bit    uint64
	reason string
}{
	{0x04, "sw_power_cap"},
	{0x08, "hw_slowdown"},
	{0x10, "sync_boost"},
	{0x20, "sw_thermal"},
	{0x40, "hw_thermal"},
	{0x80, "hw_power_brake"},
	{0x200, "board_limit"},
	{0x400, "reliability"},
}

func emitGPUs(n *snapshot.Node, s Sink) {
	if n.GPUs == nil {
		return
	}
	for _, g := range n.GPUs.Ignored {
		s.Emit(gpuIgnored, 1, g.Index, g.UUID)
	}
	if n.GPUs.Released != nil {
		s.Emit(gpuReleased, n.GPUs.Released.Seconds())
		return
	}
	if n.GPUs.Driver != "" {
		s.Emit(gpuDriverInfo, 1, n.GPUs.Driver, n.GPUs.CUDA)
		s.Emit(gpuAge, n.GPUs.Age.Seconds())
	}
	for _, f := range n.GPUs.Functions {
		if !f.Visible {
			s.Emit(gpuHidden, 1, f.PCIAddress)
		}
	}
	for i := range n.GPUs.GPUs {
		emitGPU(s, &n.GPUs.GPUs[i], n.GPUs.Full)
	}
}

func emitGPU(s Sink, g *snapshot.GPU, full bool) {
	id := strconv.Itoa(g.Index)
	s.Emit(gpuInfo, 1, id, g.UUID, g.PCIAddress, g.Model, g.Serial, g.NUMANode)
	for _, f := range gpuFigures {
		if v := f.value(g); v != nil && (full || !f.full) {
			s.Emit(f.Desc, *v, id, g.UUID)
		}
	}
	for _, e := range g.NVLinkErrors {
		if full || slices.Contains(fabricErrors, e.Name) {
			s.Emit(gpuNVLinkErrors, float64(e.Value), id, g.UUID, e.Name)
		}
	}
	if f := g.Fabric; f != nil {
		now := fabricState(f)
		for _, state := range []string{fabricCompleted, fabricDegraded, fabricPending} {
			s.Emit(gpuFabricState, boolValue(state == now), id, g.UUID, state)
		}
	}
	if !full {
		return
	}
	if g.Throttle != nil {
		for _, t := range throttleReasons {
			s.Emit(gpuThrottle, boolValue(*g.Throttle&t.bit != 0), id, g.UUID, t.reason)
		}
	}
	if r := g.RemappedRows; r != nil {
		s.Emit(gpuRemappedRows, float64(r.Correctable), id, g.UUID, "correctable")
		s.Emit(gpuRemappedRows, float64(r.Uncorrectable), id, g.UUID, "uncorrectable")
		s.Emit(gpuRowState, boolValue(r.Pending), id, g.UUID, "pending")
		s.Emit(gpuRowState, boolValue(r.Failed), id, g.UUID, "failed")
	}
}

// States of a GPU on the fabric of its NVSwitches.
const (
	fabricCompleted = "completed"
	fabricDegraded  = "degraded"
	fabricPending   = "pending"
)

// fabricState judges by NVML_GPU_FABRIC_STATE_*, and of a completed registration by its status and health: the summary where the
// driver has one, else bandwidth (bits 0 and 1), route (4 and 5), 1 each for bad, and configuration (8 to 11, from 2 on).
func fabricState(f *snapshot.GPUFabric) string {
	const completed, unhealthy, limited = 3, 2, 3
	switch {
	case f.State != completed:
		return fabricPending
	case f.Status != 0:
		return fabricDegraded
	case f.Summary != nil && *f.Summary != 0:
		if *f.Summary == unhealthy || *f.Summary == limited {
			return fabricDegraded
		}
	case f.Health != nil && (*f.Health&3 == 1 || *f.Health>>4&3 == 1 || *f.Health>>8&0xf > 1):
		return fabricDegraded
	}
	return fabricCompleted
}
