package kernellog

const (
	aer = "drivers/pci/pcie/aer.c, "
	dpc = "drivers/pci/pcie/dpc.c, "

	noFunction = "a device that is missing until the host restarts"
	noCommand  = "the IOMMU does not execute a command: a device does not answer an invalidation, or the IOMMU is faulty"
)

var pciePatterns = []Pattern{
	{
		Kind: PCIeFatal, Meaning: "a port received a message of a fatal error; the only line where the device is gone",
		Source: "drivers/pci/pcie/aer.c, aer_print_port_info and aer_print_rp_info; 4.0 to 7.2",
		form:   `^(?:Multiple )?Uncorrect(?:ed|able) \(Fatal\) error (?:message )?received(?:(?: from|:) (?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]))?`,
	},
	// Errors that the kernel handles.
	{
		Kind: PCIeFatal, Meaning: "a link of the path is reset after a fatal error", Follows: "a device that is missing",
		Source: aer + "aer_print_error; 4.0 to 7.2",
		form:   `^(?:PCIe|CXL) Bus Error: severity=Uncorrect(?:ed|able) \(Fatal\)`,
	},
	{
		Kind: PCIeNonFatal, Meaning: "a transaction failed",
		Source: aer + "aer_print_error; 4.0 to 7.2",
		form:   `^(?:PCIe|CXL) Bus Error: severity=Uncorrect(?:ed|able) \(Non-Fatal\), type=(?P<layer>[\w ]{1,30})`,
	},
	{
		Kind: PCIeCorrectable, Meaning: "the link repeated a packet",
		Source: aer + "aer_print_error; 4.0 to 7.2",
		form:   `^(?:PCIe|CXL) Bus Error: severity=Correct(?:ed|able), type=(?P<layer>[\w ]{1,30})`,
	},
	{
		Kind: RecoveryFailed, Meaning: "the kernel cannot recover a function after a PCIe error",
		Follows: "a function that is unusable until its driver is bound again or the host restarts",
		Source:  "drivers/pci/pcie/err.c, pcie_do_recovery and report_error_detected; 4.18 to 7.2, before in aer.c",
		form:    `^(?:[Dd]evice recovery failed|can't recover \((?P<why>no error_detected callback|state transition))`,
	},
	{
		Kind: RecoveryFailed, Meaning: "the kernel cannot reset the functions below a port after a PCIe error",
		Source: "drivers/pci/pcie/err.c, pcie_do_recovery; 5.10 and newer",
		form:   `^subordinate device reset failed`,
	},
	{
		Kind: RecoveryEnded, Meaning: "the kernel has recovered the functions below a port after a PCIe error",
		Source: "drivers/pci/pcie/err.c, pcie_do_recovery; 4.18 to 7.2, before in aer.c",
		form:   `^[Dd]evice recovery successful`,
	},
	{
		Kind: PCIeContained, Meaning: "the port above took the link down to contain an error (DPC)",
		Follows: "a device that is missing",
		Source:  dpc + "dpc_process_error; 5.4 to 7.2",
		drivers: pcieports, form: `^DPC: (?:containment event, status:0x[0-9a-f]+|unmasked uncorrectable error detected|ERR_(?P<error>\w+) detected)`,
	},
	// Errors that the firmware of the host handles first (ACPI APEI).
	{
		Kind: PCIeFirmware, Meaning: "the firmware of the host reports a PCIe error: status of the device",
		Source: aer + "pci_print_aer; before 6.8 cper_print_aer",
		form:   `^aer_status: (?P<status>0x[0-9a-f]{8}), aer_mask: 0x[0-9a-f]{8}`,
	},
	{
		Kind: PCIeFirmware, Meaning: "the firmware of the host reports a PCIe error: layer and agent",
		Source: aer + "pci_print_aer; before 6.8 cper_print_aer",
		form:   `^aer_layer=(?P<layer>[\w ]{1,30}), aer_agent=`,
	},
	{
		Kind: PCIeFirmware, Meaning: "the firmware of the host reports an uncorrectable PCIe error",
		Source: aer + "pci_print_aer; before 6.8 cper_print_aer",
		form:   `^aer_uncor_severity: 0x[0-9a-f]{8}`,
	},
	{
		Kind: PCIeFirmware, Meaning: "the firmware of the host reports a PCIe error of a device",
		Source:  "drivers/firmware/efi/cper.c, cper_print_pcie; 4.0 to 7.2",
		drivers: alone, form: `^\[Hardware Error\]: device_id: (?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])`,
	},
	{
		Kind:    PCIeFirmware,
		Meaning: "the firmware of the host reports a PCIe error of a device that is not present, or too many at a time",
		Source:  aer + "aer_recover_work_func and aer_recover_queue; 5.4 to 7.2",
		drivers: alone, form: `^(?:AER recover: )?(?:Can not find pci_dev for|no pci_dev for|(?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): no pci_dev found) ?`,
	},
	// Functions that do not answer.
	{
		Kind: FunctionDead, Meaning: "a function does not answer after a reset",
		Follows: noFunction,
		Source:  "drivers/pci/pci.c, pci_dev_wait; drivers/pci/probe.c, pci_bus_wait_rrs; 4.14 to 7.2",
		form:    `^not ready (?P<time>\d+ms) after (?P<reset>[\w -]{1,30}); giving up`,
	},
	{
		Kind:    FunctionDead,
		Meaning: "a function does not leave its power state: it does not answer accesses of its configuration space",
		Follows: noFunction,
		Source:  "drivers/pci/pci.c, pci_power_up, pci_set_low_power_state and, to 5.19, pci_raw_set_power_state",
		form:    `^(?:Unable to|can't) change power state from (?P<state>\w+ to \w+)(?:, device inaccessible| \(config space inaccessible\))|^Refused to change power state(?: from (?P<refused>D3cold to D0)|, currently in (?P<kept>D3))`,
	},
	{
		Kind: FunctionDead, Meaning: "a function does not answer accesses of its configuration space",
		Follows: noFunction,
		Source:  "drivers/pci/pci.c, pci_dev_config_accessible; 6.17 and newer",
		form:    `^Device config space inaccessible; unable to `,
	},
	{
		Kind: FunctionDead, Meaning: "a function does not keep an address: it answers all accesses with ones",
		Follows: noFunction,
		Source:  "drivers/pci/setup-res.c, pci_std_update_resource; 4.0 to 7.2",
		form:    `^.{0,80}: error updating \((?:high )?0x[0-9a-f]+ != 0xffffffff\)`,
	},
	{
		Kind: FunctionDead, Meaning: "a function answers all accesses of its configuration space with ones",
		Follows: noFunction,
		Source:  "drivers/pci/probe.c, pci_setup_device; 4.0 to 7.2",
		form:    `^unknown header type (?P<header>7f), ignoring device`,
	},
	// Slots.
	{
		Kind: SlotLinkDown, Meaning: "the link of the slot is down", Follows: "a device that is missing",
		Source:  "drivers/pci/hotplug/pciehp_ctrl.c, pciehp_handle_presence_or_link_change; 5.4 to 7.2",
		drivers: pcieports, form: `^pciehp: Slot\((?P<slot>[^)]{1,20})\): (?:Link Down$|Card not present)`,
	},
	{
		Kind: SlotLinkDown, Meaning: "the link of the slot does not come up", Follows: "a device that is missing",
		Source:  "drivers/pci/hotplug/pciehp_hpc.c and pciehp_ctrl.c, pciehp_check_link_status, board_added and pciehp_power_on_slot; 5.4 to 7.2",
		drivers: pcieports, form: `^pciehp: (?:Slot\((?P<slot>[^)]{1,20})\): (?P<what>Power fault|No link|No device found|Cannot train link|Failed to check link status|Power fault on slot)|\w+: (?:Can not enable the link|no response from device)|Cannot add device at|No new device found|(?P<link>Failed to check link status|link training error: status 0x[0-9a-f]+))`,
	},
	{
		Kind:    SlotLinkDown,
		Meaning: "the link below a port does not come up after a reset", Follows: "a device that is missing",
		Source: "drivers/pci/pci.c, pci_bridge_wait_for_secondary_bus; 6.2 to 7.2",
		form:   `^Data Link Layer Link Active not set in \d+ msec`,
	},
	{
		Kind: SlotLinkUp, Meaning: "the link of the slot is up",
		Source:  "drivers/pci/hotplug/pciehp_ctrl.c, pciehp_handle_presence_or_link_change; 5.4 to 7.2",
		drivers: pcieports, form: `^pciehp: Slot\((?P<slot>[^)]{1,20})\): (?:Link Up$|Card present)`,
	},
	{
		Kind: NoAddressSpace, Meaning: "the function has no address space for a BAR",
		Follows: "a driver that does not load; for a GPU no GPUDirect RDMA",
		Source:  "drivers/pci/setup-res.c, pci_assign_resource; 5.4 to 7.2",
		form:    `^(?P<bar>BAR [0-5])(?: \[mem size 0x[0-9a-f]+[^\]]*\])?: (?:no space for \[mem|can't assign; no space)`,
	},
	{
		Kind: NoAddressSpace, Meaning: "the function cannot be enabled without its address space",
		Follows: "a driver that does not load",
		Source:  "drivers/pci/setup-res.c, pci_enable_resources; 5.4 to 7.2",
		form:    `^(?:can't enable device: (?P<bar>BAR \d+) .{0,80}not (?:assigned|claimed)|(?P<resource>(?:VF )?(?:BAR|ROM|bridge window|\w+) ?\d*)[^:]{0,80}: not (?:assigned|claimed); can't enable device)`,
	},
	// A driver that takes no function.
	{
		Kind: ProbeFailed, Meaning: "no driver took the function, or one of its auxiliary devices",
		Follows: "an RDMA device, interface or GPU that is missing until the driver is bound again",
		Source:  "drivers/base/dd.c, call_driver_probe and really_probe; 4.0 to 7.2",
		drivers: adapters, form: `^probe (?:of (?:(?P<pci>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])|(?P<function>[\w.]{1,40}))|with driver [\w.-]+) failed with error (?P<errno>-?\d+)`,
	},
	// IOMMU.
	{
		Kind: IOMMUFault, Meaning: "the IOMMU refused an access of the device",
		Follows: "failed transfers, or firmware errors of the device",
		Source:  "drivers/iommu/intel/dmar.c, dmar_fault_do_one; 4.0 to 7.2",
		drivers: alone, form: `^\[(?P<access>DMA Read|DMA Write|INTR-REMAP)(?: NO_PASID| PASID 0x[0-9a-f]+)?\] Request device \[(?:0x)?(?P<pci>(?:[0-9a-f]{4}:)?[0-9a-f]{2}:(?:0x)?[0-9a-f]{2}\.[0-7])\](?: PASID [0-9a-fx]+)? (?:fault addr|fault index)`,
	},
	{
		Kind: IOMMUFault, Meaning: "the IOMMU refused an access of the device, or the device did not answer it",
		Follows: "failed transfers, or firmware errors of the device",
		Source:  "drivers/iommu/amd/iommu.c, amd_iommu_report_page_fault, amd_iommu_report_rmp_fault and iommu_print_event; 4.0 to 7.2",
		form:    `^Event logged \[(?:(?P<event>IO_PAGE_FAULT|INVALID_(?:DEVICE|PPR)_REQUEST|ILLEGAL_(?:DEV_TABLE_ENTRY|COMMAND_ERROR)|IOTLB_INV_TIMEOUT|(?:DEV_TAB|PAGE_TAB|COMMAND)_HARDWARE_ERROR|RMP_(?:HW_ERROR|PAGE_FAULT))(?: device=(?P<pci>(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]))?|Device not attached|UNKNOWN )`,
	},
	{
		Kind: IOMMUFault, Meaning: "the IOMMU refused an access of the device",
		Follows: "failed transfers, or firmware errors of the device",
		Source:  "drivers/iommu/arm/arm-smmu-v3/arm-smmu-v3.c, arm_smmu_evtq_thread and arm_smmu_dump_event; 6.13 and newer name the client",
		drivers: alone, form: `^event: (?P<event>[FC]_\w{1,30}) client: (?:(?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])|\S+)|^event (?P<code>0x[0-9a-f]{2}) received:`,
	},
	{
		Kind: IOMMUFault, Meaning: noCommand, Follows: "transfers that hang, hung tasks",
		Source:  "drivers/iommu/amd/iommu.c, wait_on_sem; 4.0 to 7.2",
		drivers: alone, form: `^(?:IOMMU (?P<iommu>[0-9a-f:.]{7,16}): )?Completion-Wait loop timed out`,
	},
	{
		Kind: IOMMUFault, Meaning: noCommand, Follows: "transfers that hang, hung tasks",
		Source:  "drivers/iommu/amd/iommu.c, __iommu_queue_command_sync; 4.0 to 7.2",
		drivers: alone, form: `^Command buffer timeout`,
	},
	{
		Kind: IOMMUFault, Meaning: noCommand, Follows: "transfers that hang, hung tasks",
		Source:  "drivers/iommu/intel/dmar.c, qi_dump_fault and qi_check_fault; 5.10 to 7.2",
		drivers: alone, form: `^VT-d detected (?P<error>Invalidation (?:Completion|Time-out|Queue) Error|invalid descriptor)`,
	},
	{
		Kind: IOMMUFault, Meaning: noCommand, Follows: "transfers that hang, hung tasks",
		Source:  "drivers/iommu/arm/arm-smmu-v3/arm-smmu-v3.c, arm_smmu_cmdq_issue_cmdlist and __arm_smmu_cmdq_skip_err; 5.4 to 7.2",
		drivers: alone, form: `^(?P<queue>CMDQ error|CMDQ timeout|CMD_SYNC timeout)`,
	},
	{
		Kind: IOMMUFault, Meaning: noCommand, Follows: "transfers that hang, hung tasks",
		Source:  "drivers/iommu/arm/arm-smmu-v3/arm-smmu-v3.c, arm_smmu_gerror_handler, arm_smmu_evtq_thread and arm_smmu_priq_thread; 5.4 to 7.2",
		drivers: alone, form: `^EVTQ (?:overflow detected|write aborted)|^PRIQ (?:overflow detected|write aborted)`,
	},
	{
		Kind: IOMMUFault, Meaning: noCommand, Follows: "transfers that hang, hung tasks",
		Source:  "drivers/iommu/arm/arm-smmu-v3/arm-smmu-v3.c, arm_smmu_gerror_handler; 5.4 to 7.2",
		drivers: alone, form: `^device has entered Service Failure Mode`,
	},
	{
		Kind: IOMMUFault, Meaning: "the IOMMU refused a page request of a device",
		Source:  "drivers/iommu/intel/prq.c and svm.c, prq_event_thread and handle_bad_prq_event; 5.10 to 7.2",
		drivers: alone, form: `^(?:IOMMU: )?\w+: (?P<what>Invalid page request|Page request (?:in Privilege Mode|without PASID|for invalid PASID))`,
	},
}
