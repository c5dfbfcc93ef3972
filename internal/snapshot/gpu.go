package snapshot

import "time"

// GPUs is the NVIDIA GPUs of a node: what NVML tells of them, and which of them it does not show.
type GPUs struct {
	NVML
	Age time.Duration // of NVML: 0 where it was read in this round
	// Released says for how long NVML is let go of yet; nil while it is not, or where that cannot be.
	Released *time.Duration
	// Functions are the NVIDIA GPUs that the PCI tree shows, by address; empty where NVML did not answer.
	Functions []GPUFunction
	Ignored   []GPUName // those whose faults raise no alert, by --config.file
	Full      bool      // all figures are wanted, not only those of the fabric
}

// GPUName is what metrics call a GPU: the index of NVML and the UUID.
type GPUName struct{ Index, UUID string }

// GPUFunction is a GPU in the PCI tree: /sys/bus/pci/devices, vendor 0x10de, class 0x0300 or 0x0302.
type GPUFunction struct {
	PCIAddress string
	Visible    bool // NVML shows it too
}

// NVML is one reading of the library of the NVIDIA driver.
type NVML struct {
	Driver string // nvmlSystemGetDriverVersion: 570.86.15
	CUDA   string // nvmlSystemGetCudaDriverVersion_v2, newest version that the driver can: 12.8
	GPUs   []GPU  // by index
}

// GPU is what NVML tells of a GPU; nil or empty means that the driver, or the GPU, does not tell.
type GPU struct {
	Index      int    // of NVML, in the order of PCI addresses: the label gpu of the DCGM exporter
	UUID       string // nvmlDeviceGetUUID: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
	PCIAddress string // nvmlDeviceGetPciInfo, as in sysfs: DDDD:BB:DD.F
	Model      string // nvmlDeviceGetName
	Serial     string // nvmlDeviceGetSerial: of the board
	NUMANode   string // numa_node of the PCI function; empty where it is -1
	// Capability is the CUDA compute capability, nvmlDeviceGetCudaComputeCapability: 9.0; Ampere is 8.0 and up.
	Capability string

	PCIeGeneration, PCIeMaxGeneration *uint64 // nvmlDeviceGet{Curr,Max}PcieLinkGeneration; an idle GPU is at 1
	PCIeWidth, PCIeMaxWidth           *uint64 // lanes: nvmlDeviceGet{Curr,Max}PcieLinkWidth
	PCIeTransmit, PCIeReceive         *uint64 // bytes: NVML_GPM_METRIC_PCIE_{TX,RX}_PER_SEC, added up
	PCIeReplays                       *uint64 // NVML_FI_DEV_PCIE_REPLAY_COUNTER

	NVLinks                       *uint64 // NVML_FI_DEV_NVLINK_LINK_COUNT: those that the GPU has
	NVLinksUp                     *uint64 // those whose state is active
	NVLinkTransmit, NVLinkReceive *uint64 // bytes of data on all NVLinks: NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_{TX,RX}, which are in KiB
	NVLinkErrors                  []Stat  // of all NVLinks, by kind
	C2CLinks                      *uint64 // NVML_FI_DEV_C2C_LINK_COUNT: links to a Grace processor

	// Processes are those that compute on it, by number, in this process's PID namespace where the driver knows that:
	// nvmlDeviceGetComputeRunningProcesses. Nil: not told.
	Processes []int

	Fabric *GPUFabric // nil where the GPU is on no fabric of NVSwitches
	// XIDs counts the XID errors since the exporter began to listen, LastXID is the code of the last one: events
	// nvmlEventTypeXidCriticalError.
	XIDs, LastXID  *uint64
	RecoveryAction *uint64 // NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, enum nvmlDeviceGpuRecoveryAction_t: 0 none

	Temperature             *float64 // degrees Celsius: nvmlDeviceGetTemperature
	Power                   *float64 // watts: nvmlDeviceGetPowerUsage
	Utilization             *float64 // share of time with a kernel running, 0 to 1: nvmlDeviceGetUtilizationRates
	MemoryUsed, MemoryTotal *uint64  // bytes: nvmlDeviceGetMemoryInfo
	BAR1Used, BAR1Total     *uint64  // bytes: nvmlDeviceGetBAR1MemoryInfo
	Throttle                *uint64  // bits nvmlClocksEventReason*: nvmlDeviceGetCurrentClocksEventReasons
	RemappedRows            *RemappedRows
}

// GPUFabric is the registration of a GPU with the fabric of its NVSwitches: nvmlDeviceGetGpuFabricInfoV.
type GPUFabric struct {
	State   uint64  // NVML_GPU_FABRIC_STATE_*: 1 not started, 2 in progress, 3 completed
	Status  uint64  // nvmlReturn_t of a completed registration: 0 success
	Health  *uint64 // NVML_GPU_FABRIC_HEALTH_MASK_*
	Summary *uint64 // NVML_GPU_FABRIC_HEALTH_SUMMARY_*: 1 healthy
	Cluster string  // UUID of the NVLink domain; empty where there is one host only
	Clique  uint64  // GPUs of one clique in a cluster reach each other by NVLink
}

// RemappedRows is the state of the memory's spare rows: nvmlDeviceGetRemappedRows.
type RemappedRows struct {
	Correctable, Uncorrectable uint64 // rows remapped for such errors
	Pending                    bool   // a remapping waits for a reset of the GPU
	Failed                     bool   // one has failed: no spare row is left
}
