//go:build !race

package machines

import (
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/exposition"
)

// placed are the labels by which rules join a part with its place.
var placed = []string{"device", "port", "gpu", "UUID"}

// partsIn returns the parts that the series of a metric are on: the values of placed, empty where it has no such label.
func partsIn(families []exposition.Family, metric string) (out []string) {
	for _, f := range families {
		if f.Head.Desc.Name != metric {
			continue
		}
		for labels := range f.Samples() {
			var part []string
			for _, name := range placed {
				value := ""
				if i := slices.Index(f.Head.Desc.Labels, name); i >= 0 {
					value = labels[i]
				}
				part = append(part, value)
			}
			out = append(out, strings.Join(part, ","))
		}
	}
	slices.Sort(out)
	return out
}

// isPart reports whether a device is a virtual function or a subfunction, which have what rules read only.
func isPart(families []exposition.Family, device string) bool {
	for _, f := range families {
		if f.Head.Desc.Name == "rdma_device_info" {
			for labels := range f.Samples() {
				kind := labels[slices.Index(f.Head.Desc.Labels, "function_type")]
				if labels[slices.Index(f.Head.Desc.Labels, "device")] == device && (kind == "virtual" || kind == "subfunction") {
					return true
				}
			}
		}
	}
	return false
}

// TestPlacesOfMachines: the host and each port, device and GPU, there, missing or lost, has exactly one place: rules
// join with it.
func TestPlacesOfMachines(t *testing.T) {
	Each(t, func(t *testing.T, name string) {
		families := played(t, name).families
		places := partsIn(families, "rdma_place_info")
		for i, p := range places {
			if i > 0 && p == places[i-1] {
				t.Errorf("%s has two places", p)
			}
		}
		if !slices.Contains(places, ",,,") {
			t.Error("the host has no place")
		}
		for _, metric := range []string{
			"rdma_port_state_id", "rdma_device_present", "rdma_device_info", "rdma_gpu_info", "rdma_gpu_lost_info",
		} {
			for _, part := range partsIn(families, metric) {
				device, _, _ := strings.Cut(part, ",")
				if _, ok := slices.BinarySearch(places, part); !ok && !isPart(families, device) {
					t.Errorf("%s of %s has no place", part, metric)
				}
			}
		}
	})
}
