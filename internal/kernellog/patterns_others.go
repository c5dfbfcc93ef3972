package kernellog

import "rdma_exporter/internal/lazy"

var othersPatterns = []Pattern{
	// ionic.
	{
		Kind: CommandTimeout, Meaning: "the firmware did not answer a command",
		Source:  "drivers/net/ethernet/pensando/ionic/ionic_main.c, ionic_adminq_wait and ionic_dev_cmd_wait; 5.15 to 6.18",
		drivers: pensando, needle: "timeout",
		form: lazy.Regexp(`(?P<command>IONIC_CMD_\w+|[A-Z_]+) \(\d+\) (?:timeout|timed out)|DEVCMD (?P<name>\w+) \(\d+\) timeout`),
	},
	{
		Kind: FirmwareStopped, Meaning: "the firmware does not run",
		Source:  "drivers/net/ethernet/pensando/ionic/ionic_dev.c, ionic_heartbeat_check; 5.15 to 6.18",
		drivers: pensando, needle: "FW ", form: lazy.Regexp(`^FW (?:heartbeat stalled|status|restart) ?`),
	},
	{
		Kind: TransmitTimeout, Meaning: "a transmit queue of the interface made no progress",
		Source:  "drivers/net/ethernet/pensando/ionic/ionic_lif.c, ionic_tx_timeout; 5.15 to 6.18",
		drivers: pensando, needle: "Tx Timeout", form: lazy.Regexp(`^Tx Timeout recovery`),
	},
	// hns.
	{
		Kind: CommandTimeout, Meaning: "the firmware did not answer a command of the RDMA driver",
		Source:  "drivers/infiniband/hw/hns/hns_roce_hw_v2.c, __hns_roce_cmq_send, hns_roce_cmd.c; 5.15 to 6.18",
		drivers: hisilicon, needle: "md",
		form: lazy.Regexp(`(?i)^CMDQ move tail from \d+ to \d+|^\[cmd\] token 0x[0-9a-f]+ (?:mailbox )?timeout`),
	},
	{
		Kind: RecoveryStarted, Meaning: "the driver resets the device",
		Source:  "drivers/net/ethernet/hisilicon/hns3/hns3pf/hclge_main.c, hclge_reset; 5.15 to 6.18",
		drivers: hisilicon, needle: "eset",
		form: lazy.Regexp(`^(?:received reset event, reset type is|IMP reset|global reset|PF reset) ?`),
	},
	// efa.
	{
		Kind: CommandTimeout, Meaning: "the device did not answer an admin command",
		Source:  "drivers/infiniband/hw/efa/efa_com.c, efa_com_wait_and_process_admin_cq; 5.15 to 6.18",
		drivers: amazon, needle: "admin", form: lazy.Regexp(`(?i)The device (?:sent a completion but the driver didn't receive|didn't send any completion for) (?:any |an? )?(?:MSI-X interrupt|admin)`),
	},
	{
		Kind: FirmwareStopped, Meaning: "the device sends no keep-alive",
		Source:  "drivers/net/ethernet/amazon/ena/ena_netdev.c, check_for_missing_keep_alive; 5.15 to 6.18",
		drivers: amazon, needle: "Keep alive watchdog timeout", form: lazy.Regexp(`Keep alive watchdog timeout`),
	},
}
