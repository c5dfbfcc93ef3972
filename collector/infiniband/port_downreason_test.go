package infiniband

import (
	"testing"

	"rdma_exporter/internal/host"
)

func TestDownReason(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	for _, c := range []struct {
		name           string
		s              host.LinkState
		reason, detail string
	}{
		{"nothing reported", host.LinkState{}, "", ""},
		{"substate without a state", host.LinkState{ExtSubstate: n(1)}, "", ""},
		{"state 0", host.LinkState{ExtState: n(0)}, "autonegotiation failed", ""}, // 0 is a state
		{"autonegotiation with substate", host.LinkState{ExtState: n(0), ExtSubstate: n(1)}, "autonegotiation failed", "no partner detected"},
		{"logical mismatch", host.LinkState{ExtState: n(2), ExtSubstate: n(5)}, "logical mismatch", "RS FEC not locked"},
		{"bad signal integrity", host.LinkState{ExtState: n(3), ExtSubstate: n(4)}, "bad signal integrity", "serdes analog loss of signal"},
		{"no cable", host.LinkState{ExtState: n(4)}, "no cable", ""},
		{"no cable, unknown substate", host.LinkState{ExtState: n(4), ExtSubstate: n(1)}, "no cable", "unknown substate 1"},
		{"module", host.LinkState{ExtState: n(10), ExtSubstate: n(1)}, "module", "CMIS module is not in state ModuleReady"},
		{"BMC request", host.LinkState{ExtState: n(12)}, "BMC request down", ""},
		{"unknown state", host.LinkState{ExtState: n(13)}, "unknown state 13", ""},
		{"largest state", host.LinkState{ExtState: n(1 << 63), ExtSubstate: n(1 << 63)}, "unknown state 9223372036854775808", ""},
		{"largest substate", host.LinkState{ExtState: n(1), ExtSubstate: n(1 << 63)}, "link training failed", "unknown substate 9223372036854775808"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if reason, detail := downReason(c.s); reason != c.reason || detail != c.detail {
				t.Errorf("%+v: %q, %q, want %q, %q", c.s, reason, detail, c.reason, c.detail)
			}
		})
	}
}
