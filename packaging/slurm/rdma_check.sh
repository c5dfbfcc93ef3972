#!/bin/sh
# Slurm Prolog and Epilog: fails on a node that rdma_exporter says is to be drained (check --drain), and passes in every other case: nothing
# drains it, its state is not known, no exporter installed, no answer in time. What is not plain is one line on standard error and in the
# system log, so that a check that is out of order is seen and drains no cluster.
#
# A Prolog that fails drains the node; Slurm requeues the job and holds it, unless SchedulerParameters has nohold_on_prolog_fail. An
# Epilog that fails drains the node; the job has ended and stays as it is. The script itself asks nothing of Slurm. README.md says how to
# install it.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin # Slurm sets none
TIME=5                                                            # seconds; PrologEpilogTimeout of Slurm has to be longer
CHECK=${RDMA_CHECK:-rdma_exporter check --drain}

say() {
	echo "rdma_check: $*" >&3
	logger -t rdma_check -p daemon.warning -- "$*" 2>/dev/null || : # where there is a system log
}

# A process that is stuck in the kernel does not go when it is killed. So it has a pipe of its own, and the shell that waits for it is killed
# with it.
exec 3>&2 2>/dev/null # what a shell says of what was killed
found=$(timeout -s KILL "$TIME" sh -c "found=\$({ $CHECK; } 2>&1); code=\$?; echo \"\$found\"; exit \$code" </dev/null)
code=$?
case $code in
0) ;;
2)
	say "fails this node:" "$(echo "$found" | sed -nE 's/^(cordon|evict)  */\1 /p' | tr -s ' ' | tr '\n' ';')"
	exit 1
	;;
124 | 137) say "passes: no answer in $TIME s" ;;
*) say "passes: exit code $code:" "$(echo "$found" | tail -n 1)" ;;
esac
exit 0
