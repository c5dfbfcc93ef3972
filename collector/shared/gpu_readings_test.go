package shared

import (
	"context"
	"errors"
	"testing"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/test/played"
)

// TestPanicOfGPUEvents: a panic beside the reading of GPUs ends the reading with an error.
func TestPanicOfGPUEvents(t *testing.T) {
	h := played.Machine(t, "")
	h.GPUs, h.Now = &panickingGPUs{}, time.Now
	if err := (&GPUReadings{interval: time.Second}).Run(t.Context(), h); !errors.Is(err, access.ErrPanic) {
		t.Errorf("%v", err)
	}
}

type panickingGPUs struct{ collectortest.FakeGPUs }

func (*panickingGPUs) WatchGPUs(context.Context) error { panic("odd event") }
