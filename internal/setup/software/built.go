// Package software finds the RDMA software of a host in the files of its settings: modules by kernel, modules and
// services that start at boot. It is pure.
package software

import (
	"path"
	"slices"
	"strings"

	"rdma_exporter/internal/snapshot/hostdata"
)

// Directories of modules that do not belong to the kernel's package, below lib/modules/RELEASE: DKMS on Debian and
// Ubuntu, on RHEL and SLES; packages of MLNX_OFED. weak-updates links modules of other kernels with the same
// interface.
var moduleDirs = []string{"updates/dkms", "updates", "extra", "weak-updates"}

const (
	modulesRoot = "lib/modules"
	ofedPackage = "mlnx-ofa_kernel" // directory of the modules of MLNX_OFED on RHEL and SLES
	releaseFile = "proc/sys/kernel/osrelease"
)

// Files are the files and directories that this package needs, as setup.Files.
var Files = func() []string {
	out := []string{releaseFile, modulesFile}
	for _, d := range moduleDirs {
		out = append(out, modulesRoot+"/*/"+d+"/")
	}
	for _, d := range bootDirs {
		out = append(out, d+"/", d+"/*")
	}
	for _, d := range append(slices.Clone(wantsDirs), sysvDir) {
		out = append(out, d+"/")
	}
	return append(out, unitFiles()...)
}()

// Release returns the running kernel; empty: unknown.
func Release(files hostdata.SetupFiles) string {
	text, _ := files.Text(releaseFile)
	if strings.Contains(text, "/") {
		return ""
	}
	return text
}

// moduleName returns the name in /sys/module for a file such as nvidia-peermem.ko.zst, or for the directory of a
// package.
func moduleName(file string) string {
	if file == ofedPackage {
		return "mlx5_core"
	}
	base, _, ok := strings.Cut(file, ".ko")
	if !ok {
		return ""
	}
	return strings.ReplaceAll(base, "-", "_")
}

// Built returns the modules outside of the kernel's package, by kernel.
func Built(files hostdata.SetupFiles) map[string][]string {
	out := map[string][]string{}
	for dir := range files {
		rest, ok := strings.CutPrefix(dir, modulesRoot+"/")
		kernel, below, _ := strings.Cut(rest, "/")
		if !ok || !slices.Contains(moduleDirs, below) {
			continue
		}
		for _, file := range files.Names(dir) {
			if name := moduleName(file); name != "" {
				out[kernel] = append(out[kernel], name)
			}
		}
	}
	return out
}

// IsBuilt reports whether a module is built for some kernel.
func IsBuilt(files hostdata.SetupFiles, module string) bool {
	for _, names := range Built(files) {
		if slices.Contains(names, module) {
			return true
		}
	}
	return false
}

// BuiltUnread returns why the modules of the running kernel are unknown.
func BuiltUnread(files hostdata.SetupFiles) string {
	for _, dir := range append([]string{modulesRoot}, moduleDirs...) {
		if dir != modulesRoot {
			dir = path.Join(modulesRoot, Release(files), dir)
		}
		if why := files.Unread(dir); why != "" {
			return why
		}
	}
	return ""
}
