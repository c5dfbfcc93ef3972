package kernellog

import "rdma_exporter/internal/lazy"

const (
	mlx5Dir   = "drivers/net/ethernet/mellanox/mlx5/core/"
	inMLX5    = "; 5.15 to 6.18, MLNX_OFED 5.8 to 25.10"
	commandUp = "the device works on; each timeout leaks a slot of its command queue, and the last one makes the device unusable"
)

var mellanoxPatterns = []Pattern{
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
}
