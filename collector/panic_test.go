package collector

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/host"
)

// panickingFiles are files of which one causes a panic.
type panickingFiles struct {
	host.Files
	name string
}

func (f panickingFiles) Read(path string, buf []byte) ([]byte, error) {
	if strings.HasSuffix(path, f.name) {
		panic("odd bytes")
	}
	return f.Files.Read(path, buf)
}

// Identity distinguishes devices of the same name.
func (f panickingFiles) Identity(string) (uint64, error) { return 1, nil }

// TestPanicsOfGoroutines: a panic beside the reading of devices ends neither the program nor the reading.
func TestPanicsOfGoroutines(t *testing.T) {
	vpd := readerOf(t, nvlinkTree("0x15b3", "0x020700", "@hex --\n78\n"))
	vpd.Host.Files = panickingFiles{vpd.Host.Files, "/vpd"}
	if newNVLink(noSettings).manages(vpd, "mlx5_0") || len(vpd.Issues) != 1 || vpd.Issues[0].Reason != string(host.Panic) {
		t.Errorf("VPD: %v", vpd.Issues)
	}
	// Without lastRound, the source of GPUs.
	n, _ := collect(t, newPCIe(&state{Devices: newRoster(Options{})}), machine(t, pcieTree("")))
	if len(n.Issues) != 1 || n.Issues[0].Reason != string(host.Panic) || len(n.PCIe.Devices) == 0 {
		t.Errorf("GPUs: %v", n.Issues)
	}
	h := machine(t, "")
	h.GPUs, h.Now = &panickingGPUs{}, time.Now
	if err := (&gpuReadings{interval: time.Second}).run(t.Context(), h); !errors.Is(err, host.ErrPanic) {
		t.Errorf("events of GPUs: %v", err)
	}
	ib := &infiniBand{links: newLinkWatch(), registered: newDeviceWatch()}
	if err := ib.run(t.Context(), &host.Host{Events: panickingEvents{}}); !errors.Is(err, host.ErrPanic) {
		t.Errorf("events of devices: %v", err)
	}
}

type panickingGPUs struct{ fakeGPUs }

func (*panickingGPUs) WatchGPUs(context.Context) error { panic("odd event") }

type panickingEvents struct{ quiet }

func (panickingEvents) Devices(context.Context, func(), func(host.DeviceEvent)) error {
	panic("odd event")
}
