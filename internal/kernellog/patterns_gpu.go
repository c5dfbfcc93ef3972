package kernellog

const (
	nvidiaOpen = "NVIDIA open-gpu-kernel-modules, "
	gpuAddress = `[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?`
)

var gpuPatterns = []Pattern{
	{
		Kind: GPUFailed, Meaning: "the driver cannot initialise the GPU", Follows: "a GPU that no application can open",
		Source:  "drivers/gpu/drm/amd/amdgpu/amdgpu_kms.c, amdgpu_driver_load_kms; amdgpu_device.c, amdgpu_device_init; 5.4 to 7.2",
		drivers: amd, form: `^(?:amdgpu: )?Fatal error during GPU init`,
	},
	{
		Kind: GPUError, Meaning: "the hardware of the GPU reports an error that was not corrected (RAS)",
		Follows: "a reset of the GPU",
		Source:  "drivers/gpu/drm/amd/amdgpu/amdgpu_ras.c, amdgpu_ras_global_ras_isr; 5.4 to 7.2",
		drivers: amd, form: `^(?:amdgpu: )?uncorrectable hardware error ?\((?P<event>\w{1,40})\)`,
	},
	{
		Kind: GPUHung, Meaning: "a ring of the GPU makes no progress", Follows: "a reset of the GPU",
		Source:  "drivers/gpu/drm/amd/amdgpu/amdgpu_job.c, amdgpu_job_timedout; 5.4 to 7.2",
		drivers: amd, form: `^(?:amdgpu: |\[drm:amdgpu_job_timedout(?: \[amdgpu\])?\] \*ERROR\* )?ring (?P<ring>[\w.]{1,24}) timeout`,
	},
	{
		Kind: RecoveryStarted, Meaning: "the driver resets the GPU",
		Source:  "drivers/gpu/drm/amd/amdgpu/amdgpu_device.c, amdgpu_device_gpu_recover; 5.4 to 7.2",
		drivers: amd, form: `^(?:amdgpu: )?GPU reset begin`,
	},
	{
		Kind: RecoveryEnded, Meaning: "the driver has reset the GPU",
		Source:  "drivers/gpu/drm/amd/amdgpu/amdgpu_device.c, amdgpu_device_gpu_recover; 5.4 to 7.2",
		drivers: amd, form: `^(?:amdgpu: )?GPU reset(?:\(\d+\))? succeeded`,
	},
	{
		Kind: RecoveryFailed, Meaning: "the driver cannot reset the GPU", Follows: "a GPU that no application can use",
		Source:  "drivers/gpu/drm/amd/amdgpu/amdgpu_device.c, amdgpu_device_gpu_recover; 5.4 to 7.2",
		drivers: amd, form: `^(?:amdgpu: )?GPU reset(?:\(\d+\))? (?:failed|end with ret = -\d+)|^(?:amdgpu: )?GPU Recovery Failed`,
	},
	{
		Kind: FirmwareStopped, Meaning: "the firmware of the GPU (GSP) does not answer", Follows: "Xid 119 or 120",
		Source:  nvidiaOpen + "src/nvidia/src/kernel/gpu/gsp/kernel_gsp.c, _kgspRpcRecvPoll and _kgspIsHeartbeatTimedOut",
		drivers: alone, form: `^NVRM: (?:GPU\d+ )?_kgsp(?:RpcRecvPoll|IsHeartbeatTimedOut): .{0,24}[Hh]eartbeat timed out`,
	},
	// GPUs.
	{
		Kind: GPUXid, Meaning: "the GPU driver reports an error by its number (NVIDIA, XID errors)",
		Source:  nvidiaOpen + "src/nvidia/src/kernel/diagnostics/nv_error_log.c, nvErrorLog",
		drivers: alone, form: `^NVRM: Xid \(PCI:(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)(?: GPU-I:\d+)?\): (?P<xid>\d+)`,
	},
	{
		Kind: GPULost, Meaning: "the GPU does not answer on its bus", Follows: "Xid 79",
		Source:  nvidiaOpen + "src/nvidia/arch/nvalloc/unix/src/osinit.c and osapi.c",
		drivers: alone, form: `^NVRM: (?:The NVIDIA )?GPU (?:at )?(?:PCI:)?(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)[^\n]{0,80}has fallen off the bus`,
	},
	{
		Kind: GPULost, Meaning: "a GPU does not answer on its bus; the lines before name it",
		Source:  nvidiaOpen + "kernel-open/nvidia/nv.c",
		drivers: alone, form: `^NVRM: fallen off the bus and is not responding to commands`,
	},
	{
		Kind: GPULost, Meaning: "the GPU does not answer on its bus",
		Source:  nvidiaOpen + "src/nvidia/arch/nvalloc/unix/src/osapi.c, rm_is_supported_device: the first of three lines",
		drivers: alone, form: `^NVRM: The NVIDIA GPU (?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)$`,
	},
	{
		Kind: GPUFailed, Meaning: "the driver cannot initialise the GPU", Follows: "a GPU that no application can open",
		Source:  nvidiaOpen + "src/nvidia/arch/nvalloc/unix/src/osinit.c, RmInitAdapter, and kernel-open/nvidia/nv.c, nv_start_device",
		drivers: alone, form: `^NVRM: (?:GPU (?P<pci>` + gpuAddress +
			`): )?(?:RmInitAdapter failed!(?: \((?P<code>[0-9a-fx:]{1,32})\))?|rm_init_adapter(?:\(\d+\))? failed)`,
	},
	{
		Kind:    GPUFailed,
		Meaning: "the driver cannot use the GPU: power cables, interrupts, registers",
		Follows: "a GPU that no application can open",
		Source:  nvidiaOpen + "kernel-open/nvidia/nv.c, nv_start_device, and nv-pci.c, nv_pci_probe; osinit.c, RmInitAdapter and RmSetupRegisters",
		drivers: alone, form: `^NVRM: GPU (?P<pci>` + gpuAddress +
			`): (?P<what>GPU does not have the necessary power cables|Failed to map regs registers|No interrupts of any type|Tried to get IRQ|request_irq\(\) failed|rm_init_private_state\(\) failed|nv_linux_init_open_q\(\) failed)`,
	},
	{
		Kind: GPUUnsupported, Meaning: "the driver does not support the GPU", Follows: "a GPU that is missing",
		Source:  nvidiaOpen + "src/nvidia/arch/nvalloc/unix/src/osapi.c, rm_is_supported_device",
		drivers: alone, form: `^NVRM: The NVIDIA v?GPU (?P<pci>` + gpuAddress + `) \(PCI ID: `,
	},
	{
		Kind: GPUFailed, Meaning: "the driver took no GPU", Follows: "GPUs that are missing",
		Source:  nvidiaOpen + "kernel-open/nvidia/nv.c, nvidia_init_module, and nv-pci.c, nv_pci_probe",
		drivers: alone, form: `^NVRM: (?:The NVIDIA probe routine failed for (?P<devices>\d+) device|None of the NVIDIA devices were initialized|Device start failed for (?P<pci>` + gpuAddress +
			`)|(?:pci_enable_device|request_mem_region) failed|Can't find an IRQ for your NVIDIA card|rm_init_rm\(\) failed|failed to initialize module|failed to map registers|FATAL: Failed to re-allocate BAR1|Fatal Error while attempting to resize PCIe BARs|Failed removal of device ` + gpuAddress +
			`)`,
	},
	{
		Kind: NoAddressSpace, Meaning: "the GPU has no address space for a BAR", Follows: "a driver that does not load",
		Source:  nvidiaOpen + "kernel-open/nvidia/nv-pci.c, nv_pci_validate_bars: two lines",
		drivers: alone, form: `^NVRM: (?P<bar>BAR\d) is \d+M @ 0x[0-9a-f]+ \(PCI:(?P<pci>` + gpuAddress + `)\)`,
	},
	{
		Kind:    NoAddressSpace,
		Meaning: "a GPU has no address space for a BAR; the next line names it", Follows: "a driver that does not load",
		Source:  nvidiaOpen + "kernel-open/nvidia/nv-pci.c, nv_pci_validate_bars",
		drivers: alone, form: `^NVRM: This PCI I/O region assigned to your NVIDIA device is invalid`,
	},
	{
		Kind: GPUFailed, Meaning: "the driver cannot initialise an NVSwitch", Follows: "GPUs without NVLink",
		Source:  nvidiaOpen + "kernel-open/nvidia/linux_nvswitch.c, nvswitch_probe and nvswitch_isr_msi",
		drivers: alone, form: `^nvidia-nvswitch\d*: ?(?P<what>Failed (?:to (?:initialize|enable PCI|map BAR0|register device|request memory|register driver)|during device post init)|failed to get IRQ|Interrupts disabled to avoid a storm|unrecoverable error in ISR|unable to create PCI DMA mapping|No supported interrupt)`,
	},
	{
		Kind:    NVSwitchSXid,
		Meaning: "the NVSwitch driver reports an error by its number (NVIDIA, fabric manager: SXid errors)",
		Source:  nvidiaOpen + "src/common/nvswitch/kernel/error.c",
		drivers: alone, form: `^nvidia-nvswitch\d+: SXid \(PCI:(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\): (?P<sxid>\d+), (?P<fatal>Non-fatal|Fatal)`,
	},
	{
		Kind:    PeerMemory,
		Meaning: "the peer memory module of the GPU driver reports an error: GPUDirect RDMA is not available",
		Source:  nvidiaOpen + "kernel-open/nvidia-peermem/nvidia-peermem.c",
		drivers: alone, form: `^nvidia-peermem (?P<function>\w+):\d+ ERROR `,
	},
}
