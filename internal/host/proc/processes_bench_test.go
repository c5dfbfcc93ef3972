package proc

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkTwoHundredProcesses reads 200 processes of Slurm jobs that hold eight devices each, from files like those of
// /proc: with the settings of NCCL at first, and again a minute later.
func BenchmarkTwoHundredProcesses(b *testing.B) {
	p, table := NewProcessTree(b)
	open := []string{"/dev/null", "/dev/nvidia0", "socket:[1]"}
	for i := range 8 {
		open = append(open, fmt.Sprintf("/dev/infiniband/uverbs%d", i))
	}
	for i := range 100 {
		open = append(open, fmt.Sprintf("/dev/shm/nccl-%d", i))
	}
	maps := strings.Repeat("7f0000000000-7f0000001000 r-xp 00000000 08:01 1 /usr/lib/x86_64-linux-gnu/libc.so.6\n", 400) + ncclMaps
	var pids []int
	for i := range 200 {
		pids = append(pids, 1000+i)
		p.Process(1000+i, open, map[string]string{
			"maps": maps, "limits": limitsText, "stat": fmt.Sprintf("%d (python3) S%s", 1000+i, strings.Repeat(" 1", 20)),
			"status":  statusOf(1001),
			"cgroup":  fmt.Sprintf("0::/system.slice/slurmstepd.scope/job_%d/step_0/user/task_%d\n", i/8, i%8),
			"environ": "NCCL_IB_HCA=mlx5\x00WORLD_SIZE=16\x00",
		})
	}
	for b.Loop() {
		found, _, err := table.Processes(b.Context(), pids, true)
		if err != nil || len(found) != 200 || found[0].Job != "slurm/0" || len(found[0].Verbs) != 8 {
			b.Fatal(len(found), err)
		}
	}
}
