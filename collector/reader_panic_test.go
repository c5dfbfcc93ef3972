package collector

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/workers"
)

// TestPanicOfOneDevice: a panic caused by one device costs no other device its data, and its lane is free again.
func TestPanicOfOneDevice(t *testing.T) {
	h := machine(t, "")
	for range 2 {
		var n snapshot.Node
		var got []string
		eachDevice(t.Context(), h, &n, "c", []string{"a", "odd", "z"}, func(_ *reader, name string) (string, bool) {
			if name == "odd" {
				panic("odd bytes")
			}
			return name, true
		}, func(names []string) { got = names }, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
		if !slices.Equal(got, []string{"a", "z"}) {
			t.Errorf("read %v", got)
		}
		if len(n.Issues) != 1 || n.Issues[0].Device != "odd" || n.Issues[0].Reason != string(host.Panic) || !errors.Is(n.Issues[0].Err, host.ErrPanic) {
			t.Errorf("%+v", n.Issues)
		}
	}
}

// TestPanicOutsideTheRead: a panic in the processing of all devices fails the collection in any goroutine: that of the caller, a helper
// beside a blocked device, or the one started at the end of ctx.
func TestPanicOutsideTheRead(t *testing.T) {
	for name, takes := range map[string]map[string]time.Duration{
		"caller": nil, "helper": {"a": 3 * workers.Patience, "z": time.Second}, "end of ctx": {"a": time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var n snapshot.Node
				h := machine(t, "")
				done := make(chan error, 1)
				go eachDevice(ctx, h, &n, "c", []string{"a", "m", "z"}, func(_ *reader, name string) (string, bool) {
					time.Sleep(takes[name])
					return name, true
				}, func([]string) { panic("odd names") }, func(err error) { done <- err })
				if err := <-done; !errors.Is(err, host.ErrPanic) {
					t.Errorf("error %v", err)
				}
				time.Sleep(time.Hour) // until all have returned
			})
		})
	}
}

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
	vpd.h.Files = panickingFiles{vpd.h.Files, "/vpd"}
	if newNVLink(unsaid).manages(vpd, "mlx5_0") || len(vpd.issues) != 1 || vpd.issues[0].Reason != string(host.Panic) {
		t.Errorf("VPD: %v", vpd.issues)
	}
	n, _ := collect(t, newPCIe(Options{}), machine(t, pcieTree(""))) // without lastRound, the source of GPUs
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
