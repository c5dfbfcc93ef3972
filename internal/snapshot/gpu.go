package snapshot

import (
	"fmt"
	"time"
)

// GPUs is the NVIDIA GPUs of a node: those reported by NVML, and those that are missing in NVML.
type GPUs struct {
	NVML
	Age      time.Duration // of the NVML reading: 0 if read in this round
	Released *GPURelease   // nil: not released, or not supported
	// Functions are the NVIDIA GPUs in the PCI tree, by address; empty if NVML did not answer.
	Functions []GPUFunction
	AMD       []AMDGPU // GPUs of AMD in the PCI tree, by address
	// Lost are GPUs that should be usable and are not.
	Lost    []LostGPU
	Ignored []GPUName // excluded from alerts by --config.file
	Full    bool      // all figures, not only those of NVLink, PCIe and errors
}

// GPURelease is a time in which NVML is not used, on request.
type GPURelease struct {
	Since time.Time     `json:"since"` // of the first one, if several follow each other
	Until time.Time     `json:"until"`
	By    string        `json:"by,omitempty"` // who requested it
	Left  time.Duration `json:"-"`            // until its end
}

// String is the line on pages and in commands.
func (r GPURelease) String() string {
	s := "GPU monitoring paused until " + r.Until.UTC().Format("2006-01-02 15:04:05 UTC")
	if r.By != "" {
		s += fmt.Sprintf(" (released by %s)", r.By)
	}
	return s
}

// GPUName identifies a GPU in metrics: the index of NVML and the UUID.
type GPUName struct{ Index, UUID string }

// GPUFunction is a GPU in the PCI tree: /sys/bus/pci/devices, vendor 0x10de, class 0x0300 or 0x0302.
type GPUFunction struct {
	PCIAddress string
	Driver     string // bound driver; empty: none, or unknown
	Visible    bool   // NVML reports it too
	OfDriver   bool   // the driver lists it: /proc/driver/nvidia/gpus/ADDRESS, in a container those of the container
}

// DriverAMD is the driver of GPUs that ROCm uses.
const DriverAMD = "amdgpu"

// AMDGPU is a GPU of AMD in the PCI tree: vendor 0x1002.
type AMDGPU struct {
	PCIAddress string
	Driver     string // bound driver; empty: none, or unknown
	UUID       string // unique_id of amdkfd's topology, 16 hexadecimal digits; empty: unknown
}

// LostGPU is a GPU that should be usable and is not. Its name is empty if it was not listed before.
type LostGPU struct {
	GPUName
	PCIAddress string
	Reason     string
}

// Reasons of LostGPU.
const (
	GPUOffBus   = "off_bus"   // listed before, and missing in the PCI tree
	GPUHidden   = "hidden"    // listed by NVML before or by its driver, and not now
	GPUNoHandle = "no_handle" // counted by NVML, which cannot open it
	GPUNoDriver = "no_driver" // without a driver, which other GPUs have
)

// NVML is one reading of NVML.
type NVML struct {
	Driver string `capture:"driver,open"` // nvmlSystemGetDriverVersion: 570.86.15
	CUDA   string `capture:"cuda"`        // nvmlSystemGetCudaDriverVersion_v2, newest supported version: 12.8
	GPUs   []GPU  // by index
	// Count is nvmlDeviceGetCount_v2, which includes GPUs that cannot be opened; nil: the reading is not complete.
	Count *uint64 `capture:"count"`
}

// GPU is a GPU in NVML; nil or empty: not reported by the driver or the GPU.
type GPU struct {
	Index    int    // NVML index, in the order of PCI addresses: the label gpu of the DCGM exporter
	NUMANode string // numa_node of the PCI function; empty if -1

	UUID       string `capture:"uuid,open"`   // nvmlDeviceGetUUID: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
	PCIAddress string `capture:"pci_address"` // nvmlDeviceGetPciInfo, as in sysfs: DDDD:BB:DD.F
	Model      string `capture:"model"`       // nvmlDeviceGetName
	Serial     string `capture:"serial"`      // nvmlDeviceGetSerial: of the board
	// Capability is the CUDA compute capability, nvmlDeviceGetCudaComputeCapability: 9.0; Ampere is 8.0 and up.
	Capability string `capture:"compute_capability"`

	PCIeGeneration    *uint64 `capture:"pcie_generation"` // nvmlDeviceGet{Curr,Max}PcieLinkGeneration; an idle GPU is at 1
	PCIeMaxGeneration *uint64 `capture:"pcie_max_generation"`
	PCIeWidth         *uint64 `capture:"pcie_width"` // lanes: nvmlDeviceGet{Curr,Max}PcieLinkWidth
	PCIeMaxWidth      *uint64 `capture:"pcie_max_width"`
	NVLinks           *uint64 `capture:"nvlinks"`    // NVML_FI_DEV_NVLINK_LINK_COUNT: number of links
	NVLinksUp         *uint64 `capture:"nvlinks_up"` // links in the state active
	C2CLinks          *uint64 `capture:"c2c_links"`  // NVML_FI_DEV_C2C_LINK_COUNT: links to a Grace processor

	// Processes are the compute processes, by PID in this process's PID namespace if the driver reports it:
	// nvmlDeviceGetComputeRunningProcesses. Nil: unknown.
	Processes []int `capture:"processes"`

	LastXID *uint64 `capture:"last_xid"` // code of the last of XIDs
	// NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, enum nvmlDeviceGpuRecoveryAction_t: 0 none.
	RecoveryAction *uint64 `capture:"recovery_action"`

	Temperature *float64 `capture:"temperature"` // degrees Celsius: nvmlDeviceGetTemperature
	Power       *float64 `capture:"power"`       // watts: nvmlDeviceGetPowerUsage
	// Share of time with a kernel running, 0 to 1: nvmlDeviceGetUtilizationRates.
	Utilization *float64 `capture:"utilization"`
	MemoryUsed  *uint64  `capture:"memory_used"`  // bytes: nvmlDeviceGetMemoryInfo
	MemoryTotal *uint64  `capture:"memory_total"` // bytes
	BAR1Used    *uint64  `capture:"bar1_used"`    // bytes: nvmlDeviceGetBAR1MemoryInfo
	BAR1Total   *uint64  `capture:"bar1_total"`   // bytes
	Throttle    *uint64  `capture:"throttle"`     // bits nvmlClocksEventReason*: nvmlDeviceGetCurrentClocksEventReasons

	// bytes: NVML_GPM_METRIC_PCIE_{TX,RX}_PER_SEC, accumulated.
	PCIeTransmit *uint64 `capture:"pcie_transmit_bytes,counter"`
	PCIeReceive  *uint64 `capture:"pcie_receive_bytes,counter"`
	PCIeReplays  *uint64 `capture:"pcie_replays,counter"` // NVML_FI_DEV_PCIE_REPLAY_COUNTER
	// Bytes of data on all NVLinks: NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_{TX,RX}, which are in KiB.
	NVLinkTransmit *uint64 `capture:"nvlink_transmit_bytes,counter"`
	NVLinkReceive  *uint64 `capture:"nvlink_receive_bytes,counter"`
	// XIDs counts the XID errors since the exporter started listening: events nvmlEventTypeXidCriticalError.
	XIDs         *uint64 `capture:"xid_events,counter"`
	NVLinkErrors []Stat  `capture:"nvlink_errors_,counter"` // of all NVLinks, by kind

	Fabric       *GPUFabric    `capture:"fabric_"` // nil if the GPU is not on an NVSwitch fabric
	RemappedRows *RemappedRows `capture:"rows_"`
}

// GPUFabric is the registration of a GPU with its NVSwitch fabric: nvmlDeviceGetGpuFabricInfoV.
type GPUFabric struct {
	State   uint64  `capture:"state"`   // NVML_GPU_FABRIC_STATE_*: 1 not started, 2 in progress, 3 completed
	Status  uint64  `capture:"status"`  // nvmlReturn_t of a completed registration: 0 success
	Health  *uint64 `capture:"health"`  // NVML_GPU_FABRIC_HEALTH_MASK_*
	Summary *uint64 `capture:"summary"` // NVML_GPU_FABRIC_HEALTH_SUMMARY_*: 1 healthy
	Cluster string  `capture:"cluster"` // UUID of the NVLink domain; empty for a single host
	Clique  uint64  `capture:"clique"`  // GPUs of one clique in a cluster reach each other by NVLink
}

// RemappedRows is the state of row remapping: nvmlDeviceGetRemappedRows.
type RemappedRows struct {
	Correctable   uint64 `capture:"correctable"` // rows remapped because of such errors
	Uncorrectable uint64 `capture:"uncorrectable"`
	Pending       bool   `capture:"pending"` // a remapping takes effect at the next reset of the GPU
	Failed        bool   `capture:"failed"`  // a remapping has failed: no spare row is left
}
