package main

import (
	"regexp"
	"slices"
)

// subsystems are the parts of the kernel whose messages concern devices, ports, firmware, commands, resets, queues or
// PCIe links.
var subsystems = []subsystem{
	{driver: "mlx5_core", dirs: []string{"drivers/net/ethernet/mellanox/mlx5", "drivers/infiniband/hw/mlx5"}},
	{driver: "mlx4_core", dirs: []string{"drivers/net/ethernet/mellanox/mlx4", "drivers/infiniband/hw/mlx4"}},
	{driver: "bnxt_en", dirs: []string{"drivers/net/ethernet/broadcom/bnxt", "drivers/infiniband/hw/bnxt_re"}},
	{driver: "ice", dirs: []string{"drivers/net/ethernet/intel/ice", "drivers/infiniband/hw/irdma"}},
	{driver: "i40e", dirs: []string{"drivers/net/ethernet/intel/i40e"}},
	{driver: "idpf", dirs: []string{"drivers/net/ethernet/intel/idpf"}},
	{driver: "ionic", dirs: []string{"drivers/net/ethernet/pensando", "drivers/infiniband/hw/ionic"}},
	{driver: "efa", dirs: []string{"drivers/infiniband/hw/efa"}},
	{driver: "ena", dirs: []string{"drivers/net/ethernet/amazon"}},
	{driver: "hns3", dirs: []string{"drivers/net/ethernet/hisilicon/hns3", "drivers/infiniband/hw/hns"}},
	{driver: "mana", dirs: []string{"drivers/net/ethernet/microsoft", "drivers/infiniband/hw/mana"}},
	{driver: "erdma", dirs: []string{"drivers/infiniband/hw/erdma"}},
	{driver: "ib_core", dirs: []string{"drivers/infiniband/core", "drivers/infiniband/ulp/ipoib", "drivers/base/dd.c", "kernel/module.c", "kernel/module"}},
	{driver: "pcieport", dirs: []string{
		"drivers/pci/pcie", "drivers/pci/hotplug/pciehp.h", "drivers/pci/hotplug/pciehp_core.c",
		"drivers/pci/hotplug/pciehp_ctrl.c", "drivers/pci/hotplug/pciehp_hpc.c", "drivers/pci/hotplug/pciehp_pci.c",
		"drivers/pci/pci.c", "drivers/pci/probe.c",
		"drivers/pci/setup-res.c", "drivers/pci/setup-bus.c", "drivers/pci/iov.c", "drivers/pci/pci-driver.c",
		"drivers/pci/access.c", "drivers/pci/vpd.c", "drivers/pci/ats.c",
	}},
	{driver: "iommu", dirs: []string{"drivers/iommu/intel", "drivers/iommu/amd", "drivers/iommu/arm/arm-smmu-v3", "drivers/iommu/iommu.c"}},
	{driver: "ghes", dirs: []string{"drivers/acpi/apei/ghes.c", "drivers/firmware/efi/cper.c"}},
	{driver: "nvidia", dirs: []string{"kernel-open/nvidia", "kernel-open/nvidia-peermem", "src/nvidia/arch/nvalloc/unix/src/osinit.c", "src/nvidia/arch/nvalloc/unix/src/osapi.c"}},
}

// quiet are messages that no pattern matches on purpose, by what they say or where they are printed.
type quiet struct {
	driver   string         // empty: of any
	form     *regexp.Regexp // of the format
	function *regexp.Regexp // of "FILE FUNCTION"; nil: any
	reason   string
}

var silent = slices.Concat(quietOfAll, quietOfMLX5, quietOfMLX4, quietOfCore, quietOfPCIe, quietOfIOMMU,
	quietOfFirmware, quietOfGPU, quietOfVendors)

// says is an entry by the format of the message.
func says(driver, reason, form string) quiet {
	return quiet{driver: driver, reason: reason, form: regexp.MustCompile(form)}
}

// in is an entry by "FILE FUNCTION".
func in(driver, reason, place string) quiet {
	return quiet{driver: driver, reason: reason, function: regexp.MustCompile(place)}
}

// Reasons of several entries.
const (
	offload    = "an offload or a rule of traffic that software asked for; the kernel does it without"
	requested  = "a request of an administrator or an application is refused; it gets the error"
	capability = "what the device cannot, or the driver chooses instead"
	debugging  = "a facility of debugging"
	virtual    = "management of virtual functions; an administrator gets the error"
	software   = "an error in software, not of the device"
	removal    = "printed when a device or an object goes"
	continued  = "more of a message that is recognised, or its cause: the line after it is recognised"
	byWords    = "recognised by the words that it has (testdata/lines.txt)"
	ofFirmware = "tables of the host's firmware and parameters of the kernel, at boot"
)

var quietOfAll = []quiet{
	says("", "the kernel had no memory: it says so itself",
		`(?i)\b(?:can't|cannot|couldn't|could not|unable to|fail(?:ed|ure)? (?:to|in|on)?)? ?(?:k?v?[mz]alloc|alloc(?:ate)?) ?(?:memory|mem)\b|out of memory|no memory`),
}

var quietOfMLX5 = []quiet{
	in("mlx5_core", offload, `/(?:esw|en_accel|steering|accel|lib/(?:fs_|geneve|ipsec|macsec|crypto|aso|port_tun|mpfs)|en/(?:tc|rep|xsk|fs_tt|htb|qos|trap|mod_hdr|mapping))|/(?:en_tc|en_rep|en_fs|en_fs_ethtool|en_arfs|fs_core|fs_cmd|fs_counters|eswitch|eswitch_offloads|eswitch_offloads_termtbl|rl|lag_mp|ipsec_fs_roce|wc)\.c |/(?:tls|ipsec)\.[ch] `),
	in("mlx5_core", requested, `/(?:en_ethtool|en_dcbnl|en_selftest|port_buffer|ethtool|params|rss|rx_res|devlink|ptp|nv_param|port|qos|en/qos)\.[ch] `),
	in("mlx5_core", debugging, `/(?:diag/|debugfs\.c|hv_vhca|hv\.c|pci_vsc|cong\.c|data_direct\.c .*vpd)`),
	in("mlx5_core", virtual, `/(?:sriov|ib_virt|sf/|ecpf)`),
	in("mlx5_core", "clocks and congestion events of PTP and PCIe: no traffic depends on them", `/(?:clock|pcie_cong_event)\.c `),
	in("mlx5_core", "bonding of ports; the state of the links tells what it costs", `/(?:lag|mpesw|mp|port_sel|shared_fdb|sd|devcom)\.c `),
	in("mlx5_core", "FPGA of Innova adapters, but its errors", `/fpga/`),
	in("mlx5_core", requested, `/hw/mlx5/(?:qp|srq|wr|fs|mad|counters|ib_rep|devx|dm)\.c |/hw/mlx5/cq\.c (?:create_cq|mlx5_ib_(?:modify|resize)|copy_resize)|/hw/mlx5/mr\.c|/hw/mlx5/main\.c (?:uar_mmap|allocate_uars|mlx5_ib_mcg|set_roce_addr|mlx5_mtu|delay_drop|mlx5_ib_(?:un)?bind|set_port_caps|set_has_smi|mlx5_ib_stage|__get_port)`),
	in("mlx5_core", "page faults of memory that an application has not pinned", `/hw/mlx5/odp\.c `),
	says("mlx5_core", software, `[Uu]nexpected|expected cqe|SIGERR|signature|unknown completion|unable to map DMA|DMA mapping|invalid|[Oo]verflow|input values too big|Unknown FW command|bogus CQ|default completion callback|not supported|isn't supported|resize CQ|^Unknown transition|is not allowed on resource|^failed xarray insert`),
	says("mlx5_core", "a refused command: the caller handles it. An internal error is recognised", `failed, status %s|^err %d$|failed to queue work|alloc_uar\(\) failed|failed to free uar|failed allocating block`),
	says("mlx5_core", "each step of the recovery: begin and end are recognised", `^(?:end|starting teardown|NIC SW reset in progress|Expected to see disabled NIC|Not issuing FW reset|PCI channel offline, stop waiting|Failed to lock SW reset semaphore|health works are not permitted|new health works are not permitted|device is being removed|Failed to create fw (?:fatal )?reporter)`),
	says("mlx5_core", continued, `^(?:assert_|ext_synd|fw_ver|hw_id|irisc_index|raw fw_ver|Sensor name|Waiting for FW|mlx5_health_|EQ 0x%x: Cons|Recovered %d (?:eqes|EQEs)|%s:%d:\(pid %d\):|Socket-Direct:|E-Switch:|QoS:|FPGA: )`),
	says("mlx5_core", byWords, `^(?:Port module event|%s$)`),
	says("mlx5_core", "a reset of the firmware that an administrator asks for: refused, repeated, or a step of it", `^(?:PCI Sync FW Update Reset (?:Aborted|Ack|Nack)|Sync Reset, got|Reset request was already|FW reset is not supported|SFs should be removed|Device is being removed, Drop|No PCI link reporting|fast teardown is not supported|unrecognized dev_id|Failed (?:reading MFRL|to reload FW tracer))`),
	says("mlx5_core", removal, `^teardown with (?:fast|force) mode failed|^tear_down_hca failed|interface is (?:down|up), NOP|failed to destroy|PCI channel offline|already removed|^mlx5_unload_one failed|^failed drain DCT`),
	says("mlx5_core", capability, `(?i)capabilit|Missing \w+ |max_ft_level|couldn't set 64-bit|changing it to|Reducing number|Updating max number|log_max_qp|prof_sel|opmode|ISSI is 0|pkey table size|Disabling|incompatible|Keeping HW-GRO|Dropping C-tag|can't set|Cannot support|Can't enable|not creating net device|fw query|failed to query (?:pending|running)|mcqs`),
	in("mlx5_core", requested, `/en_main\.c (?:mlx5e_(?:xsk|params|mqprio|set_|queue_|fix_|hwstamp|num_channels|netdev_change|handle_feature|update_|change_mtu|xdp|calc)|set_feature|mlx5_rq_shampo|blocking_event)`),
	says("mlx5_core", "the interface opens with less, or its opening fails: an administrator gets the error", `^(?:create |open drop rq|Failed to get min RX wqes|%s: (?:VPort MTU|multiplication)|modify_rq_state failed|netif_set_real_num|modify tir|refresh tir|max k[ls]m list size|rq %d: linear|could only allocate|IPSec init|TLS init|MACsec init|PSP init|FS init|Unable to allocate the Reuse Ring|crypto dek|SHAMPO|alloc (?:pd|td|tises|bfreg)|ds_cnt_inl|RX handler|MPWQE RQ|async_icosq|no original profile|%s: failed to rollback)`),
	in("mlx5_core", "IPoIB over mlx5 does with less, or the interface is not opened: an administrator gets the error", `/ipoib/`),
	says("mlx5_core", "the hardware monitor or the dump of registers is missing; the device works", `^mlx5_(?:crdump_enable|hwmon_dev_register|devlink_param_reg)|FW tracer|Resource dump`),
	in("mlx5_core", "memory, interrupts and identifiers of the kernel", `/(?:wq|alloc|irq_affinity|pci_irq|gid|uar|vport|rdma|pagealloc|eq)\.c |/(?:mlx5_core|lib/mlx5)\.h |/main\.c (?:mlx5_mdev_init|mlx5_init_once|mlx5_register_hca|probe_one|init_one|mlx5_sf)|/hw/mlx5/(?:data_direct|gsi|cong|main|mem)\.c|mlx5_ib\.h|/core/cmd\.c mlx5_cmd_init`),
	in("mlx5_core", "statistics and reporters of the interface", `/en/(?:health|reporter_rx|reporter_tx|reporter)\w*\.c |/en_stats\.c |/en_main\.c mlx5e_create_q_counters|/en_rx\.c |/en_common\.c|/en_tx\.c`),
}

var quietOfMLX4 = []quiet{
	in("mlx4_core", virtual, `/(?:resource_tracker|alias_GUID|sysfs|cm|mcg)\.c |/mlx4/mad\.c |/port\.c `),
	in("mlx4_core", requested, `/(?:en_ethtool|en_dcb_nl|en_selftest|sense|crdump|en_clock)\.c |/hw/mlx4/(?:qp|srq|cq|mr)\.c `),
	says("mlx4_core", virtual, `(?i)slave|\bvfs?\b|SR-?IOV|virtual function|multi-?function|VST|vhcr|MASTER|comm channel|communication ch|special QP caps|num_vfs|probe_vf|FLR|mis-behaved VM|access mem params|secure-host|MAD_DEMUX|is enforced on this|Force mac`),
	says("mlx4_core", offload, `(?i)steer|rule|promisc|multicast|unicast|vlan|\bMAC\b|mgm|mgid|vxlan|flow|RFS`),
	says("mlx4_core", capability, `(?i)not supported|unsupported|isn't supported|couldn't set 64-bit|obsolete|module param|bad log_|bad msi|bad num|not in legal range|reducing|Using %d|upgrad|disable timestamp|timestamp|Old device ETS|64B EQEs|Disabling EQE|Trying again without MSI|BlueFlame|HA mode|Granular|random MAC|No RSS hash|Initializing port|RSS hash|too much|hint|rmap|XOR|module parameter|can't verify DMFS|Enabling|HCA minimum page size:|This driver version|Installed FW version|Optimized|Running in|log_pg_sz|CONFIG_DEV|hca_core_clock|L2 tunnel`),
	says("mlx4_core", removal, `HW2SW|[Ff]ailed (?:to )?(?:free|freeing|release)|close slave|Removing PF|Fail to detach|FLR done`),
	says("mlx4_core", "each step of the recovery: begin and end are recognised", `catas_error|VF is sending reset|VF reset is not|resume|suspend was called|was called$|restore original port types|Sending (?:reset|vhcr0)|buf\[|internal error buffer|Tx timeout called|Scheduling port restart|Related WQE|error (?:marks? )?was detected`),
	says("mlx4_core", "the interface is not opened, or opens with less: an administrator gets the error", `^(?:Failed (?:activating|configuring|setting|starting|restarting|to activate|to pass|getting|modifying|preparing|assigning|changing|reserving|to reserve|disabling|enabling|entering|registering|adding)|[Ff]ailed reserving|Cannot open|Error (?:at|de)taching|[Cc]an't turn|mtu:|Turning off|Reducing the number|Forcing|Stop forcing|Entering|Leaving|Oversized|Non-linear|DMA mapping|Tx consumer|Unhandled event %d for port|Port link mode)`),
	says("mlx4_core", "bonding and types of ports, which an administrator sets", `(?i)bond|port[_ ](?:map|types?)|mirror|port check|register device|QP to state|default ib cap`),
	says("mlx4_core", software, `(?i)unexpected|unhandled|unknown|bogus|invalid|illegal|mismatch|BUG|couldn't arm|couldn't change|couldn't create|failed reposting|MTT table|Number of reserved|Profile requires|UAR pages|uar_bar|cmd_pending|response expected|required (?:operation|request)|FW area not aligned|uplink guid|physical port id|REG status|Got AMGM|DMFS|%16s|port \(port|^%s:$|^:$|free pool`),
	in("mlx4_core", "memory, files and tables; a start that fails is recognised by its last line", `/(?:main|qp|cq|eq|mr|pd|srq|fw|intf|icm|alloc|en_main|en_netdev|en_rx|en_tx|en_cq|cmd|catas|reset)\.c |mlx4_(?:en|ib)\.h|/hw/mlx4/main\.c `),
}

var quietOfCore = []quiet{
	in("ib_core", "a module that is not of the kernel's taste and is loaded; one that RDMA needs and is refused is recognised", `^kernel/module`),
	in("ib_core", "a driver that waits for another, or files of it; a driver that fails is recognised", `^drivers/base/dd`),
	in("ib_core", requested, `/(?:uverbs_\w+|ucma|user_mad|umem|umem_dmabuf|umem_odp|fmr_pool|rw|verbs|nldev|restrack|packer|ud_header|iwpm_\w+|iwcm|addr|cma)\.c `),
	in("ib_core", "initialisation of a module without a device", `(?:ib_core_init|ib_mad_init|ib_sa_init|ucma_init|ib_umad_init|ib_uverbs_init)$`),
	says("ib_core", removal, `Couldn't close port|Port %[du] not found|GID entry ref leak|ib_qp_destroy failed|ib_detach_mcast|leave`),
	says("ib_core", "addresses: the table of the port is full, or the interface is gone", `GID add failed|NULL netdev|unable to add gid`),
	says("ib_core", "the name of a device that an administrator changes", `(?i)rename|namespace change|compatdev`),
	says("ib_core", "management datagrams of other hosts, and agents of software", `directed route|dr_slid|MAD received|Method %d|All OUI|ib_process_mad_wc|receive MAD agent|port agent|ib_create_ah|ib_create_send_mad|ib_post_send_mad|updating sgid|retrieve pkey`),
	says("ib_core", "the subnet manager is not reachable: rules read its state", `SM AH|default PKey|query port$`),
	says("ib_core", continued, `queue stopped|^%s: cm_id|request completion notification`),
	in("ib_core", "IPoIB loses single packets or connections, or does with less", `/ulp/ipoib/`),
}

var quietOfPCIe = []quiet{
	in("pcieport", "errors that a test injects", `/aer_inject\.c`),
	in("pcieport", virtual, `/iov\.c `),
	says("pcieport", byWords, `Bus Error: severity|aer_layer|^%s %pR: not (?:assigned|claimed)|error updating|unknown header type|^%s detected|no pci_dev found|not ready`),
	says("pcieport", continued, `TLP (?:Header|Prefix)|error status/mask=|^\[%2d\]|rp_pio|RP PIO|Error of this Agent|Exceeded max supported|buffer overflow in recovery|Buffer overflow when recovering|root port still busy|performing (?:AF )?function level reset|unlocked secondary bus|^reset(?:ting| done)`),
	says("pcieport", ofFirmware, `linux,pci-domain|^Node %pOF`),
	says("pcieport", "a parameter of the kernel, or a file that an administrator writes", `by user|invalid power transition|reset_bus_function|command line|parse|alignment|reset method|stop IOMMU|Unknown option|ACS (?:flags|Flags)|button press|[Ii]nvalid state|Invalid (?:ACS|reset|requested)|cannot disable ACS|driver_async`),
	in("pcieport", "power saving and vital product data: no traffic depends on them", `/(?:aspm|vpd|pme)\.c |pci_(?:pme|pm_init|allocate_cap|save|ea_read|add_dma)|devm_pci_remap`),
	says("pcieport", "the host does without a service of the port", `IRQ|irq|_DSM|notify handler|[Ii]nitialization failed|pci_hp_initialize|Publication|already registered|DPC|secondary bus, ignoring|can't suspend`),
	says("pcieport", "layout of bridges and sizes, which the kernel changes; a function without address space is recognised", `bridge|[Bb]us|MPS|MRRS|Payload|Read_Request|host bridge|BAR|resource|NUMA|ignoring class|ROM|RW1C|size|released|Driver probe function`),
}

var quietOfIOMMU = []quiet{
	in("iommu", ofFirmware, `/(?:init|irq_remapping|perfmon)\.c |dmar\.c (?:parse_dmar|dmar_(?:validate|parse|walk|acpi|alloc|insert|table|hotplug|device|set|free)|alloc_iommu|map_iommu|warn_invalid|enable_drhd)|iommu\.c (?:intel_iommu_(?:init|setup|add|memory)|init_dmars|dmar_|tboot|check_tylersburg|quirk|iommu_(?:alloc|init|domain|devinfo)|copy_translation|register_pasid)|arm-smmu-v3\.c arm_smmu_(?:device_(?:hw_probe|probe|dt_probe|reset|disable)|setup|init|get_httu|update_gbpa|rmr)|tegra241-cmdqv\.c (?:tegra241_cmdqv_(?:probe|acpi|init|find)|__tegra)`),
	in("iommu", "attachment of a device to a domain, which its driver asks for", `/(?:pasid|nested|svm|prq|cache)\.[ch] |arm-smmu-v3-sva\.c|iommu\.c (?:iommu_|__iommu_|probe_get|fsl_mc|pci_dev_reset|intel_|domain_|bounce_|prepare_|aux_|to_vtd|switch_to|__domain|__intel|clone_alias|amd_iommu_(?:probe|get)|irq_remapping|get_acpihid|vcmd|dmar_insert)|arm_smmu_(?:attach|enable|insert|master|alloc_cd|make)|io_pgtable\.c|iommu\.h|qi_(?:desc|flush)|iommu_poll`),
	says("iommu", continued, `^(?:CMD|DTE|Control Reg|QI |DRHD: handling fault|skipping command|retrying command|failed to convert|0x%016llx|%3d:|device=|No event written)|^%s %s %s %s`),
	says("iommu", byWords, `Request device \[|^event: %s`),
	says("iommu", "an interrupt of the IOMMU that is lost, or a command of software", `pte changed|cmdq bitmap|MSI write aborted|global error reported|unknown CMDQ opcode|GERROR|uncleared error|unexpected error|no more available|able, STATUS|Unknown PPR`),
}

var quietOfFirmware = []quiet{
	in("ghes", "the host's firmware reports of memory and processors, or in a form that is not known; reports of PCIe errors are recognised", `/(?:ghes|cper)\.c `),
}

var quietOfGPU = []quiet{
	says("nvidia", byWords, `^%s$|^%s: ?(?:Failed|failed to get IRQ|Interrupts disabled|No supported)`),
	in("nvidia", "Tegra, displays and clocks", `/nv-(?:bpmp|clk|dsi|gpio|i2c|imp|platform|backlight|modeset|acpi)\w*[-\w]*\.c|/i2c_nvswitch`),
	in("nvidia", debugging, `/nv-(?:memdbg|procfs|nano-timer)\.c|/libspdm|nvlog`),
	in("nvidia", requested, `/nv-(?:mmap|dmabuf|caps|caps-imex|vm|vtophys|p2p)\.c|/os-(?:mlock|registry|pci)\.c|/nv-pat`),
	in("nvidia", "memory and locks of the kernel", `/os-interface\.c|/nv-msi\.c`),
	says("nvidia", "a version of the driver, an application or a machine that do not match: the caller gets the error", `API mismatch|Version mismatch|not supported by|Please make sure|structure size|ioctl|legacy GPU|Persistence mode|Patch|patches|excluded|[Ee]xclude|VF|vGPU|VFIO|PBI|SMMU SVA|crash dump|nvlogs|serial number`),
	says("nvidia", "a host without GPU, or whose GPU another driver has", `No NVIDIA|not called for|another driver|conflicting|audio driver|sharing it|already bound|is using the IRQ|already initialized|Ignoring probe`),
	says("nvidia", removal, `non-zero usage|Continuing with GPU removal|Minor device|unopened minor|unbind|Device is currently unavailable|non-existent GPU|calling nvidia_p2p_put_pages`),
	says("nvidia", continued, `BIOS settings|Assign IRQ|Plug & Play|You may want|Tried to get|NVRM: BAR%d`),
	in("nvidia", "Tegra, files, power management and memory of the driver", `/nv-pci\.c |/nv\.c |/linux_nvswitch\.c |/osapi\.c |/osinit\.c `),
}
