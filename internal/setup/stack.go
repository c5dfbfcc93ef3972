package setup

import (
	"cmp"
	"slices"
	"strings"

	"rdma_exporter/internal/setup/software"
	"rdma_exporter/internal/setup/values"
	"rdma_exporter/internal/snapshot/hostdata"
)

const ofedTree = "var/lib/dkms/mlnx-ofed-kernel"

var stackFiles = func() []string {
	out := []string{ofedTree + "/"}
	for _, m := range builtModules {
		out = append(out, "sys/module/"+m+"/taint")
	}
	return out
}()

// builtModules are modules that DKMS builds for RDMA training, by name in /sys/module. One stands for all of its
// package. mlx5_core is that of ofed_not_in_use.
var builtModules = []string{"nvidia", "nvidia_fs", "gdrdrv", "bnxt_re", "irdma", "efa", "amdgpu"}

var stackChecks = []Check{
	{
		ID: "ofed_not_in_use", Domain: Stack, Name: "flavour of the loaded mlx5 driver",
		Read:   "/sys/module/mlx5_core/{version,taint}; /var/lib/dkms/mlnx-ofed-kernel, /lib/modules/*/{updates,updates/dkms,extra,weak-updates}",
		Wanted: "ofed where MLNX_OFED or DOCA-OFED is installed",
		Why:    "The build for this kernel failed, or the initramfs has the kernel's own module: the driver may not match the libraries.",
		Remedy: "dkms install --force mlnx-ofed-kernel/{wanted}",
		Source: "NVIDIA, MLNX_OFED: installation, verify the loaded modules",
		Alert:  "RDMAHostMisconfigured/driver",
		find:   findOFED,
	},
	{
		ID: "modules_of_other_kernel", Domain: Stack, Name: "kernel of the built modules",
		Read:   "/lib/modules/*/{updates,updates/dkms,extra,weak-updates}, /proc/sys/kernel/osrelease, /sys/module/MODULE/taint",
		Wanted: "the running kernel, for each module that DKMS or a package has built for another one",
		Why:    "The module was not rebuilt for the running kernel and cannot be loaded.",
		Remedy: "dkms autoinstall -k {wanted}", Source: "dkms(8)",
		find: findOtherKernel,
	},
}

// module returns the state of a kernel module; nil: unknown.
func (m *machine) module(name string) *hostdata.Module {
	if m.Modules == nil {
		return nil
	}
	if i := slices.IndexFunc(m.Modules.Modules, func(x hostdata.Module) bool { return x.Name == name }); i >= 0 {
		return &m.Modules.Modules[i]
	}
	return nil
}

func findOFED(m *machine) []finding {
	driver := m.module("mlx5_core")
	if driver == nil || !driver.Loaded {
		return nil
	}
	release := software.Release(m.files)
	built := software.Built(m.files)
	here := slices.Contains(built[release], "mlx5_core")
	// The versions in the DKMS tree, and other files of DKMS itself.
	versions := slices.DeleteFunc(m.files.Names(ofedTree),
		func(name string) bool { return name == "" || name[0] < '0' || name[0] > '9' })
	others := ""
	for kernel, names := range built {
		if kernel != release && slices.Contains(names, "mlx5_core") {
			others = max(others, kernel)
		}
	}
	f := finding{
		object: object{name: "mlx5_core"}, found: driver.Flavour, want: "ofed", meets: driver.Flavour == "ofed",
		basis: hostdata.SetupMachine, contradicts: true, source: "installed packages",
	}
	switch {
	case here:
		f.evidence = "/lib/modules/" + release + " has the modules of MLNX_OFED"
		f.remedy = initramfs + "; reboot"
	case len(versions) > 0:
		version := versions[len(versions)-1]
		f.evidence = "/" + ofedTree + "/" + version + " is not built for " + cmp.Or(release, "the running kernel")
		f.remedy = "dkms install mlnx-ofed-kernel/" + values.Shell(version) + " -k " + values.Shell(release) +
			"; " + initramfs + "; reboot"
	case others != "":
		f.evidence = "/lib/modules/" + others + " has the modules of MLNX_OFED, /lib/modules/" + release + " has not"
		f.remedy = "mlnxofedinstall --add-kernel-support; reboot"
	default: // the headers in /usr/src/ofa_kernel alone prove nothing: other drivers need them for their build
		f.unknown = cmp.Or(m.files.Unread(ofedTree), m.files.Unread("var/lib/dkms"), software.BuiltUnread(m.files))
		if f.unknown == "" || f.meets { // not installed
			return nil
		}
		f.found = ""
	}
	if f.found == "out-of-tree" { // a driver of another vendor's package, on purpose
		return nil
	}
	return []finding{f}
}

// initramfs rebuilds the initial file system, on Debian and Ubuntu or with dracut.
const initramfs = "update-initramfs -u || dracut -f"

func findOtherKernel(m *machine) (out []finding) {
	release := software.Release(m.files)
	if release == "" || len(m.devices) == 0 {
		return nil
	}
	built := software.Built(m.files)
	for _, name := range builtModules {
		var kernels []string
		for kernel, names := range built {
			if slices.Contains(names, name) {
				kernels = append(kernels, kernel)
			}
		}
		if len(kernels) == 0 {
			continue
		}
		slices.Sort(kernels)
		f := finding{
			object: object{name: name}, found: strings.Join(kernels, ","), want: release, basis: hostdata.SetupMachine,
		}
		taint, loaded := m.files.Text("sys/module/" + name + "/taint")
		// A loaded one that is not the kernel's own is from a precompiled package.
		if slices.Contains(kernels, release) || strings.Contains(taint, "O") {
			f.meets, f.found = true, release
		} else if f.unknown = software.BuiltUnread(m.files); f.unknown != "" {
			f.found = ""
		} else {
			f.evidence = "not in /lib/modules/" + release + ", and not loaded"
			if loaded {
				f.evidence = "not in /lib/modules/" + release + ", and the kernel's own is loaded"
			}
		}
		out = append(out, f)
	}
	return out
}
