package kernellog

import (
	"slices"
)

var othersPatterns = slices.Concat(pensandoPatterns, hisiliconPatterns, cloudPatterns, laboratoryPatterns)

var pensandoPatterns = []Pattern{
	// ionic, ionic_rdma.
	{
		Kind: CommandTimeout, Meaning: "the firmware did not answer a command",
		Source: "drivers/net/ethernet/pensando/ionic/ionic_main.c, ionic_adminq_check_err and ionic_dev_cmd_wait; ionic_fw.c, ionic_fw_status_long_wait; " +
			"drivers/infiniband/hw/ionic/ionic_admin.c, ionic_admin_timedout; 5.4 to 7.2",
		drivers: pensando, form: `(?P<command>IONIC_CMD_\w+|[A-Z_]+) \(\d+\) (?:timeout|timed out|failed: TIMEOUT)|^DEVCMD (?P<name>\w+) \(\d+\) timeout|` +
			`^DEV_CMD firmware wait (?P<step>\w+) timed out|^admin command timed out, aq `,
	},
	{
		Kind: FirmwareStopped, Meaning: "the firmware does not run",
		Source:  "drivers/net/ethernet/pensando/ionic/ionic_dev.c, ionic_heartbeat_check; ionic_lif.c, ionic_lif_handle_fw_down; ionic_main.c, ionic_dev_cmd_wait and ionic_adminq_wait; 5.4 to 7.2",
		drivers: pensando, form: `^FW (?:heartbeat stalled|stopped|Down)|^Surprise FW stop|\w \(\d+\) (?:failed - FW halted|interrupted(?: - FW is down|, FW in reset))`,
	},
	{
		Kind: RecoveryEnded, Meaning: "the firmware runs again",
		Source:  "drivers/net/ethernet/pensando/ionic/ionic_dev.c, ionic_heartbeat_check; ionic_lif.c, ionic_lif_handle_fw_up; 5.8 to 7.2",
		drivers: pensando, form: `^FW (?:heartbeat restored|Up: LIFs restarted)`,
	},
	{
		Kind: RecoveryStarted, Meaning: "the driver starts the interface again after a stop of the firmware",
		Source:  "drivers/net/ethernet/pensando/ionic/ionic_lif.c, ionic_lif_handle_fw_up; 5.8 to 7.2",
		drivers: pensando, form: `^FW Up: (?:restarting LIFs|clearing broken state)`,
	},
	{
		Kind: RecoveryFailed, Meaning: "the driver cannot start the interface again",
		Source: "drivers/net/ethernet/pensando/ionic/ionic_lif.c, ionic_lif_handle_fw_up, ionic_tx_timeout_work and ionic_link_status_check; ionic_main.c, ionic_port_reset; " +
			"drivers/infiniband/hw/ionic/ionic_admin.c, ionic_kill_rdma_admin; ionic_aux.c, ionic_request_rdma_reset; 5.4 to 7.2",
		drivers: pensando, form: `^FW Up: LIFs restart failed|Restarting queues failed$|^Failed to reset port|^failed to reset rdma|request_reset: error`,
	},
	{
		Kind: ProbeFailed, Meaning: "the driver cannot start the function or its RDMA device",
		Source: "drivers/net/ethernet/pensando/ionic/ionic_bus_pci.c, ionic_probe; ionic_dev.c, ionic_dev_setup; ionic_lif.c, ionic_lif_init; ionic_aux.c, ionic_auxbus_register; " +
			"drivers/infiniband/hw/ionic/ionic_ibdev.c, ionic_aux_probe; ionic_admin.c, ionic_create_rdma_admin; 5.4 to 7.2",
		drivers: pensando, form: `, aborting(?:\.  err=-?\d+)?$|^Incompatible firmware signature|^Cannot identify (?:LIFs|ionic): |^Failed to init port$|^adminq (?:init|irq request) failed|^Failed to register ibdev|` +
			`^Failed to (?:add|initialize) \w+ aux device: |^Failed to allocate aux id|^fail(?:ed to)? create (?:eq|acq|aq) |^Can't get (?:minimum \d+ )?intrs from OS|^Cannot register (?:devlink|LIF)`,
	},
	{
		Kind: QueueError, Meaning: "a queue of the RDMA driver has an invalid completion",
		Source:  "drivers/infiniband/hw/ionic/ionic_admin.c, ionic_admin_poll_locked and ionic_rdma_admincq_event; 6.18 to 7.2",
		drivers: pensando, form: `^bad (?:cqe (?:for empty adminq|qid|type)|idx)|^admincq event \d+`,
	},
	{
		Kind: CompletionError, Meaning: "a queue pair ended with an error completion",
		Source:  "drivers/infiniband/hw/ionic/ionic_datapath.c, ionic_poll_recv, ionic_comp_msn and ionic_comp_npg; 6.18 to 7.2",
		drivers: pensando, form: `^qp (?P<pair>\d+) (?P<what>recv|msn|npg) cqe with error`,
	},
	{
		Kind: TransmitTimeout, Meaning: "a transmit queue of the interface made no progress",
		Source:  "drivers/net/ethernet/pensando/ionic/ionic_lif.c, ionic_tx_timeout; 5.4 to 7.2",
		drivers: pensando, form: `^Tx Timeout (?:recovery|triggered - txq (?P<queue>\d+))`,
	},
}

var laboratoryPatterns = []Pattern{
	// cxgb4.
	{
		Kind: FirmwareError, Meaning: "the adapter stopped with a fatal error",
		Source:  "drivers/net/ethernet/chelsio/cxgb4/cxgb4_main.c, t4_fatal_err; t4_hw.c, t4_report_fw_error; 5.4 to 7.2",
		drivers: chelsio, form: `^encountered fatal error, adapter stopped|^Firmware reports adapter error: (?P<what>[\w ]+)`,
	},
	{
		Kind: CommandTimeout, Meaning: "the firmware did not answer a command",
		Source:  "drivers/net/ethernet/chelsio/cxgb4/t4_hw.c, t4_wr_mbox_meat_timeout; 5.4 to 7.2",
		drivers: chelsio, form: `^command (?P<command>0x[0-9a-f]+) in mailbox \d+ timed out`,
	},
	{
		Kind: ProbeFailed, Meaning: "the driver cannot start the function: no answer from its firmware",
		Source:  "drivers/net/ethernet/chelsio/cxgb4/cxgb4_main.c, adap_init0; 5.4 to 7.2",
		drivers: chelsio, form: `^could not connect to FW, error`,
	},
	// qed, qede, qedr: without the address of the function.
	{
		Kind: CommandTimeout, Meaning: "the firmware did not answer a command",
		Source: "drivers/net/ethernet/qlogic/qed/qed_mcp.c, _qed_mcp_cmd_and_union; 5.4 to 7.2",
		form:   `^\[qed_\w+:\d+\((?:(?P<netdev>[a-z]\w{1,14})(?:-\d+)?|[^)]*)\)\]The MFW failed to respond to command (?P<command>0x[0-9a-f]+)`,
	},
	{
		Kind: FirmwareStopped, Meaning: "the firmware does not answer",
		Source: "drivers/net/ethernet/qlogic/qed/qed_mcp.c, qed_mcp_cmd_and_union; 5.4 to 7.2",
		form:   `^\[qed_\w+:\d+\((?:(?P<netdev>[a-z]\w{1,14})(?:-\d+)?|[^)]*)\)\]The MFW is not responsive`,
	},
}
