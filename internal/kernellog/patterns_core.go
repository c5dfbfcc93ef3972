package kernellog

const ipoib = "drivers/infiniband/ulp/ipoib/"

var (
	// alone is for messages without a driver.
	alone = of("")
	// adapters are the drivers of adapters and GPUs, and the modules that applications need of them.
	adapters = modules
)

var corePatterns = []Pattern{
	// Interfaces of any driver.
	{
		Kind: TransmitTimeout, Meaning: "a transmit queue of the interface made no progress",
		Source:  "net/sched/sch_generic.c, dev_watchdog; 5.15 to 6.4",
		drivers: alone, form: `^NETDEV WATCHDOG: (?P<netdev>[^\s:()]{1,15}) \((?P<driver>[\w-]+)\): transmit queue (?P<queue>\d+) timed out`,
	},
	{
		Kind: TransmitTimeout, Meaning: "a transmit queue of the interface made no progress",
		Source: "net/sched/sch_generic.c, dev_watchdog; 6.5 and newer",
		form:   `^NETDEV WATCHDOG: CPU: \d+: transmit queue (?P<queue>\d+) timed out`,
	},
	// IPoIB.
	{
		Kind: TransmitTimeout, Meaning: "the IPoIB interface sends nothing",
		Source:  ipoib + "ipoib_main.c, ipoib_timeout; 4.0 to 7.2",
		drivers: alone, form: `^(?P<netdev>[^\s:()]{1,15}): transmit timeout: latency \d+ msecs`,
	},
	{
		Kind: MulticastJoin, Meaning: "the subnet manager did not admit the interface to a multicast group",
		Follows: "IPoIB without broadcast: no address resolution",
		Source:  ipoib + "ipoib_multicast.c, ipoib_mcast_join_complete and ipoib_mcast_join; 4.0 to 7.2",
		drivers: alone, form: `^(?P<netdev>[^\s:()]{1,15}): (?:(?:sendonly )?multicast join failed for [0-9a-f:.]+|ib_sa_join_multicast failed), status (?P<status>-?\d+)`,
	},
	{
		Kind: MulticastJoin, Meaning: "the interface cannot be attached to a multicast group that it joined",
		Source:  ipoib + "ipoib_multicast.c, ipoib_mcast_join_finish, and ipoib_verbs.c, ipoib_mcast_attach; 4.0 to 7.2",
		drivers: alone, form: `^(?P<netdev>[^\s:()]{1,15}): (?:couldn't attach QP to multicast group|failed to attach to multicast group)`,
	},
	{
		Kind: CompletionError, Meaning: "the device ended a transfer of the IPoIB interface with an error",
		Source:  ipoib + "ipoib_ib.c, ipoib_ib_handle_tx_wc and _rx_wc, and ipoib_cm.c; 4.0 to 7.2",
		drivers: alone, form: `^(?P<netdev>[^\s:()]{1,15}): (?:ipoib_cm_handle_tx_wc: )?failed (?P<what>(?:cm )?send|recv) event \(status=(?P<status>\d+), wrid=\d+,? vend_err (?P<vendor>(?:0x)?[0-9a-f]+)\)`,
	},
	{
		Kind: QueueError, Meaning: "a queue pair of the IPoIB interface does not change its state",
		Source:  ipoib + "ipoib_ib.c, ipoib_qp_state_validate_work and check_qp_movement_and_print; ipoib_cm.c; 4.0 to 7.2",
		drivers: alone, form: `^QP \(\d+\) will stay in state: (?P<state>\d+)|^failed\(-?\d+\) modify QP:|^(?P<netdev>[^\s:()]{1,15}): (?:[Ff]ailed to modify (?:tx )?QP to (?:state|RTR|RTS|RESET|INIT)|Failed to query QP|unable to move qp to error state)`,
	},
	{
		Kind: QueueError, Meaning: "transfers of the IPoIB interface do not end",
		Source:  ipoib + "ipoib_ib.c, ipoib_ib_dev_stop_default, and ipoib_cm.c, ipoib_cm_tx_destroy; 4.0 to 7.2",
		drivers: alone, form: `^(?P<netdev>[^\s:()]{1,15}): (?:timing out; \d+ sends|RX drain timing out)`,
	},
	{
		Kind: RecoveryFailed, Meaning: "the IPoIB interface cannot be opened after a transmit timeout",
		Source:  ipoib + "ipoib_main.c, ipoib_ib_tx_timeout_work; 6.2 and newer",
		drivers: alone, form: `^(?P<netdev>[^\s:()]{1,15}): ipoib_open failed recovering`,
	},
	{
		Kind: ProbeFailed, Meaning: "the IPoIB interface of a port cannot be created or opened",
		Source:  ipoib + "ipoib_main.c, ipoib_dev_init and ipoib_add_port, and ipoib_verbs.c, ipoib_transport_dev_init and ipoib_init_qp; 4.0 to 7.2",
		drivers: alone, form: `^(?P<netdev>[^\s:()]{1,15}):? (?:failed to initialize device: (?P<device>[\w-]{1,63}) port \d+|ipoib_transport_dev_init failed|failed to (?:create (?:QP|send CQ|receive CQ)|open device|init HW resource|allocate PD)|Failed to open dev|ipoib_init_qp returned|failed to modify QP to (?:RTR|RTS|init), ret =|ib_query_port \d+ failed|rdma_query_gid port \d+ failed)` +
			`|^(?P<rdma>[\w-]{1,63})(?:: couldn't register ipoib port \d+; error|, \d+: ipoib_intf_alloc failed) `,
	},
	// Connection managers.
	{
		Kind: ConnectionError, Meaning: "a connection by the RDMA connection manager failed; printed with dynamic debug only",
		Source:  "drivers/infiniband/core/cma.c, addr_handler, cma_query_handler, cma_ib_handler and cma_ib_mc_handler; 4.0 to 7.2",
		drivers: alone, form: `^RDMA CM: (?P<step>[A-Z]+_ERROR): failed to [a-zA-Z ]{1,30}\. status (?P<status>-?\d+)`,
	},
	{
		Kind:    ConnectionError,
		Meaning: "a connection identifier is still in use long after its end", Follows: "a process that cannot exit",
		Source: "drivers/infiniband/core/cm.c, cm_destroy_id_wait_timeout; 6.9 and newer",
		form:   `^cm_destroy_id_wait_timeout: cm_id=\S+ timed out\. (?P<state>state \d+ -> \d+)`,
	},
	// Core of RDMA.
	{
		Kind: ProbeFailed, Meaning: "the RDMA device cannot be registered, or a port of it has no management queue pair",
		Follows: "an RDMA device that is missing, or unusable",
		Source:  "drivers/infiniband/core/mad.c, ib_mad_init_device and ib_mad_port_open, and device.c, ib_register_device; 4.0 to 7.2",
		form:    `^Couldn't (?:open port (?P<port>\d+)|start port|create ib_mad (?:CQ|PD|QP\d)|change QP\d state to |post receive WRs|register device with driver model|set up InfiniBand P_Key/GID cache|query the device attributes|create per-port data)`,
	},
	{
		Kind:    QueueError,
		Meaning: "a management queue pair has an error: the subnet manager and connection managers are not answered",
		Source:  "drivers/infiniband/core/mad.c, qp_event_handler, ib_mad_post_receive_mads and ib_mad_send_error; drivers/infiniband/hw/mlx4/mad.c, pv_qp_event_handler; 4.0 to 7.2",
		form:    `^Fatal error \(\d+\) on (?:a )?MAD QP`,
	},
	{
		Kind: QueueError, Meaning: "a management queue pair takes no work request",
		Source: "drivers/infiniband/core/mad.c, ib_mad_post_receive_mads, ib_mad_send_done and ib_mad_send_error; 4.0 to 7.2",
		form:   `^(?P<what>ib_post_recv failed|ib_post_send failed|\w{1,32} - ib_modify_qp to RTS): (?P<errno>-?\d+)`,
	},
	{
		Kind: FirmwareError, Meaning: "the device does not tell the state, addresses or P_Keys of a port",
		Source: "drivers/infiniband/core/cache.c, ib_cache_update and config_non_roce_gid_cache; 4.0 to 7.2",
		form:   `^(?P<what>ib_query_port|query_gid|ib_query_gid|ib_query_pkey) failed \((?P<errno>-?\d+)\)`,
	},
	// Modules.
	{
		Kind:    ModuleRefused,
		Meaning: "the kernel refused to load a module that RDMA needs: it is built for another kernel, or for another version of the RDMA drivers",
		Follows: "RDMA devices, or GPUDirect RDMA, that are missing",
		Source:  "kernel/module/main.c and version.c, to 5.17 kernel/module.c: simplify_symbols, check_version, check_modinfo and verify_exported_symbols; 4.0 to 7.2",
		drivers: adapters, form: `^(?:Unknown symbol (?P<unknown>\w{1,64}) \(err |disagrees about version of symbol (?P<symbol>\w{1,64})|version magic '(?P<magic>[\w.+~-]{1,48})[^']*' should be '|exports duplicate symbol (?P<duplicate>\w{1,64})|module uses symbol \(?(?P<uses>\w{1,64})\)? from namespace|module using GPL-only symbols uses symbols|gave up waiting for init of module (?P<module>\w{1,64})|Skipping invalid relocation target|Unknown rela relocation)`,
	},
	// Tasks that are stuck. The stack, with a function of an RDMA driver or without, is in the lines that follow: Joiner.
	{
		Kind: SoftLockup, Meaning: "a CPU runs in the kernel for more than 20 s without giving others a turn",
		Source:  "kernel/watchdog.c, watchdog_timer_fn; 4.0 to 7.2",
		drivers: alone, form: `^(?:watchdog: )?BUG: soft lockup - CPU#\d+ stuck for (?P<seconds>\d+s)! \[(?P<task>[\w/+:.-]{1,24}):\d+\]`,
	},
	{
		Kind: HungTask, Meaning: "a task waits in the kernel for two minutes",
		Source:  "kernel/hung_task.c, check_hung_task; 4.0 to 7.2",
		drivers: alone, form: `^INFO: task (?P<task>[\w/+:.-]{1,24}):\d+ blocked (?:in I/O wait )?for more than (?P<seconds>\d+) seconds`,
	},
	{
		Kind: RCUStall, Meaning: "a CPU stays in a section that others wait for",
		Source:  "kernel/rcu/tree_stall.h, print_cpu_stall and print_other_cpu_stall; 4.0 to 7.2",
		drivers: alone, form: `^(?:rcu: )?INFO: rcu_\w+ (?:self-)?detected (?:stall on CPU|stalls on CPUs/tasks|expedited stalls)`,
	},
	{
		Kind: OOMKill, Meaning: "the kernel killed a process for lack of memory",
		Source:  "mm/oom_kill.c, __oom_kill_process; 4.0 to 7.2",
		drivers: alone, form: `^(?:Memory cgroup out of memory|Out of memory(?: \(oom_kill_allocating_task\))?): Killed process (?P<pid>\d+) \((?P<task>[^)]{1,16})\)`,
	},
}
