package setup

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"rdma_exporter/internal/setup/values"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

// bootDirs have the names of modules to load at boot: modules-load.d(5), modprobe.d(5) with "softdep nvidia post:
// nvidia-peermem", and /etc/rdma/modules of rdma-core, whose files udev rules load for RDMA devices.
var bootDirs = []string{
	"etc/modules-load.d", "run/modules-load.d", "usr/lib/modules-load.d", "lib/modules-load.d",
	"etc/modprobe.d", "usr/lib/modprobe.d", "lib/modprobe.d", "etc/rdma/modules",
}

// bootFiles are single files with them: of Debian's init scripts, and of openibd of MLNX_OFED (IPOIB_LOAD=yes).
const (
	modulesFile = "etc/modules"
	openibFile  = "etc/infiniband/openib.conf"
)

// servicesDir has links to enabled services: some vendors load the peer memory module by a service of its own.
const servicesDir = "etc/systemd/system/multi-user.target.wants"

// operatorDir has the driver that the GPU operator's container has installed. It also loads the peer memory module.
const operatorDir = "run/nvidia/driver"

// Directories of modules that do not belong to the kernel's package, below lib/modules/RELEASE: DKMS on Debian and
// Ubuntu, on RHEL and SLES; packages of MLNX_OFED. weak-updates links modules of other kernels with the same
// interface.
var moduleDirs = []string{"updates/dkms", "updates", "extra", "weak-updates"}

const (
	modulesRoot = "lib/modules"
	ofedTree    = "var/lib/dkms/mlnx-ofed-kernel"
	ofedPackage = "mlnx-ofa_kernel" // directory of the modules of MLNX_OFED on RHEL and SLES
	releaseFile = "proc/sys/kernel/osrelease"
)

var stackFiles = func() []string {
	out := []string{releaseFile, modulesFile, openibFile, servicesDir + "/", operatorDir + "/", ofedTree + "/"}
	for _, d := range moduleDirs {
		out = append(out, modulesRoot+"/*/"+d+"/")
	}
	for _, d := range bootDirs {
		out = append(out, d+"/", d+"/*")
	}
	for _, d := range append(slices.Clone(wantsDirs[1:]), sysvDir, diagsDir) {
		out = append(out, d+"/")
	}
	out = append(out, unitFiles()...)
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
	{
		ID: "peermem_persistent", Domain: Stack, Name: "loading of the peer memory module at boot",
		Read:   "/etc/modules-load.d, /etc/modprobe.d and their directories in /usr/lib and /run; /etc/modules; services",
		Wanted: "an entry for the module, if it is loaded",
		Why:    "The module was loaded by hand: after the next boot GPUDirect RDMA by peer memory is not available.",
		Remedy: "echo nvidia_peermem > /etc/modules-load.d/nvidia-peermem.conf",
		Source: "NVIDIA, driver README: GPUDirect RDMA peer memory client",
		find:   findPeermemAtBoot,
	},
	{
		ID: "modules_persistent", Domain: Stack, Name: "loading of IPoIB at boot",
		Read:   "as peermem_persistent; /etc/rdma/modules (rdma-core), /etc/infiniband/openib.conf (MLNX_OFED)",
		Wanted: "an entry for ib_ipoib, if an RDMA port has an IPoIB interface",
		Why:    "The module was loaded by hand: after the next boot the IPoIB interfaces are missing.",
		Remedy: "echo ib_ipoib > /etc/modules-load.d/ib_ipoib.conf", Source: "rdma-core: kernel-boot/modules/infiniband.conf",
		find: findIPoIBAtBoot,
	},
	{
		ID: "services_at_boot", Domain: Stack, Name: "start of RDMA services at boot",
		Read:   "links in /etc/systemd/system/*.wants and /etc/rc3.d; process of opensm; unit of openibd",
		Wanted: "enabled, where opensm runs or the driver of MLNX_OFED is loaded",
		Why:    "After the next boot the subnet has no subnet manager, or modules of MLNX_OFED are missing.",
		Remedy: "systemctl enable opensm",
		Before: "configure several subnet managers of a subnet alike",
		Source: "systemctl(1); NVIDIA, MLNX_OFED: OpenSM; driver load upon system boot",
		find:   findServices,
	},
	{
		ID: "umad_loaded", Domain: Stack, Name: "module for management datagrams",
		Read:   "/sys/module/ib_umad; /etc/infiniband-diags and units of opensm",
		Wanted: "loaded on InfiniBand hosts with opensm or infiniband-diags",
		Why:    "Tools of the subnet find no port.",
		Remedy: loadUMAD, Source: "rdma-core: kernel-boot/modules/infiniband.conf",
		find: findUMAD,
	},
}

const loadUMAD = "modprobe ib_umad; echo ib_umad > /etc/modules-load.d/ib_umad.conf"

// Services are the RDMA services that are searched by process name, besides Launchers.
var Services = []string{"opensm"}

// wantsDirs have links to the enabled units. Packages differ in the target: multi-user (Debian), network (RHEL),
// sysinit (openibd).
var wantsDirs = []string{
	servicesDir, "etc/systemd/system/network.target.wants", "etc/systemd/system/network-online.target.wants",
	"etc/systemd/system/sysinit.target.wants", "etc/systemd/system/basic.target.wants",
	"etc/systemd/system/default.target.wants",
}

const sysvDir = "etc/rc3.d"

// unitDirs have the units of packages, in the order of precedence. Only those of unitNames are looked for.
var unitDirs = []string{"etc/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"}

// unitNames are the units of a service by its name; init scripts have the same names.
var unitNames = map[string][]string{"opensm": {"opensm", "opensmd"}, "openibd": {"openibd"}}

const diagsDir = "etc/infiniband-diags"

func unitFiles() (out []string) {
	for _, names := range unitNames {
		for _, name := range names {
			out = append(out, "etc/init.d/"+name)
			for _, dir := range unitDirs {
				out = append(out, dir+"/"+name+".service")
			}
		}
	}
	slices.Sort(out)
	return out
}

// unitOf returns the installed unit of a service; empty: none is visible.
func (m *machine) unitOf(service string) string {
	for _, name := range unitNames[service] {
		if _, ok := m.files["etc/init.d/"+name]; ok {
			return name
		}
		for _, dir := range unitDirs {
			if _, ok := m.files[dir+"/"+name+".service"]; ok {
				return name
			}
		}
	}
	return ""
}

// enabled returns the link that starts a service at boot; empty: none. unknown is why that is not certain.
func (m *machine) enabled(service string) (link, unknown string) {
	known := false
	for _, dir := range append(slices.Clone(wantsDirs), sysvDir) {
		_, ok := m.text(dir)
		known = known || ok
		unknown = cmp.Or(unknown, m.unread(dir))
		for _, entry := range m.names(dir) {
			name, _, _ := strings.Cut(strings.TrimSuffix(entry, ".service"), "@")
			if dir == sysvDir {
				name = strings.TrimLeft(strings.TrimPrefix(name, "S"), "0123456789")
			}
			if slices.Contains(unitNames[service], name) {
				return "/" + dir + "/" + entry, ""
			}
		}
	}
	if !known {
		unknown = cmp.Or(unknown, "no directory of enabled units: /etc of the host is not visible, or it has no systemd")
	}
	return "", unknown
}

func (m *machine) runs(service string) bool {
	return slices.ContainsFunc(m.Setup.Launchers, func(l hostdata.Launcher) bool { return l.Name == service })
}

func findServices(m *machine) (out []finding) {
	for _, s := range []struct {
		name     string
		uses     bool
		evidence string
	}{
		{"opensm", m.runs("opensm"), "opensm runs"},
		{"openibd", m.ofed("mlx5_core") && m.unitOf("openibd") != "", "the driver of MLNX_OFED is loaded"},
	} {
		if !s.uses {
			continue
		}
		f := finding{object: object{name: s.name}, want: "enabled", basis: hostdata.SetupMachine, evidence: s.evidence}
		link, unknown := m.enabled(s.name)
		unit := m.unitOf(s.name)
		switch {
		case link != "":
			f.found, f.meets, f.evidence = "enabled", true, link
		case unknown != "":
			f.unknown = unknown
		case unit == "":
			f.unknown = "no unit of " + s.name + " is visible: another unit or a script starts it"
		default:
			f.found, f.remedy = "not enabled", "systemctl enable "+unit
		}
		out = append(out, f)
	}
	return out
}

// findUMAD: InfiniBand ports and a tool of the subnet need the module.
func findUMAD(m *machine) []finding {
	port := slices.ContainsFunc(m.ports(), func(p physicalPort) bool { return p.LinkLayer == "InfiniBand" })
	_, diags := m.files[diagsDir]
	evidence := ""
	switch {
	case m.runs("opensm"):
		evidence = "opensm runs"
	case m.unitOf("opensm") != "":
		evidence = "opensm is installed"
	case diags:
		evidence = "/" + diagsDir + " exists"
	}
	module := m.module("ib_umad")
	if !port || evidence == "" || module == nil {
		return nil
	}
	f := finding{
		object: object{name: "ib_umad"}, want: "loaded", basis: hostdata.SetupMachine, evidence: evidence,
		unknown: "it is not known whether the module is loaded",
	}
	switch {
	case module.Loaded:
		f.found, f.meets = "loaded", true
	case module.Known:
		f.found = "not loaded"
	}
	return []finding{f}
}

// release returns the running kernel; empty: unknown.
func (m *machine) release() string {
	text, _ := m.text(releaseFile)
	if strings.Contains(text, "/") {
		return ""
	}
	return text
}

// names returns the entries of a directory of Files.
func (m *machine) names(dir string) []string {
	text, _ := m.text(dir)
	return strings.Fields(text)
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

// built returns the modules outside of the kernel's package, by kernel.
func (m *machine) built() map[string][]string {
	out := map[string][]string{}
	for dir := range m.files {
		rest, ok := strings.CutPrefix(dir, modulesRoot+"/")
		kernel, below, _ := strings.Cut(rest, "/")
		if !ok || !slices.Contains(moduleDirs, below) {
			continue
		}
		for _, file := range m.names(dir) {
			if name := moduleName(file); name != "" {
				out[kernel] = append(out[kernel], name)
			}
		}
	}
	return out
}

// builtUnread returns why the modules of the running kernel are unknown.
func (m *machine) builtUnread() string {
	for _, dir := range append([]string{modulesRoot}, moduleDirs...) {
		if dir != modulesRoot {
			dir = path.Join(modulesRoot, m.release(), dir)
		}
		if why := m.unread(dir); why != "" {
			return why
		}
	}
	return ""
}

func findOFED(m *machine) []finding {
	driver := m.module("mlx5_core")
	if driver == nil || !driver.Loaded {
		return nil
	}
	release := m.release()
	built := m.built()
	here := slices.Contains(built[release], "mlx5_core")
	// The versions in the DKMS tree, and other files of DKMS itself.
	versions := slices.DeleteFunc(m.names(ofedTree),
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
		f.unknown = cmp.Or(m.unread(ofedTree), m.unread("var/lib/dkms"), m.builtUnread())
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
	release := m.release()
	if release == "" || len(m.devices) == 0 {
		return nil
	}
	built := m.built()
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
		taint, loaded := m.text("sys/module/" + name + "/taint")
		// A loaded one that is not the kernel's own is from a precompiled package.
		if slices.Contains(kernels, release) || strings.Contains(taint, "O") {
			f.meets, f.found = true, release
		} else if f.unknown = m.builtUnread(); f.unknown != "" {
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

// atBoot returns the path of the file that loads a module at boot; empty if there is none. unknown is the reason why
// the result is not certain.
func (m *machine) atBoot(module string) (file, unknown string) {
	same := func(word string) bool { return strings.ReplaceAll(word, "-", "_") == module }
	known := false
	for _, p := range m.paths() {
		dir := path.Dir(p)
		known = known || path.Base(p) == "modules-load.d"
		if !slices.Contains(bootDirs, dir) && !slices.Contains(bootDirs, p) && p != modulesFile {
			continue
		}
		if why := m.unread(p); why != "" {
			unknown = why
		}
		if slices.Contains(bootDirs, p) {
			continue
		}
		for line := range strings.Lines(m.files[p].Text) {
			words := strings.Fields(line)
			if len(words) == 0 || strings.HasPrefix(words[0], "#") || strings.HasPrefix(words[0], ";") {
				continue
			}
			if strings.HasSuffix(dir, "modprobe.d") {
				if words[0] != "softdep" && words[0] != "install" || len(words) < 3 {
					continue
				}
				words = words[2:]
			}
			if slices.ContainsFunc(words, same) {
				return "/" + p, ""
			}
		}
	}
	if !known && unknown == "" {
		unknown = "no directory modules-load.d: /etc and /usr/lib of the host are not visible, or modules are loaded in another way"
	}
	return "", unknown
}

// paths returns the files of the reading, sorted.
func (m *machine) paths() []string { return slices.Sorted(maps.Keys(m.files)) }

// bootFinding is whether a module is loaded at boot: by a file, or by something else.
func (m *machine) bootFinding(module, by string) finding {
	file, unknown := m.atBoot(module)
	f := finding{
		object: object{name: module}, want: "yes", basis: hostdata.SetupMachine, unknown: unknown,
		evidence: "the module is loaded",
	}
	switch {
	case cmp.Or(file, by) != "":
		f.found, f.meets, f.evidence = "yes", true, cmp.Or(file, by)
	case unknown == "":
		f.found = "no"
	}
	return f
}

func findPeermemAtBoot(m *machine) []finding {
	if m.GDR == nil || m.GDR.Peermem == "" {
		return nil
	}
	by := ""
	for _, service := range m.names(servicesDir) {
		if name := strings.ReplaceAll(service, "-", "_"); strings.Contains(name, "peermem") ||
			strings.Contains(name, "peer_mem") {
			by = "service " + service
		}
	}
	if len(m.names(operatorDir)) > 0 {
		by = "/" + operatorDir + ": driver container of the GPU operator"
	}
	return []finding{m.bootFinding(m.GDR.Peermem, by)}
}

func findIPoIBAtBoot(m *machine) []finding {
	if !slices.ContainsFunc(m.devices, func(d *snapshot.Device) bool {
		return slices.ContainsFunc(d.Ports,
			func(p snapshot.Port) bool { return p.LinkLayer == "InfiniBand" && len(p.Netdev) > 0 })
	}) {
		return nil
	}
	if m0 := m.module("ib_ipoib"); m0 == nil || !m0.Loaded || m0.BuiltIn {
		return nil
	}
	by := ""
	for line := range strings.Lines(m.files[openibFile].Text) {
		if strings.EqualFold(strings.Trim(strings.ReplaceAll(strings.TrimSpace(line), `"`, ""), " "), "IPOIB_LOAD=yes") {
			by = "/" + openibFile
		}
	}
	return []finding{m.bootFinding("ib_ipoib", by)}
}
