package collector

import (
	"errors"
	"slices"
	"testing"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// TestPanicOfOneDevice: what one device provokes costs no other one its data, and its lane is free again.
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
		}, func(names []string) { got = names })
		if !slices.Equal(got, []string{"a", "z"}) {
			t.Errorf("read %v", got)
		}
		if len(n.Issues) != 1 || n.Issues[0].Device != "odd" || n.Issues[0].Reason != string(host.Panic) || !errors.Is(n.Issues[0].Err, host.ErrPanic) {
			t.Errorf("%+v", n.Issues)
		}
	}
}
