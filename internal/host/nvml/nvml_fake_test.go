package nvml

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/hosttest"
	"rdma_exporter/internal/snapshot/accel"
)

// fakeNVML is a library with GPUs. It fails the test if it is called while not initialised.
type fakeNVML struct {
	t    testing.TB
	mu   sync.Mutex
	gpus []*fakeGPU

	initErr       error
	inits, events int
	open          bool
	ended         bool          // shut down elsewhere: all calls return UNINITIALIZED
	slowInit      time.Duration // duration of Init
	slowWait      time.Duration // duration of a wait for events, whatever the timeout
	shutdownErr   error
	waitErr       error // of the next wait
	xids          chan fakeXID
}

type fakeXID struct {
	uuid string
	code uint64
}

// fakeGPU is a Hopper GPU with overrides.
type fakeGPU struct {
	lib      *fakeNVML
	index    int
	missing  map[string]error // by function; "*" of all
	fields   map[uint32]error
	blocked  chan struct{} // calls return when it is closed; nil: immediately
	inside   chan struct{} // receives a value when a call begins to block
	byCall   bool          // link states are available from the function only
	down     int           // links that are down
	links    uint64
	noEvents bool
	narrow   bool // 32-bit traffic counters
}

func (f *fakeNVML) ready() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open {
		f.t.Error("called without being initialised: that ends the process")
	}
	if f.ended {
		return nvmlError("any", uint32(nvmlUninitialized))
	}
	return nil
}

// sets returns the number of event sets.
func (f *fakeNVML) sets() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.events
}

func (f *fakeNVML) Init() error {
	time.Sleep(f.slowInit)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inits++
	f.open, f.ended = f.initErr == nil, false
	return f.initErr
}

func (f *fakeNVML) Shutdown() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open || f.events > 0 {
		f.t.Errorf("shut down while open is %v with %d sets of events", f.open, f.events)
	}
	if f.shutdownErr == nil {
		f.open = false
	}
	return f.shutdownErr
}

func (f *fakeNVML) DriverVersion() (string, error) { return "580.95.05", f.ready() }
func (f *fakeNVML) CUDAVersion() (int, error)      { return 13000, f.ready() }
func (f *fakeNVML) Count() (int, error)            { return len(f.gpus), f.ready() }

func (f *fakeNVML) Device(i int) (nvmlDevice, error) {
	if err := f.gpus[i].missing["handle"]; err != nil {
		return nil, err
	}
	return f.gpus[i], f.ready()
}

func (f *fakeNVML) Events(devices []nvmlDevice) (nvmlEvents, []bool, error) {
	if err := f.ready(); err != nil {
		return nil, nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events++
	registered := make([]bool, len(devices))
	for i, d := range devices {
		registered[i] = !d.(*fakeGPU).noEvents
	}
	return f, registered, nil
}

func (f *fakeNVML) Wait(d time.Duration) (string, uint64, error) {
	if err := f.ready(); err != nil {
		return "", 0, err
	}
	f.mu.Lock()
	failed := f.waitErr
	f.waitErr = nil
	f.mu.Unlock()
	if failed != nil {
		return "", 0, failed
	}
	select {
	case x := <-f.xids:
		return x.uuid, x.code, nil
	case <-time.After(max(d, f.slowWait)):
		return "", 0, nvmlTimeout
	}
}

func (f *fakeNVML) Free() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events--
	return nil
}

// call is one call of the library: it may block, and fail.
func (g *fakeGPU) call(function string) error {
	if err := g.lib.ready(); err != nil {
		return err
	}
	if g.blocked != nil {
		select {
		case g.inside <- struct{}{}:
		default:
		}
		<-g.blocked
	}
	if err := g.missing["*"]; err != nil {
		return &access.Error{Op: "query", Path: function, Err: err}
	}
	if err := g.missing[function]; err != nil {
		return &access.Error{Op: "query", Path: function, Err: err}
	}
	return nil
}

func (g *fakeGPU) Text(function string) (string, error) {
	return map[string]string{
		"nvmlDeviceGetUUID":    fmt.Sprintf("GPU-%d", g.index),
		"nvmlDeviceGetPciInfo": fmt.Sprintf("00000000:%02X:00.0", 0x1b+g.index),
		"nvmlDeviceGetName":    "NVIDIA H200", "nvmlDeviceGetSerial": fmt.Sprint(1650000000000 + g.index),
	}[function], g.call(function)
}

func (g *fakeGPU) Numbers(function string) ([]uint64, error) {
	return map[string][]uint64{
		"nvmlDeviceGetCudaComputeCapability": {9, 0}, "nvmlDeviceGetCurrPcieLinkGeneration": {5},
		"nvmlDeviceGetMaxPcieLinkGeneration": {5},
		"nvmlDeviceGetCurrPcieLinkWidth":     {16}, "nvmlDeviceGetMaxPcieLinkWidth": {16}, "nvmlDeviceGetTemperature": {41},
		"nvmlDeviceGetPowerUsage": {71250}, "nvmlDeviceGetUtilizationRates": {50, 10},
		"nvmlDeviceGetMemoryInfo_v2": {1 << 30, 4 << 30},
		"nvmlDeviceGetMemoryInfo":    {2 << 30, 4 << 30}, "nvmlDeviceGetBAR1MemoryInfo": {1 << 20, 8 << 30},
		"nvmlDeviceGetCurrentClocksEventReasons": {4}, "nvmlDeviceGetCurrentClocksThrottleReasons": {8},
		"nvmlDeviceGetRemappedRows":            {1, 2, 1, 0},
		"nvmlDeviceGetComputeRunningProcesses": {4711, 4712},
	}[function], g.call(function)
}

func (g *fakeGPU) Fields(fields []nvmlField) error {
	for i := range fields {
		f := &fields[i]
		f.Value = uint64(f.ID)
		f.Err = g.fields[f.ID]
		f.Narrow = f.ID == 94 || g.narrow && (f.ID == 197 || f.ID == 198)
		switch {
		case f.ID == 91:
			f.Value = g.links
		case f.ID == nvmlLinkState && g.byCall:
			f.Err = nvmlReturn(3)
		case f.ID == nvmlLinkState && f.Scope == 0 && g.down == 0:
			f.Value = nvmlLinkSleeps
		case f.ID == nvmlLinkState:
			f.Value = 1
			if int(f.Scope) < g.down {
				f.Value = 3 // up, without traffic
			}
		}
	}
	return g.call("nvmlDeviceGetFieldValues")
}

func (g *fakeGPU) NVLinkActive(link int) (bool, error) {
	return link >= g.down, g.call("nvmlDeviceGetNvLinkState")
}

func (g *fakeGPU) Traffic() (uint64, uint64, error) {
	return 1000, 2000, g.call("nvmlGpmSampleGet")
}

func (g *fakeGPU) GPUFabric() (accel.GPUFabric, error) {
	return accel.GPUFabric{State: 3}, g.call("nvmlDeviceGetGpuFabricInfoV")
}

// newFakeGPUs reads a library with some GPUs, on a machine with a driver.
func newFakeGPUs(t testing.TB, gpus int) (*nvmlGPUs, *fakeNVML) {
	t.Helper()
	lib := &fakeNVML{t: t, xids: make(chan fakeXID)}
	for i := range gpus {
		lib.gpus = append(lib.gpus,
			&fakeGPU{lib: lib, index: i, links: 18, missing: map[string]error{}, fields: map[uint32]error{}})
	}
	dir := t.TempDir()
	hosttest.Put(t, dir, "nvidiactl", "")
	n := newGPUs(func() (nvmlLibrary, error) { return lib, nil }, filepath.Join(dir, "nvidiactl"))
	t.Cleanup(n.stop)
	return n, lib
}

func (n *nvmlGPUs) stop() { close(n.jobs) }

// readGPUsOf returns a reading that has to succeed.
func readGPUsOf(t testing.TB, n *nvmlGPUs) (accel.NVML, []error) {
	t.Helper()
	v, errs, err := n.ReadGPUs(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	return v, errs
}

func indexes(v accel.NVML) (out []int) {
	for _, g := range v.GPUs {
		out = append(out, g.Index)
	}
	return out
}
