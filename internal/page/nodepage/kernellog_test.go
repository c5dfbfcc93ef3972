package nodepage

import (
	"reflect"
	"testing"
	"time"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

func TestKernelMessages(t *testing.T) {
	at := time.Date(2026, 3, 2, 8, 5, 30, 0, time.UTC)
	n := &snapshot.Node{KernelLog: &hostdata.KernelLog{Counts: []hostdata.KernelLogCount{
		{KernelLogKey: hostdata.KernelLogKey{Driver: "mlx5_ib", Kind: "hung_task"}, Count: 1, SinceBoot: 3 * time.Second},
		{
			KernelLogKey: hostdata.KernelLogKey{
				Device: "mlx5_0", PCIAddress: "0000:4d:00.0", Driver: "mlx5_core", Kind: "module_error",
			}, Count: 4,
			Detail: "module 0, High Temperature", SinceBoot: 26*time.Hour + 5*time.Second + 100*time.Millisecond, At: at,
		},
	}}}
	want := []kernelMessage{
		{"2 Mar 08:05:30", "1d 2h 0m 5.1s", "mlx5_0 0000:4d:00.0", "mlx5_core module error, module 0, High Temperature", 4},
		{"unknown", "3.0s", "host", "mlx5_ib hung task", 1},
	}
	if got := listKernelMessages(n); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for range 100 {
		n.KernelLog.Counts = append(n.KernelLog.Counts, n.KernelLog.Counts[0])
	}
	if got := listKernelMessages(n); len(got) != maxKernelMessages || got[0] != want[0] {
		t.Errorf("%d messages, the first %+v", len(got), got[0])
	}
	if got := listKernelMessages(&snapshot.Node{}); got != nil {
		t.Errorf("%+v without a log", got)
	}
}
