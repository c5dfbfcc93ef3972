package kernellog

import (
	"regexp"

	"rdma_exporter/internal/lazy"
)

// Kind is the kind of event that a line reports.
type Kind string

// The kinds.
const (
	// Ignored lines look like those of a fault and are none.
	Ignored Kind = ""

	CommandTimeout   Kind = "command_timeout"
	CommandRecovered Kind = "command_recovered"
	FirmwareError    Kind = "firmware_error"
	FirmwareStopped  Kind = "firmware_stopped"
	FirmwareReset    Kind = "firmware_reset"
	RecoveryStarted  Kind = "recovery_started"
	RecoveryEnded    Kind = "recovery_ended"
	RecoveryFailed   Kind = "recovery_failed"
	FirmwareMemory   Kind = "firmware_memory"
	ModulePlugged    Kind = "module_plugged"
	ModuleUnplugged  Kind = "module_unplugged"
	ModuleError      Kind = "module_error"
	HighTemperature  Kind = "high_temperature"
	SlotPower        Kind = "slot_power"
	TransmitTimeout  Kind = "transmit_timeout"
	CompletionError  Kind = "completion_error"
	QueueError       Kind = "queue_error"
	MulticastJoin    Kind = "multicast_join"
	ConnectionError  Kind = "connection_error"
	PCIeCorrectable  Kind = "pcie_correctable"
	PCIeNonFatal     Kind = "pcie_nonfatal"
	PCIeFatal        Kind = "pcie_fatal"
	PCIeContained    Kind = "pcie_contained"
	SlotLinkDown     Kind = "slot_link_down"
	SlotLinkUp       Kind = "slot_link_up"
	NoAddressSpace   Kind = "no_address_space"
	IOMMUFault       Kind = "iommu_fault"
	GPUXid           Kind = "gpu_xid"
	GPULost          Kind = "gpu_lost"
	NVSwitchSXid     Kind = "nvswitch_sxid"
	PeerMemory       Kind = "peer_memory"
	SoftLockup       Kind = "soft_lockup"
	HungTask         Kind = "hung_task"
	RCUStall         Kind = "rcu_stall"
	OOMKill          Kind = "oom_kill"

	// DriverLoaded is no fault: what a driver prints at its start is true until it starts again.
	DriverLoaded Kind = "driver_loaded"
)

// PrintedAtLoad reports whether a kind is printed once when a driver is loaded.
func (k Kind) PrintedAtLoad() bool { return k == SlotPower }

// Pattern is a message of the kernel.
type Pattern struct {
	Kind    Kind
	Meaning string
	Follows string // what usually comes next; empty: nothing in particular
	Source  string // file and function of the kernel or driver, with the versions that have the text

	drivers map[string]bool // of the prefix; nil: any or none
	needle  string          // that each matching text contains; empty: any
	form    form            // of the text; groups pci, netdev, device, driver are the object, all others the detail
}

// form is an expression that is compiled at its first use: a healthy host prints few of the messages.
type form func() *regexp.Regexp

func of(drivers ...string) map[string]bool {
	m := map[string]bool{}
	for _, d := range drivers {
		m[d] = true
	}
	return m
}

var (
	mlx5      = of("mlx5_core", "mlx5_ib")
	mlx4      = of("mlx4_core", "mlx4_en", "mlx4_ib")
	broadcom  = of("bnxt_en", "bnxt_re")
	intel     = of("ice", "irdma", "i40e")
	pensando  = of("ionic")
	hisilicon = of("hns3", "hns_roce", "hns_roce_hw_v2")
	amazon    = of("efa", "ena")
	pcieports = of("pcieport")
)

const (
	mlx5Dir   = "drivers/net/ethernet/mellanox/mlx5/core/"
	inMLX5    = "; 5.15 to 6.18, MLNX_OFED 5.8 to 25.10"
	commandUp = "the device works on; each timeout leaks a slot of its command queue, and the last one makes the device unusable"
)

// Patterns are the messages. The first that matches counts.
var Patterns = []Pattern{
	// mlx5: commands.
	{
		Kind: CommandTimeout, Meaning: "the firmware did not answer a command", Follows: commandUp,
		Source:  mlx5Dir + "cmd.c, cb_timeout_handler and wait_func" + inMLX5,
		drivers: mlx5, needle: "leak of a command resource",
		form: lazy.Regexp(`(?P<command>[A-Z0-9_]+)\(0x[0-9a-f]+\)(?: \w+,)? timeout\. Will cause a leak of a command resource`),
	},
	{
		Kind: CommandTimeout, Meaning: "the firmware did not take a command off the queue in time", Follows: commandUp,
		Source:  mlx5Dir + "cmd.c, wait_func and wait_func_handle_exec_timeout" + inMLX5,
		drivers: mlx5, needle: "(0x",
		form: lazy.Regexp(`(?P<command>[A-Z0-9_]+)\(0x[0-9a-f]+\) (?:canceled on out of queue timeout|No done completion)`),
	},
	{
		Kind: CommandTimeout, Meaning: "the command queue of the device is full", Follows: commandUp,
		Source:  mlx5Dir + "cmd.c, cmd_work_handler" + inMLX5,
		drivers: mlx5, needle: "failed to allocate command entry", form: lazy.Regexp(`failed to allocate command entry`),
	},
	{
		Kind: CommandRecovered, Meaning: "the answer to a command was found after its interrupt had been lost",
		Source:  mlx5Dir + "cmd.c, wait_func_handle_exec_timeout; 5.10 and newer",
		drivers: mlx5, needle: "recovered after timeout",
		form: lazy.Regexp(`(?P<command>[A-Z0-9_]+)\(0x[0-9a-f]+\)(?: Async,)? recovered after timeout`),
	},
	// mlx5: health.
	{
		Kind: FirmwareStopped, Meaning: "the health counter of the firmware stands still",
		Follows: "recovery by the driver, or a device that answers no command",
		Source:  mlx5Dir + "health.c, poll_health" + inMLX5,
		drivers: mlx5, needle: "reached miss count", form: lazy.Regexp(`device's health compromised - reached miss count`),
	},
	{
		Kind: FirmwareError, Meaning: "the device reports a fatal error", Follows: "recovery by the driver",
		Source:  mlx5Dir + "health.c, poll_health" + inMLX5,
		drivers: mlx5, needle: "Fatal error", form: lazy.Regexp(`Fatal error (?P<error>\d+) detected`),
	},
	{
		Kind: FirmwareError, Meaning: "the firmware reports an error with its severity",
		Source:  mlx5Dir + "health.c, print_health_info; 5.16 and newer, MLNX_OFED 5.6 and newer",
		drivers: mlx5, needle: "Health issue observed",
		form: lazy.Regexp(`Health issue observed, (?P<synd>[^,]{1,60}), severity\(\d+\) (?P<severity>[A-Z]+)`),
	},
	{
		Kind: FirmwareError, Meaning: "syndrome of an error of the firmware",
		Source:  mlx5Dir + "health.c, print_health_info" + inMLX5,
		drivers: mlx5, needle: "synd 0x", form: lazy.Regexp(`^synd 0x[0-9a-f]+: (?P<synd>[^(:]{1,60})`),
	},
	{
		Kind: RecoveryFailed, Meaning: "the driver gave up the recovery of a device",
		Follows: "the device is missing or unusable until a reset of its PCI function or a restart",
		Source:  mlx5Dir + "health.c, mlx5_health_try_recover, mlx5_handle_bad_state and mlx5_fw_fatal_reporter_recover" + inMLX5,
		drivers: mlx5, needle: "recover",
		form: lazy.Regexp(`health recovery (?:flow )?(?:aborted|failed|was cancelled)|recovery flow aborted|recovery failed`),
	},
	{
		Kind: RecoveryEnded, Meaning: "the driver has recovered a device",
		Source:  mlx5Dir + "health.c, mlx5_health_try_recover" + inMLX5,
		drivers: mlx5, needle: "health recovery", form: lazy.Regexp(`health recovery (?:succeeded|succeded)`),
	},
	{
		Kind: RecoveryStarted, Meaning: "the driver resets a device after an error of its firmware",
		Source:  mlx5Dir + "health.c, mlx5_error_sw_reset, mlx5_enter_error_state and mlx5_health_try_recover" + inMLX5,
		drivers: mlx5, needle: "", form: lazy.Regexp(`^(?:handling bad device here|start$|starting health recovery flow|NIC (?:SW )?interface is already disabled|PCI slot is unavailable)|^health recovery: start`),
	},
	{
		Kind: FirmwareReset, Meaning: "the firmware is reset on request of an administrator or another function",
		Source:  mlx5Dir + "fw_reset.c; 5.11 and newer",
		drivers: mlx5, needle: "Sync Reset", form: lazy.Regexp(`Sync Reset (?P<step>now|Unload|request)`),
	},
	{
		Kind: FirmwareMemory, Meaning: "the driver cannot exchange pages with the firmware",
		Source:  mlx5Dir + "pagealloc.c, give_pages, reclaim_pages and mlx5_wait_for_pages" + inMLX5,
		drivers: mlx5, needle: "pages", form: lazy.Regexp(`FW pages counter is \d+ after reclaiming all pages|failed reclaiming pages|func_id 0x[0-9a-f]+, npages \d+, err|aborting waiting for pages|Skipping wait for vf pages stage after error`),
	},
	// mlx5: modules, temperature, power.
	{
		Kind: ModuleError, Meaning: "a module or cable has an error", Follows: "a link that is down",
		Source:  mlx5Dir + "events.c, port_module" + inMLX5,
		drivers: mlx5, needle: "Port module event[error]",
		form: lazy.Regexp(`Port module event\[error\]: module (?P<module>\d+), (?P<what>Cable \w+), (?P<error>[\w /().-]{1,50})`),
	},
	{
		Kind: ModuleUnplugged, Meaning: "a module or cable was removed", Follows: "a link that is down",
		Source:  mlx5Dir + "events.c, port_module" + inMLX5,
		drivers: mlx5, needle: "Port module event",
		form: lazy.Regexp(`Port module event: module (?P<module>\d+), (?P<what>Cable (?:unplugged|disabled))`),
	},
	{
		Kind: ModulePlugged, Meaning: "a module or cable was inserted",
		Source:  mlx5Dir + "events.c, port_module" + inMLX5,
		drivers: mlx5, needle: "Port module event",
		form: lazy.Regexp(`Port module event: module (?P<module>\d+), (?P<what>Cable plugged)`),
	},
	{
		Kind: HighTemperature, Meaning: "a sensor of the device is above its limit",
		Follows: "a device that protects itself by reset",
		Source:  mlx5Dir + "events.c, temp_warn" + inMLX5,
		drivers: mlx5, needle: "High temperature on sensors",
		form: lazy.Regexp(`High temperature on sensors with bit set (?P<sensors>(?:0x)?[0-9a-f]+ (?:0x)?[0-9a-f]+)`),
	},
	{
		Kind:    SlotPower,
		Meaning: "the slot advertises less power than the device may need; printed at each load of the driver, and harmless on systems whose firmware advertises none",
		Source:  mlx5Dir + "events.c, mlx5_pcie_event" + inMLX5,
		drivers: mlx5, needle: "insufficient power",
		form: lazy.Regexp(`Detected insufficient power on the PCIe slot \((?P<power>\d+W)\)`),
	},
	{
		Kind: SlotPower, Meaning: "the slot advertises no power limit; printed at each load of the driver, and harmless",
		Source:  mlx5Dir + "events.c, mlx5_pcie_event" + inMLX5,
		drivers: mlx5, needle: "slot power capability",
		form: lazy.Regexp(`PCIe slot power capability was (?P<what>not advertised)`),
	},
	{
		Kind: DriverLoaded, Meaning: "the driver begins with a function",
		Source:  mlx5Dir + "main.c, mlx5_function_setup and mlx5_function_enable" + inMLX5,
		drivers: mlx5, needle: "firmware version: ", form: lazy.Regexp(`^firmware version: (?P<version>\d+\.\d+\.\d+)$`),
	},
	// mlx5: queues.
	{
		Kind: TransmitTimeout, Meaning: "a transmit queue of the interface made no progress",
		Source:  mlx5Dir + "en_main.c, mlx5e_tx_timeout; en/reporter_tx.c" + inMLX5,
		drivers: mlx5, needle: "TX timeout", form: lazy.Regexp(`^TX timeout (?:detected|on queue: (?P<queue>\d+))`),
	},
	{
		Kind: CompletionError, Meaning: "the device ended a work request of the kernel with an error",
		Source:  mlx5Dir + "en/txrx.h, mlx5e_dump_error_cqe; en_rx.c" + inMLX5,
		drivers: mlx5, needle: "Error cqe", form: lazy.Regexp(`(?i)Error cqe on cqn 0x[0-9a-f]+, ci 0x[0-9a-f]+, (?:[a-z]+ 0x[0-9a-f]+, )?opcode 0x[0-9a-f]+, (?P<syndrome>syndrome 0x[0-9a-f]+), (?P<vendor>vendor syndrome 0x[0-9a-f]+)`),
	},
	{
		Kind: CompletionError, Meaning: "the device ended a work request with an error, whose completion is dumped",
		Source:  "drivers/infiniband/hw/mlx5/cq.c, dump_cqe" + inMLX5,
		drivers: nil, needle: "dump error cqe",
		form: lazy.Regexp(`^(?:(?P<device>mlx5_\w{1,16}): ?\w+:\d+:\(pid \d+\): )?dump error cqe`),
	},
	{
		Kind: QueueError, Meaning: "a completion queue overflowed",
		Source:  mlx5Dir + "eq.c, cq_err_event_notifier" + inMLX5,
		drivers: mlx5, needle: "CQ error on CQN",
		form: lazy.Regexp(`CQ error on CQN 0x[0-9a-f]+, (?P<syndrome>syndrome 0x[0-9a-f]+)`),
	},
	// mlx4.
	{
		Kind: FirmwareError, Meaning: "the device reports an internal error", Follows: "a reset of the device by the driver",
		Source:  "drivers/net/ethernet/mellanox/mlx4/catas.c, dump_err_buf and poll_catas; 5.15 to 6.18",
		drivers: mlx4, needle: "nternal error",
		form: lazy.Regexp(`^Internal error detected|^Internal error mark was detected`),
	},
	{
		Kind: CommandTimeout, Meaning: "the firmware did not answer a command",
		Source:  "drivers/net/ethernet/mellanox/mlx4/cmd.c, mlx4_cmd_poll and mlx4_cmd_wait; 5.15 to 6.18",
		drivers: mlx4, needle: "command 0x",
		form: lazy.Regexp(`command (?P<command>0x[0-9a-f]+) (?:timed out|failed: fw status = 0x1)`),
	},
	{
		Kind: RecoveryStarted, Meaning: "the driver resets the device",
		Source:  "drivers/net/ethernet/mellanox/mlx4/catas.c, mlx4_enter_error_state; 5.15 to 6.18",
		drivers: mlx4, needle: "device is going to be reset", form: lazy.Regexp(`^device is going to be reset`),
	},
	{
		Kind: TransmitTimeout, Meaning: "a transmit queue of the interface made no progress",
		Source:  "drivers/net/ethernet/mellanox/mlx4/en_netdev.c, mlx4_en_tx_timeout; 5.15 to 6.18",
		drivers: mlx4, needle: "TX timeout", form: lazy.Regexp(`TX timeout on queue: (?P<queue>\d+)`),
	},
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
	// ice, irdma, i40e.
	{
		Kind: TransmitTimeout, Meaning: "a transmit queue of the interface made no progress",
		Source:  "drivers/net/ethernet/intel/ice/ice_main.c, ice_tx_timeout; drivers/net/ethernet/intel/i40e/i40e_main.c, i40e_tx_timeout; 5.15 to 6.18",
		drivers: intel, needle: "tx_timeout", form: lazy.Regexp(`^tx_timeout: (?:VSI_num|VSI_seid): \d+, Q (?P<queue>\d+)`),
	},
	{
		Kind: FirmwareError, Meaning: "the device reports malicious or malformed descriptors of its driver",
		Source:  "drivers/net/ethernet/intel/ice/ice_main.c, ice_handle_mdd_event; 5.15 to 6.18",
		drivers: intel, needle: "Malicious Driver Detection", form: lazy.Regexp(`Malicious Driver Detection event`),
	},
	{
		Kind: RecoveryFailed, Meaning: "the driver cannot reset the device",
		Source:  "drivers/net/ethernet/intel/ice/ice_main.c, ice_reset_subtask and ice_rebuild; 5.15 to 6.18",
		drivers: intel, needle: "eset failed",
		form: lazy.Regexp(`^(?:PF|Core|Global|EMP) ?[Rr]eset failed|^Rebuild failed, unload and reload driver`),
	},
	{
		Kind: RecoveryStarted, Meaning: "the RDMA driver asks for a reset of the function",
		Source:  "drivers/infiniband/hw/irdma/hw.c, irdma_process_aeq and ctrl.c; 5.15 to 6.18",
		drivers: intel, needle: "request", form: lazy.Regexp(`abnormal ae_id = (?P<event>0x[0-9a-f]+)|requesting reset`),
	},
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
	// Interfaces of any driver.
	{
		Kind: TransmitTimeout, Meaning: "a transmit queue of the interface made no progress",
		Source: "net/sched/sch_generic.c, dev_watchdog; 5.15 to 6.4",
		needle: "NETDEV WATCHDOG",
		form:   lazy.Regexp(`^NETDEV WATCHDOG: (?P<netdev>[^\s:()]{1,15}) \((?P<driver>[\w-]+)\): transmit queue (?P<queue>\d+) timed out`),
	},
	{
		Kind: TransmitTimeout, Meaning: "a transmit queue of the interface made no progress",
		Source: "net/sched/sch_generic.c, dev_watchdog; 6.5 and newer",
		needle: "NETDEV WATCHDOG", form: lazy.Regexp(`^NETDEV WATCHDOG: CPU: \d+: transmit queue (?P<queue>\d+) timed out`),
	},
	{
		Kind: TransmitTimeout, Meaning: "the IPoIB interface sends nothing",
		Source: "drivers/infiniband/ulp/ipoib/ipoib_main.c, ipoib_timeout; 5.15 to 6.18",
		needle: "transmit timeout", form: lazy.Regexp(`^(?P<netdev>[^\s:()]{1,15}): transmit timeout: latency \d+ msecs`),
	},
	{
		Kind: MulticastJoin, Meaning: "the subnet manager did not admit the interface to a multicast group",
		Follows: "IPoIB without broadcast: no address resolution",
		Source:  "drivers/infiniband/ulp/ipoib/ipoib_multicast.c, ipoib_mcast_join_complete; 5.15 to 6.18",
		needle:  "multicast join failed",
		form:    lazy.Regexp(`^(?P<netdev>[^\s:()]{1,15}): (?:sendonly )?multicast join failed for [0-9a-f:]+, status (?P<status>-?\d+)`),
	},
	// Connection managers.
	{
		Kind: ConnectionError, Meaning: "a connection by the RDMA connection manager failed; printed with dynamic debug only",
		Source: "drivers/infiniband/core/cma.c, addr_handler, cma_query_handler, cma_ib_handler and cma_ib_mc_handler; 5.15 to 6.18",
		needle: "RDMA CM: ",
		form:   lazy.Regexp(`^RDMA CM: (?P<step>[A-Z]+_ERROR): failed to [a-zA-Z ]{1,30}\. status (?P<status>-?\d+)`),
	},
	{
		Kind:    ConnectionError,
		Meaning: "a connection identifier is still in use long after its end", Follows: "a process that cannot exit",
		Source: "drivers/infiniband/core/cm.c, cm_destroy_id_wait_timeout; 6.9 and newer",
		needle: "cm_id=", form: lazy.Regexp(`^cm_destroy_id_wait_timeout: cm_id=\S+ timed out\. (?P<state>state \d+ -> \d+)`),
	},
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
	// GPUs.
	{
		Kind: GPUXid, Meaning: "the GPU driver reports an error by its number (NVIDIA, XID errors)",
		Source: "NVIDIA open-gpu-kernel-modules, src/nvidia/src/kernel/diagnostics/nv_error_log.c, nvErrorLog",
		needle: "NVRM: Xid",
		form:   lazy.Regexp(`^NVRM: Xid \(PCI:(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)(?: GPU-I:\d+)?\): (?P<xid>\d+)`),
	},
	{
		Kind: GPULost, Meaning: "the GPU does not answer on its bus", Follows: "Xid 79",
		Source: "NVIDIA open-gpu-kernel-modules, src/nvidia/arch/nvalloc/unix/src/osinit.c and osapi.c",
		needle: "fallen off the bus", form: lazy.Regexp(`^NVRM: (?:The NVIDIA )?GPU (?:at )?(?:PCI:)?(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)[^\n]{0,80}has fallen off the bus`),
	},
	{
		Kind: GPULost, Meaning: "a GPU does not answer on its bus; the lines before name it",
		Source: "NVIDIA open-gpu-kernel-modules, kernel-open/nvidia/nv.c",
		needle: "fallen off the bus", form: lazy.Regexp(`^NVRM: fallen off the bus and is not responding to commands`),
	},
	{
		Kind:    NVSwitchSXid,
		Meaning: "the NVSwitch driver reports an error by its number (NVIDIA, fabric manager: SXid errors)",
		Source:  "NVIDIA open-gpu-kernel-modules, src/common/nvswitch/kernel/error.c",
		needle:  "SXid", form: lazy.Regexp(`^nvidia-nvswitch\d+: SXid \(PCI:(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\): (?P<sxid>\d+), (?P<fatal>Non-fatal|Fatal)`),
	},
	{
		Kind:    PeerMemory,
		Meaning: "the peer memory module of the GPU driver reports an error: GPUDirect RDMA is not available",
		Source:  "NVIDIA open-gpu-kernel-modules, kernel-open/nvidia-peermem/nvidia-peermem.c",
		needle:  "nvidia-peermem", form: lazy.Regexp(`^nvidia-peermem (?P<function>\w+):\d+ ERROR `),
	},
	// Tasks that are stuck. The stack, with a function of an RDMA driver or without, is in the lines that follow: Joiner.
	{
		Kind: SoftLockup, Meaning: "a CPU runs in the kernel for more than 20 s without giving others a turn",
		Source: "kernel/watchdog.c, watchdog_timer_fn; 5.15 to 6.18",
		needle: "soft lockup",
		form:   lazy.Regexp(`^(?:watchdog: )?BUG: soft lockup - CPU#\d+ stuck for (?P<seconds>\d+s)! \[(?P<task>[\w/+:.-]{1,24}):\d+\]`),
	},
	{
		Kind: HungTask, Meaning: "a task waits in the kernel for two minutes",
		Source: "kernel/hung_task.c, check_hung_task; 5.15 to 6.18",
		needle: "for more than",
		form:   lazy.Regexp(`^INFO: task (?P<task>[\w/+:.-]{1,24}):\d+ blocked (?:in I/O wait )?for more than (?P<seconds>\d+) seconds`),
	},
	{
		Kind: RCUStall, Meaning: "a CPU stays in a section that others wait for",
		Source: "kernel/rcu/tree_stall.h, print_cpu_stall and print_other_cpu_stall; 5.15 to 6.18",
		needle: "detected",
		form:   lazy.Regexp(`^(?:rcu: )?INFO: rcu_\w+ (?:self-)?detected (?:stall on CPU|stalls on CPUs/tasks|expedited stalls)`),
	},
	{
		Kind: OOMKill, Meaning: "the kernel killed a process for lack of memory",
		Source: "mm/oom_kill.c, __oom_kill_process; 5.15 to 6.18",
		needle: "illed process", form: lazy.Regexp(`^(?:Memory cgroup out of memory|Out of memory(?: \(oom_kill_allocating_task\))?): Killed process (?P<pid>\d+) \((?P<task>[^)]{1,16})\)`),
	},
}
