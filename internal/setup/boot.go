package setup

import (
	"cmp"
	"slices"
	"strings"

	"rdma_exporter/internal/setup/software"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

const (
	openibFile = "etc/infiniband/openib.conf" // of openibd of MLNX_OFED
	diagsDir   = "etc/infiniband-diags"
	fabricUnit = "rdma_exporter-fabric.service"
	// operatorDir has the driver that the GPU operator's container has installed. It also loads the peer memory module.
	operatorDir = "run/nvidia/driver"
)

var bootFiles = append([]string{openibFile, operatorDir + "/", diagsDir + "/"}, software.Files...)

// bootChecks are what starts at boot.
var bootChecks = []Check{
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
		ID: "modules_persistent", Domain: Stack, Name: "loading of InfiniBand modules at boot",
		Read:   "as peermem_persistent; /etc/rdma/modules (rdma-core), /etc/infiniband/openib.conf (MLNX_OFED)",
		Wanted: "an entry for ib_ipoib, if an RDMA port has an IPoIB interface, and for ib_umad as in umad_loaded",
		Why:    "The module was loaded by hand: after the next boot IPoIB interfaces are missing, or tools of the subnet find no port.",
		Remedy: "echo ib_ipoib > /etc/modules-load.d/ib_ipoib.conf", Source: "rdma-core: kernel-boot/modules/infiniband.conf",
		find: func(m *machine) []finding { return append(findIPoIBAtBoot(m), findUMADAtBoot(m)...) },
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
		Read:   "/sys/module/ib_umad; /etc/infiniband-diags, units of opensm and rdma_exporter-fabric, flags of the exporter",
		Wanted: "loaded on InfiniBand hosts with opensm, infiniband-diags, fabric mode, --collector.infiniband.mad=on or --collector.neighbour.subnet",
		Why:    "Tools of the subnet find no port.",
		Remedy: loadUMAD, Source: "rdma-core: kernel-boot/modules/infiniband.conf",
		find: findUMAD,
	},
}

const (
	bootUMAD = "echo ib_umad > /etc/modules-load.d/ib_umad.conf"
	loadUMAD = "modprobe ib_umad; " + bootUMAD
)

// Services are the RDMA services that are searched by process name, besides Launchers.
var Services = []string{"opensm"}

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
		{"openibd", m.ofed("mlx5_core") && software.Unit(m.files, "openibd") != "", "the driver of MLNX_OFED is loaded"},
	} {
		if !s.uses {
			continue
		}
		f := finding{object: object{name: s.name}, want: "enabled", basis: hostdata.SetupMachine, evidence: s.evidence}
		link, unknown := software.Enabled(m.files, s.name)
		unit := software.Unit(m.files, s.name)
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

// needsUMAD returns why a host with InfiniBand ports needs ib_umad; empty: it does not.
func (m *machine) needsUMAD() string {
	if !slices.ContainsFunc(m.ports(), func(p physicalPort) bool { return p.LinkLayer == "InfiniBand" }) {
		return ""
	}
	_, diags := m.files[diagsDir]
	switch {
	case m.runs("opensm"):
		return "opensm runs"
	case slices.Contains(m.files.Names(software.MultiUser), fabricUnit):
		return fabricUnit + " is enabled"
	case len(m.Setup.MADFlags) > 0:
		return strings.Join(m.Setup.MADFlags, ", ") + " of this exporter"
	case software.Unit(m.files, "opensm") != "":
		return "opensm is installed"
	case diags:
		return "/" + diagsDir + " exists"
	}
	return ""
}

func findUMAD(m *machine) []finding {
	evidence := m.needsUMAD()
	module := m.module("ib_umad")
	if evidence == "" || module == nil {
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

// bootFinding is whether a module is loaded at boot: by a file, or by something else.
func (m *machine) bootFinding(module, by string) finding {
	file, unknown := software.Loader(m.files, module)
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
	for _, service := range m.files.Names(software.MultiUser) {
		if name := strings.ReplaceAll(service, "-", "_"); strings.Contains(name, "peermem") ||
			strings.Contains(name, "peer_mem") {
			by = "service " + service
		}
	}
	if len(m.files.Names(operatorDir)) > 0 {
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
	if !m.inserted("ib_ipoib") {
		return nil
	}
	by := ""
	if m.openib("IPOIB_LOAD", "yes") {
		by = "/" + openibFile
	}
	return []finding{m.bootFinding("ib_ipoib", by)}
}

// findUMADAtBoot: openibd loads the module unless it is configured otherwise, and units of opensm may.
func findUMADAtBoot(m *machine) []finding {
	evidence := m.needsUMAD()
	if evidence == "" || !m.inserted("ib_umad") {
		return nil
	}
	by, unknown := "", m.files.Unread(openibFile)
	for _, service := range []string{"opensm", "openibd"} {
		loads := software.UnitMentions(m.files, service, "ib_umad") ||
			service == "openibd" && unknown == "" && !m.openib("UMAD_LOAD", "no")
		link, why := software.Enabled(m.files, service)
		if loads && link != "" {
			by = link
		} else if loads && software.Unit(m.files, service) != "" {
			unknown = cmp.Or(unknown, why)
		}
	}
	f := m.bootFinding("ib_umad", by)
	if f.remedy = bootUMAD; f.found == "no" {
		f.evidence += ", and " + evidence
		if unknown != "" {
			f.found, f.unknown = "", unknown
		}
	}
	return []finding{f}
}

// inserted reports whether a module is loaded, and not part of the kernel.
func (m *machine) inserted(module string) bool {
	x := m.module(module)
	return x != nil && x.Loaded && !x.BuiltIn
}

// openib reports whether the configuration of openibd has a value.
func (m *machine) openib(name, value string) bool {
	for line := range strings.Lines(m.files[openibFile].Text) {
		if strings.EqualFold(strings.Trim(strings.ReplaceAll(strings.TrimSpace(line), `"`, ""), " "), name+"="+value) {
			return true
		}
	}
	return false
}
