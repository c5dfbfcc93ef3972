//go:build gpu && cgo

package gpu

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// profile starts measuring the traffic of GPU 0 by the driver's performance monitor (GPM); end returns the result.
func profile(t *testing.T) (end func() string) {
	t.Helper()
	none := func() string { return "  performance monitor: not to be had\n" }
	if r := nvml.Init(); r != nvml.SUCCESS {
		t.Fatal(r)
	}
	d, r := nvml.DeviceGetHandleByIndex(0)
	if r != nvml.SUCCESS {
		t.Fatal(r)
	}
	first, r1 := nvml.GpmSampleAlloc()
	second, r2 := nvml.GpmSampleAlloc()
	if r1 != nvml.SUCCESS || r2 != nvml.SUCCESS {
		return none
	}
	if first.Get(d) != nvml.SUCCESS {
		return none
	}
	start := time.Now()
	return func() string {
		r := second.Get(d)
		took := time.Since(start)
		get := nvml.GpmMetricsGetType{Version: nvml.GPM_METRICS_GET_VERSION, NumMetrics: 4, Sample1: first, Sample2: second}
		for i, id := range []nvml.GpmMetricId{
			nvml.GPM_METRIC_PCIE_TX_PER_SEC, nvml.GPM_METRIC_PCIE_RX_PER_SEC, nvml.GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC,
			nvml.GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC,
		} {
			get.Metrics[i].MetricId = uint32(id)
		}
		r2 := nvml.GpmMetricsGet(&get)
		text := fmt.Sprintf("  performance monitor: sample %d, metrics %d, in %v:", r, r2, took)
		for i, name := range []string{"PCIe transmit", "PCIe receive", "NVLink transmit", "NVLink receive"} {
			m := get.Metrics[i]
			text += fmt.Sprintf(" %s %.3f MiB/s (%.0f bytes, return %d)",
				name, m.Value, m.Value*took.Seconds()*(1<<20), m.NvmlReturn)
		}
		first.Free()
		second.Free()
		return text + "\n"
	}
}

// TestRawFieldValues records the driver's answer to every field value that the exporter may query: its type, whether it
// is summed over links, and the state of the fabric. It is for readers of the tables in internal/host.
func TestRawFieldValues(t *testing.T) {
	if r := nvml.Init(); r != nvml.SUCCESS {
		t.Fatal(r)
	}
	defer nvml.Shutdown()
	var b bytes.Buffer
	count, r := nvml.DeviceGetCount()
	if r != nvml.SUCCESS {
		t.Fatal(r)
	}
	for i := range count {
		d, r := nvml.DeviceGetHandleByIndex(i)
		if r != nvml.SUCCESS {
			t.Fatal(r)
		}
		fmt.Fprintf(&b, "GPU %d\n", i)
		for _, scope := range []uint32{0, 0xffffffff} {
			for _, ids := range [][2]uint32{
				{38, 38}, {45, 45}, {52, 52}, {59, 59}, {91, 91}, {94, 94}, {138, 141}, {147, 147}, {160, 183}, {197, 222}, {
					226, 230,
				},
			} {
				for id := ids[0]; id <= ids[1]; id++ {
					v := []nvml.FieldValue{{FieldId: id, ScopeId: scope}}
					r := d.GetFieldValues(v)
					fmt.Fprintf(&b, "  field %d scope %#x: return %d, its own %d, type %d, value %x, latency %d us\n",
						id, scope, r, v[0].NvmlReturn, v[0].ValueType, v[0].Value, v[0].LatencyUsec)
				}
			}
		}
		v3, r3 := d.GetGpuFabricInfoV().V3()
		v2, r2 := d.GetGpuFabricInfoV().V2()
		fmt.Fprintf(&b,
			"  fabric V3: return %d, state %d, status %d, health %#x, summary %d, clique %d, a cluster %v; V2: return %d, state %d, health %#x\n",
			r3, v3.State, v3.Status, v3.HealthMask, v3.HealthSummary, v3.CliqueId, v3.ClusterUuid != [16]uint8{}, r2,
			v2.State, v2.HealthMask)
	}
	out(t, "raw.txt", b.Bytes())
}
