package kernellog

// Kind is the kind of event that a line reports.
type Kind string

// The kinds.
const (
	// Ignored lines look like those of a fault and are none.
	Ignored Kind = ""

	CommandTimeout   Kind = "command_timeout"
	CommandRecovered Kind = "command_recovered"
	FirmwareError    Kind = "firmware_error"
	FirmwareStopped  Kind = "firmware_stopped"
	FirmwareReset    Kind = "firmware_reset"
	RecoveryStarted  Kind = "recovery_started"
	RecoveryEnded    Kind = "recovery_ended"
	RecoveryFailed   Kind = "recovery_failed"
	ProbeFailed      Kind = "probe_failed"  // no driver took the function, or one of its auxiliary devices
	FunctionDead     Kind = "function_dead" // it answers no access to its configuration space
	ModuleRefused    Kind = "module_refused"
	FirmwareMemory   Kind = "firmware_memory"
	ModulePlugged    Kind = "module_plugged"
	ModuleUnplugged  Kind = "module_unplugged"
	ModuleError      Kind = "module_error"
	HighTemperature  Kind = "high_temperature"
	SlotPower        Kind = "slot_power"
	TransmitTimeout  Kind = "transmit_timeout"
	CompletionError  Kind = "completion_error"
	QueueError       Kind = "queue_error"
	MulticastJoin    Kind = "multicast_join"
	ConnectionError  Kind = "connection_error"
	PCIeCorrectable  Kind = "pcie_correctable"
	PCIeNonFatal     Kind = "pcie_nonfatal"
	PCIeFatal        Kind = "pcie_fatal"
	PCIeContained    Kind = "pcie_contained"
	PCIeFirmware     Kind = "pcie_firmware_first" // the firmware of the host reported an error of unknown severity
	SlotLinkDown     Kind = "slot_link_down"
	SlotLinkUp       Kind = "slot_link_up"
	NoAddressSpace   Kind = "no_address_space"
	IOMMUFault       Kind = "iommu_fault"
	GPUXid           Kind = "gpu_xid"
	GPULost          Kind = "gpu_lost"
	GPUFailed        Kind = "gpu_failed" // its driver cannot initialise it
	GPUUnsupported   Kind = "gpu_unsupported"
	GPUHung          Kind = "gpu_hung"
	GPUError         Kind = "gpu_error"
	NVSwitchSXid     Kind = "nvswitch_sxid"
	PeerMemory       Kind = "peer_memory"
	SoftLockup       Kind = "soft_lockup"
	HungTask         Kind = "hung_task"
	RCUStall         Kind = "rcu_stall"
	OOMKill          Kind = "oom_kill"

	// DriverLoaded is no fault: what a driver prints at its start is true until it starts again.
	DriverLoaded Kind = "driver_loaded"
)

// lasting are the kinds after which an object does not work until the log reports an end, or its state shows one.
var lasting = map[Kind]bool{
	FirmwareStopped: true, RecoveryFailed: true, ProbeFailed: true, FunctionDead: true, ModuleRefused: true,
	PCIeFatal: true, PCIeContained: true, NoAddressSpace: true, GPULost: true, GPUFailed: true,
}

// Lasts reports whether what a kind reports holds until an end.
func (k Kind) Lasts() bool { return lasting[k] }

// Ends reports whether a kind ends what the log had reported on an object before.
func (k Kind) Ends() bool { return k == RecoveryEnded || k == DriverLoaded }

// PrintedAtLoad reports whether a kind is printed once when a driver is loaded.
func (k Kind) PrintedAtLoad() bool { return k == SlotPower }
