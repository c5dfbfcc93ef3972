package answer

import (
	"testing"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

func TestTraceGarbled(t *testing.T) {
	for _, text := range []string{
		"x", "lost: many\n", "complete: 1e300\n", "age: x\n", "registration: pid=x\n", "registration: size=1\n",
		"event: age=x\n", "new: 1\n",
	} {
		if _, err := DecodeAt[snapshot.Trace](TracePath, []byte(text), time.Time{}); host.ReasonOf(err) != host.Malformed {
			t.Errorf("%q: %v", text, err)
		}
	}
}
