// Package nvml reads GPUs by NVML, the library of NVIDIA's driver. It alone is compiled with cgo.
package nvml

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"syscall"
	"time"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/accel"
)

// nvmlLibrary is the part of NVML that is used. Only Init is called before a successful Init or after Shutdown. A
// function that the library lacks returns nvmlFunctionNotFound.
type nvmlLibrary interface {
	Init() error
	Shutdown() error
	DriverVersion() (string, error)
	CUDAVersion() (int, error) // 12080 is 12.8
	Count() (int, error)
	Device(index int) (nvmlDevice, error)
	// Events registers for the XID errors of devices, and returns which of them support the events.
	Events(devices []nvmlDevice) (nvmlEvents, []bool, error)
}

// nvmlDevice is a GPU. Functions are named as in nvml.h, without version.
type nvmlDevice interface {
	Text(function string) (string, error)
	Numbers(function string) ([]uint64, error) // in the order of the members of the result
	Fields(fields []nvmlField) error           // nvmlDeviceGetFieldValues
	NVLinkActive(link int) (bool, error)
	GPUFabric() (accel.GPUFabric, error)
	// Traffic is the PCIe bytes since the previous call, as measured by the driver's performance monitor; 0 in the first
	// call.
	Traffic() (transmitted, received uint64, err error)
}

// nvmlEvents is an event set.
type nvmlEvents interface {
	// Wait returns the UUID of the GPU and the code of its XID error, or nvmlTimeout.
	Wait(d time.Duration) (uuid string, xid uint64, err error)
	Free() error
}

// nvmlField is the query of a field value, and its answer.
type nvmlField struct {
	ID, Scope uint32 // NVML_FI_DEV_*; number of a link, or nvmlAllLinks
	Value     uint64
	Narrow    bool // 32-bit counter
	Err       error
}

// nvmlAllLinks is the scope for the sum over all NVLinks.
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

// nvmlReturns are the names, each with the errno of the same meaning.
var nvmlReturns = map[nvmlReturn]struct {
	name  string
	errno syscall.Errno
}{
	nvmlUninitialized:    {"UNINITIALIZED", syscall.ENOTCONN},
	2:                    {"INVALID_ARGUMENT", syscall.EOPNOTSUPP}, // of a field unknown to the driver
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
	17:                   {"OPERATING_SYSTEM", syscall.EPERM}, // denied by the device cgroup
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

// Unwrap returns the errno of the same meaning; EIO for unknown codes.
func (r nvmlReturn) Unwrap() error {
	if known, ok := nvmlReturns[r]; ok {
		return known.errno
	}
	return syscall.EIO
}

// nvmlError is the error of a function; nil for success.
func nvmlError(function string, r uint32) error {
	if r == 0 {
		return nil
	}
	return &access.Error{Op: "query", Path: function, Err: nvmlReturn(r)}
}

// nvmlNumber returns a field's value as a number: nvmlValueType_t and nvmlValue_t, in the byte order of the processor.
// A negative one is invalid.
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

// pciAddress converts a bus id of NVML (00000000:1B:00.0, 32-bit domain) to the format of sysfs (0000:1b:00.0).
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

// computeCapability formats 9 and 0 as 9.0.
func computeCapability(n []uint64) string { return fmt.Sprintf("%d.%d", n[0], n[1]) }

// cudaVersion formats 12080 as 12.8.
func cudaVersion(n int) string { return fmt.Sprintf("%d.%d", n/1000, n%1000/10) }
