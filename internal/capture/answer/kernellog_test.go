package answer

import (
	"reflect"
	"testing"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/kernellog"
)

func TestKernelLog(t *testing.T) {
	want := host.KernelLogReading{Lost: 3, Dropped: 1, Skipped: 7, Events: []host.KernelEvent{
		{Seq: 11, At: 2 * time.Second, Event: kernellog.Event{Kind: kernellog.ModuleError, Driver: "mlx5_core", PCIAddress: "0000:4d:00.0", Detail: "0, Cable error, High Temperature"}},
		{Seq: 40, At: 9 * time.Second, Event: kernellog.Event{Kind: kernellog.TransmitTimeout, Netdev: "eth1"}},
	}}
	got, err := Decode[host.KernelLogReading]("x", Encode(want))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{
		"11: 5 module_error\n", "x: 5 a b c d e f\n", "11: x a b c d e f\n", "lost: x\n", "skipped: perhaps\n",
	} {
		if _, err := Decode[host.KernelLogReading]("x", []byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// FuzzKernelLog: what is accepted is written again as the same.
func FuzzKernelLog(f *testing.F) {
	f.Add([]byte("lost: 3\ndropped: 1\nskipped: 7\n11: 2000000 module_error mlx5_core 0000:4d:00.0 - - module 0, Cable error, High Temperature\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode[host.KernelLogReading]("x", data)
		if err != nil {
			return
		}
		if again, err := Decode[host.KernelLogReading]("x", Encode(r)); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%+v, %v; was %+v", again, err, r)
		}
	})
}
