package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/wire"
	"rdma_exporter/test/played"
)

func number(n uint64) *uint64 { return &n }

// h200 returns a GPU with values of both modes.
func h200(index int) accel.GPU {
	watts := 612.5
	return accel.GPU{
		Index: index, UUID: fmt.Sprintf("GPU-%d", index), PCIAddress: fmt.Sprintf("0000:%02x:00.0", 0x1b+index),
		Model:     "NVIDIA H200",
		NVLinks:   number(18),
		NVLinksUp: number(17), NVLinkErrors: []wire.Stat{{Name: "replay", Value: 1}, {Name: "recovery", Value: 2}},
		Fabric: &accel.GPUFabric{State: 3}, PCIeWidth: number(16), XIDs: number(0), Power: &watts, Throttle: number(0x44),
		RemappedRows: &accel.RemappedRows{Correctable: 3, Pending: true},
	}
}

// gpuRounds returns a collector of GPUs on a machine with some functions of PCI.
func gpuRounds(
	t *testing.T,
	o shared.Options,
	f *collectortest.FakeGPUs,
	functions ...string,
) (*shared.Collector, *host.Host, *shared.GPUReadings) {
	t.Helper()
	var entries strings.Builder
	for i, address := range functions {
		fmt.Fprintf(&entries, "-- sys/bus/pci/devices/%[1]s/vendor --\n0x10de\n-- sys/bus/pci/devices/%[1]s/class --\n0x030200\n-- sys/bus/pci/devices/%[1]s/numa_node --\n%[2]d\n", address, i-1)
	}
	h := played.Machine(t, entries.String())
	h.GPUs, h.Now = f, time.Now
	gpus := shared.NewGPUReadings(o)
	return New(
		&shared.State{
			Site:    &shared.SiteConfig{Store: o.Site},
			GPUs:    gpus,
			Options: shared.Options{Memory: expect.NewMemory(expect.Data{})},
		},
	), h, gpus
}

func TestGPUModes(t *testing.T) {
	f := &collectortest.FakeGPUs{NVML: accel.NVML{Driver: "580.95.05", CUDA: "13.0", GPUs: []accel.GPU{h200(0)}}}
	fabric := []string{
		`rdma_gpu_driver_info{cuda_version="13.0",version="580.95.05"} 1`,
		`rdma_gpu_fabric_state{UUID="GPU-0",gpu="0",state="completed"} 1`,
		`rdma_gpu_info{UUID="GPU-0",gpu="0",model="NVIDIA H200",pci_bus_id="0000:1b:00.0"} 1`,
		`rdma_gpu_nvlink_errors_total{UUID="GPU-0",error="recovery",gpu="0"} 2`,
		`rdma_gpu_nvlinks_up{UUID="GPU-0",gpu="0"} 17`,
		`rdma_gpu_pcie_width_lanes{UUID="GPU-0",gpu="0"} 16`,
		`rdma_gpu_power_watts{UUID="GPU-0",gpu="0"} 612.5`,
		`rdma_gpu_xid_events_total{UUID="GPU-0",gpu="0"} 0`,
	}
	more := []string{
		`rdma_gpu_nvlink_errors_total{UUID="GPU-0",error="replay",gpu="0"} 1`,
		`rdma_gpu_remapped_rows{UUID="GPU-0",error="correctable",gpu="0"} 3`,
		`rdma_gpu_row_remapping{UUID="GPU-0",gpu="0",state="pending"} 1`,
		`rdma_gpu_throttle{UUID="GPU-0",gpu="0",reason="hw_slowdown"} 0`,
		`rdma_gpu_throttle{UUID="GPU-0",gpu="0",reason="hw_thermal"} 1`,
	}
	for _, full := range []bool{false, true} {
		t.Run(fmt.Sprintf("full=%v", full), func(t *testing.T) {
			c, h, _ := gpuRounds(t, shared.Options{GPUFull: full}, f, "0000:1b:00.0")
			n, samples := collectortest.Collect(t, h, c.Descs, c.Read, c.Emit)
			if len(n.Issues) > 0 || f.Full.Load() != full {
				t.Errorf("%v, asked for all: %v", n.Issues, f.Full.Load())
			}
			for _, s := range fabric {
				if !slices.Contains(samples, s) {
					t.Errorf("full %v: lacks %s", full, s)
				}
			}
			for _, s := range more {
				if slices.Contains(samples, s) != full {
					t.Errorf("full %v: %s: %v", full, s, !full)
				}
			}
			for _, s := range samples {
				for _, absent := range []string{"temperature", "last_xid", "recovery_action", "memory"} {
					if strings.Contains(s, absent) {
						t.Errorf("a figure that is absent: %s", s)
					}
				}
			}
		})
	}
}

// TestGPUIsRead: each failure costs its own values, and is reported.
func TestGPUIsRead(t *testing.T) {
	absent := &access.Error{Op: "read", Path: "dev/nvidiactl", Err: syscall.ENOENT}
	for _, c := range []struct {
		what    string
		f       *collectortest.FakeGPUs
		reasons string
		samples int
		stuck   bool
	}{
		{"no driver", &collectortest.FakeGPUs{Err: absent}, "[]", 0, false},
		{"a library that cannot be used", &collectortest.FakeGPUs{Err: syscall.ELIBACC}, "[io]", 0, false},
		{"built without cgo", &collectortest.FakeGPUs{Err: syscall.EOPNOTSUPP}, "[unsupported]", 0, false},
		{"released", &collectortest.FakeGPUs{Err: syscall.EBUSY, Released: &accel.GPURelease{Left: time.Minute}}, "[]", 2, false},
		{"a GPU that is lost", &collectortest.FakeGPUs{NVML: accel.NVML{Driver: "1", GPUs: []accel.GPU{h200(0)}}, Errs: []error{syscall.ENODEV}}, "[gone gone]", 1 + 1 + 1 + 9, false},
		{"a call that does not return", &collectortest.FakeGPUs{NVML: accel.NVML{Driver: "1"}, Errs: []error{access.ErrStuck}}, "[stuck gone gone]", 4, true},
		{"a reading that does not return", collectortest.SlowGPUs(time.Minute), "[stuck]", 0, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, h, _ := gpuRounds(t, shared.Options{}, c.f, "0000:1b:00.0", "0000:1c:00.0")
				n, samples := collectortest.Collect(t, h, x.Descs, x.Read, x.Emit)
				reasons := []string{}
				for _, i := range n.Issues {
					reasons = append(reasons, i.Reason)
				}
				if fmt.Sprint(reasons) != c.reasons {
					t.Errorf("%v, want %s: %v", reasons, c.reasons, n.Issues)
				}
				if len(samples) != c.samples {
					t.Errorf("%d samples: %q", len(samples), samples)
				}
				if stuck := len(n.Devices) > 0 && n.Devices[0].Stuck; stuck != c.stuck {
					t.Errorf("stuck: %v", stuck)
				}
				time.Sleep(2 * time.Minute)
			})
		})
	}
}

// TestGPUHidden: a GPU in the PCI tree that NVML does not list is reported.
func TestGPUHidden(t *testing.T) {
	f := &collectortest.FakeGPUs{NVML: accel.NVML{Driver: "1", GPUs: []accel.GPU{h200(0)}}}
	c, h, _ := gpuRounds(t, shared.Options{}, f, "0000:1b:00.0", "0000:43:00.0")
	n, samples := collectortest.Collect(t, h, c.Descs, c.Read, c.Emit)
	if !slices.Contains(samples, `rdma_gpu_hidden{pci_bus_id="0000:43:00.0"} 1`) || len(n.Issues) != 1 ||
		!strings.Contains(n.Issues[0].Err.Error(), "0000:43:00.0") {
		t.Errorf("%q %v", samples, n.Issues)
	}
	for _, s := range samples {
		if strings.HasPrefix(s, "rdma_gpu_hidden") && strings.Contains(s, "1b:00.0") {
			t.Error(s)
		}
	}
}

// TestGPUIgnored: an ignored GPU stays ignored while it does not answer, and while GPUs are released.
func TestGPUIgnored(t *testing.T) {
	f := &collectortest.FakeGPUs{NVML: accel.NVML{Driver: "1", GPUs: []accel.GPU{h200(0), h200(1)}}}
	conf, err := site.Parse([]byte("ignore: [match: {gpu: GPU-1}]"))
	if err != nil {
		t.Fatal(err)
	}
	var store site.Store
	store.Replace(conf)
	c, h, g := gpuRounds(t, shared.Options{Site: &store}, f, "0000:1b:00.0", "0000:1c:00.0")
	for _, change := range []func(){
		func() {}, func() { f.NVML.GPUs = f.NVML.GPUs[:1] }, func() { f.Released = &accel.GPURelease{Left: time.Minute} },
	} {
		change()
		g.Last = nil
		_, samples := collectortest.Collect(t, h, c.Descs, c.Read, c.Emit)
		var got []string
		for _, s := range samples {
			if strings.HasPrefix(s, "rdma_gpu_ignored") {
				got = append(got, s)
			}
		}
		if want := []string{`rdma_gpu_ignored{UUID="GPU-1",gpu="1"} 1`}; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		f.NVML.GPUs = f.NVML.GPUs[:1]
	}
}

// TestGPUsAreReadOnceInARound: one read for all collectors.
func TestGPUsAreReadOnceInARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := collectortest.SlowGPUs(50 * time.Millisecond)
		_, h, g := gpuRounds(t, shared.Options{}, f)
		for range 2 {
			before := f.Reads.Load()
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if r := g.Latest(t.Context(), h); r == nil || r.Err != nil {
						t.Errorf("%+v", r)
					}
				})
			}
			wg.Wait()
			if n := f.Reads.Load() - before; n != 1 {
				t.Errorf("%d readings in a round", n)
			}
			time.Sleep(15 * time.Second)
		}
	})
}

// TestGPUsAreReadInTheBackground: a round never waits for NVML, and reports the age of the reading.
func TestGPUsAreReadInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := collectortest.SlowGPUs(2 * time.Second)
		f.NVML = accel.NVML{Driver: "1", GPUs: []accel.GPU{h200(0)}}
		c, h, _ := gpuRounds(t, shared.Options{GPUInterval: 15 * time.Second}, f, "0000:1b:00.0")
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() {
			if err := c.Run(ctx, h); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		quick := func() []string {
			start := time.Now()
			_, samples := collectortest.Collect(t, h, c.Descs, c.Read, c.Emit)
			if took := time.Since(start); took != 0 {
				t.Errorf("a round waits %v", took)
			}
			return samples
		}
		if s := quick(); len(s) != 0 {
			t.Errorf("before the first reading: %q", s)
		}
		time.Sleep(5 * time.Second)
		if s := quick(); !slices.Contains(s, "rdma_gpu_reading_age_seconds 3") {
			t.Errorf("%q", s)
		}
		f.Takes.Store(int64(time.Hour))
		time.Sleep(30 * time.Second)
		quick()
		time.Sleep(20 * time.Minute)
		if n := f.Reads.Load(); n != 2 {
			t.Errorf("%d readings beside one that does not return", n)
		}
		cancel()
		run.Wait()
	})
}

// TestWatchThatFails ends the run, so that it is started again.
func TestWatchThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &collectortest.FakeGPUs{WatchErr: syscall.EIO}
		c, h, _ := gpuRounds(t, shared.Options{GPUInterval: time.Second}, f)
		if err := c.Run(t.Context(), h); !errors.Is(err, syscall.EIO) {
			t.Error(err)
		}
	})
}

func TestFabricState(t *testing.T) {
	for _, c := range []struct {
		name string
		f    accel.GPUFabric
		want string
	}{
		{"not started", accel.GPUFabric{State: 1}, gpuFabricPending},
		{"in progress", accel.GPUFabric{State: 2}, gpuFabricPending},
		{"completed", accel.GPUFabric{State: 3}, gpuFabricCompleted},
		{"completed with an error", accel.GPUFabric{State: 3, Status: 999}, gpuFabricDegraded},
		{"health not supported", accel.GPUFabric{State: 3, Health: number(0)}, gpuFabricCompleted},
		{"healthy", accel.GPUFabric{State: 3, Health: number(0x2a | 1<<8)}, gpuFabricCompleted},
		{"degraded bandwidth", accel.GPUFabric{State: 3, Health: number(1)}, gpuFabricDegraded},
		{"unhealthy route", accel.GPUFabric{State: 3, Health: number(1 << 4)}, gpuFabricDegraded},
		{"incorrect configuration", accel.GPUFabric{State: 3, Health: number(5 << 8)}, gpuFabricDegraded},
		{"summary not supported", accel.GPUFabric{State: 3, Health: number(1), Summary: number(0)}, gpuFabricDegraded},
		{"summary healthy", accel.GPUFabric{State: 3, Health: number(1), Summary: number(1)}, gpuFabricCompleted},
		{"summary unhealthy", accel.GPUFabric{State: 3, Summary: number(2)}, gpuFabricDegraded},
		{"summary limited capacity", accel.GPUFabric{State: 3, Summary: number(3)}, gpuFabricDegraded},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := gpuFabricStateOf(&c.f); got != c.want {
				t.Errorf("%+v: %s, want %s", c.f, got, c.want)
			}
		})
	}
}
