package nvml

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/hosttest"
	"rdma_exporter/internal/snapshot/accel"
)

func TestNothingIsLoadedWithoutTheDriver(t *testing.T) {
	n := newGPUs(func() (nvmlLibrary, error) {
		t.Error("the library is loaded")
		return nil, syscall.ENOSYS
	}, filepath.Join(t.TempDir(), "nvidiactl"))
	for range 3 {
		if _, _, err := n.ReadGPUs(t.Context(), true); !access.IsAbsent(err) {
			t.Errorf("%v", err)
		}
	}
}

func TestFiguresOfAGPU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, lib := newFakeGPUs(t, 2)
		lib.gpus[1].down, lib.gpus[1].byCall = 2, true
		v, errs := readGPUsOf(t, n)
		if len(errs) > 0 || v.Driver != "580.95.05" || v.CUDA != "13.0" || len(v.GPUs) != 2 {
			t.Fatalf("%+v %v", v, errs)
		}
		g := v.GPUs[0]
		if g.UUID != "GPU-0" || g.PCIAddress != "0000:1b:00.0" || g.Model != "NVIDIA H200" || g.Serial != "1650000000000" ||
			g.Capability != "9.0" {
			t.Errorf("%+v", g)
		}
		for what, pair := range map[string]struct {
			have *uint64
			want uint64
		}{
			"width": {g.PCIeWidth, 16}, "replays": {g.PCIeReplays, 94}, "transmit": {g.PCIeTransmit, 197},
			"links": {g.NVLinks, 18},
			"up":    {g.NVLinksUp, 18}, "NVLink transmit": {g.NVLinkTransmit, 138 * 1024}, "recovery": {g.RecoveryAction, 230},
			"memory": {g.MemoryUsed, 1 << 30}, "throttle": {g.Throttle, 4}, "up of the other": {v.GPUs[1].NVLinksUp, 16},
		} {
			if pair.have == nil || *pair.have != pair.want {
				t.Errorf("%s: %v, want %d", what, pair.have, pair.want)
			}
		}
		if *g.Power != 71.25 || *g.Utilization != 0.5 || *g.Temperature != 41 ||
			*g.RemappedRows != (accel.RemappedRows{Correctable: 1, Uncorrectable: 2, Pending: true}) {
			t.Errorf("%+v", g)
		}
		if g.XIDs != nil {
			t.Error("XID errors are counted without a listener")
		}
	})
}

// TestMissingFunctions: what a library lacks or a GPU does not support is absent, not an error.
func TestMissingFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, lib := newFakeGPUs(t, 1)
		g := lib.gpus[0]
		for _, f := range []string{
			"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetGpuFabricInfoV",
			"nvmlDeviceGetRemappedRows",
		} {
			g.missing[f] = nvmlFunctionNotFound
		}
		g.missing["nvmlDeviceGetPowerUsage"] = nvmlReturn(3)
		g.fields[197], g.fields[230], g.fields[38], g.fields[161] = nvmlReturn(3), nvmlReturn(2), nvmlReturn(3), nvmlReturn(3)
		g.narrow, g.missing["nvmlGpmSampleGet"] = true, nvmlFunctionNotFound
		v, errs := readGPUsOf(t, n)
		if len(errs) > 0 || len(v.GPUs) != 1 {
			t.Fatalf("%+v %v", v, errs)
		}
		got := v.GPUs[0]
		if got.Fabric != nil || got.RemappedRows != nil || got.Power != nil || got.PCIeTransmit != nil ||
			got.PCIeReceive != nil || got.RecoveryAction != nil {
			t.Errorf("%+v", got)
		}
		if e := fmt.Sprint(got.NVLinkErrors); e != "[{recovery 162} {crc 163} {crc_data 45} {replay 52} {receive 208} {recovery_failed 214}]" {
			t.Error(e)
		}
		if *got.MemoryUsed != 2<<30 || *got.Throttle != 8 || *got.PCIeReplays != 94 {
			t.Errorf("what came before a function is not read: %+v", got)
		}
	})
}

func TestGPUWithoutNVLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, lib := newFakeGPUs(t, 1)
		lib.gpus[0].links = 0
		v, errs := readGPUsOf(t, n)
		if g := v.GPUs[0]; len(errs) > 0 || g.NVLinksUp != nil || g.NVLinkTransmit != nil || g.NVLinkErrors != nil {
			t.Errorf("%+v %v", g, errs)
		}
	})
}

// TestTrafficIsMeasured if the driver's counter has too few bits, in both modes.
func TestTrafficIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, lib := newFakeGPUs(t, 1)
		lib.gpus[0].narrow = true
		for i := uint64(1); i <= 3; i++ {
			v, errs, err := n.ReadGPUs(t.Context(), i%2 == 0)
			if g := v.GPUs[0]; err != nil || len(errs) > 0 || *g.PCIeTransmit != 1000*i || *g.PCIeReceive != 2000*i {
				t.Errorf("%+v %v %v", g, errs, err)
			}
		}
		lib.gpus[0].missing["nvmlGpmSampleGet"] = nvmlNotSupported
		if v, errs := readGPUsOf(t, n); len(errs) > 0 || v.GPUs[0].PCIeTransmit != nil || v.GPUs[0].PCIeReceive != nil {
			t.Errorf("%+v %v", v, errs)
		}
	})
}

// TestPermissionCostsAFigure: the error names the GPU.
func TestPermissionCostsAFigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, lib := newFakeGPUs(t, 2)
		lib.gpus[1].missing["nvmlDeviceGetSerial"] = nvmlReturn(4)
		v, errs := readGPUsOf(t, n)
		if len(v.GPUs) != 2 || len(errs) != 1 || access.ReasonOf(errs[0]) != access.Permission {
			t.Errorf("%v %v", v, errs)
		}
	})
}

// TestStuckCall: a call that does not return ends the reading. No other call is made or waited for until it returns.
func TestStuckCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, lib := newFakeGPUs(t, 3)
		readGPUsOf(t, n)
		g := lib.gpus[1]
		g.blocked, g.inside = make(chan struct{}), make(chan struct{}, 10)
		start := time.Now()
		v, errs := readGPUsOf(t, n)
		if took := time.Since(start); took != nvmlGPUTime || fmt.Sprint(indexes(v)) != "[0]" || len(errs) != 1 ||
			access.ReasonOf(errs[0]) != access.Stuck ||
			!strings.Contains(errs[0].Error(), "GPU 1 (0000:1c:00.0)") {
			t.Fatalf("%v: %v %v", took, indexes(v), errs)
		}
		for range 3 {
			start := time.Now()
			if v, errs := readGPUsOf(t, n); time.Since(start) != 0 || len(v.GPUs) != 0 || len(errs) != 1 ||
				access.ReasonOf(errs[0]) != access.Stuck {
				t.Errorf("%v: %v %v", time.Since(start), v, errs)
			}
		}
		if err := n.ReleaseGPUs(t.Context(), time.Hour, "root"); !errors.Is(err, access.ErrStuck) {
			t.Errorf("released while a call is inside: %v", err)
		}
		if err := n.ReleaseGPUs(t.Context(), 0, "root"); err != nil {
			t.Error(err)
		}
		if len(g.inside) != 1 {
			t.Errorf("%d calls, want one", len(g.inside))
		}
		close(g.blocked)
		synctest.Wait()
		if v, errs := readGPUsOf(t, n); len(v.GPUs) != 3 || len(errs) > 0 {
			t.Errorf("after it has returned: %v %v", indexes(v), errs)
		}
	})
}

// TestLostGPU: the other GPUs are read. The lost one is retried after growing pauses.
func TestLostGPU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, lib := newFakeGPUs(t, 3)
		readGPUsOf(t, n)
		lib.gpus[1].missing["*"] = nvmlGPUIsLost
		for range 4 * 60 { // an hour
			v, errs := readGPUsOf(t, n)
			if fmt.Sprint(indexes(v)) != "[0 2]" || len(errs) == 0 || access.ReasonOf(errs[0]) != access.Gone {
				t.Fatalf("%v %v", indexes(v), errs)
			}
			time.Sleep(15 * time.Second)
		}
		if lib.inits < 4 || lib.inits > 8 {
			t.Errorf("initialised %d times in an hour", lib.inits)
		}
		delete(lib.gpus[1].missing, "*")
		time.Sleep(nvmlLastPause)
		readGPUsOf(t, n)
		if v, errs := readGPUsOf(t, n); len(v.GPUs) != 3 || len(errs) > 0 {
			t.Errorf("after it has come back: %v %v", indexes(v), errs)
		}
	})
}

// TestGPUWithoutHandle: a GPU that the driver cannot open is reported in each reading.
func TestGPUWithoutHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, lib := newFakeGPUs(t, 2)
		lib.gpus[0].missing["handle"] = nvmlGPUIsLost
		for range 100 {
			if v, errs := readGPUsOf(t, n); fmt.Sprint(indexes(v)) != "[1]" || len(errs) != 1 {
				t.Fatalf("%v %v", indexes(v), errs)
			}
			time.Sleep(15 * time.Second)
		}
		if lib.inits < 2 || lib.inits > 6 {
			t.Errorf("initialised %d times in 25 minutes", lib.inits)
		}
	})
}

// TestShutDownElsewhere: UNINITIALIZED during a reading fails that reading only.
func TestShutDownElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, lib := newFakeGPUs(t, 2)
		readGPUsOf(t, n)
		lib.mu.Lock()
		lib.ended = true
		lib.mu.Unlock()
		if v, errs := readGPUsOf(t, n); len(v.GPUs) != 0 || len(errs) == 0 {
			t.Errorf("%v %v", indexes(v), errs)
		}
		if _, _, err := n.ReadGPUs(t.Context(), true); !errors.Is(err, nvmlUninitialized) {
			t.Errorf("retried without a pause: %v", err)
		}
		time.Sleep(nvmlFirstPause)
		if v, errs := readGPUsOf(t, n); len(v.GPUs) != 2 || len(errs) > 0 {
			t.Errorf("%v %v", indexes(v), errs)
		}
	})
}

// TestDriverUnloaded: unloading the driver is not an error, and GPUs are read again once it is loaded.
func TestDriverUnloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, lib := newFakeGPUs(t, 2)
		readGPUsOf(t, n)
		if err := os.Remove(n.control); err != nil {
			t.Fatal(err)
		}
		lib.mu.Lock()
		lib.ended = true
		lib.mu.Unlock()
		if v, errs, _ := n.ReadGPUs(t.Context(), true); len(v.GPUs) != 0 || len(errs) == 0 {
			t.Errorf("as it goes: %v %v", indexes(v), errs)
		}
		inits := lib.inits
		for range 100 {
			time.Sleep(15 * time.Second)
			if v, _, err := n.ReadGPUs(t.Context(), true); len(v.GPUs) != 0 || err == nil {
				t.Fatalf("%v, %v", indexes(v), err)
			}
		}
		if _, _, err := n.ReadGPUs(t.Context(), true); !access.IsAbsent(err) || lib.inits != inits {
			t.Errorf("while it is not there: %v, initialised %d times", err, lib.inits-inits)
		}
		hosttest.Put(t, filepath.Dir(n.control), filepath.Base(n.control), "")
		time.Sleep(nvmlLastPause)
		if v, errs := readGPUsOf(t, n); len(v.GPUs) != 2 || len(errs) > 0 {
			t.Errorf("loaded again: %v %v", indexes(v), errs)
		}
	})
}

// TestInitFails: initialisation is not retried in each reading, and the error has a remedy.
func TestInitFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, lib := newFakeGPUs(t, 1)
		lib.initErr = nvmlError("nvmlInit", 18)
		for range 4 * 60 {
			if _, _, err := n.ReadGPUs(t.Context(), true); err == nil || !strings.Contains(err.Error(), "restart the exporter") {
				t.Fatal(err)
			}
			time.Sleep(15 * time.Second)
		}
		if lib.inits < 4 || lib.inits > 8 {
			t.Errorf("initialised %d times in an hour", lib.inits)
		}
	})
}

// TestSlowInit: waking up GPUs is slow. Initialisation is not started twice, and its late result is used.
func TestSlowInit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, lib := newFakeGPUs(t, 1)
		lib.slowInit = nvmlOpenTime + 30*time.Second
		if _, _, err := n.ReadGPUs(t.Context(), true); !errors.Is(err, access.ErrStuck) ||
			!strings.Contains(err.Error(), "nvmlInit") {
			t.Error(err)
		}
		if _, _, err := n.ReadGPUs(t.Context(), true); !errors.Is(err, access.ErrStuck) {
			t.Error(err)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if v, _ := readGPUsOf(t, n); len(v.GPUs) != 1 || lib.inits != 1 {
			t.Errorf("%v, initialised %d times", indexes(v), lib.inits)
		}
	})
}

// TestReleaseWhileGPUsAreRead: a reading in progress ends, and nothing is called after the library has been shut down.
func TestReleaseWhileGPUsAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, lib := newFakeGPUs(t, 3)
		readGPUsOf(t, n)
		lib.gpus[1].blocked, lib.gpus[1].inside = make(chan struct{}), make(chan struct{}, 10)
		var reading sync.WaitGroup
		reading.Go(func() { readGPUsOf(t, n) })
		synctest.Wait()
		reading.Go(func() {
			if err := n.ReleaseGPUs(t.Context(), time.Hour, "root"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		close(lib.gpus[1].blocked)
		reading.Wait()
		if lib.open {
			t.Error("it is still open")
		}
		if r := n.GPUsReleased(); r == nil || r.Left != time.Hour || r.By != "root" {
			t.Errorf("released: %+v", r)
		}
		time.Sleep(time.Hour)
		lib.gpus[1].blocked = nil
		if v, errs := readGPUsOf(t, n); len(v.GPUs) != 3 || len(errs) > 0 {
			t.Errorf("after the release: %v %v", indexes(v), errs)
		}
	})
}

// TestFailedRelease is reported, and completed as soon as possible.
func TestFailedRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, lib := newFakeGPUs(t, 1)
		readGPUsOf(t, n)
		lib.shutdownErr = nvmlReturn(999)
		if err := n.ReleaseGPUs(t.Context(), time.Hour, "root"); err == nil {
			t.Error("no error")
		}
		if _, _, err := n.ReadGPUs(t.Context(), true); !errors.Is(err, syscall.EBUSY) || !lib.open {
			t.Error(err)
		}
		lib.shutdownErr = nil
		if _, _, err := n.ReadGPUs(t.Context(), true); !errors.Is(err, syscall.EBUSY) || lib.open {
			t.Error(err)
		}
	})
}

// TestXIDErrors are counted by GPU while listening, across a release.
func TestXIDErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, lib := newFakeGPUs(t, 3)
		lib.gpus[2].noEvents = true
		ctx, cancel := context.WithCancel(t.Context())
		var watch sync.WaitGroup
		watch.Go(func() {
			if err := n.WatchGPUs(ctx); err != nil {
				t.Error(err)
			}
		})
		readGPUsOf(t, n)
		time.Sleep(2 * nvmlWatchPause)
		for _, x := range []fakeXID{{"GPU-1", 31}, {"GPU-1", 79}} {
			lib.xids <- x
		}
		synctest.Wait()
		check := func(when string) {
			t.Helper()
			v, _ := readGPUsOf(t, n)
			if g := v.GPUs[0]; g.XIDs == nil || *g.XIDs != 0 || g.LastXID != nil {
				t.Errorf("%s: GPU 0: %v %v", when, g.XIDs, g.LastXID)
			}
			if g := v.GPUs[1]; g.XIDs == nil || *g.XIDs != 2 || g.LastXID == nil || *g.LastXID != 79 {
				t.Errorf("%s: GPU 1: %v %v", when, g.XIDs, g.LastXID)
			}
			if v.GPUs[2].XIDs != nil {
				t.Errorf("%s: a GPU without such events has a count", when)
			}
		}
		check("at once")
		lib.mu.Lock()
		lib.waitErr = nvmlGPUIsLost
		lib.mu.Unlock()
		time.Sleep(nvmlFirstPause / 2)
		if lib.sets() != 0 {
			t.Error("the set whose wait failed is not freed")
		}
		check("while nobody waits")
		time.Sleep(nvmlFirstPause)
		if lib.sets() != 1 {
			t.Error("no listener after a failed wait")
		}
		if err := n.ReleaseGPUs(ctx, time.Minute, "root"); err != nil || lib.open {
			t.Errorf("%v, open %v", err, lib.open)
		}
		time.Sleep(time.Minute)
		check("after a release")
		time.Sleep(2 * nvmlWatchPause)
		if n := lib.sets(); n != 1 {
			t.Errorf("%d sets of events", n)
		}
		cancel()
		watch.Wait()
		if lib.sets() != 0 {
			t.Error("the set of events is not freed")
		}
	})
}

// TestStuckWaitForEvents: the library is not shut down during the wait.
func TestStuckWaitForEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, lib := newFakeGPUs(t, 1)
		lib.slowWait = time.Hour
		ctx, cancel := context.WithCancel(t.Context())
		var watch sync.WaitGroup
		watch.Go(func() { _ = n.WatchGPUs(ctx) })
		readGPUsOf(t, n)
		time.Sleep(2 * nvmlWatchPause)
		if err := n.ReleaseGPUs(t.Context(), 2*time.Hour, "root"); !errors.Is(err, access.ErrStuck) || !lib.open {
			t.Errorf("%v, open %v", err, lib.open)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if _, _, err := n.ReadGPUs(t.Context(), true); !errors.Is(err, syscall.EBUSY) || lib.open {
			t.Errorf("%v, open %v", err, lib.open)
		}
		cancel()
		watch.Wait()
	})
}

// TestPanicOnAnotherThread: a panic on the thread that a library requires is passed to the waiting goroutine.
func TestPanicOnAnotherThread(t *testing.T) {
	n := newGPUs(nil, "")
	for range 2 {
		if err := n.Do(t.Context(), time.Minute, "call", func() { panic("odd GPU") }); !errors.Is(err, access.ErrPanic) {
			t.Error(err)
		}
	}
	if err := n.Do(t.Context(), time.Minute, "call", func() {}); err != nil {
		t.Error(err)
	}
}
