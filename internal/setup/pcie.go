package setup

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/setup/values"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/words"
)

// pcieFiles: link/l1_aspm since Linux 5.5, of the lower end of a link.
var pcieFiles = []string{
	"sys/class/infiniband/*/device/link/l0s_aspm",
	"sys/class/infiniband/*/device/link/l1_aspm",
}

var pcieChecks = []Check{
	{
		ID: "max_read_request", Domain: PCIe, Name: "PCIe maximum read request",
		Read:   "/sys/bus/pci/devices/ADDRESS/config, Device Control (CAP_SYS_ADMIN)",
		Wanted: "at least that of the sibling devices; else 4096 bytes on a port of 100 Gb/s or more",
		Why:    "Small read requests limit the transmit throughput of the device.",
		Remedy: "setpci -s {address} CAP_EXP+8.w=5000:7000",
		Source: "NVIDIA, performance tuning for Mellanox adapters: PCIe max read request",
		find:   checkControl(func(s *accel.PCIeSettings) int { return s.MaxReadRequest }, 4096, setReadRequest),
	},
	{
		ID: "max_payload", Domain: PCIe, Name: "PCIe maximum payload",
		Read:   "/sys/bus/pci/devices/ADDRESS/config, Device Control (CAP_SYS_ADMIN)",
		Wanted: "that of the sibling devices of the same model; else 256 bytes",
		Why:    "Small payloads cost PCIe throughput by headers.",
		Remedy: "set the maximum payload size in the firmware setup of the host, or boot with pci=pcie_bus_perf",
		Source: "NVIDIA, performance tuning: PCIe max payload size",
		find:   checkControl(func(s *accel.PCIeSettings) int { return s.MaxPayload }, 256, func(int) string { return "" }),
	},
	{
		ID: "relaxed_ordering", Domain: PCIe, Name: "PCIe relaxed ordering",
		Read:   "/sys/bus/pci/devices/ADDRESS/config, Device Control (CAP_SYS_ADMIN)",
		Wanted: "enabled on hosts with GPUs",
		Why:    "Without relaxed ordering writes of the device to memory wait for each other; on AMD hosts throughput drops.",
		Remedy: "setpci -s {address} CAP_EXP+8.w=0010:0010",
		Source: "NVIDIA, NCCL: NCCL_IB_PCI_RELAXED_ORDERING; AMD, tuning guide for GPU servers",
		find:   each(nicsOf, findRelaxedOrdering),
	},
	{
		ID: "acs", Domain: PCIe, Name: "ACS redirect between device and GPU",
		Read:   "/sys/bus/pci/devices/ADDRESS/config of the bridges, Access Control Services (CAP_SYS_ADMIN)",
		Wanted: "off between a device and a GPU below the same switch, on bare metal",
		Why:    "GPUDirect RDMA traffic takes the way over the root complex and back, with any IOMMU mode.",
		Remedy: "setpci -s {bridge} ECAP_ACS+6.w=0000",
		Before: "not on hosts that pass devices to virtual machines, which ACS isolates; setpci lasts until the next boot, the firmware setup of the host has it for good",
		Source: "NVIDIA, NCCL troubleshooting: PCI Access Control Services", Alert: "RDMAHostMisconfigured/acs",
		find: each(nicsOf, findACS),
	},
	{
		ID: "iommu_mode", Domain: PCIe, Name: "IOMMU mode",
		Read:   "/sys/bus/pci/devices/ADDRESS/iommu_group/type (since Linux 4.20)",
		Wanted: "pass-through (identity) or no IOMMU, on bare metal",
		Why:    "Each DMA is translated: throughput drops, and GPUDirect RDMA may fail.",
		Remedy: "add iommu=pt to the kernel command line, and restart the host",
		Before: "containers and bare metal need no translation; hosts that pass devices to virtual machines keep it for these only",
		Source: "NVIDIA, GPUDirect RDMA: supported systems; AMD, tuning guide", Alert: "RDMAHostMisconfigured/iommu",
		find: each(nicsOf, findIOMMU),
	},
	{
		ID: "ats", Domain: PCIe, Name: "PCIe address translation services (ATS)",
		Read:   "/sys/bus/pci/devices/ADDRESS/config, ATS Control (CAP_SYS_ADMIN)",
		Wanted: "on where the IOMMU translates and the device supports it; else whatever it is",
		Why:    "The device has no translations of its own: each access to a GPU goes by way of the IOMMU instead of the PCIe switch.",
		Before: "not needed once iommu_mode is identity: correct that first where no virtual machine needs translation",
		Remedy: "mlxconfig -d {address} set ATS_ENABLED=true # NVIDIA; also ATS in the firmware setup of the host (VT-d, AMD-Vi), and no pci=noats at boot",
		Source: "NVIDIA, AI Enterprise: ATS and ACS configuration; NVIDIA, NCCL: troubleshooting, PCI Access Control Services; PCI Express Base Specification, 10.5.1; Documentation/admin-guide/kernel-parameters.txt of the kernel, pci=noats",
		find:   each(nicsOf, findATS),
	},
	{
		ID: "aspm_on_path", Domain: PCIe, Name: "PCIe power saving (ASPM)",
		Read:   "/sys/bus/pci/devices/ADDRESS/link/{l0s,l1}_aspm (since Linux 5.5)",
		Wanted: "off on the link of a device",
		Why:    "Leaving a power-saving state of the link delays messages by microseconds.",
		Remedy: "echo 0 > /sys/bus/pci/devices/{address}/link/l1_aspm; echo 0 > /sys/bus/pci/devices/{address}/link/l0s_aspm",
		Source: "NVIDIA, performance tuning: BIOS settings",
		find:   each(nicsOf, findASPM),
	},
}

// placedNIC is the position of a device in the PCI tree.
type placedNIC struct {
	*snapshot.Device
	*accel.GDRNIC
}

// allNICs returns the physical devices on bare metal with their positions: the tree of a virtual machine is emulated.
func (m *machine) allNICs() (out []placedNIC) {
	if m.GDR == nil || m.GDR.Virtual {
		return nil
	}
	for _, d := range m.devices {
		if i := slices.IndexFunc(m.GDR.NICs, func(n accel.GDRNIC) bool { return n.Device == d.Name }); i >= 0 &&
			d.PCIAddress != "" {
			out = append(out, placedNIC{d, &m.GDR.NICs[i]})
		}
	}
	return out
}

func (n *placedNIC) object() object { return object{device: n.Name, address: n.Device.PCIAddress} }

const needsConfig = "configuration space is readable with CAP_SYS_ADMIN only"

// fast reports whether a port of the device runs at 100 Gb/s or more.
func fast(d *snapshot.Device) bool {
	return slices.ContainsFunc(d.Ports, func(p snapshot.Port) bool { return p.Rate != nil && *p.Rate >= 100e9 })
}

// checkControl returns a check that compares a number in Device Control of a fast device with that of its siblings of
// the same model.
func checkControl(
	of func(*accel.PCIeSettings) int, guide int, remedy func(want int) string,
) func(*machine) []finding {
	return each(nicsOf, func(m *machine, n placedNIC) (f finding, ok bool) {
		f = finding{object: n.object(), unknown: needsConfig, basis: hostdata.SetupGuide}
		most, sibling := guide, ""
		for _, o := range m.nics {
			if o.Settings != nil && o.Name != n.Name && o.HCAType == n.HCAType && o.BoardID == n.BoardID && n.HCAType != "" &&
				of(o.Settings) > most {
				most, sibling = of(o.Settings), o.Name
			}
		}
		if sibling != "" {
			f.basis, f.because = hostdata.SetupMachine, fmt.Sprintf("%s, of the same model, has %d", sibling, most)
		}
		f.want = strconv.Itoa(most)
		if n.Settings != nil {
			f.found, f.meets, f.remedy = strconv.Itoa(of(n.Settings)), of(n.Settings) >= most, remedy(most)
		}
		return f, fast(n.Device)
	})
}

// setReadRequest sets bits 12 to 14 of Device Control: 128 << value.
func setReadRequest(want int) string {
	value := 0
	for 128<<value < want && value < 5 {
		value++
	}
	return fmt.Sprintf("setpci -s {address} CAP_EXP+8.w=%x000:7000", value)
}

func findRelaxedOrdering(m *machine, n placedNIC) (f finding, ok bool) {
	f = finding{object: n.object(), unknown: needsConfig, want: "on", basis: hostdata.SetupGuide}
	if n.Settings != nil {
		f.found, f.meets = values.OnOff(n.Settings.RelaxedOrdering), n.Settings.RelaxedOrdering
	}
	return f, len(m.GDR.GPUs) > 0 && n.Driver == "mlx5_core" // others have no switch for it
}

// findATS: the kernel enables ATS of a device that has the capability with its IOMMU domain (pci_enable_ats,
// drivers/pci/ats.c).
func findATS(_ *machine, n placedNIC) (f finding, ok bool) {
	if n.Settings == nil || !n.Settings.HasATS {
		return f, false
	}
	f = finding{object: n.object(), found: values.OnOff(n.Settings.ATS), meets: n.Settings.ATS, basis: hostdata.SetupGuide}
	if translates(n.IOMMU) {
		f.want, f.evidence = "on", "IOMMU group of type "+n.IOMMU
	}
	return f, true
}

// translates reports whether a type of an IOMMU group (since Linux 4.20) is one with translation.
func translates(group string) bool { return group == "DMA" || group == "DMA-FQ" }

func findACS(m *machine, n placedNIC) (f finding, ok bool) {
	f = finding{object: n.object(), want: "off", basis: hostdata.SetupMachine}
	if n.Redirect == nil {
		f.unknown = needsConfig
		return f, n.Settings == nil && m.below(&n)
	}
	f.found, f.meets = values.OnOff(*n.Redirect), !*n.Redirect
	f.contradicts, f.evidence = true, "a GPU is below the same switch"
	if *n.Redirect {
		f.remedy = strings.Join(words.Map(n.RedirectAt, func(bridge string) string {
			return "setpci -s " + values.Shell(bridge) + " ECAP_ACS+6.w=0000"
		}), "; ")
	}
	return f, true
}

// below reports whether a GPU is below the same root port as a device.
func (m *machine) below(n *placedNIC) bool {
	return len(n.GDRNIC.Path) > 1 && slices.ContainsFunc(m.GDR.GPUs,
		func(g accel.GDRGPU) bool { return len(g.Hops) > 1 && g.Hops[0].Address == n.GDRNIC.Path[0] })
}

func findIOMMU(m *machine, n placedNIC) (f finding, ok bool) {
	if slices.ContainsFunc(m.GDR.GPUs, func(g accel.GDRGPU) bool { return g.Coupled }) { // Grace translates by design
		return f, false
	}
	f = finding{object: n.object(), found: cmp.Or(n.IOMMU, "none"), want: "identity|none", basis: hostdata.SetupGuide}
	f.meets = !translates(f.found)
	if m.below(&n) {
		f.basis, f.contradicts, f.evidence = hostdata.SetupMachine, true, "a GPU is below the same switch"
	}
	return f, true
}

func findASPM(m *machine, n placedNIC) (f finding, ok bool) {
	var on []string
	known, unread := false, ""
	for _, state := range []string{"l0s", "l1"} {
		file := "sys/class/infiniband/" + n.Name + "/device/link/" + state + "_aspm"
		text, ok := m.files.Text(file)
		known = known || ok
		unread = max(unread, m.files.Unread(file))
		if text == "1" {
			on = append(on, state)
		}
	}
	if !known && unread == "" { // the link or the kernel has no such states
		return f, false
	}
	f = finding{object: n.object(), unknown: unread, want: "off", basis: hostdata.SetupGuide, meets: len(on) == 0}
	if known {
		f.found = cmp.Or(strings.Join(on, ","), "off")
	}
	return f, true
}
