//go:build !cgo || !linux

package host

import (
	"fmt"
	"syscall"
)

// NVML says whether this program can load NVIDIA's library.
const NVML = false

// newNVML has no library to offer: loading one takes cgo.
func newNVML() (nvmlLibrary, error) {
	return nil, fmt.Errorf("GPUs are here, but this program is built without cgo and cannot load libnvidia-ml.so.1: use a build with cgo: %w", syscall.EOPNOTSUPP)
}
