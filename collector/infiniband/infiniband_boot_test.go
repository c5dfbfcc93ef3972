package infiniband

import (
	"testing"

	"rdma_exporter/test/played"
)

func TestBoot(t *testing.T) {
	const id = "-- proc/sys/kernel/random/boot_id --\n7a3f0c52-0d3e-4c0a-9b1e-5f0f6f1f2a11\n"
	for _, c := range []struct {
		name, tree string
		want       float64 // -1: none
		id         string
	}{
		{"a host", "-- proc/uptime --\n3456000.12 380160000.55\n" + id, 3456000.12, "7a3f0c52-0d3e-4c0a-9b1e-5f0f6f1f2a11"},
		{"just booted", "-- proc/uptime --\n0.00 0.00\n", 0, ""},
		{"no uptime", id, -1, "7a3f0c52-0d3e-4c0a-9b1e-5f0f6f1f2a11"},
		{"text", "-- proc/uptime --\nlong\n", -1, ""},
		{"not a number", "-- proc/uptime --\nNaN 0\n", -1, ""},
		{"without end", "-- proc/uptime --\nInf 0\n", -1, ""},
		{"negative", "-- proc/uptime --\n-5.00 0\n", -1, ""},
		{"empty", "-- proc/uptime --\n\n", -1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, got := (&infiniBand{}).readBoot(played.Machine(t, c.tree)), -1.0
			if b.Uptime != nil {
				got = *b.Uptime
			}
			if got != c.want || b.ID != c.id {
				t.Errorf("%v %q", got, b.ID)
			}
		})
	}
}
