package kernellog

import "rdma_exporter/internal/lazy"

var gpuPatterns = []Pattern{
	// GPUs.
	{
		Kind: GPUXid, Meaning: "the GPU driver reports an error by its number (NVIDIA, XID errors)",
		Source: "NVIDIA open-gpu-kernel-modules, src/nvidia/src/kernel/diagnostics/nv_error_log.c, nvErrorLog",
		needle: "NVRM: Xid",
		form:   lazy.Regexp(`^NVRM: Xid \(PCI:(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)(?: GPU-I:\d+)?\): (?P<xid>\d+)`),
	},
	{
		Kind: GPULost, Meaning: "the GPU does not answer on its bus", Follows: "Xid 79",
		Source: "NVIDIA open-gpu-kernel-modules, src/nvidia/arch/nvalloc/unix/src/osinit.c and osapi.c",
		needle: "fallen off the bus", form: lazy.Regexp(`^NVRM: (?:The NVIDIA )?GPU (?:at )?(?:PCI:)?(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)[^\n]{0,80}has fallen off the bus`),
	},
	{
		Kind: GPULost, Meaning: "a GPU does not answer on its bus; the lines before name it",
		Source: "NVIDIA open-gpu-kernel-modules, kernel-open/nvidia/nv.c",
		needle: "fallen off the bus", form: lazy.Regexp(`^NVRM: fallen off the bus and is not responding to commands`),
	},
	{
		Kind:    NVSwitchSXid,
		Meaning: "the NVSwitch driver reports an error by its number (NVIDIA, fabric manager: SXid errors)",
		Source:  "NVIDIA open-gpu-kernel-modules, src/common/nvswitch/kernel/error.c",
		needle:  "SXid", form: lazy.Regexp(`^nvidia-nvswitch\d+: SXid \(PCI:(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\): (?P<sxid>\d+), (?P<fatal>Non-fatal|Fatal)`),
	},
	{
		Kind:    PeerMemory,
		Meaning: "the peer memory module of the GPU driver reports an error: GPUDirect RDMA is not available",
		Source:  "NVIDIA open-gpu-kernel-modules, kernel-open/nvidia-peermem/nvidia-peermem.c",
		needle:  "nvidia-peermem", form: lazy.Regexp(`^nvidia-peermem (?P<function>\w+):\d+ ERROR `),
	},
}
