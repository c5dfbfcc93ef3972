package report

import (
	"testing"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/machine"
)

// TestTimesOfOneOffEvaluation: immediately, then every 15s up to the end of --for.
func TestTimesOfOneOffEvaluation(t *testing.T) {
	m := &machine.Machine{Host: &host.Host{Now: time.Now}}
	for length, want := range map[time.Duration]int{0: 1, 10 * time.Second: 1, 15 * time.Second: 2, 5 * time.Minute: 21} {
		times := (&Check{length: length}).times(m)
		if len(times) != want || times[want-1].Sub(times[0]) != time.Duration(want-1)*oneOffInterval {
			t.Errorf("%s: %d rounds", length, len(times))
		}
	}
}
