package kernellog

import "rdma_exporter/internal/lazy"

var corePatterns = []Pattern{
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
