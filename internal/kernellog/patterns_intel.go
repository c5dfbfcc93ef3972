package kernellog

var intelPatterns = []Pattern{
	// ice, i40e, idpf.
	{
		Kind: TransmitTimeout, Meaning: "a transmit queue of the interface made no progress",
		Source: "drivers/net/ethernet/intel/ice/ice_main.c, ice_tx_timeout; i40e/i40e_main.c, i40e_tx_timeout; ice/devlink/health.c, ice_report_tx_hang; " +
			"idpf/idpf_txrx.c, idpf_tx_timeout; 5.4 to 7.2",
		drivers: intel, form: `^(?:tx_timeout: (?:VSI_num|VSI_seid): \d+, Q |Detected Tx timeout: Count \d+, Queue )(?P<queue>\d+)`,
	},
	{
		Kind: FirmwareError, Meaning: "the device reports malicious or malformed descriptors of its driver",
		Source:  "drivers/net/ethernet/intel/ice/ice_main.c, ice_handle_mdd_event; i40e/i40e_main.c, i40e_handle_mdd_event; 5.4 to 7.2",
		drivers: intel, form: `Malicious Driver Detection event`,
	},
	{
		Kind: FirmwareError, Meaning: "the firmware or the memory of the device has a fault",
		Source: "drivers/infiniband/hw/irdma/main.c, irdma_iidc_event_handler; drivers/net/ethernet/intel/ice/ice_main.c, __ice_clean_ctrlq and ice_misc_intr; " +
			"i40e/i40e_main.c, i40e_intr and i40e_clean_adminq_subtask; 5.4 to 7.2",
		drivers: intel, form: `^critical PE Error, GLPE_CRITERR=(?P<error>0x[0-9a-f]+)|^HMC [Ee]rror(?: interrupt)?$|^PE Push Error|` +
			`^A[RS]Q (?:Critical|Overflow) Error detected|^Firmware recovery mode detected|^Entering recovery mode due to repeated FW resets`,
	},
	{
		Kind: FirmwareStopped, Meaning: "the firmware does not answer",
		Source: "drivers/net/ethernet/intel/idpf/idpf_lib.c, idpf_init_hard_reset; idpf_virtchnl.c, idpf_vc_core_init; ice/ice_common.c, ice_wait_fw_load; " +
			"ice/ice_main.c, ice_init_dev; 5.13 to 7.2",
		drivers: intel, form: `^The driver was unable to contact the device's firmware|^Failed to establish mailbox communications with hardware|^ice_wait_(?:for_fw|fw_load) timed out|^Device is in bad state: `,
	},
	{
		Kind: CommandTimeout, Meaning: "the device did not answer a command of the RDMA driver",
		Source:  "drivers/infiniband/hw/irdma/utils.c, irdma_handle_cqp_op; hw.c, irdma_cqp_ce_handler; ig3rdma_if.c, ig3rdma_vchnl_send_sync; verbs.c, irdma_wait_for_suspend; 5.14 to 7.2",
		drivers: intel, form: `^\[(?P<command>[^\]]+) Error\]\[op_code=\d+\] status=-(?:62|110) |^Virtual channel Req <-> Resp completion timeout|^modify_qp timed out waiting for suspend`,
	},
	{
		Kind: FirmwareError, Meaning: "the device failed a command of the RDMA driver",
		Source:  "drivers/infiniband/hw/irdma/utils.c, irdma_handle_cqp_op, with what is critical of irdma_cqp_crit_err; 5.14 to 7.2",
		drivers: intel, form: `^\[(?P<command>[^\]]+) Error\]\[op_code=\d+\]`,
	},
	{
		Kind: RecoveryFailed, Meaning: "the driver cannot reset or rebuild the device",
		Source: "drivers/net/ethernet/intel/ice/ice_main.c, ice_do_reset, ice_rebuild and ice_pci_err_resume; i40e/i40e_main.c, i40e_rebuild and i40e_reset_and_rebuild; " +
			"idpf/idpf_lib.c, idpf_check_reset_complete; 5.4 to 7.2",
		drivers: intel, form: `^(?:PF|Core|Global|EMP) ?[Rr]eset failed|^reset \d+ failed$|^Rebuild failed|^Device reset timeout|` +
			`(?:is |in )(?:an )?(?:unrecoverable|non-recoverable)|unrecoverable device error|^Error during VSI rebuild: |^(?:PF|VF|control|Switchdev CTRL) VSI rebuild failed|` +
			`^Rebuild of (?:main|owner) VSI|^(?:rebuild|replay) VSI failed|^control queues init failed|^Rebuild AdminQ failed|^rebuild of (?:switch|orphan VEB|Main VSI|vsi_idx \d+) failed|` +
			`^(?:misc vector setup|ice_get_caps|ice_init_nvm|set_mac_cfg|clear PF configuration) failed|^driver needs to be unloaded and reloaded|` +
			`^Cannot re-enable PCI device after reset|^(?:Reset during resume failed|Wait for reset timed out)|^Error resetting device\. Please reload|i40e_reset\(\) FAILED|` +
			`^Cannot (?:restore interrupt scheme|enable device after suspend)|^(?:Reinitialize RDMA|Setting up misc vector failed|Failed to re-initialize interrupt)|^shutdown_lan_hmc failed|` +
			`^reallocating resources failed|^Failed to initialize default mailbox`,
	},
	{
		Kind: RecoveryStarted, Meaning: "the driver resets the function",
		Source: "drivers/infiniband/hw/irdma/main.c, irdma_request_reset; hw.c, irdma_process_aeq; drivers/net/ethernet/intel/idpf/idpf_lib.c, idpf_init_hard_reset; " +
			"i40e/i40e_main.c, i40e_intr; 5.14 to 7.2",
		drivers: intel, form: `^(?i:Requesting a reset|requesting reset)|^HW reset detected|^Device HW Reset initiated|^device will be reset|^An error occurred on the device while loading the DDP package`,
	},
	{
		Kind: QueueError, Meaning: "a queue of the RDMA driver overflowed, or a queue pair has a fatal error",
		Source:  "drivers/infiniband/hw/irdma/hw.c, irdma_process_aeq, irdma_hw_flush_wqes and irdma_hw_flush_wqes_callback; 5.14 to 7.2",
		drivers: intel, form: `^AEQ has overflowed|abnormal ae_id = (?P<event>0x[0-9a-f]+)|^Processing an iWARP related AE for CQ|^fatal QP event: SQ in error but not flushed, qp: (?P<number>\d+)|^Flush QP\[(?P<pair>\d+)\] failed`,
	},
	{
		Kind: ModuleError, Meaning: "the port is off: the device does not accept its transceiver",
		Source:  "drivers/net/ethernet/intel/ice/ice_main.c, ice_check_module_power and ice_print_topo_conflict; i40e/i40e_main.c, i40e_handle_link_event; 5.4 to 7.2",
		drivers: intel, form: `^Rx/Tx is disabled on this device because (?P<why>an unsupported (?:SFP )?module|the module does not meet thermal)|` +
			`^The (?P<reason>installed module is incompatible|module's power requirements exceed)|^An unsupported module type was detected`,
	},
	{
		Kind: ProbeFailed, Meaning: "the driver cannot start the function, or runs it without its package: no RDMA",
		Source: "drivers/net/ethernet/intel/ice/ice_main.c, ice_init_dev, ice_request_fw and ice_log_pkg_init; ice_controlq.c, ice_aq_ver_check; i40e/i40e_main.c, i40e_probe; " +
			"idpf/idpf_main.c, idpf_probe; 5.4 to 7.2",
		drivers: intel, form: `Entering [Ss]afe [Mm]ode|Device now in Safe Mode|^The driver for the device stopped because|^ice_(?:init_\w+|update_link_info|devlink_register) failed: |` +
			`^probe failed|^BAR0 I/O map error|^Cannot map registers, bar size|^DMA configuration failed|^pcim_\w+ failed|^setup of misc vector failed|^Device failed to load the FW for the external PHY|` +
			`^Ini?tial pf_reset failed|^previous errors forcing module to load in debug mode|^init_(?:lan_hmc|adminq|shared_code) failed|^capability discovery failed|^unidentified MAC or BLANK NVM|^Unregistering device|Unregistering device$|` +
			`^(?:not enough (?:OS|device) MSI-X vectors\. requested|unable to reserve MSI-X vectors)|^Failed to (?:configure HW structure for adapter|register netdev for vport|allocate vport)|` +
			`^failed to (?:register netdev for vport|allocate vport|allocate (?:BAR0|PCI iomap)|get required descriptor)|^Failed to (?:allocate BAR0|map BAR0|get LAN memory regions|alloc vport params)|` +
			`^IRQ request for mailbox failed|^Failed to allocate (?:minimum )?MSIX vectors|^Failed to (?:initialize hardware after|create devlink port for PF)|^Unexpected dev ID`,
	},
	{
		Kind: ProbeFailed, Meaning: "the driver cannot open the interface",
		Source:  "drivers/net/ethernet/intel/ice/ice_main.c, ice_open_internal; ice_lib.c, ice_vsi_cfg_rxqs; idpf/idpf_lib.c, idpf_vport_open; 5.4 to 7.2",
		drivers: intel, form: `^Failed to (?:open VSI 0x|initialize PHY settings|set (?:physical link up|PHY state)|get link info)|` +
			`^Failed to (?:allocate interrupts|complete interface up|configure (?:RSS|queues)|enable(?: queues)?|initialize [\w ]+|map queue vectors) for vport|^MSIX request_irq failed|^Request_irq failed|` +
			`^devm_request_(?:threaded_)?irq for`,
	},
	// irdma.
	{
		Kind: ProbeFailed, Meaning: "the RDMA driver cannot start the device",
		Source:  "drivers/infiniband/hw/irdma/hw.c, irdma_ctrl_init_hw and irdma_rt_init_hw; drivers/net/ethernet/intel/ice/ice_idc.c, ice_init_rdma; ice_main.c, ice_register_netdev; 5.14 to 7.2",
		drivers: intel, form: `^IRDMA hardware initialization FAILED init_state=(?P<state>\d+)|^HW runtime init FAIL status = |^(?i:failed to initialize (?:RDMA|idc): )|` +
			`^Failed to plug RDMA aux device|^(?:failed to reserve vectors|Not enough MSI-X vectors to support) (?:for )?RDMA|^Failed to allocate device ID for AUX driver|^failed to allocate unique device ID|^Not enough vectors reserved for RDMA`,
	},
}
