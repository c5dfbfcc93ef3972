package setup

import (
	"fmt"
	"testing"
)

// BenchmarkEvaluate is the evaluation of each minute: a lossless host with eight rails and eight processes of a job
// whose class is lossy.
func BenchmarkEvaluate(b *testing.B) {
	n := rails(8)
	for i := range 8 {
		startJob(n, fmt.Sprintf("slurm/%d", i),
			map[string]string{"NCCL_IB_TC": "0", "NCCL_SOCKET_IFNAME": "eth0", "NCCL_IB_HCA": "mlx5"}, i)
	}
	b.ReportAllocs()
	for b.Loop() {
		rows := Evaluate(n, nil)
		if len(LossyClasses(rows)) == 0 {
			b.Fatal("no class is lossy")
		}
	}
}
