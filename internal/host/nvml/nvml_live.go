//go:build cgo && linux

package nvml

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/accel"
)

// NVML reports whether this build can load NVIDIA's library.
const NVML = true

// nvmlName is the driver's library.
const nvmlName = "libnvidia-ml.so.1"

// nvmlClient calls the library through go-nvml, which binds functions at their first call: a missing function
// terminates the process. Therefore each symbol is looked up first.
type nvmlClient struct {
	path     string
	lib      nvml.Interface
	symbols  map[string]bool // symbols that were looked up
	monitors []*nvmlGPM      // that hold memory of the library
}

func newNVML() (nvmlLibrary, error) { return openNVML(nvmlName), nil }

func openNVML(path string) *nvmlClient { return &nvmlClient{path: path} }

// Init loads and initialises the library.
func (c *nvmlClient) Init() error {
	if err := c.complete(); err != nil {
		return err
	}
	c.lib, c.symbols = nvml.New(nvml.WithLibraryPath(c.path)), map[string]bool{}
	return nvmlError("nvmlInit", uint32(c.lib.Init()))
}

// complete returns an error if the library or a function that Init and Shutdown call is missing.
func (c *nvmlClient) complete() error {
	l := dl.New(c.path, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	if err := l.Open(); err != nil {
		return fmt.Errorf("%w: %w", nvmlError("nvmlInit", uint32(nvmlLibraryNotFound)), err)
	}
	for _, name := range []string{"nvmlInit_v2", "nvmlShutdown"} {
		if l.Lookup(name) != nil {
			return errors.Join(nvmlError(name, uint32(nvmlFunctionNotFound)), l.Close())
		}
	}
	return l.Close()
}

// Shutdown frees everything that the library holds.
func (c *nvmlClient) Shutdown() error {
	c.freeSamples()
	return nvmlError("nvmlShutdown", uint32(c.lib.Shutdown()))
}

// has returns an error if the library lacks one of some functions.
func (c *nvmlClient) has(symbols ...string) error {
	for _, symbol := range symbols {
		there, known := c.symbols[symbol]
		if !known {
			there = c.lib.Extensions().LookupSymbol(symbol) == nil
			c.symbols[symbol] = there
		}
		if !there {
			return nvmlError(symbol, uint32(nvmlFunctionNotFound))
		}
	}
	return nil
}

// nvmlCall calls a function if the library has it.
func nvmlCall[T any](c *nvmlClient, symbol string, f func() (T, nvml.Return)) (T, error) {
	if err := c.has(symbol); err != nil {
		var none T
		return none, err
	}
	v, r := f()
	return v, nvmlError(symbol, uint32(r))
}

// DriverVersion is nvmlSystemGetDriverVersion.
func (c *nvmlClient) DriverVersion() (string, error) {
	return nvmlCall(c, "nvmlSystemGetDriverVersion",
		func() (string, nvml.Return) { return c.lib.SystemGetDriverVersion() })
}

// CUDAVersion is nvmlSystemGetCudaDriverVersion_v2.
func (c *nvmlClient) CUDAVersion() (int, error) {
	return nvmlCall(c, "nvmlSystemGetCudaDriverVersion_v2",
		func() (int, nvml.Return) { return c.lib.SystemGetCudaDriverVersion_v2() })
}

// Count is nvmlDeviceGetCount.
func (c *nvmlClient) Count() (int, error) {
	return nvmlCall(c, "nvmlDeviceGetCount_v2", func() (int, nvml.Return) { return c.lib.DeviceGetCount() })
}

// Device is nvmlDeviceGetHandleByIndex.
func (c *nvmlClient) Device(index int) (nvmlDevice, error) {
	d, err := nvmlCall(c, "nvmlDeviceGetHandleByIndex_v2",
		func() (nvml.Device, nvml.Return) { return c.lib.DeviceGetHandleByIndex(index) })
	if err != nil {
		return nil, err
	}
	return nvmlGPU{c, d, &nvmlGPM{}}, nil
}

// nvmlGPU is a device of a client.
type nvmlGPU struct {
	c   *nvmlClient
	d   nvml.Device
	gpm *nvmlGPM
}

// nvmlTexts and nvmlFigures are the functions by name.
var nvmlTexts = map[string]func(nvml.Device) (string, nvml.Return){
	"nvmlDeviceGetUUID":    nvml.Device.GetUUID,
	"nvmlDeviceGetName":    nvml.Device.GetName,
	"nvmlDeviceGetSerial":  nvml.Device.GetSerial,
	"nvmlDeviceGetPciInfo": nvmlBusID,
}

var nvmlFigures = map[string]func(nvml.Device) ([]uint64, nvml.Return){
	"nvmlDeviceGetCudaComputeCapability":        nvmlCapability,
	"nvmlDeviceGetCurrPcieLinkGeneration":       nvmlOne(nvml.Device.GetCurrPcieLinkGeneration),
	"nvmlDeviceGetMaxPcieLinkGeneration":        nvmlOne(nvml.Device.GetMaxPcieLinkGeneration),
	"nvmlDeviceGetCurrPcieLinkWidth":            nvmlOne(nvml.Device.GetCurrPcieLinkWidth),
	"nvmlDeviceGetMaxPcieLinkWidth":             nvmlOne(nvml.Device.GetMaxPcieLinkWidth),
	"nvmlDeviceGetTemperature":                  nvmlTemperature,
	"nvmlDeviceGetPowerUsage":                   nvmlOne(nvml.Device.GetPowerUsage),
	"nvmlDeviceGetUtilizationRates":             nvmlSome(nvml.Device.GetUtilizationRates, nvmlUtilization),
	"nvmlDeviceGetMemoryInfo_v2":                nvmlSome(nvml.Device.GetMemoryInfo_v2, nvmlMemory2),
	"nvmlDeviceGetMemoryInfo":                   nvmlSome(nvml.Device.GetMemoryInfo, nvmlMemory),
	"nvmlDeviceGetBAR1MemoryInfo":               nvmlSome(nvml.Device.GetBAR1MemoryInfo, nvmlBAR1),
	"nvmlDeviceGetCurrentClocksEventReasons":    nvmlOne(nvml.Device.GetCurrentClocksEventReasons),
	"nvmlDeviceGetCurrentClocksThrottleReasons": nvmlOne(nvml.Device.GetCurrentClocksThrottleReasons),
	"nvmlDeviceGetRemappedRows":                 nvmlRemappedRows,
	"nvmlDeviceGetComputeRunningProcesses":      nvmlProcesses,
}

// nvmlSymbols are the symbols that go-nvml calls where they differ from the name.
var nvmlSymbols = map[string]string{
	"nvmlDeviceGetPciInfo":                 "nvmlDeviceGetPciInfo_v3",
	"nvmlDeviceGetComputeRunningProcesses": "nvmlDeviceGetComputeRunningProcesses_v3",
}

// nvmlSome returns numbers of the result of a function.
func nvmlSome[T any](
	get func(nvml.Device) (T, nvml.Return), numbers func(T) []uint64,
) func(nvml.Device) ([]uint64, nvml.Return) {
	return func(d nvml.Device) ([]uint64, nvml.Return) {
		v, r := get(d)
		return numbers(v), r
	}
}

func nvmlOne[N int | uint32 | uint64](
	get func(nvml.Device) (N, nvml.Return),
) func(nvml.Device) ([]uint64, nvml.Return) {
	return nvmlSome(get, func(n N) []uint64 { return []uint64{uint64(n)} })
}

func nvmlUtilization(u nvml.Utilization) []uint64 { return []uint64{uint64(u.Gpu)} }

func nvmlMemory2(m nvml.Memory_v2) []uint64 { return []uint64{m.Used, m.Total} }

func nvmlMemory(m nvml.Memory) []uint64 { return []uint64{m.Used, m.Total} }

func nvmlBAR1(m nvml.BAR1Memory) []uint64 { return []uint64{m.Bar1Used, m.Bar1Total} }

func nvmlBusID(d nvml.Device) (string, nvml.Return) {
	p, r := d.GetPciInfo()
	var b strings.Builder
	for _, c := range p.BusId {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String(), r
}

func nvmlCapability(d nvml.Device) ([]uint64, nvml.Return) {
	major, minor, r := d.GetCudaComputeCapability()
	return []uint64{uint64(major), uint64(minor)}, r
}

func nvmlTemperature(d nvml.Device) ([]uint64, nvml.Return) {
	n, r := d.GetTemperature(nvml.TEMPERATURE_GPU)
	return []uint64{uint64(n)}, r
}

func nvmlRemappedRows(d nvml.Device) ([]uint64, nvml.Return) {
	correctable, uncorrectable, pending, failed, r := d.GetRemappedRows()
	return []uint64{uint64(correctable), uint64(uncorrectable), nvmlBit(pending), nvmlBit(failed)}, r
}

func nvmlProcesses(d nvml.Device) ([]uint64, nvml.Return) {
	processes, r := d.GetComputeRunningProcesses()
	out := make([]uint64, 0, len(processes))
	for _, p := range processes {
		out = append(out, uint64(p.Pid))
	}
	return out, r
}

func nvmlBit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// Text calls a function of nvmlTexts.
func (g nvmlGPU) Text(function string) (string, error) {
	return nvmlCall(g.c, cmp.Or(nvmlSymbols[function], function),
		func() (string, nvml.Return) { return nvmlTexts[function](g.d) })
}

// Numbers calls a function of nvmlFigures.
func (g nvmlGPU) Numbers(function string) ([]uint64, error) {
	return nvmlCall(g.c, cmp.Or(nvmlSymbols[function], function),
		func() ([]uint64, nvml.Return) { return nvmlFigures[function](g.d) })
}

// Fields is nvmlDeviceGetFieldValues.
func (g nvmlGPU) Fields(fields []nvmlField) error {
	if len(fields) == 0 {
		return nil
	}
	values := make([]nvml.FieldValue, len(fields))
	for i, f := range fields {
		values[i].FieldId, values[i].ScopeId = f.ID, f.Scope
	}
	const symbol = "nvmlDeviceGetFieldValues"
	if _, err := nvmlCall(g.c, symbol, func() (struct{}, nvml.Return) {
		return struct{}{}, g.d.GetFieldValues(values)
	}); err != nil {
		return err
	}
	for i, v := range values {
		f := &fields[i]
		ok := false
		if f.Err = nvmlError(fmt.Sprintf("%s(%d)", symbol, f.ID), v.NvmlReturn); f.Err == nil {
			f.Narrow = v.ValueType == uint32(nvml.VALUE_TYPE_UNSIGNED_INT)
			if f.Value, ok = nvmlNumber(v.ValueType, v.Value); !ok {
				f.Err = &access.Error{Op: "query", Path: fmt.Sprintf("%s(%d)", symbol, f.ID), Err: access.ErrMalformed}
			}
		}
	}
	return nil
}

// NVLinkActive is nvmlDeviceGetNvLinkState.
func (g nvmlGPU) NVLinkActive(link int) (bool, error) {
	s, err := nvmlCall(g.c, "nvmlDeviceGetNvLinkState",
		func() (nvml.EnableState, nvml.Return) { return g.d.GetNvLinkState(link) })
	return s == nvml.FEATURE_ENABLED, err
}

// GPUFabric is nvmlDeviceGetGpuFabricInfoV, or its predecessor.
func (g nvmlGPU) GPUFabric() (accel.GPUFabric, error) {
	const symbol = "nvmlDeviceGetGpuFabricInfoV"
	if v, err := nvmlCall(g.c, symbol, func() (nvml.GpuFabricInfo_v3, nvml.Return) {
		return g.d.GetGpuFabricInfoV().V3()
	}); err == nil {
		health, summary := new(uint64(v.HealthMask)), new(uint64(v.HealthSummary))
		return gpuFabric(v.State, v.Status, v.ClusterUuid, v.CliqueId, health, summary), nil
	}
	if v, err := nvmlCall(g.c, symbol, func() (nvml.GpuFabricInfo_v2, nvml.Return) {
		return g.d.GetGpuFabricInfoV().V2()
	}); err == nil {
		return gpuFabric(v.State, v.Status, v.ClusterUuid, v.CliqueId, new(uint64(v.HealthMask)), nil), nil
	}
	v, err := nvmlCall(g.c, "nvmlDeviceGetGpuFabricInfo",
		func() (nvml.GpuFabricInfo, nvml.Return) { return g.d.GetGpuFabricInfo() })
	return gpuFabric(v.State, v.Status, v.ClusterUuid, v.CliqueId, nil, nil), err
}

func gpuFabric(
	state uint8, status uint32, cluster [16]uint8, clique uint32, health, summary *uint64,
) accel.GPUFabric {
	f := accel.GPUFabric{
		State: uint64(state), Status: uint64(status), Clique: uint64(clique), Health: health, Summary: summary,
	}
	if cluster != [16]uint8{} {
		f.Cluster = fmt.Sprintf("%x-%x-%x-%x-%x", cluster[:4], cluster[4:6], cluster[6:8], cluster[8:10], cluster[10:])
	}
	return f
}

// Events is nvmlEventSetCreate and nvmlDeviceRegisterEvents.
func (c *nvmlClient) Events(devices []nvmlDevice) (nvmlEvents, []bool, error) {
	if err := c.has("nvmlEventSetCreate", "nvmlEventSetWait_v2", "nvmlEventSetFree", "nvmlDeviceRegisterEvents",
		"nvmlDeviceGetUUID"); err != nil {
		return nil, nil, err
	}
	set, r := c.lib.EventSetCreate()
	if r != nvml.SUCCESS {
		return nil, nil, nvmlError("nvmlEventSetCreate", uint32(r))
	}
	registered := make([]bool, len(devices))
	for i, d := range devices {
		if g, ok := d.(nvmlGPU); ok {
			registered[i] = g.d.RegisterEvents(nvml.EventTypeXidCriticalError, set) == nvml.SUCCESS
		}
	}
	return nvmlEventSet{set}, registered, nil
}

type nvmlEventSet struct{ set nvml.EventSet }

// Wait is nvmlEventSetWait.
func (s nvmlEventSet) Wait(d time.Duration) (string, uint64, error) {
	e, r := s.set.Wait(uint32(d.Milliseconds()))
	if r != nvml.SUCCESS {
		return "", 0, nvmlError("nvmlEventSetWait", uint32(r))
	}
	uuid, r := e.Device.GetUUID()
	return uuid, e.EventData, nvmlError("nvmlDeviceGetUUID", uint32(r))
}

// Free is nvmlEventSetFree.
func (s nvmlEventSet) Free() error { return nvmlError("nvmlEventSetFree", uint32(s.set.Free())) }
