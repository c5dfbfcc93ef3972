package gdr

import (
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/nccl"
)

// registers are the kernels in which a driver has the op reg_user_mr_dmabuf (drivers/infiniband/hw): not up to the
// first, from the second on; versions between were not checked. Names are those of the driver of the PCI function.
var registers = map[string]struct{ not, has version }{
	"ice": {version{6, 1}, version{6, 12}}, "i40e": {version{6, 1}, version{6, 12}},
	"idpf":    {version{6, 1}, version{6, 12}},
	"bnxt_en": {version{6, 1}, version{6, 12}},
	"ionic":   {version{6, 12}, version{7, 3}},
	"mana":    {version{6, 12}, version{7, 3}},
}

// lacking are drivers without it in any kernel.
var lacking = []string{"mlx4_core", "hns3", "erdma", "qede", "hfi1", "cxgb4", "rxe", "siw"}

// dmabufDriver is the first GPU driver that exports DMA-BUFs: that of CUDA 11.7.
const dmabufDriver = 515

// HasPeermem reports whether a peer memory module is loaded.
func (m *Machine) HasPeermem() bool { return m.Peermem.Module != "" }

// HasDMABUF is whether a NIC with a driver can use DMA-BUFs of GPUs, and the reason if not or if unknown.
func (m *Machine) HasDMABUF(driver string) (State, Reason) {
	if m.HasAMD() {
		return m.rocmDMABUF(driver)
	}
	supported := m.registersDMABUF()
	gpu, known := driverMajor(m.Driver.Version)
	switch {
	case known && gpu < dmabufDriver:
		return Staging, DriverOld
	case m.Driver.Open != nil && !*m.Driver.Open:
		return Staging, DriverProprietary
	case supported != nil && !*supported:
		return Staging, KernelOld
	case m.Driver.Open == nil:
		return Unknown, FlavourUnknown
	case supported == nil:
		return Unknown, KernelUnknown
	}
	return m.nicDMABUF(driver)
}

// registersDMABUF reports whether ib_core can register DMA-BUFs; nil: unknown.
func (m *Machine) registersDMABUF() *bool {
	kernel := parseVersion(m.Kernel)
	if m.DMABUF == nil && kernel != nil && !kernel.before(version{6, 1}) {
		return new(true)
	}
	return m.DMABUF
}

// nicDMABUF is whether a NIC driver can register DMA-BUFs in this kernel, where ib_core can.
func (m *Machine) nicDMABUF(driver string) (State, Reason) {
	kernel := parseVersion(m.Kernel)
	if driver == "mlx5_core" { // reg_user_mr_dmabuf came with ib_umem_dmabuf_get, also in kernels with backports
		return Direct, IsDirect
	}
	span, listed := registers[driver]
	kernel = kernel[:min(len(kernel), 2)]
	switch {
	case slices.Contains(lacking, driver), listed && kernel != nil && !span.not.before(kernel):
		return Staging, NICDriverLacks
	case listed && kernel != nil && !kernel.before(span.has):
		return Direct, IsDirect
	}
	return Unknown, NICDriverUnknown
}

func driverMajor(text string) (int, bool) {
	major, _, _ := strings.Cut(text, ".")
	n, err := strconv.Atoi(major)
	return n, err == nil
}

// seesPeermem reports whether NCCL finds the loaded peer memory module (ncclIbGdrModuleLoaded, src/transport/net_ib).
// Since 2.23.4 it checks the module itself, before that the list of clients of MLNX_OFED. An unknown version is taken
// as a newer one.
func (m *Machine) seesPeermem(v version) bool {
	if m.Peermem.Module == "nvidia_peermem" && !v.before(version{2, 23, 4}) {
		return true
	}
	return slices.ContainsFunc(m.Peermem.Clients,
		func(c string) bool { return c == "nv_mem" || c == "nv_mem_nc" || c == "nvidia-peermem" })
}

// unsupported are words of models without GPUDirect RDMA: NVIDIA has it on data center and professional GPUs. GB10 (DGX
// Spark) allocates memory of the GPU where PCIe devices have no coherent access, so that neither nvidia-peermem nor
// DMA-BUF works (NVIDIA developer forum 348787).
var unsupported = map[string]Reason{"geforce": GPUUnsupported, "titan": GPUUnsupported, "gb10": GPUUnified}

// lacksGDR returns the reason why a GPU model has no GPUDirect RDMA, empty if it has; known reports whether that is
// known.
func (g *GPU) lacksGDR() (why Reason, known bool) {
	for word := range strings.FieldsSeq(strings.ToLower(g.Model)) {
		if why := unsupported[word]; why != "" {
			return why, true
		}
	}
	if g.Device == 0x2e12 { // GB10
		return GPUUnified, true
	}
	return "", g.Model != "" || !g.Display
}

// preTuring reports whether the GPU is of an architecture before Turing, for which there are no open kernel modules:
// they require the GSP (NVIDIA/open-gpu-kernel-modules, README). GV100 is the last of them, 0x1d81 to 0x1dff.
func (g *GPU) preTuring() bool {
	if g.Compute != 0 {
		return g.Compute < 75
	}
	return g.Device != 0 && g.Device < 0x1e00
}

// preAmpere reports whether the GPU is of an architecture before Ampere, by its compute capability or else its device
// id: GA100 has 0x2080 to 0x20ff, and all of 0x2200 and above is newer.
func (g *GPU) preAmpere() bool {
	if g.Compute != 0 {
		return g.Compute < 80
	}
	return g.Device < 0x2080 || g.Device >= 0x2100 && g.Device < 0x2200
}

// version is the numbers of a version, most significant first; nil: unknown.
type version []int

// before reports whether v is older than o; false if v is unknown.
func (v version) before(o version) bool { return v != nil && slices.Compare(v, o) < 0 }

// parseVersion parses the numbers at the beginning of a text: 6.12.48+deb13, 2.22.3.
func parseVersion(text string) (v version) {
	for part := range strings.SplitSeq(text, ".") {
		end := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
		number := part
		if end >= 0 {
			number = part[:end]
		}
		n, err := strconv.Atoi(number)
		if err != nil {
			return v
		}
		if v = append(v, n); end >= 0 {
			return v
		}
	}
	return v
}

// Attachments returns the number of attached DMA-BUFs of GPUs that may belong to a process with these settings and a
// NIC with this driver. It is 0 without reading if DMA-BUF is disabled or unsupported.
func (m *Machine) Attachments(seen *uint64, driver string, e nccl.Env) *uint64 {
	state, _ := m.HasDMABUF(driver)
	if state == Staging || e.Integer("NCCL_DMABUF_ENABLE", 1) == 0 {
		return new(uint64)
	}
	return seen
}
