package cli

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/prometheus/common/version"

	"rdma_exporter/internal/host/nvml"
)

// nameVersion sets the version of a build without one, once: tests run the program concurrently.
var nameVersion = sync.OnceFunc(func() { version.Version = cmp.Or(version.Version, "unreleased") })

// versionText returns the output of --version. Its first line has the format of all Prometheus exporters.
func versionText() string {
	nameVersion()
	gpus := "no: built without cgo"
	if nvml.NVML {
		gpus = "yes, where the host has libnvidia-ml.so.1"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "rdma_exporter, version %s (revision: %s)\n", version.Version, version.GetRevision())
	for _, line := range [][2]string{
		{"commit date:", cmp.Or(version.BuildDate, "unknown")},
		{"go version:", version.GoVersion},
		{"platform:", version.GoOS + "/" + version.GoArch},
		{"NVML:", gpus},
	} {
		fmt.Fprintf(&b, "  %-13s %s\n", line[0], line[1])
	}
	return strings.TrimSuffix(b.String(), "\n")
}
