package kernellog

import "rdma_exporter/internal/lazy"

var broadcomPatterns = []Pattern{
	// bnxt.
	{
		Kind: CommandTimeout, Meaning: "the firmware did not answer a command",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt_hwrm.c, __hwrm_send; 5.13 to 6.18",
		drivers: broadcom, needle: "rror (timeout: ",
		form: lazy.Regexp(`(?:Resp cmpl intr err msg: (?P<response>0x[0-9a-f]+)|Error \(timeout: \d+\) msg \{(?P<command>0x[0-9a-f]+ 0x[0-9a-f]+)\})`),
	},
	{
		Kind: CommandTimeout, Meaning: "the firmware did not answer a command of the RDMA driver",
		Source:  "drivers/infiniband/hw/bnxt_re/qplib_rcfw.c, __send_message_no_waiter and bnxt_qplib_map_rc; 6.4 and newer; older: bnxt_qplib_rcfw_send_message",
		drivers: broadcom, needle: "timed",
		form: lazy.Regexp(`cmdq\[(?P<command>0x[0-9a-f]+)\](?:=0x[0-9a-f]+)? timedout|timed out in command (?P<code>0x[0-9a-f]+)`),
	},
	{
		Kind: FirmwareStopped, Meaning: "the firmware does not answer: the RDMA driver detaches the device",
		Source:  "drivers/infiniband/hw/bnxt_re/qplib_rcfw.c, bnxt_re_is_fw_stalled and __wait_for_resp; 6.5 and newer",
		drivers: nil, needle: "FW ", form: lazy.Regexp(`(?:FW STALL Detected|Timed out waiting for FW|FW_STALL)`),
	},
	{
		Kind: FirmwareReset, Meaning: "the firmware announces a reset, fatal or not",
		Follows: "links that are down for seconds",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_async_event_process; 5.4 to 6.18",
		drivers: broadcom, needle: "irmware",
		form: lazy.Regexp(`^Firmware (?P<what>fatal|non-fatal) reset event, data1: 0x[0-9a-f]+|^Firmware reset request event called`),
	},
	{
		Kind: RecoveryFailed, Meaning: "the driver gave up the recovery of a device",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_fw_reset_task; 5.4 to 6.18",
		drivers: broadcom, needle: "irmware reset", form: lazy.Regexp(`^Firmware reset (?:aborted|timed out|failed)`),
	},
	{
		Kind: TransmitTimeout, Meaning: "a transmit queue of the interface made no progress",
		Source:  "drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_tx_timeout; 5.4 to 6.18",
		drivers: broadcom, needle: "TX timeout detected", form: lazy.Regexp(`^TX timeout detected`),
	},
}
