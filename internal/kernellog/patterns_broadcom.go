package kernellog

var broadcomPatterns = []Pattern{
	{
		Kind: FirmwareStopped, Meaning: "the driver gives up a command, because the firmware is not healthy",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt_hwrm.c, __hwrm_send; 5.14 to 7.2",
		drivers: broadcom, form: `^(?:Resp cmpl intr abandoning|Abandoning) msg:? .{0,40}due to firmware status: (?P<status>0x[0-9a-f]+)`,
	},
	{
		Kind: ProbeFailed, Meaning: "the driver has too few interrupts to start the function",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_init_one; 5.4 to 7.2",
		drivers: broadcom, form: `^bnxt_init_int_mode err: (?P<error>[0-9a-f]+)`,
	},
	{
		Kind: DriverLoaded, Meaning: "the RDMA driver has registered its device",
		Source:  "drivers/infiniband/hw/bnxt_re/main.c, bnxt_re_register_ib and bnxt_re_ib_init; 5.4 to 7.2",
		drivers: broadcom, form: `^Device registered (?:with IB )?successfully`,
	},
	// bnxt_en.
	{
		Kind: CommandTimeout, Meaning: "the firmware did not answer a command",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt_hwrm.c, __hwrm_send; older: bnxt.c, bnxt_hwrm_do_send_msg; 5.4 to 7.2",
		drivers: broadcom, form: `^Resp cmpl intr err msg: (?P<response>0x[0-9a-f]+)|^Error \(timeout: \d+\) msg \{(?P<command>0x[0-9a-f]+ 0x[0-9a-f]+)\}`,
	},
	{
		Kind: FirmwareStopped, Meaning: "the firmware does not answer",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_fw_init_one_p1, bnxt_io_slot_reset and bnxt_fw_reset_task; 5.10 to 7.2",
		drivers: broadcom, form: `^Firmware not re(?:sponding, status: (?P<status>0x[0-9a-f]+)|ady)`,
	},
	{
		Kind: FirmwareError, Meaning: "the firmware has a fatal fault, or the device lost doorbells",
		Follows: "a reset by the driver",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_fw_exception and bnxt_event_error_report; 5.10 to 7.2",
		drivers: broadcom, form: `^Detected firmware fatal condition|^One or more MMIO doorbells dropped by the device|^FW reported unknown error type`,
	},
	{
		Kind: HighTemperature, Meaning: "the chip is above a thermal threshold",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_event_error_report; 6.7 to 7.2",
		drivers: broadcom, form: `^Chip temperature has gone above the (?P<threshold>\w+) thermal threshold`,
	},
	{
		Kind: FirmwareReset, Meaning: "the firmware announces a reset, fatal or not",
		Follows: "links that are down for seconds",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_async_event_process; 5.4 to 7.2",
		drivers: broadcom, form: `(?i)^Firmware (?P<what>fatal|non-fatal) reset event, data1: |^(?P<kind>fatal|non-fatal) firmware reset event, data1: |^Firmware reset request event called`,
	},
	{
		Kind: FunctionDead, Meaning: "the configuration space of the function does not answer after a reset",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_io_slot_reset and bnxt_kdump_reset; 6.12 to 7.2",
		drivers: broadcom, form: `^PCI config space inaccessible after`,
	},
	{
		Kind: RecoveryFailed, Meaning: "the driver gave up the recovery of a device",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_fw_reset_task, bnxt_io_slot_reset, bnxt_resume and bnxt_open; 5.4 to 7.2",
		drivers: broadcom, form: `^Firmware reset (?:aborted|timed out|failed)|^FW reset inprog \w+ after min wait time|` +
			`^(?:bnxt_open\(\) failed during FW reset|bnxt_open_nic\(\) failed)|^A previous firmware reset (?:did|has) not complete|` +
			`^Failed to reinitialize after aborted firmware reset|^Unable to reset FW rc=|^RESET_DONE not set during FW reset|` +
			`^Cannot re-enable PCI device|^Failed FW reset via OP-TEE|^FW reset in progress during close, FW reset will be aborted|` +
			`^Failed to re(?:-start IRQs|init CREQ|init NQ index)`,
	},
	{
		Kind: RecoveryStarted, Meaning: "the driver recovers a device",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_io_error_detected, bnxt_fw_init_one_p1 and bnxt_rx_ring_reset; drivers/infiniband/hw/bnxt_re/main.c, bnxt_re_suspend; 5.10 to 7.2",
		drivers: broadcom, form: `^PCI I/O error detected|^Firmware recover via OP-TEE requested|^RX ring reset failed|falling back to global reset|^Handle device suspend call`,
	},
	{
		Kind: RecoveryEnded, Meaning: "the device works again after a reset",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_io_resume; drivers/infiniband/hw/bnxt_re/main.c, bnxt_re_resume; 5.4 to 7.2",
		drivers: broadcom, form: `^PCI Slot Resume|^Device resume completed`,
	},
	{
		Kind: ProbeFailed, Meaning: "the driver cannot start the function or its interface",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_init_board, bnxt_init_one, bnxt_fw_init_one and bnxt_open_nic; 5.4 to 7.2",
		drivers: broadcom, form: `^Firmware init phase \d failed|^Cannot (?:enable PCI device|find PCI device base address|map [\w ]+(?: rc = -?\d+)?|obtain PCI resources), aborting|` +
			`^System does not support DMA, aborting|^MSIX capability not found, aborting|^Not enough rings available|` +
			`^Unable to (?:create workqueue|initialize mac address)|^nic open fail|^HWRM interface \S+ is older than|^Probe phy can't get phy capabilities`,
	},
	{
		Kind: ModuleError, Meaning: "the transceiver is shut down, or its transmitter is off",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_get_port_module_status; 5.4 to 7.2",
		drivers: broadcom, form: `^(?P<what>TX is disabled|SFP\+ module is shutdown)$`,
	},
	{
		Kind: TransmitTimeout, Meaning: "a transmit queue of the interface made no progress",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_tx_timeout; 5.4 to 7.2",
		drivers: broadcom, form: `^TX timeout detected`,
	},
	{
		Kind: QueueError, Meaning: "a queue of the interface completed out of order or with an error, or pauses the switch without end",
		Follows: "a reset by the driver",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_rx_pkt, bnxt_tpa_start, bnxt_sched_reset_txr and bnxt_event_error_report; 5.4 to 7.2",
		drivers: broadcom, form: `^RX buffer error |^(?:RX|TPA) cons \w+(?: !=|,) expected cons|^Invalid Tx completion \(ring:|^Invalid completion received on special ring|^Pause Storm detected`,
	},
	// bnxt_re.
	{
		Kind: FirmwareStopped, Meaning: "the firmware does not answer: the RDMA driver detaches the device",
		Source:  "drivers/infiniband/hw/bnxt_re/qplib_rcfw.c, bnxt_re_is_fw_stalled and __wait_for_resp; 6.5 and newer",
		drivers: nil, form: `(?:FW STALL Detected|Timed out waiting for FW|FW_STALL)`,
	},
	{
		Kind: CommandTimeout, Meaning: "the firmware did not answer a command of the RDMA driver, or takes no more",
		Source:  "drivers/infiniband/hw/bnxt_re/qplib_rcfw.c, bnxt_qplib_rcfw_send_message, __send_message and bnxt_qplib_map_rc; 5.4 to 7.2",
		drivers: broadcom, form: `cmdq\[(?P<command>0x[0-9a-f]+)\](?:=0x[0-9a-f]+)? (?:timedout|send failed)|timed out in command (?P<code>0x[0-9a-f]+)|^(?:QPLIB: )*RCFW: CMDQ is full`,
	},
	{
		Kind: ProbeFailed, Meaning: "the RDMA driver cannot start the device",
		Source:  "drivers/infiniband/hw/bnxt_re/main.c, bnxt_re_dev_init, bnxt_re_add_device and bnxt_re_ib_init; drivers/net/ethernet/broadcom/bnxt/bnxt_ulp.c, bnxt_aux_devices_add; 5.4 to 7.2",
		drivers: broadcom, form: `^(?:QPLIB: )*Failed to (?:register with (?:IB|the device|netedev|Ethernet driver)|initialize (?:RCFW|resources)|enable (?:RCFW channel|NQ with)|` +
			`allocate (?:CREQ|QPLIB context|RCFW Channel|hw context|resources|stats context): |get (?:MSI-X vectors|chip context)|add auxiliary device for |set function resources|query HW version)|` +
			`^RoCE requires minimum 2 MSI-X vectors|: Failed to probe$|^Alloc Failed NQ|^(?:QPLIB: )*(?:FP: )?(?:NQ|CMDQ|CREQ|DBR) BAR region|^(?:QPLIB: )*privileged dpi map failed|` +
			`^(?:QPLIB: )*(?:Failed to request (?:irq for nq-idx|IRQ for CREQ)|BAR region \d+ resc start failed)`,
	},
	{
		Kind: ProbeFailed, Meaning: "the RDMA driver cannot register its device",
		Source: "drivers/infiniband/hw/bnxt_re/main.c, bnxt_re_ib_init and bnxt_re_add_device; 5.4 to 5.19, without the device",
		form:   `^(?:(?P<driver>bnxt_re): )?Failed to register with (?:IB: |the device \w+: )`,
	},
	{
		Kind: CompletionError, Meaning: "a queue pair ended with an error completion",
		Source:  "drivers/infiniband/hw/bnxt_re/qplib_fp.c, bnxt_qplib_cq_process_req and bnxt_qplib_cq_process_terminal; 5.4 to 7.2",
		drivers: broadcom, form: `^(?:QPLIB: )*FP: CQ Process(?:ed Req wr_id\[\d+\] = 0x[0-9a-f]+ with| (?:Terminal|Cutoff) Error) status =? ?(?P<status>0x[0-9a-f]+)`,
	},
}
