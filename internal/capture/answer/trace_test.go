package answer

import (
	"testing"
	"time"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/accel"
)

func TestTraceGarbled(t *testing.T) {
	for _, text := range []string{
		"x", "lost: many\n", "complete: 1e300\n", "age: x\n", "registration: pid=x\n", "registration: size=1\n",
		"event: age=x\n", "new: 1\n",
	} {
		if _, err := DecodeAt[accel.Trace](TracePath, []byte(text), time.Time{}); access.ReasonOf(
			err,
		) != access.Malformed {
			t.Errorf("%q: %v", text, err)
		}
	}
}
