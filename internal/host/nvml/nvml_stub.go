//go:build !cgo || !linux

package nvml

import (
	"fmt"
	"syscall"
)

// NVML reports whether this build can load NVIDIA's library.
const NVML = false

// newNVML returns an error: loading a library requires cgo.
func newNVML() (nvmlLibrary, error) {
	return nil, fmt.Errorf("this machine has GPUs, but this build without cgo cannot load libnvidia-ml.so.1: use a build with cgo: %w", syscall.EOPNOTSUPP)
}
