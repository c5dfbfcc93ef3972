package machine

import (
	"strings"
	"testing"

	"rdma_exporter/internal/expect"
)

// TestStateOfCaptures: a capture leaves the machine without serial numbers of transceivers.
func TestStateOfCaptures(t *testing.T) {
	b, err := encodeState(expect.Data{
		Links:     map[string]expect.LinkRecord{"0000:18:00.0/1": {}},
		Baselines: map[string]expect.Baseline{"0000:18:00.0/1#own": {Serial: "MT2301X01234"}},
	})
	if err != nil || !strings.Contains(string(b), "0000:18:00.0/1") || strings.Contains(string(b), "MT2301X01234") {
		t.Errorf("%s, %v", b, err)
	}
}
