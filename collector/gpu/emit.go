package gpu

import (
	"slices"
	"strconv"

	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/snapshot/accel"
)

var (
	gpuDriverInfo = metric.Host("rdma_gpu_driver_info",
		"NVIDIA driver in use by NVML, and the newest CUDA version that it supports, always 1. Absent while NVML does not answer.",
		"nvmlSystemGetDriverVersion, nvmlSystemGetCudaDriverVersion_v2", "version", "cuda_version")
	gpuAge = metric.Host("rdma_gpu_reading_age_seconds",
		"Age of the NVML reading served, taken in the background every --collector.gpu.interval.", "the exporter")
	gpuReleased = metric.Of("rdma_gpu_released_seconds", metric.Host("rdma_gpu_released_seconds",
		"Time left until the exporter opens the GPUs again that it released on request (rdma_exporter gpu release). All other rdma_gpu_* metrics are absent meanwhile. Absent while the GPUs are open.",
		"the exporter"))
	gpuReleaseStart = metric.Of("rdma_gpu_released_seconds", metric.Host("rdma_gpu_release_start_timestamp_seconds",
		"Start of the release of the GPUs, as Unix time. Releases less than 10m apart count as one, from the start of the first. Absent while the GPUs are open.",
		"the exporter"))
	gpuHidden = metric.Beside("rdma_gpu_driver_info", metric.Host("rdma_gpu_hidden",
		"1 for a GPU in the PCI tree that NVML does not list: fallen off the bus, bound to another driver, or not in the exporter's container. Absent for others.",
		"/sys/bus/pci/devices, nvmlDeviceGetPciInfo", "pci_bus_id"))
	gpuInfo = metric.Of("rdma_gpu_info", metric.Asks(source.NVML, metric.GPU("rdma_gpu_info",
		"NVIDIA GPU, always 1. gpu and UUID: as in the DCGM exporter. pci_bus_id: PCI address as in sysfs.",
		"nvmlDeviceGetPciInfo, nvmlDeviceGetName, nvmlDeviceGetSerial; /sys/bus/pci/devices/ADDRESS/numa_node",
		"pci_bus_id", "model", "serial_number", "numa_node")))
	gpuIgnored = metric.Beside("rdma_gpu_info", metric.GPU("rdma_gpu_ignored",
		"GPU ignored by --config.file, always 1: no alert fires for it. Absent for others, and until NVML has listed the GPU.",
		"--config.file"))
	gpuNVLinkErrors = metric.Beside("rdma_gpu_nvlinks_up", metric.GPU("rdma_gpu_nvlink_errors_total",
		"NVLink errors of a GPU. error: recovery (link retrained, traffic interrupted), recovery_failed (link went down); full mode adds replay, crc (before Hopper crc_flit and crc_data), receive. Absent for errors that the GPU does not count (Blackwell counts receive and recovery_failed).",
		"NVML_FI_DEV_NVLINK_ERROR_DL_*, NVML_FI_DEV_NVLINK_*_ERROR_COUNT_TOTAL, NVML_FI_DEV_NVLINK_COUNT_*", "error"))
	gpuFabricState = metric.Beside("rdma_gpu_nvlinks_up", metric.Asks(source.NVML, metric.GPU("rdma_gpu_fabric_state",
		"Registration of a GPU with its NVLink fabric (NVSwitches), 1 for the state it is in. state: completed; degraded (completed with an error, or health degraded or limited in NVML); pending (not started or in progress, no NVLink peers). Absent for GPUs without an NVLink fabric.",
		"nvmlDeviceGetGpuFabricInfoV: state, status, health", "state")))
	gpuThrottle = metric.GPU("rdma_gpu_throttle",
		"Whether the clocks of a GPU are throttled for a reason. Full mode only. reason: sw_power_cap, hw_slowdown, sync_boost, sw_thermal, hw_thermal, hw_power_brake, board_limit, reliability.",
		"nvmlDeviceGetCurrentClocksEventReasons", "reason")
	gpuRemappedRows = metric.GPU("rdma_gpu_remapped_rows",
		"Remapped memory rows of a GPU. Full mode only. error: correctable, uncorrectable.",
		"nvmlDeviceGetRemappedRows", "error")
	gpuRowState = metric.GPU("rdma_gpu_row_remapping",
		"Row remapping state of a GPU. Full mode only. state: pending (remapping takes effect at a reset of the GPU), failed (no spare row left).",
		"nvmlDeviceGetRemappedRows", "state")
)

// gpuFigure is a metric with one value per GPU; nil is absent.
type gpuFigure struct {
	*metric.Desc
	full  bool // in full mode only
	value func(*accel.GPU) *float64
}

// gpuFigures are the metrics of single values. Outside full mode only NVLinks, PCIe, whether a GPU is fit to use them,
// and whether it works.
var gpuFigures = []gpuFigure{
	gpuUint("rdma_gpu_nvlinks_up", false, "NVLinks of a GPU that are up. Absent for GPUs without NVLinks.",
		"NVML_FI_DEV_NVLINK_GET_STATE or nvmlDeviceGetNvLinkState, of all links",
		func(g *accel.GPU) *uint64 { return g.NVLinksUp }),
	gpuUint("rdma_gpu_xid_events_total", false, "XID errors of a GPU since the exporter started listening.",
		"events nvmlEventTypeXidCriticalError", func(g *accel.GPU) *uint64 { return g.XIDs }),
	gpuUint("rdma_gpu_last_xid", false,
		"Code of the last XID error of a GPU since the exporter started listening. Absent before the first.",
		"events nvmlEventTypeXidCriticalError", func(g *accel.GPU) *uint64 { return g.LastXID }),
	needed(gpuUint("rdma_gpu_recovery_action_id", false,
		"Recovery action that a GPU requires: 0 none, 1 reset, 2 node reboot, 3 drain of its peer-to-peer jobs, 4 drain and reset, 5 IMEX domain recovery, 6 PCIe bus reset, 7 system reboot.",
		"NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", func(g *accel.GPU) *uint64 { return g.RecoveryAction })),
	gpuUint("rdma_gpu_pcie_generation", false,
		"Current PCIe generation of a GPU's link. An idle GPU runs at 1 to save power (no fault).",
		"nvmlDeviceGetCurrPcieLinkGeneration", func(g *accel.GPU) *uint64 { return g.PCIeGeneration }),
	gpuUint("rdma_gpu_pcie_max_generation", false, "Newest PCIe generation that both GPU and slot support.",
		"nvmlDeviceGetMaxPcieLinkGeneration", func(g *accel.GPU) *uint64 { return g.PCIeMaxGeneration }),
	gpuUint("rdma_gpu_pcie_width_lanes", false, "PCIe lanes in use by a GPU.",
		"nvmlDeviceGetCurrPcieLinkWidth", func(g *accel.GPU) *uint64 { return g.PCIeWidth }),
	gpuUint("rdma_gpu_pcie_max_width_lanes", false, "Most PCIe lanes that both GPU and slot support.",
		"nvmlDeviceGetMaxPcieLinkWidth", func(g *accel.GPU) *uint64 { return g.PCIeMaxWidth }),
	gpuUint("rdma_gpu_pcie_transmit_bytes_total", false,
		"Bytes sent by a GPU over PCIe, packet overhead included, since the exporter started reading it. Measured by the driver's performance monitor (Hopper and later), because the hardware counter has 32 bits and wraps within 0.1 s.",
		"nvmlGpmMetricsGet: NVML_GPM_METRIC_PCIE_TX_PER_SEC; NVML_FI_DEV_PCIE_COUNT_TX_BYTES where it has 64 bits",
		func(g *accel.GPU) *uint64 { return g.PCIeTransmit }),
	gpuUint("rdma_gpu_pcie_receive_bytes_total", false,
		"Bytes received by a GPU over PCIe, packet overhead included, since the exporter started reading it. Measured as rdma_gpu_pcie_transmit_bytes_total.",
		"nvmlGpmMetricsGet: NVML_GPM_METRIC_PCIE_RX_PER_SEC; NVML_FI_DEV_PCIE_COUNT_RX_BYTES where it has 64 bits",
		func(g *accel.GPU) *uint64 { return g.PCIeReceive }),
	gpuUint("rdma_gpu_pcie_replays_total", false, "PCIe packets retransmitted (replayed) by a GPU.",
		"NVML_FI_DEV_PCIE_REPLAY_COUNTER", func(g *accel.GPU) *uint64 { return g.PCIeReplays }),
	gpuUint("rdma_gpu_nvlinks", true, "NVLinks of a GPU, unconnected ones included. Full mode only.",
		"NVML_FI_DEV_NVLINK_LINK_COUNT", func(g *accel.GPU) *uint64 { return g.NVLinks }),
	gpuUint("rdma_gpu_nvlink_transmit_bytes_total", false, "Data bytes sent by a GPU over NVLink.",
		"NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", func(g *accel.GPU) *uint64 { return g.NVLinkTransmit }),
	gpuUint("rdma_gpu_nvlink_receive_bytes_total", false, "Data bytes received by a GPU over NVLink.",
		"NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", func(g *accel.GPU) *uint64 { return g.NVLinkReceive }),
	gpuFloat("rdma_gpu_temperature_celsius", true, "Temperature of a GPU. Full mode only.",
		"nvmlDeviceGetTemperature", func(g *accel.GPU) *float64 { return g.Temperature }),
	needed(gpuFloat("rdma_gpu_power_watts", false, "Power draw of a GPU.",
		"nvmlDeviceGetPowerUsage", func(g *accel.GPU) *float64 { return g.Power })),
	needed(gpuFloat("rdma_gpu_utilization_ratio", false,
		"Share of the last sample period (1 s or less) in which a kernel ran on a GPU.",
		"nvmlDeviceGetUtilizationRates", func(g *accel.GPU) *float64 { return g.Utilization })),
	gpuUint("rdma_gpu_memory_used_bytes", true,
		"GPU memory in use, without memory reserved by the driver. Full mode only.",
		"nvmlDeviceGetMemoryInfo_v2", func(g *accel.GPU) *uint64 { return g.MemoryUsed }),
	gpuUint("rdma_gpu_memory_total_bytes", true, "Total GPU memory. Full mode only.",
		"nvmlDeviceGetMemoryInfo_v2", func(g *accel.GPU) *uint64 { return g.MemoryTotal }),
	gpuUint("rdma_gpu_bar1_used_bytes", true,
		"BAR1 memory of a GPU in use (mapped for the CPU and other PCI devices). Full mode only.",
		"nvmlDeviceGetBAR1MemoryInfo", func(g *accel.GPU) *uint64 { return g.BAR1Used }),
	gpuUint("rdma_gpu_bar1_total_bytes", true, "Total BAR1 memory of a GPU. Full mode only.",
		"nvmlDeviceGetBAR1MemoryInfo", func(g *accel.GPU) *uint64 { return g.BAR1Total }),
}

func gpuFloat(name string, full bool, help, from string, value func(*accel.GPU) *float64) gpuFigure {
	return gpuFigure{metric.GPU(name, help, from), full, value}
}

// needed returns a value that a rule uses and that some drivers do not report.
func needed(f gpuFigure) gpuFigure {
	f.Beside, f.Of, f.Asks = "", "rdma_gpu_info", source.NVML.Name()
	return f
}

func gpuUint(name string, full bool, help, origin string, value func(*accel.GPU) *uint64) gpuFigure {
	d := metric.Beside("rdma_gpu_info", metric.Asks(source.NVML, metric.GPU(name, help, origin)))
	return gpuFigure{d, full, func(g *accel.GPU) *float64 {
		n := value(g)
		if n == nil {
			return nil
		}
		return new(float64(*n))
	}}
}

func gpuDescs() []*metric.Desc {
	out := []*metric.Desc{
		gpuDriverInfo, gpuAge, gpuReleased, gpuReleaseStart, gpuHidden, gpuLost, gpuInfo, gpuIgnored, gpuNVLinkErrors,
		gpuFabricState, gpuThrottle, gpuRemappedRows, gpuRowState,
	}
	for _, f := range gpuFigures {
		out = append(out, f.Desc)
	}
	return out
}

// interruptingErrors are the NVLink errors outside full mode: those that interrupt traffic.
var interruptingErrors = []string{"recovery", "recovery_failed"}

// throttleReasons are the bits nvmlClocksEventReason* that are limits. Idle and a clock set by the user are not.
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

func emitGPUs(gpus *accel.GPUs, s metric.Sink) {
	for _, g := range gpus.Ignored {
		s.Emit(gpuIgnored, 1, g.Index, g.UUID)
	}
	if r := gpus.Released; r != nil {
		s.Emit(gpuReleased, r.Left.Seconds())
		s.Emit(gpuReleaseStart, float64(r.Since.Unix()))
		return
	}
	if gpus.Driver != "" {
		s.Emit(gpuDriverInfo, 1, gpus.Driver, gpus.CUDA)
		s.Emit(gpuAge, gpus.Age.Seconds())
	}
	for _, f := range gpus.Functions {
		metric.EmitIf(s, !f.Visible, gpuHidden, f.PCIAddress)
	}
	for _, l := range gpus.Lost {
		s.Emit(gpuLost, 1, l.Index, l.UUID, l.PCIAddress, l.Reason)
	}
	for i := range gpus.GPUs {
		emitGPU(s, &gpus.GPUs[i], gpus.Full)
	}
}

func emitGPU(s metric.Sink, g *accel.GPU, full bool) {
	id := strconv.Itoa(g.Index)
	s.Emit(gpuInfo, 1, id, g.UUID, g.PCIAddress, g.Model, g.Serial, g.NUMANode)
	for _, f := range gpuFigures {
		if v := f.value(g); v != nil && (full || !f.full) {
			s.Emit(f.Desc, *v, id, g.UUID)
		}
	}
	for _, e := range g.NVLinkErrors {
		if full || slices.Contains(interruptingErrors, e.Name) {
			s.Emit(gpuNVLinkErrors, float64(e.Value), id, g.UUID, e.Name)
		}
	}
	if f := g.Fabric; f != nil {
		now := gpuFabricStateOf(f)
		for _, state := range []string{gpuFabricCompleted, gpuFabricDegraded, gpuFabricPending} {
			s.Emit(gpuFabricState, metric.BoolValue(state == now), id, g.UUID, state)
		}
	}
	if !full {
		return
	}
	if g.Throttle != nil {
		for _, t := range throttleReasons {
			s.Emit(gpuThrottle, metric.BoolValue(*g.Throttle&t.bit != 0), id, g.UUID, t.reason)
		}
	}
	if r := g.RemappedRows; r != nil {
		s.Emit(gpuRemappedRows, float64(r.Correctable), id, g.UUID, "correctable")
		s.Emit(gpuRemappedRows, float64(r.Uncorrectable), id, g.UUID, "uncorrectable")
		s.Emit(gpuRowState, metric.BoolValue(r.Pending), id, g.UUID, "pending")
		s.Emit(gpuRowState, metric.BoolValue(r.Failed), id, g.UUID, "failed")
	}
}

// States of the registration of a GPU with its NVLink fabric.
const (
	gpuFabricCompleted = "completed"
	gpuFabricDegraded  = "degraded"
	gpuFabricPending   = "pending"
)

// gpuFabricStateOf evaluates NVML_GPU_FABRIC_STATE_* and, for a completed registration, status and health: the summary
// where the driver has one, else bandwidth (bits 0 and 1) and route (4 and 5), 1 each for unhealthy, and configuration
// (8 to 11, from 2 on).
func gpuFabricStateOf(f *accel.GPUFabric) string {
	const completed, unhealthy, limited = 3, 2, 3
	switch {
	case f.State != completed:
		return gpuFabricPending
	case f.Status != 0:
		return gpuFabricDegraded
	case f.Summary != nil && *f.Summary != 0:
		if *f.Summary == unhealthy || *f.Summary == limited {
			return gpuFabricDegraded
		}
	case f.Health != nil && (*f.Health&3 == 1 || *f.Health>>4&3 == 1 || *f.Health>>8&0xf > 1):
		return gpuFabricDegraded
	}
	return gpuFabricCompleted
}
