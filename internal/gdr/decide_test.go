package gdr

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"testing"

	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/pci"
)

// plane returns where a GPU and a NIC behind one switch are; each has a host bridge of its own.
func plane(i, numa int) (gpu, nic pci.Place) {
	bus := string("0123456789"[i])
	up := "sys/devices/pci0000:" + bus + "0/0000:" + bus + "0:01.0/0000:" + bus + "1:00.0/"
	return pci.PlaceOf(up+"0000:"+bus+"2:00.0/0000:"+bus+"3:00.0", numa),
		pci.PlaceOf(up+"0000:"+bus+"2:01.0/0000:"+bus+"4:00.0", numa)
}

// hopper returns a machine with two planes, one on each NUMA node, an open GPU driver and Linux 6.12.
func hopper() *Machine {
	m := &Machine{Kernel: "6.12.48+deb13-amd64", Driver: Driver{"570.133.20", new(true)}, DMABUF: new(true)}
	for i := range 2 {
		gpu, nic := plane(i+1, i)
		m.GPUs = append(m.GPUs, GPU{
			Index: string("01"[i]), Address: gpu.Chain[3], Place: gpu, Vendor: vendorNVIDIA, Device: 0x2330,
			Model: "NVIDIA H100 80GB HBM3", Compute: 90, Linked: new(true),
		})
		m.NICs = append(m.NICs,
			NIC{Device: "mlx5_" + string("01"[i]), Driver: "mlx5_core", Role: pci.Compute, Place: nic, Ports: []Port{{1, true}}})
	}
	return m
}

// grace returns a machine whose GPUs and NICs hang on root ports of their own, the GPUs coupled to their CPUs.
func grace() *Machine {
	m := hopper()
	for i := range 2 {
		bus := string("12"[i])
		m.GPUs[i].Place = pci.PlaceOf("sys/devices/pci000"+bus+":00/000"+bus+":00:00.0/000"+bus+":01:00.0", i)
		m.GPUs[i].Coupled, m.GPUs[i].Device, m.GPUs[i].Model, m.GPUs[i].Compute = true, 0x2941, "NVIDIA GB200", 100
		m.NICs[i].Place = pci.PlaceOf("sys/devices/pci001"+bus+":00/001"+bus+":00:00.0/001"+bus+":01:00.0", i)
	}
	return m
}

// instinct is hopper with AMD GPUs and both mechanisms.
func instinct() *Machine {
	m := hopper()
	m.Driver, m.ROCm = Driver{}, ROCm{new(true), new(true)}
	for i := range m.GPUs {
		g := &m.GPUs[i]
		g.Vendor, g.Device, g.Model, g.Compute, g.Linked = vendorAMD, 0x74a1, "AMD Instinct MI300X OAM", 0, nil
	}
	return m
}

// flat returns a topology file with all functions of a machine below the CPU of node 0.
func flat(m *Machine) *nccl.Topology {
	t := &nccl.Topology{Places: map[string]pci.NCCLPlace{}}
	for i := range m.GPUs {
		t.Places[m.GPUs[i].Address] = pci.NCCLPlace{}
		t.Places[nicAddress(&m.NICs[i])] = pci.NCCLPlace{}
	}
	return t
}

// cases are what becomes of the first GPU, by its best NIC.
var cases = []struct {
	name          string
	base          func() *Machine
	change        func(*Machine)
	job           Job
	nic           string // the best; empty: none
	distance      pci.Distance
	mechanism     Mechanism
	send, receive State
	reason        Reason // of the verdict that sums up
}{
	{"DMA-BUF behind one switch", hopper, nil, Job{}, "mlx5_0", "PIX", DMABUF, Direct, Direct, IsDirect},
	{"its own NIC is down: the other is too far", hopper, func(m *Machine) { m.NICs[0].Ports[0].Active = false }, Job{}, "mlx5_1", "SYS", DMABUF, Staging, Staging, NearestDown},
	{"both NICs down", hopper, func(m *Machine) { m.NICs[0].Ports, m.NICs[1].Ports = nil, nil }, Job{}, "", "", "", Unknown, Unknown, NoActiveNIC},
	{"a NIC for storage is near", hopper, func(m *Machine) { m.NICs[0].Role = pci.Other }, Job{}, "mlx5_1", "SYS", DMABUF, Staging, Staging, FarNode},
	{"no NIC is for computing", hopper, func(m *Machine) { m.NICs[0].Role, m.NICs[1].Role = pci.Other, pci.Unknown }, Job{}, "mlx5_0", "PIX", DMABUF, Direct, Direct, IsDirect},
	{"no NIC", hopper, func(m *Machine) { m.NICs = nil }, Job{}, "", "", "", Unknown, Unknown, NoNIC},
	{"no NIC, though one is asked for", hopper, func(m *Machine) { m.NICs = nil }, Job{Env: nccl.Env{"NCCL_IB_HCA": "mlx5"}}, "", "", "", Unknown, Unknown, NoNIC},
	{"NICs that cannot be read", hopper, func(m *Machine) { m.NICs, m.Devices = nil, 2 }, Job{}, "", "", "", Unknown, Unknown, NoActiveNIC},
	{"what manages NVLink is no NIC", hopper, func(m *Machine) { m.NICs[0].Role, m.NICs[1].Role = pci.NVLinkManagement, pci.NVLinkManagement }, Job{}, "", "", "", Unknown, Unknown, NoActiveNIC},
	{"another host bridge of the node", hopper, func(m *Machine) { m.NICs = m.NICs[1:]; m.NICs[0].Place.NUMA = 0 }, Job{}, "mlx5_1", "PHB", DMABUF, Staging, Staging, FarHostBridge},
	{"the same, level PHB", hopper, func(m *Machine) { m.NICs = m.NICs[1:]; m.NICs[0].Place.NUMA = 0 }, Job{Env: nccl.Env{"NCCL_NET_GDR_LEVEL": "PHB"}}, "mlx5_1", "PHB", DMABUF, Direct, Direct, IsDirect},

	{"level LOC", hopper, nil, Job{Env: nccl.Env{"NCCL_NET_GDR_LEVEL": "LOC"}}, "mlx5_0", "PIX", DMABUF, Staging, Staging, LevelSet},
	{"level LOC by its old number", hopper, nil, Job{Env: nccl.Env{"NCCL_NET_GDR_LEVEL": "0"}}, "mlx5_0", "PIX", DMABUF, Staging, Staging, LevelSet},
	{"level SYS by an old number", hopper, func(m *Machine) { m.NICs = m.NICs[1:] }, Job{Env: nccl.Env{"NCCL_NET_GDR_LEVEL": "7"}}, "mlx5_1", "SYS", DMABUF, Direct, Direct, IsDirect},
	{"an unknown level", hopper, nil, Job{Env: nccl.Env{"NCCL_NET_GDR_LEVEL": "near"}}, "mlx5_0", "PIX", DMABUF, Direct, Direct, IsDirect},
	{"a topology file with all below the CPU", hopper, func(m *Machine) { m.Topology = flat(m) }, Job{}, "mlx5_0", "PHB", DMABUF, Staging, Staging, TopologyFile},
	{"the topology file of the job", hopper, nil, Job{Topology: flat(hopper()), Env: nccl.Env{"NCCL_NET_GDR_LEVEL": "PXB"}}, "mlx5_0", "PHB", DMABUF, Staging, Staging, TopologyFile},
	{"the same in a virtual machine, where it counts", hopper, func(m *Machine) { m.Virtual = true }, Job{Topology: flat(hopper())}, "mlx5_0", "PHB", DMABUF, Staging, Staging, FarHostBridge},
	{"a topology file, and the PCI tree far as well", hopper, func(m *Machine) { m.NICs = m.NICs[1:]; m.NICs[0].Place.NUMA = 0 }, Job{Topology: flat(hopper())}, "mlx5_1", "PHB", DMABUF, Staging, Staging, FarHostBridge},
	{"NCCL_IB_HCA takes the far one", hopper, nil, Job{Env: nccl.Env{"NCCL_IB_HCA": "=mlx5_1"}}, "mlx5_1", "SYS", DMABUF, Staging, Staging, FarNode},
	{"NCCL_IB_HCA takes none", hopper, nil, Job{Env: nccl.Env{"NCCL_IB_HCA": "bnxt_re"}}, "", "", "", Unknown, Unknown, NoChosenNIC},
	{"NCCL_IB_HCA takes a NIC for storage", hopper, func(m *Machine) { m.NICs[0].Role = pci.Other }, Job{Env: nccl.Env{"NCCL_IB_HCA": "mlx5_0:1"}}, "mlx5_0", "PIX", DMABUF, Direct, Direct, IsDirect},
	{"reading is switched off", hopper, nil, Job{Env: nccl.Env{"NCCL_NET_GDR_READ": "0"}}, "mlx5_0", "PIX", DMABUF, Staging, Direct, ReadOff},

	{"proprietary driver", hopper, func(m *Machine) { m.Driver.Open = new(false) }, Job{}, "mlx5_0", "PIX", None, Staging, Staging, DriverProprietary},
	{"proprietary driver, MLNX_OFED without the module", hopper, func(m *Machine) { m.Driver.Open, m.Peermem.Supported = new(false), new(true) }, Job{}, "mlx5_0", "PIX", None, Staging, Staging, PeermemNotLoaded},
	{"proprietary driver and peermem", hopper, func(m *Machine) { m.Driver.Open, m.Peermem.Module = new(false), "nvidia_peermem" }, Job{}, "mlx5_0", "PIX", PeerMem, Direct, Direct, IsDirect},
	{"both mechanisms", hopper, func(m *Machine) { m.Peermem.Module = "nvidia_peermem" }, Job{}, "mlx5_0", "PIX", DMABUF, Direct, Direct, IsDirect},
	{"both, DMA-BUF switched off", hopper, func(m *Machine) { m.Peermem.Module = "nvidia_peermem" }, Job{Env: nccl.Env{"NCCL_DMABUF_ENABLE": "0"}}, "mlx5_0", "PIX", PeerMem, Direct, Direct, IsDirect},
	{"DMA-BUF switched off", hopper, nil, Job{Env: nccl.Env{"NCCL_DMABUF_ENABLE": "0"}}, "mlx5_0", "PIX", None, Staging, Staging, DMABUFDisabled},
	{"peermem, and NCCL 2.22 with a new MLNX_OFED", hopper, func(m *Machine) { m.Driver.Open, m.Peermem.Module = new(false), "nvidia_peermem" }, Job{NCCL: "2.22.3"}, "mlx5_0", "PIX", None, Staging, Staging, PeermemInvisible},
	{"peermem, and NCCL 2.23.4", hopper, func(m *Machine) { m.Driver.Open, m.Peermem.Module = new(false), "nvidia_peermem" }, Job{NCCL: "2.23.4"}, "mlx5_0", "PIX", PeerMem, Direct, Direct, IsDirect},
	{"peermem, and NCCL 2.22 with an old MLNX_OFED", hopper, func(m *Machine) {
		m.Driver.Open, m.Peermem = new(false), Peermem{"nvidia_peermem", []string{"nv_mem"}, new(true)}
	}, Job{NCCL: "2.22.3"}, "mlx5_0", "PIX", PeerMem, Direct, Direct, IsDirect},
	{"the older module without a list of clients", hopper, func(m *Machine) { m.Driver.Open, m.Peermem.Module = new(false), "nv_peer_mem" }, Job{}, "mlx5_0", "PIX", None, Staging, Staging, PeermemInvisible},
	{"an old GPU driver", hopper, func(m *Machine) { m.Driver.Version = "470.256.02" }, Job{}, "mlx5_0", "PIX", None, Staging, Staging, DriverOld},
	{"a kernel without DMA-BUF", hopper, func(m *Machine) { m.DMABUF = new(false) }, Job{}, "mlx5_0", "PIX", None, Staging, Staging, KernelOld},
	{"a kernel that does not tell", hopper, func(m *Machine) { m.DMABUF, m.Kernel = nil, "5.15.0-139-generic" }, Job{}, "mlx5_0", "PIX", "", Unknown, Unknown, KernelUnknown},
	{"a kernel that does not tell, and peermem", hopper, func(m *Machine) { m.DMABUF, m.Kernel, m.Peermem.Module = nil, "", "nvidia_peermem" }, Job{}, "mlx5_0", "PIX", "", Direct, Direct, IsDirect},
	{"a new kernel that does not tell", hopper, func(m *Machine) { m.DMABUF = nil }, Job{}, "mlx5_0", "PIX", DMABUF, Direct, Direct, IsDirect},
	{"a driver that does not tell", hopper, func(m *Machine) { m.Driver = Driver{} }, Job{}, "mlx5_0", "PIX", "", Unknown, Unknown, FlavourUnknown},
	{"hfi1", hopper, func(m *Machine) { m.NICs[0].Driver = "hfi1" }, Job{}, "mlx5_0", "PIX", None, Staging, Staging, NICDriverLacks},
	{"bnxt_en on 6.1", hopper, func(m *Machine) { m.NICs[0].Driver, m.Kernel = "bnxt_en", "6.1.0-37-amd64" }, Job{}, "mlx5_0", "PIX", None, Staging, Staging, NICDriverLacks},
	{"bnxt_en on 6.8", hopper, func(m *Machine) { m.NICs[0].Driver, m.Kernel = "bnxt_en", "6.8.0-31-generic" }, Job{}, "mlx5_0", "PIX", "", Unknown, Unknown, NICDriverUnknown},
	{"bnxt_en on 6.12", hopper, func(m *Machine) { m.NICs[0].Driver = "bnxt_en" }, Job{}, "mlx5_0", "PIX", DMABUF, Direct, Direct, IsDirect},

	{"P4", hopper, func(m *Machine) { m.Driver.Open, m.GPUs[0].Compute = new(false), 61 }, Job{}, "mlx5_0", "PIX", None, Staging, Staging, GPUWithoutDMABUF},
	{"P4 by its device ID, all else unknown", hopper, func(m *Machine) {
		m.GPUs[0].Compute, m.GPUs[0].Device, m.DMABUF, m.Driver = 0, 0x1bb3, nil, Driver{}
	}, Job{}, "mlx5_0", "PIX", None, Staging, Staging, GPUWithoutDMABUF},
	{"P4, MLNX_OFED without the module", hopper, func(m *Machine) { m.GPUs[0].Compute, m.Peermem.Supported = 61, new(true) }, Job{}, "mlx5_0", "PIX", None, Staging, Staging, PeermemNotLoaded},
	{"P4 with peermem", hopper, func(m *Machine) {
		m.GPUs = m.GPUs[:1]
		m.GPUs[0].Compute, m.Driver.Open, m.Peermem.Module = 61, new(false), "nvidia_peermem"
	}, Job{}, "mlx5_0", "PIX", PeerMem, Direct, Direct, IsDirect},
	{"an H100 beside a P4", hopper, func(m *Machine) { m.GPUs[1].Compute = 61 }, Job{}, "mlx5_0", "PIX", DMABUF, Direct, Direct, IsDirect},
	{"T4 with the proprietary modules", hopper, func(m *Machine) { m.Driver.Open, m.GPUs[0].Compute = new(false), 75 }, Job{}, "mlx5_0", "PIX", None, Staging, Staging, DriverProprietary},
	{"T4 with BAR1 of 256 MiB", hopper, func(m *Machine) {
		m.GPUs = m.GPUs[:1]
		m.GPUs[0].Compute, m.GPUs[0].SmallBAR = 75, new(true)
	}, Job{}, "mlx5_0", "PIX", DMABUF, Direct, Direct, directFixedBAR},
	{"RTX 6000 Ada with a small BAR1", hopper, func(m *Machine) { m.GPUs[0].Compute, m.GPUs[0].SmallBAR = 89, new(true) }, Job{}, "mlx5_0", "PIX", DMABUF, Direct, Direct, directSmallBAR},
	{"GeForce", hopper, func(m *Machine) { m.GPUs[0].Model = "NVIDIA GeForce RTX 4090" }, Job{}, "mlx5_0", "PIX", DMABUF, Staging, Staging, GPUUnsupported},
	{"DGX Spark", hopper, func(m *Machine) { m.GPUs[0].Model, m.GPUs[0].Device = "", 0x2e12 }, Job{}, "mlx5_0", "PIX", DMABUF, Staging, Staging, GPUUnified},
	{"DGX Spark by its name", hopper, func(m *Machine) { m.GPUs[0].Model = "NVIDIA GB10" }, Job{}, "mlx5_0", "PIX", DMABUF, Staging, Staging, GPUUnified},
	{"a display controller without a name", hopper, func(m *Machine) { m.GPUs[0].Model, m.GPUs[0].Display = "", true }, Job{}, "mlx5_0", "PIX", DMABUF, Unknown, Unknown, ModelUnknown},
	{"a 3D controller without a name", hopper, func(m *Machine) { m.GPUs[0].Model = "" }, Job{}, "mlx5_0", "PIX", DMABUF, Direct, Direct, IsDirect},
	{"Habana", hopper, func(m *Machine) { m.GPUs[0].Vendor = 0x1da3 }, Job{}, "mlx5_0", "PIX", DMABUF, Unknown, Unknown, NotNVIDIA},
	{"V100 without NVLink", hopper, func(m *Machine) {
		m.GPUs[0].Compute, m.GPUs[0].Linked, m.Peermem.Module = 70, new(false), "nvidia_peermem"
	}, Job{}, "mlx5_0", "PIX", PeerMem, Staging, Direct, PreAmpere},
	{"V100 with NVLink", hopper, func(m *Machine) { m.GPUs[0].Compute, m.Peermem.Module = 70, "nvidia_peermem" }, Job{}, "mlx5_0", "PIX", PeerMem, Direct, Direct, IsDirect},
	{"V100 without NVLink data, known by its device ID", hopper, func(m *Machine) {
		m.GPUs[0].Compute, m.GPUs[0].Device, m.GPUs[0].Linked, m.Peermem.Module = 0, 0x1db6, nil, "nvidia_peermem"
	}, Job{}, "mlx5_0", "PIX", PeerMem, Unknown, Direct, LinksUnknown},
	{"V100, NCCL_NET_GDR_READ=1", hopper, func(m *Machine) {
		m.GPUs[0].Compute, m.GPUs[0].Linked, m.Peermem.Module = 70, new(false), "nvidia_peermem"
	}, Job{Env: nccl.Env{"NCCL_NET_GDR_READ": "1"}}, "mlx5_0", "PIX", PeerMem, Direct, Direct, IsDirect},
	{"a single T4", hopper, func(m *Machine) { m.GPUs = m.GPUs[:1]; m.GPUs[0].Compute, m.GPUs[0].Linked = 75, new(false) }, Job{}, "mlx5_0", "PIX", DMABUF, Direct, Direct, IsDirect},

	{"AMD, peer memory client", instinct, nil, Job{}, "mlx5_0", "PIX", "", Direct, Direct, IsDirect},
	{"AMD, peer memory client, DMA-BUF enabled", instinct, nil, Job{Env: nccl.Env{"NCCL_DMABUF_ENABLE": "1"}}, "mlx5_0", "PIX", DMABUF, Direct, Direct, IsDirect},
	{"AMD, peer memory client, DMA-BUF disabled", instinct, nil, Job{Env: nccl.Env{"NCCL_DMABUF_ENABLE": "0"}}, "mlx5_0", "PIX", PeerMem, Direct, Direct, IsDirect},
	{"AMD, peer memory client, kernel without P2PDMA", instinct, func(m *Machine) { m.ROCm.P2P = new(false) }, Job{}, "mlx5_0", "PIX", PeerMem, Direct, Direct, IsDirect},
	{"AMD, peer memory client, kernel options not readable", instinct, func(m *Machine) { m.ROCm.P2P = nil }, Job{Env: nccl.Env{"NCCL_DMABUF_ENABLE": "1"}}, "mlx5_0", "PIX", "", Direct, Direct, IsDirect},
	{"AMD, DMA-BUF only", instinct, func(m *Machine) { m.ROCm.Peer = new(false) }, Job{}, "mlx5_0", "PIX", DMABUF, Direct, Direct, IsDirect},
	{"AMD, DMA-BUF only, disabled", instinct, func(m *Machine) { m.ROCm.Peer = new(false) }, Job{Env: nccl.Env{"NCCL_DMABUF_ENABLE": "0"}}, "mlx5_0", "PIX", None, Staging, Staging, DMABUFDisabled},
	{"AMD, no mechanism", instinct, func(m *Machine) { m.ROCm = ROCm{new(false), new(false)} }, Job{}, "mlx5_0", "PIX", None, Staging, Staging, KernelWithoutP2P},
	{"AMD, no mechanism, another NIC below another host bridge", instinct, func(m *Machine) { m.ROCm, m.NICs[1].Place.NUMA = ROCm{new(false), new(false)}, 0 }, Job{}, "mlx5_0", "PIX", None, Staging, Staging, KernelWithoutP2P},
	{"AMD, old ib_core", instinct, func(m *Machine) { m.ROCm.Peer, m.DMABUF = new(false), new(false) }, Job{}, "mlx5_0", "PIX", None, Staging, Staging, KernelWithoutP2P},
	{"AMD, ib_core unknown", instinct, func(m *Machine) { m.ROCm.Peer, m.DMABUF, m.Kernel = new(false), nil, "5.15.0-139-generic" }, Job{}, "mlx5_0", "PIX", "", Unknown, Unknown, KernelUnknown},
	{"AMD, kernel options not readable", instinct, func(m *Machine) { m.ROCm = ROCm{Peer: new(false)} }, Job{}, "mlx5_0", "PIX", "", Unknown, Unknown, KernelConfigUnknown},
	{"AMD, symbols not readable", instinct, func(m *Machine) { m.ROCm = ROCm{P2P: new(false)} }, Job{}, "mlx5_0", "PIX", "", Unknown, Unknown, ROCmPeerUnknown},
	{"AMD, ionic of 6.12 without the client", instinct, func(m *Machine) { m.ROCm.Peer, m.NICs[0].Driver = new(false), "ionic" }, Job{}, "mlx5_0", "PIX", None, Staging, Staging, NICDriverLacks},
	{"AMD, ionic of 7.3 without the client", instinct, func(m *Machine) { m.ROCm.Peer, m.NICs[0].Driver, m.Kernel = new(false), "ionic", "7.3.0" }, Job{}, "mlx5_0", "PIX", DMABUF, Direct, Direct, IsDirect},
	{"AMD, small BAR", instinct, func(m *Machine) { m.GPUs[0].SmallBAR = new(true) }, Job{}, "mlx5_0", "PIX", "", Staging, Staging, SmallBAR},
	{"AMD, other socket", instinct, func(m *Machine) { m.NICs = m.NICs[1:] }, Job{}, "mlx5_1", "SYS", "", Staging, Staging, FarNode},
	{"AMD, other host bridge", instinct, func(m *Machine) { m.NICs = m.NICs[1:]; m.NICs[0].Place.NUMA = 0 }, Job{}, "mlx5_1", "PHB", "", Unknown, Unknown, RCCLHostBridge},
	{"AMD, other host bridge, level set", instinct, func(m *Machine) { m.NICs = m.NICs[1:]; m.NICs[0].Place.NUMA = 0 }, Job{Env: nccl.Env{"NCCL_NET_GDR_LEVEL": "PHB"}}, "mlx5_1", "PHB", "", Direct, Direct, IsDirect},
	{"AMD, sending disabled", instinct, nil, Job{Env: nccl.Env{"NCCL_NET_GDR_READ": "0"}}, "mlx5_0", "PIX", "", Staging, Direct, ReadOff},
	{"AMD, net plugin", instinct, nil, Job{Plugin: true}, "mlx5_0", "PIX", "", Unknown, Unknown, NetPlugin},
	{"AMD, EFA", instinct, func(m *Machine) { m.NICs[0].Driver, m.NICs[1].Driver = "efa", "efa" }, Job{}, "mlx5_0", "PIX", "", Unknown, Unknown, EFA},
	{"AMD, virtual machine", instinct, func(m *Machine) { m.Virtual = true }, Job{}, "mlx5_0", "", "", Unknown, Unknown, VirtualTopology},

	{"a net plugin", hopper, nil, Job{Plugin: true}, "mlx5_0", "PIX", DMABUF, Unknown, Unknown, NetPlugin},
	{"EFA", hopper, func(m *Machine) { m.NICs[0].Driver, m.NICs[1].Driver = "efa", "efa" }, Job{}, "mlx5_0", "PIX", "", Unknown, Unknown, EFA},
	{"a virtual machine", hopper, func(m *Machine) { m.Virtual = true }, Job{}, "mlx5_0", "", DMABUF, Unknown, Unknown, VirtualTopology},
	{"a virtual machine with a topology file", hopper, func(m *Machine) { m.Virtual, m.Topology = true, virtualTopology() }, Job{}, "mlx5_0", "PIX", DMABUF, Direct, Direct, IsDirect},
	{"one that leaves the NIC out", hopper, func(m *Machine) {
		m.Virtual, m.Topology = true, virtualTopology()
		delete(m.Topology.Places, "0000:14:00.0")
	}, Job{}, "mlx5_0", "", DMABUF, Unknown, Unknown, VirtualTopology},

	{"Grace", grace, nil, Job{}, "mlx5_0", "P2C", DMABUF, Direct, Direct, directCoupled},
	{"Grace, NCCL 2.25", grace, nil, Job{NCCL: "2.25.1"}, "mlx5_0", "P2C", DMABUF, Staging, Staging, CoupledOff},
	{"Grace, NCCL 2.25 with NCCL_NET_GDR_C2C=1", grace, nil, Job{NCCL: "2.25.1", Env: nccl.Env{"NCCL_NET_GDR_C2C": "1"}}, "mlx5_0", "P2C", DMABUF, Staging, Staging, CoupledOff},
	{"Grace, NCCL 2.26", grace, nil, Job{NCCL: "2.26.2"}, "mlx5_0", "P2C", DMABUF, Staging, Staging, CoupledOff},
	{"Grace, NCCL 2.26 with NCCL_NET_GDR_C2C=1", grace, nil, Job{NCCL: "2.26.2", Env: nccl.Env{"NCCL_NET_GDR_C2C": "1"}}, "mlx5_0", "P2C", DMABUF, Direct, Direct, directCoupled},
	{"Grace, NCCL 2.27", grace, nil, Job{NCCL: "2.27.3"}, "mlx5_0", "P2C", DMABUF, Direct, Direct, directCoupled},
	{"Grace, switched off", grace, nil, Job{Env: nccl.Env{"NCCL_NET_GDR_C2C": "0"}}, "mlx5_0", "P2C", DMABUF, Staging, Staging, CoupledOff},
	{"Grace, a level below", grace, nil, Job{Env: nccl.Env{"NCCL_NET_GDR_LEVEL": "PXB"}}, "mlx5_0", "P2C", DMABUF, Staging, Staging, LevelSet},
	{"Grace, the other one's NIC", grace, func(m *Machine) { m.NICs = m.NICs[1:] }, Job{}, "mlx5_1", "SYS", DMABUF, Staging, Staging, CoupledFar},
	{"Grace, GPU and NIC behind one switch", hopper, func(m *Machine) { m.GPUs[0].Coupled = true }, Job{}, "mlx5_0", "PIX", DMABUF, Direct, Direct, directForcedPCI},
}

// virtualTopology returns what a cloud gives its virtual machines with two of the planes of hopper.
func virtualTopology() *nccl.Topology {
	text, err := os.ReadFile("../nccl/testdata/virtual_topology.xml")
	if err != nil {
		panic(err)
	}
	t, err := nccl.ParseTopology(bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	return t
}

func TestDecide(t *testing.T) {
	seen := map[Reason]bool{}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := c.base()
			if c.change != nil {
				c.change(m)
			}
			r := m.Decide(c.job)
			if len(r.Pairs) != len(m.GPUs)*len(m.NICs) || len(r.Best) != len(m.GPUs) {
				t.Fatalf("%d pairs, %d best", len(r.Pairs), len(r.Best))
			}
			b := r.Best[0]
			nic := ""
			if b.NIC >= 0 {
				nic = m.NICs[b.NIC].Device
			}
			got := []any{nic, b.Distance, b.Mechanism, b.Send.State, b.Receive.State}
			if want := []any{c.nic, c.distance, c.mechanism, c.send, c.receive}; !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
			if got := b.Verdict().Reason; got != c.reason {
				t.Errorf("%s, want %s", got, c.reason)
			}
		})
		seen[c.reason] = true
	}
	seen[notChosen] = true // of obstacles only
	for r := range advices {
		if !seen[r] {
			t.Errorf("%s: in no case", r)
		}
	}
}

// TestEqualNICsAreShared: two GPUs of one Grace processor take a NIC of it each.
func TestEqualNICsAreShared(t *testing.T) {
	m := grace()
	for i := range 2 {
		m.GPUs[i].Place.NUMA, m.NICs[i].Place.NUMA = 0, 0
	}
	if best := m.Decide(Job{}).Best; best[0].NIC != 0 || best[1].NIC != 1 {
		t.Errorf("%+v", best)
	}
}

// inWords is every reason in words.
var inWords = map[Reason]string{
	IsDirect:        "the NIC reads and writes GPU memory directly",
	directCoupled:   "the NIC accesses GPU memory through the CPU coupled to the GPU (NVLink-C2C)",
	directForcedPCI: "the NIC accesses GPU memory over PCIe, although the GPU is coupled to its CPU (NVLink-C2C)",
	directSmallBAR:  "the NIC accesses GPU memory directly, but BAR1 is smaller than the memory and limits what can be registered: enable Above 4G Decoding and Resizable BAR in the firmware setup; a board with display outputs may need NVIDIA's displaymodeselector",
	directFixedBAR:  "the NIC accesses GPU memory directly, but BAR1 is smaller than the memory and limits what can be registered: a larger BAR1 is not possible with this GPU: register less memory",

	PeermemNotLoaded:  "nvidia_peermem is not loaded and DMA-BUF is unavailable: load nvidia_peermem (modprobe nvidia_peermem) and add it to /etc/modules-load.d; if it does not load, reinstall the GPU driver after MLNX_OFED",
	PeermemInvisible:  "NCCL searches nvidia_peermem in /sys/kernel/mm/memory_peers, which MLNX_OFED 24.04 and newer lack, and DMA-BUF is unavailable: use NCCL 2.23.4 or newer with nvidia_peermem",
	GPUWithoutDMABUF:  "GPUs before Turing have no open kernel modules and export no DMA-BUF, and no peer memory module is loaded: install MLNX_OFED and load nvidia_peermem; DMA-BUF is not possible with this GPU",
	DriverProprietary: "the proprietary GPU kernel modules export no DMA-BUF and no peer memory module is loaded: install MLNX_OFED and load nvidia_peermem, or install the open GPU kernel modules",
	DriverOld:         "the GPU driver is older than 515 and exports no DMA-BUF, and no peer memory module is loaded: install MLNX_OFED and load nvidia_peermem, or install a newer GPU driver with open kernel modules",
	KernelOld:         "ib_core of this kernel cannot register DMA-BUFs and no peer memory module is loaded: install MLNX_OFED and load nvidia_peermem, or run Linux 5.12 or newer",
	NICDriverLacks:    "the NIC driver cannot register DMA-BUFs and no peer memory module is loaded: use a NIC driver of the vendor that has reg_user_mr_dmabuf, or a newer kernel",
	DMABUFDisabled:    "NCCL_DMABUF_ENABLE=0 disables DMA-BUF and no peer memory module is loaded: remove NCCL_DMABUF_ENABLE from the job's environment and from nccl.conf",

	GPUUnsupported: "GeForce and TITAN GPUs do not support GPUDirect RDMA: not possible with this GPU: use a data center or professional GPU",
	GPUUnified:     "GPU and CPU share one memory, which NICs do not access through the GPU (GB10): GPUDirect RDMA is not possible with this GPU; own RDMA programs register memory of cudaHostAlloc",
	FarHostBridge:  "the nearest eligible NIC is below a different host bridge or root port: put GPU and NIC below one PCIe switch; NCCL_NET_GDR_LEVEL=PHB makes NCCL try it anyway",
	FarNode:        "the nearest eligible NIC is on another NUMA node: move the NIC to a slot on the socket of the GPU, best below the same PCIe switch",
	CoupledOff:     "NCCL 2.27 and newer uses the path through the coupled CPU (NVLink-C2C), unless NCCL_NET_GDR_C2C=0: use NCCL 2.27 or newer; on 2.26 set NCCL_NET_GDR_C2C=1",
	CoupledFar:     "the nearest eligible NIC is on another CPU than the one coupled to the GPU: use a NIC on the CPU of the GPU: check NCCL_IB_HCA and ports that are down",
	LevelSet:       "the distance exceeds NCCL_NET_GDR_LEVEL: remove NCCL_NET_GDR_LEVEL from the environment of the job and from nccl.conf, or raise it",
	TopologyFile:   "the topology file of NCCL puts the NIC further away than the PCI tree: unset NCCL_TOPO_FILE in the environment of the job and in nccl.conf; without it, move /var/run/nvidia-topologyd/virtualTopology.xml away",
	notChosen:      "NCCL_IB_HCA leaves out the nearest NIC: remove NCCL_IB_HCA from the environment of the job and from nccl.conf, or add the nearest NIC",
	ReadOff:        "NCCL_NET_GDR_READ=0 disables GPUDirect RDMA for sending: remove NCCL_NET_GDR_READ from the environment of the job and from nccl.conf",
	NearestDown:    "the nearest NIC has no ACTIVE port, and the next one is too far away: bring up the port of the nearest NIC: see RDMAPortDown, RDMANoSubnetManager",
	PreAmpere:      "NCCL sends through host memory from GPUs before Ampere without NVLink; receiving is direct: no fault; NCCL_NET_GDR_READ=1 makes NCCL try it",

	NoNIC:            "no RDMA device on this host",
	NoActiveNIC:      "no eligible NIC has an ACTIVE port: fix the links of the NICs first",
	NoChosenNIC:      "NCCL_IB_HCA selects no NIC with an ACTIVE port: correct NCCL_IB_HCA; device names are in /sys/class/infiniband",
	NotNVIDIA:        "neither an NVIDIA nor an AMD GPU, NCCL and RCCL do not use it",
	NetPlugin:        "a NCCL net plugin is loaded, which makes the decision: run the job with NCCL_DEBUG=INFO and read the output of the plugin",
	EFA:              "EFA uses a NCCL net plugin (OFI), which makes the decision: run the job with NCCL_DEBUG=INFO and read the output of the plugin",
	VirtualTopology:  "distances unknown: virtual machine without a topology file: set NCCL_TOPO_FILE, or provide /var/run/nvidia-topologyd/virtualTopology.xml",
	ModelUnknown:     "GPU model cannot be read: load the GPU driver, and allow the exporter to read /proc/driver/nvidia",
	FlavourUnknown:   "cannot read whether the kernel modules of the GPU driver are the open ones: allow the exporter to read /proc/driver/nvidia/version",
	KernelUnknown:    "cannot read whether the kernel can register DMA-BUFs: allow the exporter to read /proc/kallsyms",
	NICDriverUnknown: "unknown whether the NIC driver of this kernel can register DMA-BUFs: check for reg_user_mr_dmabuf in the source of the driver",
	LinksUnknown:     "GPU before Ampere, cannot read whether NVLink connects it to another GPU: allow the exporter to use NVML",

	KernelWithoutP2P:    "the kernel lacks CONFIG_PCI_P2PDMA, CONFIG_DMABUF_MOVE_NOTIFY or DMA-BUF registration in ib_core, and the peer memory client of ROCm is not registered: install the amdgpu driver of ROCm and a NIC driver with peer memory support, or run a kernel with CONFIG_PCI_P2PDMA and CONFIG_DMABUF_MOVE_NOTIFY",
	SmallBAR:            "only a part of GPU memory is in the BAR of the GPU, the rest is out of reach of NICs: enable Above 4G Decoding and Resizable BAR in the firmware setup",
	KernelConfigUnknown: "cannot read whether the kernel has CONFIG_PCI_P2PDMA and CONFIG_DMABUF_MOVE_NOTIFY, which RCCL requires for DMA-BUF: allow the exporter to read /boot/config-RELEASE or /proc/config.gz",
	ROCmPeerUnknown:     "cannot read whether the peer memory client of ROCm is registered: allow the exporter to read /proc/kallsyms",
	RCCLHostBridge:      "the nearest eligible NIC is below a different host bridge, through which RCCL uses GPUDirect RDMA on some AMD processors only: run the job with NCCL_DEBUG=INFO: channels with GPUDirect RDMA have GDRDMA in their lines",
}

func TestReasonsInWords(t *testing.T) {
	for r, want := range inWords {
		t.Run(string(r), func(t *testing.T) {
			got := r.Words()
			if remedy := r.Remedy(); remedy != "" {
				got += ": " + remedy
			}
			if got != want {
				t.Errorf("%s:\n%s\nwant\n%s", r, got, want)
			}
		})
	}
	if a, b := slices.Sorted(maps.Keys(inWords)), slices.Sorted(maps.Keys(advices)); !slices.Equal(a, b) {
		t.Errorf("reasons in words %q, reasons %q", a, b)
	}
}
