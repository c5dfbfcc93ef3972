package kernellog

var hisiliconPatterns = []Pattern{
	// hns3, hns_roce.
	{
		Kind: CommandTimeout, Meaning: "the firmware did not answer a command",
		Source: "drivers/infiniband/hw/hns/hns_roce_hw_v2.c, __hns_roce_cmq_send; hns_roce_cmd.c, __hns_roce_cmd_mbox_wait; " +
			"drivers/net/ethernet/hisilicon/hns3/hns3pf/hclge_cmd.c, hclge_cmd_send; hns3vf/hclgevf_mbx.c, hclgevf_get_mbx_resp; 5.4 to 7.2",
		drivers: hisilicon, form: `(?i)^CMDQ move tail from \d+ to \d+|^\[cmd\] ?token (?:0x)?[0-9a-f]+ mailbox (?P<command>(?:0x)?[0-9a-f]+) timeout|^\[cmd\] ?wait_for_completion_timeout timeout|` +
			`^\[cmd_poll\]hw run cmd TIMEDOUT|^(?:Clean|clean)ed \d+, need to clean \d+|^VF could not get mbx\(|^failed to wait mbox status`,
	},
	{
		Kind: FirmwareError, Meaning: "the hardware or its firmware reports an error (RAS)",
		Follows: "a reset by the driver",
		Source: "drivers/net/ethernet/hisilicon/hns3/hns3pf/hclge_err.c, hclge_log_error, hclge_handle_hw_ras_error, hclge_log_and_clear_rocee_ras_error and hclge_handle_occurred_error; " +
			"hclge_cmd.c, hclge_cmd_csq_clean; hns3_enet.c, hns3_process_hw_error; drivers/infiniband/hw/hns/hns_roce_hw_v2.c, abnormal_interrupt_basic and fmea_ram_ecc_work; 5.4 to 7.2",
		drivers: hisilicon, form: `^(?P<register>\w+) (?P<error>\w+) found \[(?:error|dfx) status=0x|^found (?P<module>\w+) (?P<type>[\w ]+), is (?P<severity>[\w ]+) error\.|` +
			`^(?:HNS|ROCEE) Non-Fatal RAS error(?:\(status=0x[0-9a-f]+\))? identified|^ROCEE (?P<what>RAS (?:AXI [br]resp|2bit ECC) error|(?:TSP|SCC) OVF)|^HNS hw error\(RAS\) identified|` +
			`\[error status=0x[0-9a-f]+\] found|^Can't (?:recover - RAS|handle - MSIx) error reported|^PPU_PF_ABNORMAL_INT_ST over_8bd_no_fe found|` +
			`^IMP firmware watchdog reset soon expected|^Disabling any further commands to IMP firmware|^wrong cmd head|^Detected (?P<fault>[\w ]+)!$|` +
			`^(?:BUS|OTHER) ERR!|^failed to recover .+, index = \d+, ret = |^ECC UCERR ALARM`,
	},
	{
		Kind: FirmwareStopped, Meaning: "the firmware or the PF does not answer",
		Source:  "drivers/net/ethernet/hisilicon/hns3/hns3pf/hclge_cmd.c, hclge_cmd_init; hns3vf/hclgevf_main.c, hclgevf_keep_alive; 5.4 to 7.2",
		drivers: hisilicon, form: `^failed to init cmd since reset 0x[0-9a-f]+ pending|^VF sends keep alive cmd failed|^command queue needs re-initializing`,
	},
	{
		Kind: RecoveryStarted, Meaning: "the driver resets the device",
		Source:  "drivers/net/ethernet/hisilicon/hns3/hns3pf/hclge_main.c, hclge_do_reset and hclge_check_event_cause; hclge_mbx.c, hclge_handle_ncsi_error; hns3_enet.c, hns3_error_detected; 5.4 to 7.2",
		drivers: hisilicon, form: `^received reset event, reset type is|^(?:IMP|[Gg]lobal|PF) [Rr]eset (?:requested|interrupt)|^requesting reset due to|^PCI error detected, state`,
	},
	{
		Kind: RecoveryEnded, Meaning: "the device works again after a reset",
		Source:  "drivers/net/ethernet/hisilicon/hns3/hns3pf/hclge_main.c, hclge_reset_ae_dev; drivers/infiniband/hw/hns/hns_roce_hw_v2.c, hns_roce_hw_v2_reset_notify_init; 5.4 to 7.2",
		drivers: hisilicon, form: `^[Rr]eset done, \w+ (?:driver initialization|client reinit) finished`,
	},
	{
		Kind: RecoveryFailed, Meaning: "the driver cannot reset the device",
		Source: "drivers/net/ethernet/hisilicon/hns3/hns3pf/hclge_main.c, hclge_reset_err_handle, hclge_reset_wait, hclge_flr_prepare, hclge_flr_done and hclge_reset_ae_dev; hns3vf/hclgevf_main.c, hclgevf_reset; " +
			"drivers/infiniband/hw/hns/hns_roce_hw_v2.c, hns_roce_hw_v2_reset_notify_init and hns_roce_function_clear; 5.4 to 7.2",
		drivers: hisilicon, form: `^Reset fail!|^Wait for reset timeout: |^flr wait (?:down )?timeout: |^fail(?:ed)? to (?:rebuild|prepare (?:FLR|to reset)), ret=|^failed to reset VF(?:\(| stack)|VF is disabled!$|` +
			`^couldn't get reset done status from h/w|^failed to fetch H/W reset completion status|^In reset process RoCE reinit failed|^(?i:func clear (?:failed|write failed|read failed))|` +
			`^(?:asserting function reset|assert PF reset done) fail|^failed to assert VF reset|^Can't recover - error happened before|^reset_pending:0x|` +
			`^(?:Cmd queue init failed|Mac init error, |Enable tso fail, |Map tqp error, |Rss init fail, |VLAN init fail, |tm init hw fail, )|^(?:pci reset|cmd) failed -?\d+$|` +
			`^fail\(-?\d+\) to re-enable|^notify (?:nic|roce) client failed|^(?:Get reset status error|send function reset cmd fail)`,
	},
	{
		Kind: ModuleError, Meaning: "the link is down: the transmitter of the module is off, or the reference clock is lost",
		Source:  "drivers/net/ethernet/hisilicon/hns3/hns3pf/hclge_mbx.c, hclge_link_fail_parse; 5.4 to 7.2",
		drivers: hisilicon, form: `^(?P<what>Reference clock lost|SFP tx is disabled)!`,
	},
	{
		Kind: QueueError, Meaning: "an event queue, doorbell or queue of the RDMA device has a fatal error",
		Source:  "drivers/infiniband/hw/hns/hns_roce_hw_v2.c, hns_roce_irq_work_handle, dump_aeqe_log and abnormal_interrupt_basic; hns_roce_hw_v1.c, hns_roce_v1_aeq_int; 5.4 to 7.2",
		drivers: hisilicon, form: `(?i)^(?:AEQ|[SO]?DB) overflow|^C[EQ]Q? ?\[?0?x?[0-9a-f]*\]? overflow|^CQ 0x[0-9a-f]+ (?:access err|overflow)|^SRQ catas error|` +
			`^(?:invalid request )?local (?:access violation )?work queue (?:catastrophic error|0x[0-9a-f]+ (?:catast )?error|error)|^invalid request local work queue 0x|` +
			`^Invalid Req Local Work Queue Error|^Local (?:Access Violation Work Queue Error|Work Queue Catastrophic Error)|^(?:invalid xrceth|xrc domain violation) error`,
	},
	{
		Kind: QueueError, Meaning: "the device reports a position in a transmit ring that the ring does not have",
		Source:  "drivers/net/ethernet/hisilicon/hns3/hns3_enet.c, hns3_clean_tx_ring; to 5.9",
		drivers: hisilicon, form: `^wrong head \(\d+, \d+-\d+\)`,
	},
	{
		Kind: CompletionError, Meaning: "a queue pair ended with an error completion",
		Source:  "drivers/infiniband/hw/hns/hns_roce_hw_v2.c, get_cqe_status; 5.4 to 7.2",
		drivers: hisilicon, form: `^error cqe status (?P<status>0x[0-9a-f]+)`,
	},
	{
		Kind: ProbeFailed, Meaning: "the driver cannot start the function or its RDMA device",
		Source: "drivers/net/ethernet/hisilicon/hns3/hns3pf/hclge_main.c, hclge_pci_init and hclge_init_ae_dev; hnae3.c, hnae3_register_ae_dev; hns3_enet.c, hns3_client_init; " +
			"drivers/infiniband/hw/hns/hns_roce_main.c, hns_roce_init and hns_roce_setup_hca; hns_roce_hw_v2.c, hns_roce_hw_v2_init_instance; 5.4 to 7.2",
		drivers: hisilicon, form: `^(?i:RoCE (?:Engine|instance) init failed|(?:cmd|eq|hw_) ?init failed!|init HEM\(|init RoCE Command Queue failed|(?:get RoCE engine profile|reset RoCE engine|Dereset RoCE engine|setup hca) failed)|` +
			`^ib_register_device failed|^(?i:failed to init [\w ]+ memory, (?:aborting|ret))|^(?i:failed to init(?:ialize)? (?:completion queue|memory region|protected domain|queue pair|share receive queue|uar|qp_)_? ?table)|` +
			`^(?i:failed to allocate priv_uar)|^setup_mtu_mac failed|^probe register netdev fail|^(?:match and instantiation failed|fail to instantiate client|init ae_dev error)|` +
			`^(?:failed to enable PCI device|PCI request regions failed|[Cc]an't map configuration register space|failed to map device memory|can't set consistent PCI DMA)|` +
			`^hclge device (?:allocation|initialization) failed|^(?:Init MSI/MSI-X error|Configure dev error|Allocate TQPs error), ret|^failed\(-?\d+\) to (?:allocate|init|fetch|initialize) |` +
			`^failed to query (?:dev specifications|version and capabilities|PF caps|VF caps|func info|firmware info|hardware info|pf resource|VF resource)|^(?:query pf resource|get config) failed|^(?:PCI init failed|firmware version query failed -?\d+)$|^(?:get hw capability error, ret = |query pf resource error )-?\d|` +
			`^(?:C[RS]Q ring setup error|Init C[RS]Q error|failed to init CSQ)|^(?:only|Just) \d+ msi resources|^(?:tm schd init|fd table init|manager table init) fail|^(?:request misc irq|VF failed to request misc irq)|` +
			`^(?:knic setup failed|VF knic setup failed|vport setup failed)|^(?i:request irq (?:error|failed))|^(?:net up fail, |hns3_client_start fail! )ret=|^Query (?:firmware|hardware) version fail`,
	},
}
