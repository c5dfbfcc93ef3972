// Package accel is the data of GPUs: their state, the processes that use them, GPUDirect RDMA and PCIe, as plain typed
// data.
package accel

import (
	"fmt"
	"time"

	"rdma_exporter/internal/snapshot/wire"
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

// String returns the line on pages and in commands.
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
	Driver string // nvmlSystemGetDriverVersion: 570.86.15
	CUDA   string // nvmlSystemGetCudaDriverVersion_v2, newest supported version: 12.8
	GPUs   []GPU  // by index
	// Count is nvmlDeviceGetCount_v2, which includes GPUs that cannot be opened; nil: the reading is not complete.
	Count *uint64
}

// GPU is a GPU in NVML; nil or empty: not reported by the driver or the GPU.
type GPU struct {
	Index    int    // NVML index, in the order of PCI addresses: the label gpu of the DCGM exporter
	NUMANode string // numa_node of the PCI function; empty if -1

	UUID       string // nvmlDeviceGetUUID: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
	PCIAddress string // nvmlDeviceGetPciInfo, as in sysfs: DDDD:BB:DD.F
	Model      string // nvmlDeviceGetName
	Serial     string // nvmlDeviceGetSerial: of the board
	// Capability is the CUDA compute capability, nvmlDeviceGetCudaComputeCapability: 9.0; Ampere is 8.0 and up.
	Capability string

	PCIeGeneration    *uint64 // nvmlDeviceGet{Curr,Max}PcieLinkGeneration; an idle GPU is at 1
	PCIeMaxGeneration *uint64
	PCIeWidth         *uint64 // lanes: nvmlDeviceGet{Curr,Max}PcieLinkWidth
	PCIeMaxWidth      *uint64
	NVLinks           *uint64 // NVML_FI_DEV_NVLINK_LINK_COUNT: number of links
	NVLinksUp         *uint64 // links in the state active
	C2CLinks          *uint64 // NVML_FI_DEV_C2C_LINK_COUNT: links to a Grace processor

	// Processes are the compute processes, by PID in this process's PID namespace if the driver reports it:
	// nvmlDeviceGetComputeRunningProcesses. Nil: unknown.
	Processes []int

	LastXID *uint64 // code of the last of XIDs
	// NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, enum nvmlDeviceGpuRecoveryAction_t: 0 none.
	RecoveryAction *uint64

	Temperature *float64 // degrees Celsius: nvmlDeviceGetTemperature
	Power       *float64 // watts: nvmlDeviceGetPowerUsage
	// Share of time with a kernel running, 0 to 1: nvmlDeviceGetUtilizationRates.
	Utilization *float64
	MemoryUsed  *uint64 // bytes: nvmlDeviceGetMemoryInfo
	MemoryTotal *uint64 // bytes
	BAR1Used    *uint64 // bytes: nvmlDeviceGetBAR1MemoryInfo
	BAR1Total   *uint64 // bytes
	Throttle    *uint64 // bits nvmlClocksEventReason*: nvmlDeviceGetCurrentClocksEventReasons

	// bytes: NVML_GPM_METRIC_PCIE_{TX,RX}_PER_SEC, accumulated.
	PCIeTransmit *uint64
	PCIeReceive  *uint64
	PCIeReplays  *uint64 // NVML_FI_DEV_PCIE_REPLAY_COUNTER
	// Bytes of data on all NVLinks: NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_{TX,RX}, which are in KiB.
	NVLinkTransmit *uint64
	NVLinkReceive  *uint64
	// XIDs counts the XID errors since the exporter started listening: events nvmlEventTypeXidCriticalError.
	XIDs         *uint64
	NVLinkErrors []wire.Stat // of all NVLinks, by kind

	Fabric       *GPUFabric // nil if the GPU is not on an NVSwitch fabric
	RemappedRows *RemappedRows
}

// GPUFabric is the registration of a GPU with its NVSwitch fabric: nvmlDeviceGetGpuFabricInfoV.
type GPUFabric struct {
	State   uint64  // NVML_GPU_FABRIC_STATE_*: 1 not started, 2 in progress, 3 completed
	Status  uint64  // nvmlReturn_t of a completed registration: 0 success
	Health  *uint64 // NVML_GPU_FABRIC_HEALTH_MASK_*
	Summary *uint64 // NVML_GPU_FABRIC_HEALTH_SUMMARY_*: 1 healthy
	Cluster string  // UUID of the NVLink domain; empty for a single host
	Clique  uint64  // GPUs of one clique in a cluster reach each other by NVLink
}

// RemappedRows is the state of row remapping: nvmlDeviceGetRemappedRows.
type RemappedRows struct {
	Correctable   uint64 // rows remapped because of such errors
	Uncorrectable uint64
	Pending       bool // a remapping takes effect at the next reset of the GPU
	Failed        bool // a remapping has failed: no spare row is left
}
