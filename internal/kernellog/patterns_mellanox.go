package kernellog

const (
	mlx5Dir   = "drivers/net/ethernet/mellanox/mlx5/core/"
	mlx4Dir   = "drivers/net/ethernet/mellanox/mlx4/"
	inMLX5    = "; 5.4 to 7.2, MLNX_OFED 5.8 to 25.10"
	commandUp = "the device works on; each timeout leaks a slot of its command queue, and the last one makes the device unusable"
)

var mellanox = of("mlx5_core", "mlx5_ib", "mlx4_core", "mlx4_en", "mlx4_ib")

var mellanoxPatterns = []Pattern{
	// mlx5: commands.
	{
		Kind: CommandTimeout, Meaning: "the firmware did not answer a command", Follows: commandUp,
		Source:  mlx5Dir + "cmd.c, cb_timeout_handler and wait_func" + inMLX5,
		drivers: mlx5, form: `(?P<command>[A-Z0-9_]+)\(0x[0-9a-f]+\)(?: \w+,)? timeout\. Will cause a leak of a command resource`,
	},
	{
		Kind: CommandTimeout, Meaning: "the firmware did not take a command off the queue in time", Follows: commandUp,
		Source:  mlx5Dir + "cmd.c, wait_func and wait_func_handle_exec_timeout" + inMLX5,
		drivers: mlx5, form: `(?P<command>[A-Z0-9_]+)\(0x[0-9a-f]+\) (?:canceled on out of queue timeout|No done completion|timed out while waiting for a slot|timeout while waiting for command semaphore)`,
	},
	{
		Kind: CommandTimeout, Meaning: "the command queue of the device is full", Follows: commandUp,
		Source:  mlx5Dir + "cmd.c, cmd_work_handler" + inMLX5,
		drivers: mlx5, form: `failed to allocate command entry|^All CMD slots are stalled, aborting command`,
	},
	{
		Kind:    FirmwareError,
		Meaning: "the firmware ended a command with an internal error",
		Follows: "the device's health compromised, or recovery by the driver",
		Source:  mlx5Dir + "cmd.c, mlx5_cmd_out_err and mlx5_cmd_check" + inMLX5,
		drivers: mlx5, form: `(?P<command>[A-Z0-9_]+)\(0x[0-9a-f]+\) op_mod\(0x[0-9a-f]+\) failed, status internal error\(0x1\), syndrome \((?P<syndrome>0x[0-9a-f]+)\)`,
	},
	{
		Kind: CommandRecovered, Meaning: "the answer to a command came after its timeout",
		Source:  mlx5Dir + "cmd.c, mlx5_cmd_comp_handler" + inMLX5,
		drivers: mlx5, form: `^Command completion arrived after timeout`,
	},
	{
		Kind: CommandRecovered, Meaning: "the answer to a command was found after its interrupt had been lost",
		Source:  mlx5Dir + "cmd.c, wait_func_handle_exec_timeout; 5.10 and newer",
		drivers: mlx5, form: `(?P<command>[A-Z0-9_]+)\(0x[0-9a-f]+\)(?: Async,)? recovered after timeout`,
	},
	// mlx5: health.
	{
		Kind: FirmwareStopped, Meaning: "the health counter of the firmware stands still",
		Follows: "recovery by the driver, or a device that answers no command",
		Source:  mlx5Dir + "health.c, poll_health" + inMLX5,
		drivers: mlx5, form: `device's health compromised - reached miss count`,
	},
	{
		Kind: FirmwareError, Meaning: "the device reports a fatal error", Follows: "recovery by the driver",
		Source:  mlx5Dir + "health.c, poll_health" + inMLX5,
		drivers: mlx5, form: `Fatal error (?P<error>\d+) detected`,
	},
	{
		Kind: FirmwareError, Meaning: "the firmware reports an error with its severity",
		Source:  mlx5Dir + "health.c, print_health_info; 5.16 and newer, MLNX_OFED 5.6 and newer",
		drivers: mlx5, form: `Health issue observed, (?P<synd>[^,]{1,60}), severity\(\d+\) (?P<severity>[A-Z]+)`,
	},
	{
		Kind: FirmwareError, Meaning: "syndrome of an error of the firmware",
		Source:  mlx5Dir + "health.c, print_health_info" + inMLX5,
		drivers: mlx5, form: `^synd 0x[0-9a-f]+: (?P<synd>[^(:]{1,60})`,
	},
	{
		Kind:    FirmwareError,
		Meaning: "the firmware needs a cold reset of the device", Follows: "errors until the host is switched off and on",
		Source:  mlx5Dir + "health.c, print_health_info; 5.16 and newer",
		drivers: mlx5, form: `^Cold reset is required`,
	},
	{
		Kind: FirmwareStopped, Meaning: "the firmware does not come up, or does not disable the interface of the device",
		Follows: "a function that no driver takes",
		Source:  mlx5Dir + "main.c, mlx5_function_enable and wait_fw_init; health.c, mlx5_error_sw_reset; fw.c, mlx5_cmd_fast_teardown_hca; fw_reset.c, mlx5_pci_link_toggle" + inMLX5,
		drivers: mlx5, form: `^Firmware over \d+ MS in (?P<state>[\w-]{1,32}) state, aborting|^NIC IFC still \d+ after \d+ms|^Firmware is not responsive \(`,
	},
	{
		Kind:    FunctionDead,
		Meaning: "the device does not answer on its bus", Follows: "recovery by the driver, or a device that is missing",
		Source:  mlx5Dir + "health.c, print_health_info" + inMLX5,
		drivers: mlx5, form: `^PCI slot is unavailable`,
	},
	{
		Kind: RecoveryFailed, Meaning: "the driver gave up the recovery of a device",
		Follows: "the device is missing or unusable until a reset of its PCI function or a restart",
		Source:  mlx5Dir + "health.c, mlx5_health_try_recover, mlx5_handle_bad_state and mlx5_fw_fatal_reporter_err_work; main.c, mlx5_pci_slot_reset and mlx5_pci_resume" + inMLX5,
		drivers: mlx5, form: `health recovery (?:flow )?(?:aborted|failed|was cancelled)|recovery flow aborted|recovery failed|^Driver is in error state\. Unloading` +
			`|^\w+: (?:mlx5_pci_enable_device failed|wait[ _]vital (?:failed|timed out)|mlx5_load_one failed)` +
			`|^mlx5_pci_\w+ Device state = .* (?:disconnect|device Failed)$`,
	},
	{
		Kind:    RecoveryFailed,
		Meaning: "a reset of the firmware did not end",
		Follows: "the device is missing or unusable until its driver is bound again or the host restarts",
		Source:  mlx5Dir + "fw_reset.c, mlx5_sync_reset_now_event, mlx5_sync_reset_unload_flow, mlx5_fw_reset_wait_reset_done and mlx5_pci_link_toggle; 5.11 and newer",
		drivers: mlx5, form: `^(?:PCI Sync FW Update Reset Timeout|FW sync reset timeout after|Sync reset did not complete|Got timeout waiting for sync reset|mlx5_(?:pci_link_toggle|pci_reset_bus|sync_pci_reset) failed|PCI link not ready \(|Fast teardown failed, (?:no reset done|unloading)|PCI bus bridge is not accessible|reset reload flow aborted, PCI reads)`,
	},
	{
		Kind: RecoveryEnded, Meaning: "the driver has recovered a device",
		Source:  mlx5Dir + "health.c, mlx5_health_try_recover; main.c, mlx5_pci_resume" + inMLX5,
		drivers: mlx5, form: `health recovery (?:succeeded|succeded)|^mlx5_pci_resume: device recovered|^mlx5_pci_resume Device state = .*err = 0, device recovered`,
	},
	{
		Kind: RecoveryStarted, Meaning: "the driver resets a device after an error of its firmware or of the PCIe link",
		Source:  mlx5Dir + "health.c, mlx5_error_sw_reset, mlx5_enter_error_state and mlx5_health_try_recover; main.c, mlx5_pci_err_detected" + inMLX5,
		drivers: mlx5, form: `^(?:handling bad device here|start$|starting health recovery flow|NIC (?:SW )?interface is already disabled)|^health recovery: start|^mlx5_pci_err_detected (?:was called|Device state = .*need reset)`,
	},
	{
		Kind: FirmwareReset, Meaning: "the driver resets the firmware, or the device was reset",
		Source:  mlx5Dir + "health.c, reset_fw_if_needed; fw_reset.c, poll_sync_reset" + inMLX5,
		drivers: mlx5, form: `^Issuing FW Reset|^Got Device Reset`,
	},
	// mlx5: start.
	{
		Kind: ProbeFailed, Meaning: "an auxiliary device of the function failed to load: RDMA or Ethernet",
		Follows: "an RDMA device or an interface that is missing",
		Source:  mlx5Dir + "dev.c, add_drivers and mlx5_attach_device; 5.11 and newer; drivers/net/ethernet/mellanox/mlx4/intf.c, mlx4_do_bond",
		drivers: mellanox, form: `^Device\[\d+\] \((?P<auxiliary>[\w-]{1,32})\) failed to load`,
	},
	{
		Kind: ProbeFailed, Meaning: "the driver cannot start the device: the error of the step is in the line",
		Follows: "a function that no driver takes, or a device that stays down",
		Source:  mlx5Dir + "main.c, probe_one, mlx5_init_one, mlx5_function_enable, mlx5_function_open, mlx5_init_once and mlx5_load; pci_irq.c; eq.c" + inMLX5,
		drivers: mlx5, form: `^(?P<step>(?:mlx5_(?:init_one|load_one|pci_init|mdev_init|shd_init)|enable[ _]hca|init hca|query hca|query board id|set_hca_c(?:ap|trl)|handle_hca_cap\w*|sw objs init|sriov init|fpga device start|(?:IPSec|TLS) device start|register device|sf table create|Pages? allocation|Request of free IRQs) failed` +
			`|mlx5_(?:init_one|mdev_init on|function_enable|query_hca_caps_light) ?err=|failed to (?:set issi|read dtor|allocate (?:boot|init) pages|initialize [\w ]{1,40}|register with devcom)` +
			`|Failed to (?:init (?:flow steering|eswitch|sriov|rate limiting|SF|l2 table|fpga|embedded CPU|vhca event|command interface)[\w ]{0,24}|alloc (?:IRQs|flow steering)|create (?:EQs|async EQs|completion EQs)|set hca defaults|query ISSI|set ISSI)` +
			`|failed to (?:create|enable) \w{1,16} EQ)|^(?:Failed|Couldn't|Cannot|Can't|Missing|error|Failed allocating)[^,]{1,64}, aborting|^Failed allocating bfreg|^(?:Driver cmdif rev|driver does not support command interface|firmware reports too many outstanding|invalid command queue address|command queue size overflow)`,
	},
	{
		Kind: ProbeFailed, Meaning: "the driver cannot create the interface of a port",
		Follows: "an interface that is missing",
		Source:  mlx5Dir + "en_main.c, _mlx5e_probe, to 5.10 mlx5e_add" + inMLX5,
		drivers: mlx5, form: `^(?P<step>mlx5e_create_netdev|_?mlx5e_(?:resume|attach|nic_profile init|devlink_port_register|priv_init)|register_netdev|alloc_etherdev_mqs\(\)) failed|^failed to init mlx5e profile`,
	},
	{
		Kind: ProbeFailed, Meaning: "the RDMA driver cannot create what each of its devices needs",
		Follows: "an RDMA device that is missing",
		Source:  "drivers/infiniband/hw/mlx5/main.c, mlx5_ib_dev_res_cq_init and mlx5_ib_dev_res_srq_init; gsi.c, mlx5_ib_create_gsi" + inMLX5,
		drivers: mlx5, form: `^(?:mr cache|frmr pools) init failed|^query_(?:device|port \d+) failed -?\d+|^Couldn't (?:allocate PD|create (?:CQ|SRQ \d)) for res init|^unable to create (?:hardware (?:GSI|UD) QP|send CQ for GSI QP)`,
	},
	{
		Kind: FirmwareReset, Meaning: "the firmware is reset on request of an administrator or another function",
		Source:  mlx5Dir + "fw_reset.c; 5.11 and newer",
		drivers: mlx5, form: `Sync Reset (?P<step>now|Unload|request)`,
	},
	{
		Kind: FirmwareMemory, Meaning: "the driver cannot exchange pages with the firmware",
		Source:  mlx5Dir + "pagealloc.c, give_pages, reclaim_pages, pages_work_handler and mlx5_wait_for_pages; sriov.c" + inMLX5,
		drivers: mlx5, form: `FW pages counter is \d+ after reclaiming all pages|failed reclaiming pages|func_(?:vhca_)?id 0x[0-9a-f]+, npages -?\d+, err|aborting waiting for pages|aborting while there are \d+ pending pages|Skipping wait for vf pages stage after error` +
			`|^FW did not return all pages|^fw returned \d+, driver asked \d+ => corruption|^page notify failed |^(?:give|reclaim) fail -?\d+|^reclaim_pages err \(|^[Tt]imeout reclaiming [\w ]{0,24}pages`,
	},
	// mlx5: modules, temperature, power.
	{
		Kind: ModuleError, Meaning: "a module or cable has an error", Follows: "a link that is down",
		Source:  mlx5Dir + "events.c, port_module" + inMLX5,
		drivers: mlx5, form: `Port module event\[error\]: module (?P<module>\d+), (?P<what>[\w ]{1,24}), (?P<error>[\w /().-]{1,50})`,
	},
	{
		Kind: ModuleUnplugged, Meaning: "a module or cable was removed", Follows: "a link that is down",
		Source:  mlx5Dir + "events.c, port_module" + inMLX5,
		drivers: mlx5, form: `Port module event: module (?P<module>\d+), (?P<what>Cable (?:unplugged|disabled))`,
	},
	{
		Kind: ModulePlugged, Meaning: "a module or cable was inserted",
		Source:  mlx5Dir + "events.c, port_module" + inMLX5,
		drivers: mlx5, form: `Port module event: module (?P<module>\d+), (?P<what>Cable plugged)`,
	},
	{
		Kind: HighTemperature, Meaning: "a sensor of the device is above its limit",
		Follows: "a device that protects itself by reset",
		Source:  mlx5Dir + "events.c, temp_warn" + inMLX5,
		drivers: mlx5, form: `High temperature on sensors with bit set (?P<sensors>(?:0x)?[0-9a-f]+ (?:0x)?[0-9a-f]+)`,
	},
	{
		Kind:    SlotPower,
		Meaning: "the slot advertises less power than the device may need; printed at each load of the driver, and harmless on systems whose firmware advertises none",
		Source:  mlx5Dir + "events.c, mlx5_pcie_event" + inMLX5,
		drivers: mlx5, form: `Detected insufficient power on the PCIe slot \((?P<power>\d+W)\)`,
	},
	{
		Kind: SlotPower, Meaning: "the slot advertises no power limit; printed at each load of the driver, and harmless",
		Source:  mlx5Dir + "events.c, mlx5_pcie_event" + inMLX5,
		drivers: mlx5, form: `PCIe slot power capability was (?P<what>not advertised)`,
	},
	{
		Kind: DriverLoaded, Meaning: "the driver begins with a function",
		Source:  mlx5Dir + "main.c, mlx5_function_setup and mlx5_function_enable" + inMLX5,
		drivers: mlx5, form: `^firmware version: (?P<version>\d+\.\d+\.\d+)$`,
	},
	// mlx5: queues.
	{
		Kind: TransmitTimeout, Meaning: "a transmit queue of the interface made no progress",
		Source:  mlx5Dir + "en_main.c, mlx5e_tx_timeout; en/reporter_tx.c" + inMLX5,
		drivers: mlx5, form: `^TX timeout (?:detected|on queue: (?P<queue>\d+))`,
	},
	{
		Kind: CompletionError, Meaning: "the device ended a work request of the kernel with an error",
		Source:  mlx5Dir + "en/txrx.h, mlx5e_dump_error_cqe; en_rx.c" + inMLX5,
		drivers: mlx5, form: `(?i)Error cqe on cqn 0x[0-9a-f]+, ci 0x[0-9a-f]+, (?:[a-z]+ 0x[0-9a-f]+, )?opcode 0x[0-9a-f]+, (?P<syndrome>syndrome 0x[0-9a-f]+), (?P<vendor>vendor syndrome 0x[0-9a-f]+)`,
	},
	{
		Kind: CompletionError, Meaning: "the device ended a work request of the kernel with an error",
		Source:  mlx5Dir + "en/reporter_tx.c and reporter_rx.c, mlx5e_reporter_tx_err_cqe and mlx5e_reporter_rq_cqe_err" + inMLX5,
		drivers: mlx5, form: `^ERR CQE on (?P<queue>\w{2,8}): 0x[0-9a-f]+`,
	},
	{
		Kind: CompletionError, Meaning: "the device ended a work request with an error, whose completion is dumped",
		Source:  "drivers/infiniband/hw/mlx5/cq.c, dump_cqe; to 6.12" + inMLX5,
		drivers: mlx5, form: `^dump error cqe`,
	},
	{
		Kind: CompletionError, Meaning: "the device ended a work request with an error",
		Source:  "drivers/infiniband/hw/mlx5/cq.c, dump_cqe and mlx5_handle_error_cqe; 6.3 and newer",
		drivers: mlx5, form: `^WC error: \d+, Message: (?P<error>[\w -]{1,48})`,
	},
	{
		Kind: QueueError, Meaning: "the device reports an error of a queue pair of an application",
		Source: "drivers/infiniband/hw/mlx5/qp.c, mlx5_ib_qp_err_syndrome; 6.3 and newer",
		form:   `^(?P<device>[\w-]{1,63})/\d+: QP \d+ error: (?P<error>[^(]{1,64})`,
	},
	{
		Kind:    QueueError,
		Meaning: "the queue that registers memory has an error", Follows: "registrations of memory that fail",
		Source:  "drivers/infiniband/hw/mlx5/umr.c, mlx5r_umr_post_send_wait and mlx5r_umr_recover; to 5.18 mr.c" + inMLX5,
		drivers: mlx5, form: `^(?:reg umr failed \((?P<status>\d+)\)|UMR (?:post send failed|recovery)|[cC]ouldn't (?:recover UMR|modify UMR QP))`,
	},
	{
		Kind: QueueError, Meaning: "the management queue pair of a port cannot change its state",
		Source:  "drivers/infiniband/hw/mlx5/gsi.c, modify_to_rts" + inMLX5,
		drivers: mlx5, form: `^could not change QP\d+ state to (?P<state>\w+)`,
	},
	{
		Kind: QueueError, Meaning: "a completion queue overflowed",
		Source:  mlx5Dir + "eq.c, cq_err_event_notifier; en_txrx.c, mlx5e_cq_error_event" + inMLX5,
		drivers: mlx5, form: `CQ error on CQN 0x[0-9a-f]+, (?P<syndrome>syndrome 0x[0-9a-f]+)|^\w+: cqn=0x[0-9a-f]+ event=0x`,
	},
	{
		Kind: QueueError, Meaning: "a queue of the interface made no progress, or cannot be recovered",
		Follows: "an interface that loses traffic until it is opened again",
		Source:  mlx5Dir + "en/reporter_rx.c and reporter_tx.c, mlx5e_wait_for_sq_flush, mlx5e_reporter_rx_timeout; en/health.c, mlx5e_health_sq_to_ready; en_main.c, mlx5e_flush_rq" + inMLX5,
		drivers: mlx5, form: `^(?:RX timeout on channel: (?P<channel>\d+)|Wait for (?:SQ|ICOSQ) 0x[0-9a-f]+ flush timeout|Failed to (?:move (?:sq|rq|icosq)|query (?:SQ|ICOSQ)) 0x[0-9a-f]+|mlx5e_safe_reopen_channels failed)`,
	},
	{
		Kind: FirmwareError, Meaning: "the FPGA of the adapter reports an error",
		Source:  mlx5Dir + "fpga/core.c, mlx5_fpga_event and mlx5_fpga_device_load_check; 4.12 to 6.12",
		drivers: mlx5, form: `^Error (?P<code>\d+): (?P<error>[\w ]{1,40})|^\w+ image failed to load; status`,
	},
	// mlx4.
	{
		Kind: FirmwareError, Meaning: "the device reports an internal error", Follows: "a reset of the device by the driver",
		Source:  mlx4Dir + "catas.c, dump_err_buf and poll_catas; en_main.c, mlx4_en_event; 4.0 to 7.2",
		drivers: mlx4, form: `^Internal error (?:detected|mark was detected)`,
	},
	{
		Kind: CommandTimeout, Meaning: "the firmware, or the physical function, did not answer a command",
		Source:  mlx4Dir + "cmd.c, mlx4_cmd_poll, mlx4_cmd_wait, mlx4_comm_cmd_poll and mlx4_cmd_post; 4.0 to 7.2",
		drivers: mlx4, form: `command (?P<command>0x[0-9a-f]+) (?:(?:\(op=0x[0-9a-f]+\) )?timed out|failed: fw status = 0x1$)|^Could not post command (?P<posted>0x[0-9a-f]+)`,
	},
	{
		Kind: FirmwareStopped, Meaning: "the physical function of this virtual one does not answer",
		Source:  mlx4Dir + "main.c, mlx4_comm_check_offline; cmd.c, sync_toggles and mlx4_multi_func_init; 4.0 to 7.2",
		drivers: mlx4, form: `(?i)^communication channel is (?:offline|not idle)|^Couldn't sync toggles`,
	},
	{
		Kind: FunctionDead, Meaning: "the device does not answer on its bus after a reset",
		Source:  mlx4Dir + "reset.c, mlx4_reset; catas.c, read_vendor_id; 4.0 to 7.2",
		drivers: mlx4, form: `^PCI device did not come back after reset|^PCI can't be accessed to read vendor id`,
	},
	{
		Kind: RecoveryFailed, Meaning: "the driver gave up the recovery of a device",
		Source:  mlx4Dir + "catas.c, mlx4_reset_master and mlx4_reset_slave; main.c, mlx4_pci_slot_reset, mlx4_pci_resume and mlx4_restart_one_up; 4.0 to 7.2",
		drivers: mlx4, form: `^(?:Fail to reset HCA|Fail to send reset over|Failed to reset HCA|Failed to obtain HW semaphore|Couldn't (?:restore|save|map) HCA|Can not re-enable device|\w+: (?:ERROR: )?mlx4_load_one failed|mlx4_restart_one_up failed|Communication channel isn't sync, fail to send reset)`,
	},
	{
		Kind: RecoveryEnded, Meaning: "the driver has reset the device",
		Source:  mlx4Dir + "catas.c, mlx4_enter_error_state and mlx4_reset_slave; 4.0 to 7.2",
		drivers: mlx4, form: `^device was reset successfully|^VF Reset succeed`,
	},
	{
		Kind: RecoveryStarted, Meaning: "the driver resets the device",
		Source:  mlx4Dir + "catas.c, mlx4_enter_error_state; main.c, mlx4_pci_err_detected; 4.0 to 7.2",
		drivers: mlx4, form: `^device is going to be reset|^mlx4_pci_err_detected was called`,
	},
	{
		Kind: HighTemperature, Meaning: "the device is above its limit",
		Source:  mlx4Dir + "eq.c, mlx4_eq_int; 4.0 to 7.2",
		drivers: mlx4, form: `^Temperature Threshold was reached! Threshold: \d+ celsius degrees; Current Temperature: (?P<celsius>\d+)`,
	},
	{
		Kind: ModuleError, Meaning: "a module or cable has an error", Follows: "a link that is down",
		Source:  mlx4Dir + "eq.c, mlx4_eq_int; 4.0 to 7.2",
		drivers: mlx4, form: `^(?P<error>Bad cable) detected on port (?P<port>\d+)|^(?P<unsupported>Unsupported cable) detected`,
	},
	{
		Kind: QueueError, Meaning: "a completion or event queue overflowed, or had an access violation",
		Source:  mlx4Dir + "eq.c, mlx4_eq_int; 4.0 to 7.2",
		drivers: mlx4, form: `^CQ (?P<what>[\w ]{1,20}) on CQN [0-9a-f]{6}|^EQ overrun on EQN \d+`,
	},
	{
		Kind: FirmwareError, Meaning: "the device warns of a fatal state",
		Source:  mlx4Dir + "eq.c, mlx4_eq_int; 4.0 to 7.2",
		drivers: mlx4, form: `^Unhandled event FATAL WARNING \([0-9a-f]+\), (?P<subtype>subtype [0-9a-f]+)`,
	},
	{
		Kind: CompletionError, Meaning: "the device ended a work request of the kernel with an error",
		Source:  mlx4Dir + "en_tx.c, mlx4_en_handle_err_cqe; en_rx.c, mlx4_en_process_rx_cq; 4.0 to 7.2",
		drivers: mlx4, form: `^CQE error - cqn 0x[0-9a-f]+, ci 0x[0-9a-f]+, (?P<vendor>vendor syndrome: 0x[0-9a-f]+) (?P<syndrome>syndrome: 0x[0-9a-f]+)|^CQE completed in error - vendor syndrome?:\d+ syndrome?:(?P<code>\d+)`,
	},
	{
		Kind: ProbeFailed, Meaning: "the driver cannot start the device",
		Follows: "a function that no driver takes",
		Source:  mlx4Dir + "main.c, mlx4_load_one, mlx4_init_hca, mlx4_setup_hca and __mlx4_init_one; en_netdev.c, mlx4_en_init_netdev; 4.0 to 7.2",
		drivers: mlx4, form: `aborting(?: \(.{1,80}\))?\.?$|^(?P<step>QUERY_(?:FW|HCA|PORT|FUNC|DEV_CAP|ADAPTER|FUNC_CAP)(?: \w+)? command failed(?: for port|: could|\.$|$)|INIT_HCA returns|NOP command failed)|^PF is not responsive|^Netdev registration failed|^Failed Initializing port|^Failed to (?:initialize slave|obtain (?:slave caps|ownership bit)|init command interface)|^Installed FW has unsupported command interface|^BIOS or ACPI interrupt routing problem|^Port: \d+, invalid mac burned`,
	},
	{
		Kind: TransmitTimeout, Meaning: "a transmit queue of the interface made no progress",
		Source:  mlx4Dir + "en_netdev.c, mlx4_en_tx_timeout; 4.0 to 7.2",
		drivers: mlx4, form: `TX timeout on queue: (?P<queue>\d+)`,
	},
}
