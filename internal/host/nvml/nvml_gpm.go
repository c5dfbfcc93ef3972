//go:build cgo && linux

package nvml

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// nvmlGPM measures the traffic of a GPU from two samples of the driver's performance monitor, GPM. Hopper and later
// GPUs have it.
type nvmlGPM struct {
	last, next nvml.GpmSample
	at         time.Time // of last
	refused    error     // not available until NVML is initialised again
}

// Traffic returns the mean rate between two samples, in MiB/s, times the time between them.
func (g nvmlGPU) Traffic() (transmitted, received uint64, err error) {
	m := g.gpm
	if m.refused == nil && m.last == nil {
		m.refused = g.c.sampleTraffic(g.d, m)
	}
	if m.refused != nil {
		return 0, 0, m.refused
	}
	if r := m.next.Get(g.d); r != nvml.SUCCESS {
		return 0, 0, nvmlError("nvmlGpmSampleGet", uint32(r))
	}
	seconds := time.Since(m.at).Seconds()
	get := nvml.GpmMetricsGetType{NumMetrics: 2, Sample1: m.last, Sample2: m.next}
	get.Metrics[0].MetricId = uint32(nvml.GPM_METRIC_PCIE_TX_PER_SEC)
	get.Metrics[1].MetricId = uint32(nvml.GPM_METRIC_PCIE_RX_PER_SEC)
	if r := g.c.lib.GpmMetricsGet(&get); r != nvml.SUCCESS {
		return 0, 0, nvmlError("nvmlGpmMetricsGet", uint32(r))
	}
	for i := range 2 {
		if r := get.Metrics[i].NvmlReturn; r != 0 {
			return 0, 0, nvmlError("nvmlGpmMetricsGet", r)
		}
	}
	m.last, m.next, m.at = m.next, m.last, time.Now()
	return trafficOf(get.Metrics[0].Value, seconds), trafficOf(get.Metrics[1].Value, seconds), nil
}

// trafficOf converts a rate in MiB/s to bytes; 0 for an implausible rate.
func trafficOf(rate, seconds float64) uint64 {
	if b := rate * seconds * (1 << 20); b > 0 && b < 1<<62 {
		return uint64(b)
	}
	return 0
}

// sampleTraffic takes the first sample.
func (c *nvmlClient) sampleTraffic(d nvml.Device, m *nvmlGPM) error {
	if err := c.has("nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleFree", "nvmlGpmSampleGet",
		"nvmlGpmMetricsGet"); err != nil {
		return err
	}
	support, r := d.GpmQueryDeviceSupport()
	switch {
	case r != nvml.SUCCESS:
		return nvmlError("nvmlGpmQueryDeviceSupport", uint32(r))
	case support.IsSupportedDevice == 0:
		return nvmlError("nvmlGpmQueryDeviceSupport", uint32(nvmlNotSupported))
	}
	c.monitors = append(c.monitors, m)
	for _, to := range []*nvml.GpmSample{&m.last, &m.next} {
		sample, r := c.lib.GpmSampleAlloc()
		if r != nvml.SUCCESS {
			return nvmlError("nvmlGpmSampleAlloc", uint32(r))
		}
		*to = sample
	}
	m.at = time.Now()
	return nvmlError("nvmlGpmSampleGet", uint32(m.last.Get(d)))
}

// freeSamples frees the samples of all GPUs. New ones are allocated at the next reading.
func (c *nvmlClient) freeSamples() {
	for _, m := range c.monitors {
		for _, s := range []nvml.GpmSample{m.last, m.next} {
			if s != nil {
				s.Free()
			}
		}
		*m = nvmlGPM{}
	}
	c.monitors = nil
}
