package collector

import (
	"slices"
	"strings"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/hwcounters"
	"rdma_exporter/collector/infiniband"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/test/played"
)

// TestFilesOfParts: files of metrics that are left out are not read; counter 0 is, since other reads depend on it.
func TestFilesOfParts(t *testing.T) {
	h := played.Machine(t, collectortest.ManyFunctions)
	metrics := func() map[string]bool { return map[string]bool{"rdma_port_out_of_sequence_total": true} }
	c := hwcounters.New(shared.NewState(shared.Options{PartMetrics: metrics}))
	n, err := collectortest.ReadOnce(t.Context(), c.Read, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range n.HWCounters.Devices {
		want := 3
		if d.Name != "mlx5_0" && d.Name != "mlx5_4" {
			want = 2
		}
		if got := len(d.Ports[0].Stats); got != want {
			t.Errorf("%s: %d counters read, want %d", d.Name, got, want)
		}
	}
}

// TestLeftOutIsNotMissing: a device beyond the limit that the configuration requires is not missing.
func TestLeftOutIsNotMissing(t *testing.T) {
	c, err := site.Parse([]byte("pins:\n- match: {device: mlx5_9}\n  present: true\n"))
	if err != nil {
		t.Fatal(err)
	}
	store := &site.Store{}
	store.Replace(c)
	o := shared.Options{MaxDevices: 2, Site: store, Hostname: "gpu-1"}
	n, err := collectortest.ReadOnce(
		t.Context(),
		infiniband.New(shared.NewState(o)).Read,
		played.Machine(t, collectortest.ManyFunctions),
	)
	if err != nil || len(n.InfiniBand.Devices) != 2 || len(n.InfiniBand.Missing) != 0 {
		t.Errorf("%d devices, missing %v, %v", len(n.InfiniBand.Devices), n.InfiniBand.Missing, err)
	}
}

// TestMetricsOfParts: of virtual functions and subfunctions beside their physical function only the metrics of rules
// are read and exposed.
func TestMetricsOfParts(t *testing.T) {
	ofRules := func() map[string]bool {
		return map[string]bool{
			"rdma_port_state_id": true, "rdma_port_symbol_errors_total": true, "rdma_port_out_of_sequence_total": true,
		}
	}
	const some = "rdma_port_out_of_sequence_total rdma_port_symbol_errors_total"
	const all = "rdma_port_duplicate_requests_total " + some +
		" rdma_port_vl15_dropped_total rdma_port_write_requests_received_total"
	for name, tc := range map[string]struct {
		metrics func() map[string]bool
		parts   string
	}{"rules": {ofRules, some}, "all": {nil, all}} {
		t.Run(name, func(t *testing.T) {
			h := played.Machine(t, collectortest.ManyFunctions)
			got := map[string][]string{}
			for _, c := range All(shared.Options{PartMetrics: tc.metrics})[:2] {
				n, err := collectortest.ReadOnce(t.Context(), c.Read, h)
				if err != nil {
					t.Fatal(err)
				}
				for device, counters := range countersOf(c, &n) {
					got[device] = append(got[device], counters...)
				}
			}
			for device, want := range map[string]string{
				"mlx5_0": all, "mlx5_4": all, "mlx5_9": tc.parts, "mlx5_10": tc.parts, "mlx5_3": tc.parts,
			} {
				if g := strings.Join(slices.Sorted(slices.Values(got[device])), " "); g != want {
					t.Errorf("%s has %s, want %s", device, g, want)
				}
			}
		})
	}
}

// countersOf returns the counters that a collector exposes, by device.
func countersOf(c *shared.Collector, n *snapshot.Node) map[string][]string {
	s := exposition.NewSink(c.Descs)
	s.Begin()
	s.Omit(n.Reduced.LeavesOut)
	c.Emit(n, s)
	out := map[string][]string{}
	for _, f := range s.End() {
		d := f.Head.Desc
		if strings.HasPrefix(d.Name, "rdma_port_") && strings.HasSuffix(d.Name, "_total") &&
			slices.Equal(d.Labels, []string{"device", "port"}) {
			for labels := range f.Samples() {
				out[labels[0]] = append(out[labels[0]], d.Name)
			}
		}
	}
	return out
}
