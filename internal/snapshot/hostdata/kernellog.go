package hostdata

import "time"

// KernelLog counts the messages of the kernel log on RDMA devices, PCIe ports and GPUs.
type KernelLog struct {
	Counts []KernelLogCount // sorted
	// Messages since the start of the program: Lost were overwritten before they were read, Skipped were not examined.
	Lost, Skipped uint64
	// FirmwareFirst: the firmware of the host handles PCIe errors: the log has a record of one, of whatever device (ACPI,
	// APEI).
	FirmwareFirst bool
}

// KernelLogKey is an object and the kind of its messages. Empty: unknown, or none.
type KernelLogKey struct {
	Device, PCIAddress, Driver string
	Kind                       string // kernellog.Kind
}

// KernelLogCount is the messages of one kind about an object.
type KernelLogCount struct {
	KernelLogKey
	Count     uint64
	Recent    *uint64       // of the last 15 minutes; nil: unknown
	Detail    string        // of the last message
	SinceBoot time.Duration // at the last message
	At        time.Time     // the same by the wall clock; zero: unknown
	// Unresolved: the object does not work since the last message: no later one reports an end, and its state shows none.
	Unresolved bool
	GPU        bool // the object is a GPU
}
