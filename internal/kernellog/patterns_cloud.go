package kernellog

var cloudPatterns = []Pattern{
	{
		Kind: DriverLoaded, Meaning: "the RDMA driver has registered its device",
		Source:  "drivers/infiniband/hw/efa/efa_main.c, efa_ib_device_add; 5.4 to 7.2",
		drivers: amazon, form: `^IB device registered`,
	},
	// efa, ena.
	{
		Kind: CommandTimeout, Meaning: "the device did not answer an admin command",
		Source: "drivers/infiniband/hw/efa/efa_com.c, efa_com_wait_and_process_admin_cq_interrupts and efa_com_wait_and_process_admin_cq_polling; " +
			"drivers/net/ethernet/amazon/ena/ena_com.c, the same with ena; 5.4 to 7.2",
		drivers: amazon, form: `^The (?:ena )?device (?:sent a completion but the driver didn't receive (?:a|any) MSI-X interrupt(?: for admin cmd| \(cmd)|didn't send (?:a|any) completion for (?:the )?admin cmd) ` +
			`(?P<command>\w+)|^Wait for completion \(polling\) timeout|^[Rr]eading reg(?:ister)? (?:failed for timeout|timed out)|^Reg read(?:32)? timeout occurred`,
	},
	{
		Kind: CommandTimeout, Meaning: "the device did not answer an admin command",
		Source: "drivers/net/ethernet/amazon/ena/ena_com.c, ena_com_wait_and_process_admin_cq_interrupts; 5.4 to 5.10, without the device",
		form:   `^(?:(?P<driver>ena): )?(?:The ena device (?:sent a completion but|didn't send a completion for the admin cmd (?P<command>\d+))|(?i:reading reg failed for timeout|Reg read(?:32)? timeout occurred))`,
	},
	{
		Kind: FirmwareStopped, Meaning: "the device sends no keep-alive, or takes no command",
		Source:  "drivers/net/ethernet/amazon/ena/ena_netdev.c, check_for_missing_keep_alive and check_for_admin_com_state; drivers/infiniband/hw/efa/efa_com.c, efa_com_submit_admin_cmd; 5.4 to 7.2",
		drivers: amazon, form: `^Keep alive watchdog timeout|^ENA admin queue is not in running state|^Admin queue is closed|^Failed to submit command |^Device isn't ready, (?:abort|can't)`,
	},
	{
		Kind: FirmwareError, Meaning: "the device answers admin commands with invalid completions",
		Source:  "drivers/infiniband/hw/efa/efa_com.c, efa_com_handle_single_admin_completion and efa_com_cqe_checksum_valid; drivers/net/ethernet/amazon/ena/ena_com.c; 5.4 to 7.2",
		drivers: amazon, form: `^Received completion with (?:invalid checksum|unexpected command id)|^comp_ctx is NULL\. Changing the admin queue`,
	},
	{
		Kind: TransmitTimeout, Meaning: "a transmit queue of the interface made no progress",
		Source:  "drivers/net/ethernet/amazon/ena/ena_netdev.c, check_missing_comp_in_tx_queue and ena_tx_timeout; 5.4 to 7.2",
		drivers: amazon, form: `^(?:The number of lost tx|Lost TX) completions (?:is|are) above the threshold|^Transmit time out|` +
			`^(?:Potential MSIX issue on Tx side Queue = |TX q )(?P<queue>\d+)(?: is paused for too long|\. Reset)`,
	},
	{
		Kind: QueueError, Meaning: "a queue of the interface has invalid completions or no interrupts",
		Follows: "a reset by the driver",
		Source:  "drivers/net/ethernet/amazon/ena/ena_netdev.c, handle_invalid_req_id and check_for_rx_interrupt_queue; drivers/infiniband/hw/efa/efa_main.c, efa_process_comp_eqe; 5.4 to 7.2",
		drivers: amazon, form: `^Potential MSIX issue on Rx side Queue = (?P<queue>\d+)|^Invalid (?:rx )?req[_ ]id:? \d+|^tx_info doesn't have valid|^Completion event on non-existent CQ`,
	},
	{
		Kind: RecoveryFailed, Meaning: "the driver cannot reset the device",
		Source:  "drivers/net/ethernet/amazon/ena/ena_netdev.c, ena_restore_device; ena_com.c and drivers/infiniband/hw/efa/efa_com.c, efa_com_dev_reset; 5.4 to 7.2",
		drivers: amazon, form: `^Reset attempt failed|^Can ?not (?:reset|initialize) device|^Device reset failed|^Reset indication didn't turn|^Destroy failure, restarting device|^Validation of device parameters failed|` +
			`^Enable MSI-X failed|^Failed to create I/O queues$`,
	},
	{
		Kind: RecoveryStarted, Meaning: "the driver resets the device",
		Source:  "drivers/net/ethernet/amazon/ena/ena_netdev.c, ena_timer_service; 5.4 to 7.2",
		drivers: amazon, form: `^Trigger reset is on`,
	},
	{
		Kind: RecoveryEnded, Meaning: "the device works again after a reset",
		Source:  "drivers/net/ethernet/amazon/ena/ena_netdev.c, ena_restore_device; 5.4 to 7.2",
		drivers: amazon, form: `^Device reset completed successfully`,
	},
	{
		Kind: ProbeFailed, Meaning: "the driver cannot start the function or its queues",
		Source:  "drivers/infiniband/hw/efa/efa_main.c, efa_probe_device and efa_enable_msix; drivers/net/ethernet/amazon/ena/ena_netdev.c, ena_probe, ena_device_init and ena_enable_msix; 5.4 to 7.2",
		drivers: amazon, form: `^(?i:efa|ena) device init failed|^The device doesn't have io queues|^(?i:failed) to (?:init(?: readless MMIO| mmio read less)|re(?:map regist?er bar|map regs bar|quest (?:admin irq|I/O IRQ|irq))|enable (?:MSI-X|and set the admin))|` +
			`^(?:Doorbells )?BARs? unavailable|^pci_(?:enable_device_mem|request_selected_regions|set_dma_mask)|^(?:err_pci_set|dma_set_mask)\w+ failed|^(?i:ENA llq bar) mapping failed|` +
			`^Can not (?:initialize ena admin queue|reset device|reserve msix|setup management)|^(?:(?i:device) version is too low|E(?:FA|NA)(?: ctrl)? version is lower)|^Cannot (?:register net device|get attribute for ena device|configure aenq)|` +
			`^Queue creation failed|^(?:Invalid dma width|DMA width illegal) value|^Failed to create I/O [RT]X queue|^Failed to (?:get device attr|[gs]et aenq attributes)|^Device alloc failed|^Invalid dma width`,
	},
	// mana, mana_ib.
	{
		Kind: CommandTimeout, Meaning: "the host did not answer a command of the hardware channel",
		Source:  "drivers/net/ethernet/microsoft/mana/hw_channel.c, mana_hwc_send_request; mana_en.c, mana_fence_rq and mana_get_stats64; gdma_main.c, mana_gd_test_eq; shm_channel.c, mana_smc_teardown_hwc; 5.13 to 7.2",
		drivers: microsoft, form: `^HWC: Request timed out|^Command (?P<command>0x[0-9a-f]+) timed out|^HWC timeout occurred|^Failed to fence RQ \d+: timed out|stats query timed out|^test_eq timed out|^Timeout when tearing down HWC`,
	},
	{
		Kind: FirmwareError, Meaning: "the hardware channel answers wrongly",
		Source:  "drivers/net/ethernet/microsoft/mana/shm_channel.c, mana_smc_read_response; hw_channel.c, mana_hwc_rx_event_handler and mana_hwc_handle_resp; 5.13 to 7.2",
		drivers: microsoft, form: `^SMC operation failed|^Wrong SMC response|^HWC RX: wrong |^hwc_rx: invalid msg_id|^Unexpected mana message response|^HWC: Failed to post send WQE|^Failed to post WQE on HWC`,
	},
	{
		Kind: RecoveryStarted, Meaning: "the driver resets the device: the host serviced it",
		Source:  "drivers/net/ethernet/microsoft/mana/gdma_main.c, mana_serv_reset; mana_en.c, mana_probe; 6.15 to 7.2",
		drivers: microsoft, form: `^MANA reset cycle start|^Start MANA recovery mode`,
	},
	{
		Kind: RecoveryEnded, Meaning: "the device works again after a reset",
		Source:  "drivers/net/ethernet/microsoft/mana/gdma_main.c, mana_serv_reset; 6.15 to 7.2",
		drivers: microsoft, form: `^MANA reset cycle completed`,
	},
	{
		Kind: RecoveryFailed, Meaning: "the driver cannot restart the device",
		Source:  "drivers/net/ethernet/microsoft/mana/gdma_main.c, mana_serv_reset; mana_en.c, mana_probe, mana_detach and mana_dealloc_queues; mana_ethtool.c, mana_set_channels; 5.13 to 7.2",
		drivers: microsoft, form: `^MANA (?:reset cycle failed|service: (?:no|resume failed|GC not setup))|^mana (?:re-attach|detach) failed|^mana_(?:at|de)tach failed|failed to deallocate queues: |` +
			`^(?:Attach Failed for port|Failed to detach vPort|Failed to add adev on resume|The number of vPorts changed)|^flr failed`,
	},
	{
		Kind: QueueError, Meaning: "an event queue overflowed, or a transmit queue has an error completion",
		Source:  "drivers/net/ethernet/microsoft/mana/gdma_main.c, mana_gd_process_eq_events; mana_en.c, mana_poll_tx_cq; 5.13 to 7.2",
		drivers: microsoft, form: `^EQ (?P<queue>\d+): overflow detected|^TX: (?:CQE error|unknown CQE type) `,
	},
	{
		Kind: ProbeFailed, Meaning: "the driver cannot start the function, a port or the RDMA device",
		Source: "drivers/net/ethernet/microsoft/mana/gdma_main.c, mana_gd_probe and mana_gd_setup; hw_channel.c, mana_hwc_create_channel; mana_en.c, mana_probe_port and mana_open; " +
			"drivers/infiniband/hw/mana/device.c, mana_ib_probe; 5.13 to 7.2",
		drivers: microsoft, form: `^gdma probe failed|^Failed to (?:enable pci device|establish HWC|initialize HWC|test HWC|detect devices|detect any vPort|create HWC|init inflight_msg_res|set(?:up)? (?:remaining )?IRQs|set dma device)|` +
			`^(?:Error|Timeout) when setting up HWC|^(?:Probe Failed for port|Failed to probe vPort|Unable to register netdev)|^\w+ failed (?:to allocate queues: |\(error )|^DMA set mask failed|` +
			`^Failed to (?:register device, ret|query device caps, ret|query ETH device caps|create EQs, ret|get netdev for IB port|set ib netdev|create RNIC adapter|query adapter caps|add Mac address)|` +
			`^(?:SRIOV (?:SHM|base)|SHM|Doorbell) (?:offset|page size|ID) |^gdma_register_device_resp failed|^Failed to query (?:config|resource info|MSI-X table size)|^VfVerifyVersionOutput|` +
			`^Failed to (?:request irq|alloc irq_map|register irq|create EQ|create vPort|configure vPort|query info for vPort)|^No free MSI vectors|^Adapter MTU too small|^Register IRQ err|^test_eq (?:failed|got)`,
	},
	// erdma.
	{
		Kind: CommandTimeout, Meaning: "the device did not answer a command",
		Source:  "drivers/infiniband/hw/erdma/erdma_verbs.c, erdma_dereg_mr, erdma_destroy_ah, erdma_destroy_cq and erdma_destroy_qp; 6.17 to 7.2",
		drivers: alibaba, form: `^failed to (?P<command>deregister MR|destroy \w+) \w+: -(?:62|110)$`,
	},
	{
		Kind: ProbeFailed, Meaning: "the driver cannot start the function or its RDMA device",
		Source:  "drivers/infiniband/hw/erdma/erdma_main.c, erdma_probe_dev and erdma_device_register; erdma_cmdq.c, erdma_cmdq_init; 6.0 to 7.2",
		drivers: alibaba, form: `^wait init done failed|^ib_(?:register|alloc)_device failed|^(?:pci_enable_device|devm_ioremap|request irq vectors) ?failed|^failed to (?:request_irq|register notifier)|^failed \(-?\d+\) to link netdev`,
	},
}
