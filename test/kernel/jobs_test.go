//go:build e2e

package kernel

import (
	"fmt"
	"testing"
	"time"
)

const mountCgroups = "mkdir -p /sys/fs/cgroup && (grep -q ' /sys/fs/cgroup cgroup2 ' /proc/mounts || mount -t cgroup2 cgroup2 /sys/fs/cgroup)"

// testJobs runs processes with queue pairs and memory regions of rxe0 in control groups as Slurm, the kubelet and
// systemd lay them out, that of the pod in another network namespace, and expects the workloads on the port.
func testJobs(t *testing.T, g *guest) {
	const pod = "0a1b2c3d-1111-2222-3333-444455556666"
	workloads := []struct {
		scheduler, job, cgroup, network string
	}{
		{"slurm", "77", "system.slice/slurmstepd.scope/job_77/step_0/user/task_0", ""},
		{"slurm", "77", "system.slice/slurmstepd.scope/job_77/step_0/user/task_1", ""},
		{"kubernetes", pod, "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b2c3d_1111_2222_3333_444455556666.slice/cri-containerd-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope", "nsenter --net=/run/netns/pod "},
		{"systemd", "storage.service", "system.slice/storage.service", ""},
	}
	g.must(t, "ip netns add pod && nsenter --net=/run/netns/pod ip link set lo up")
	defer g.must(t, "ip netns del pod")
	g.must(t, mountCgroups)
	eventually(t, func() error {
		return okWith(g.run("grep -q ffff /sys/class/infiniband/rxe0/ports/1/gids/1"))
	})
	running := samples{`rdma_port_jobs{device="rxe0",port="1"}`: 3}
	for i, w := range workloads {
		g.must(t, fmt.Sprintf("mkdir -p /sys/fs/cgroup/%[1]s && %[2]ssh -c 'echo $$ >/sys/fs/cgroup/%[1]s/cgroup.procs && exec ibv_rc_pingpong -d rxe0 -g 1 -p %[3]d' >/tmp/workload%[4]d.log 2>&1 & echo $! >/tmp/workload%[4]d.pid",
			w.cgroup, w.network, 18600+i, i))
		running[fmt.Sprintf("rdma_port_job_info{device=\"rxe0\",job_id=%q,port=\"1\",scheduler=%q}", w.job, w.scheduler)] = 1
	}
	defer g.must(t, "kill $(cat /tmp/workload*.pid)")
	g.expectWithin(t, 3*time.Minute, running) // processes are listed once a minute
}
