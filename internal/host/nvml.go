package host

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"syscall"
	"time"

	"rdma_exporter/internal/snapshot"
)

// nvmlLibrary is what is used of NVML. Except for Init nothing is called before Init has succeeded, or after Shutdown. A
// function that the library lacks answers nvmlFunctionNotFound.
type nvmlLibrary interface {
	Init() error
	Shutdown() error
	DriverVersion() (string, error)
	CUDAVersion() (int, error) // 12080 is 12.8
	Count() (int, error)
	Device(index int) (nvmlDevice, error)
	// Events registers for the XID errors of devices, and says which of them have such events.
	Events(devices []nvmlDevice) (nvmlEvents, []bool, error)
}

// nvmlDevice is a GPU. Functions are called by their names in nvml.h, without version.
type nvmlDevice interface {
	Text(function string) (string, error)
	Numbers(function string) ([]uint64, error) // in the order of the result's members
	Fields(fields []nvmlField) error           // nvmlDeviceGetFieldValues
	NVLinkActive(link int) (bool, error)
	Fabric() (snapshot.GPUFabric, error)
	// Traffic is the bytes that went over PCIe since the call before, as the driver's performance monitor has measured; 0 at first.
	Traffic() (transmitted, received uint64, err error)
}

// nvmlEvents is a set of events.
type nvmlEvents interface {
	// Wait returns the UUID of the GPU and the code of its XID error, nvmlTimeout if none came in time.
	Wait(d time.Duration) (uuid string, xid uint64, err error)
	Free() error
}

// nvmlField is a field value: what is asked for, and its answer.
type nvmlField struct {
	ID, Scope uint32 // NVML_FI_DEV_*; number of a link, or nvmlAllLinks
	Value     uint64
	Narrow    bool // it has 32 bits
	Err       error
}

// nvmlAllLinks is the scope of a sum over all NVLinks.
const nvmlAllLinks = math.MaxUint32

// nvmlReturn is nvmlReturn_t.
type nvmlReturn uint32

const (
	nvmlUninitialized    nvmlReturn = 1
	nvmlNotSupported     nvmlReturn = 3
	nvmlTimeout          nvmlReturn = 10
	nvmlLibraryNotFound  nvmlReturn = 12
	nvmlFunctionNotFound nvmlReturn = 13
	nvmlGPUIsLost        nvmlReturn = 15
)

// nvmlReturns gives each its name and the errno that means the same.
var nvmlReturns = map[nvmlReturn]struct {
	name  string
	errno syscall.Errno
}{
	nvmlUninitialized:    {"UNINITIALIZED", syscall.ENOTCONN},
	2:                    {"INVALID_ARGUMENT", syscall.EOPNOTSUPP}, // of a field that the driver does not know
	nvmlNotSupported:     {"NOT_SUPPORTED", syscall.EOPNOTSUPP},
	4:                    {"NO_PERMISSION", syscall.EPERM},
	6:                    {"NOT_FOUND", syscall.ENODEV},
	9:                    {"DRIVER_NOT_LOADED", syscall.ENOENT},
	nvmlTimeout:          {"TIMEOUT", syscall.ETIMEDOUT},
	11:                   {"IRQ_ISSUE", syscall.EIO},
	nvmlLibraryNotFound:  {"LIBRARY_NOT_FOUND", syscall.ELIBACC},
	nvmlFunctionNotFound: {"FUNCTION_NOT_FOUND", syscall.ENOSYS},
	14:                   {"CORRUPTED_INFOROM", syscall.EIO},
	nvmlGPUIsLost:        {"GPU_IS_LOST", syscall.ENODEV},
	16:                   {"RESET_REQUIRED", syscall.ENODEV},
	17:                   {"OPERATING_SYSTEM", syscall.EPERM}, // the device cgroup forbids it
	18:                   {"LIB_RM_VERSION_MISMATCH", syscall.ELIBBAD},
	20:                   {"MEMORY", syscall.ENOMEM},
	25:                   {"ARGUMENT_VERSION_MISMATCH", syscall.EOPNOTSUPP},
	26:                   {"DEPRECATED", syscall.EOPNOTSUPP},
	27:                   {"NOT_READY", syscall.EAGAIN},
	28:                   {"GPU_NOT_FOUND", syscall.ENODEV},
}

func (r nvmlReturn) Error() string {
	if known, ok := nvmlReturns[r]; ok {
		return "NVML_ERROR_" + known.name
	}
	return fmt.Sprintf("NVML error %d", uint32(r))
}

// Unwrap returns the errno that means the same, EIO for what is not known.
func (r nvmlReturn) Unwrap() error {
	if known, ok := nvmlReturns[r]; ok {
		return known.errno
	}
	return syscall.EIO
}

// nvmlError says which function failed; nil of success.
func nvmlError(function string, r uint32) error {
	if r == 0 {
		return nil
	}
	return &Error{"ask", function, nvmlReturn(r)}
}

// nvmlNumber is a field's value as a number: nvmlValueType_t and nvmlValue_t, which is in the order of the processor. A negative
// one has no meaning.
func nvmlNumber(kind uint32, v [8]byte) (uint64, bool) {
	n := binary.NativeEndian.Uint64(v[:])
	switch low := binary.NativeEndian.Uint32(v[:]); kind {
	case 0: // double
		f := math.Float64frombits(n)
		return uint64(f), f >= 0 && f < 1<<63
	case 1: // unsigned int
		return uint64(low), true
	case 2, 3: // unsigned long, unsigned long long
		return n, true
	case 4: // signed long long
		return n, int64(n) >= 0
	case 5: // signed int
		return uint64(low), int32(low) >= 0
	case 6: // unsigned short
		return uint64(binary.NativeEndian.Uint16(v[:])), true
	}
	return 0, false
}

// pciAddress is a bus id of NVML, 00000000:1B:00.0, as sysfs writes it: 0000:1b:00.0. Domains have 32 bits there.
func pciAddress(busID string) string {
	domain, rest, ok := strings.Cut(strings.ToLower(busID), ":")
	if !ok {
		return ""
	}
	for len(domain) > 4 && domain[0] == '0' {
		domain = domain[1:]
	}
	return domain + ":" + rest
}

// computeCapability is 9.0 of 9 and 0.
func computeCapability(n []uint64) string { return fmt.Sprintf("%d.%d", n[0], n[1]) }

// cudaVersion is 12.8 of 12080.
func cudaVersion(n int) string { return fmt.Sprintf("%d.%d", n/1000, n%1000/10) }
