package tuning

import (
	"testing"

	"rdma_exporter/collector/collectortest"
)

func TestNUMABalancing(t *testing.T) {
	for text, want := range map[string]any{"0": uint64(0), "1": uint64(1), "2": uint64(2), "on": nil} {
		if got := collectortest.Value(
			readTuning(collectortest.ReaderOf(t, "-- proc/sys/kernel/numa_balancing --\n"+text+"\n")).NUMABalancing,
		); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if got := collectortest.Value(readTuning(collectortest.ReaderOf(t, "")).NUMABalancing); got != nil {
		t.Errorf("no file: %v", got)
	}
}
