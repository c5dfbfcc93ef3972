package report

import (
	"bytes"
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

// TestProgress: one line on a terminal, that goes away; none elsewhere.
func TestProgress(t *testing.T) {
	var b bytes.Buffer
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := newProgress(&b, time.Minute)
	p.show(start, 1)
	p.end()
	if b.Len() > 0 {
		t.Errorf("no terminal, and %q", &b)
	}
	p = &progress{w: &b, length: time.Minute}
	p.show(start, 0)
	p.show(start.Add(15*time.Second), 2)
	p.end()
	want := "\r\x1b[Kobserving: 0s of 1m, findings: 0\r\x1b[Kobserving: 15s of 1m, findings: 2\r\x1b[K"
	if b.String() != want {
		t.Errorf("%q", &b)
	}
}
