package kernellog

import "rdma_exporter/internal/lazy"

var pciePatterns = []Pattern{
	// PCIe.
	{
		Kind: PCIeFatal, Meaning: "a link of the path is reset after a fatal error", Follows: "a device that is missing",
		Source: "drivers/pci/pcie/aer.c, aer_print_error; 5.15 to 6.18",
		needle: "PCIe Bus Error", form: lazy.Regexp(`^(?:AER: )?PCIe Bus Error: severity=Uncorrected \(Fatal\)|^(?:AER: )?PCIe Bus Error: severity=Uncorrectable \(Fatal\)`),
	},
	{
		Kind: PCIeNonFatal, Meaning: "a transaction failed",
		Source: "drivers/pci/pcie/aer.c, aer_print_error; 5.15 to 6.18",
		needle: "PCIe Bus Error",
		form:   lazy.Regexp(`^(?:AER: )?PCIe Bus Error: severity=Uncorrect(?:ed|able) \(Non-Fatal\), type=(?P<layer>[\w ]{1,30})`),
	},
	{
		Kind: PCIeCorrectable, Meaning: "the link repeated a packet",
		Source: "drivers/pci/pcie/aer.c, aer_print_error; 5.15 to 6.18",
		needle: "PCIe Bus Error",
		form:   lazy.Regexp(`^(?:AER: )?PCIe Bus Error: severity=Correct(?:ed|able), type=(?P<layer>[\w ]{1,30})`),
	},
	{
		Kind: PCIeContained, Meaning: "the port above took the link down to contain an error (DPC)",
		Follows: "a device that is missing",
		Source:  "drivers/pci/pcie/dpc.c, dpc_process_error; 5.15 to 6.18",
		drivers: pcieports, needle: "DPC: ", form: lazy.Regexp(`^DPC: (?:containment event, status:0x[0-9a-f]+(?: source:0x[0-9a-f]+)?|unmasked uncorrectable error detected|ERR_(?P<error>\w+) detected)`),
	},
	{
		Kind: SlotLinkDown, Meaning: "the link of the slot is down", Follows: "a device that is missing",
		Source:  "drivers/pci/hotplug/pciehp_ctrl.c, pciehp_handle_presence_or_link_change; 5.15 to 6.18",
		drivers: pcieports, needle: "pciehp: Slot",
		form: lazy.Regexp(`^pciehp: Slot\((?P<slot>[^)]{1,20})\): (?:Link Down|Card not present)`),
	},
	{
		Kind: SlotLinkUp, Meaning: "the link of the slot is up",
		Source:  "drivers/pci/hotplug/pciehp_ctrl.c, pciehp_handle_presence_or_link_change; 5.15 to 6.18",
		drivers: pcieports, needle: "pciehp: Slot",
		form: lazy.Regexp(`^pciehp: Slot\((?P<slot>[^)]{1,20})\): (?:Link Up|Card present)`),
	},
	{
		Kind: NoAddressSpace, Meaning: "the function has no address space for a BAR",
		Follows: "a driver that does not load; for a GPU no GPUDirect RDMA",
		Source:  "drivers/pci/setup-res.c, pci_assign_resource; 5.15 to 6.18",
		needle:  "no space", form: lazy.Regexp(`^(?:pci (?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): )?(?P<bar>(?:VF )?BAR \d+)(?: \[mem size 0x[0-9a-f]+[^\]]*\])?: (?:no space for|can't assign; no space)`),
	},
	// IOMMU.
	{
		Kind: IOMMUFault, Meaning: "the IOMMU refused an access of the device",
		Follows: "failed transfers, or firmware errors of the device",
		Source:  "drivers/iommu/intel/dmar.c, dmar_fault_do_one; 5.15 to 6.18",
		needle:  "DMAR", form: lazy.Regexp(`^DMAR: \[(?P<access>DMA Read|DMA Write|INTR-REMAP)(?: NO_PASID| PASID 0x[0-9a-f]+)?\] Request device \[(?:0x)?(?P<pci>(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\](?: PASID [0-9a-fx]+)? (?:fault addr|fault index)`),
	},
	{
		Kind: IOMMUFault, Meaning: "the IOMMU refused an access of the device",
		Follows: "failed transfers, or firmware errors of the device",
		Source:  "drivers/iommu/amd/iommu.c, amd_iommu_report_page_fault and iommu_print_event; 5.15 to 6.18",
		needle:  "AMD-Vi: Event logged", form: lazy.Regexp(`^AMD-Vi: Event logged \[(?P<event>IO_PAGE_FAULT|INVALID_DEVICE_REQUEST|ILLEGAL_DEV_TABLE_ENTRY|IOTLB_INV_TIMEOUT)(?: device=(?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]|[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]))?`),
	},
	{
		Kind: IOMMUFault, Meaning: "the IOMMU refused an access of the device",
		Follows: "failed transfers, or firmware errors of the device",
		Source:  "drivers/iommu/arm/arm-smmu-v3/arm-smmu-v3.c, arm_smmu_evtq_thread; 6.12 and newer, which name the client",
		needle:  "event: ", form: lazy.Regexp(`event: (?P<event>F_TRANSLATION|F_PERMISSION|F_ACCESS|C_BAD_STREAMID) client: (?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])`),
	},
}
