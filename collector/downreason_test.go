package collector

import (
	"testing"

	"rdma_exporter/internal/host"
)

func TestDownReason(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	for _, c := range []struct {
		s              host.LinkState
		reason, detail string
	}{
		{host.LinkState{}, "", ""},
		{host.LinkState{ExtSubstate: n(1)}, "", ""},
		{host.LinkState{ExtState: n(0)}, "autonegotiation failed", ""}, // 0 is a state
		{host.LinkState{ExtState: n(0), ExtSubstate: n(1)}, "autonegotiation failed", "no partner detected"},
		{host.LinkState{ExtState: n(2), ExtSubstate: n(5)}, "logical mismatch", "RS FEC not locked"},
		{host.LinkState{ExtState: n(3), ExtSubstate: n(4)}, "bad signal integrity", "serdes analog loss of signal"},
		{host.LinkState{ExtState: n(4)}, "no cable", ""},
		{host.LinkState{ExtState: n(4), ExtSubstate: n(1)}, "no cable", "unknown substate 1"},
		{host.LinkState{ExtState: n(10), ExtSubstate: n(1)}, "module", "CMIS module is not in state ModuleReady"},
		{host.LinkState{ExtState: n(12)}, "BMC request down", ""},
		{host.LinkState{ExtState: n(13)}, "unknown state 13", ""},
		{host.LinkState{ExtState: n(1 << 63), ExtSubstate: n(1 << 63)}, "unknown state 9223372036854775808", ""},
		{host.LinkState{ExtState: n(1), ExtSubstate: n(1 << 63)}, "link training failed", "unknown substate 9223372036854775808"},
	} {
		if reason, detail := downReason(c.s); reason != c.reason || detail != c.detail {
			t.Errorf("%+v: %q, %q, want %q, %q", c.s, reason, detail, c.reason, c.detail)
		}
	}
}
