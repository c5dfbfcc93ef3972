#!/bin/sh
# Slurm Prolog and Epilog. Fails if `rdma_exporter check --drain` requires a drain of this node. Passes in all other cases: no drain, state
# unknown, rdma_exporter not installed, no answer in time. These, except for no drain, log one line to standard error and to the system log, so
# that a failed check is noticed and does not drain the cluster.
#
# A failed Prolog drains the node; Slurm requeues the job and holds it, unless SchedulerParameters has nohold_on_prolog_fail. A failed Epilog
# drains the node; the ended job is not changed. The script does not call Slurm. Installation: README.md.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin # Slurm sets no PATH
TIME=5                                                            # seconds; must be less than PrologEpilogTimeout of Slurm
CHECK=${RDMA_CHECK:-rdma_exporter check --drain}

say() {
	echo "rdma_check: $*" >&3
	logger -t rdma_check -p daemon.warning -- "$*" 2>/dev/null || : # if there is a system log
}

# A process stuck in the kernel does not exit when killed and keeps its pipe open. So it has a separate pipe, and the shell that waits for it
# is killed too.
exec 3>&2 2>/dev/null # hides the "Killed" message of the shell
found=$(timeout -s KILL "$TIME" sh -c "found=\$({ $CHECK; } 2>&1); code=\$?; echo \"\$found\"; exit \$code" </dev/null)
code=$?
case $code in
0) ;;
2)
	say "drain required:" "$(echo "$found" | sed -nE 's/^(cordon|evict)  */\1 /p' | tr -s ' ' | tr '\n' ';')"
	exit 1
	;;
124 | 137) say "passed without a result: no answer within ${TIME}s" ;;
*) say "passed without a result: exit code $code:" "$(echo "$found" | tail -n 1)" ;;
esac
exit 0
