package collector

import (
	"context"
	"errors"
	"testing"
	"time"

	"rdma_exporter/internal/host"
)

// TestPanicOfGPUEvents: a panic beside the reading of GPUs ends the reading with an error.
func TestPanicOfGPUEvents(t *testing.T) {
	h := machine(t, "")
	h.GPUs, h.Now = &panickingGPUs{}, time.Now
	if err := (&gpuReadings{interval: time.Second}).run(t.Context(), h); !errors.Is(err, host.ErrPanic) {
		t.Errorf("%v", err)
	}
}

type panickingGPUs struct{ fakeGPUs }

func (*panickingGPUs) WatchGPUs(context.Context) error { panic("odd event") }
