package app

import (
	"bytes"
	"testing"
	"time"
)

// TestTimesOfOneOffEvaluation: immediately, then every 15s up to the end of --for.
func TestTimesOfOneOffEvaluation(t *testing.T) {
	m, _ := open(t, fixture("no-rdma"))
	m.player = nil // its clock alone
	for length, want := range map[time.Duration]int{0: 1, 10 * time.Second: 1, 15 * time.Second: 2, 5 * time.Minute: 21} {
		times := (&checkConfig{length: length}).times(m)
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

// TestClosest: the names that were meant.
func TestClosest(t *testing.T) {
	all := []string{"RDMAPortDown", "RDMALinkErrors", "RDMALinkFlapping", "RDMAPCIeErrors"}
	for name, want := range map[string]string{"rdmaportdown": "RDMAPortDown", "RDMAPortDwon": "RDMAPortDown", "LinkError": "RDMALinkErrors", "xyz": "", "": ""} {
		got := closest(name, all)
		if want == "" && len(got) > 0 || want != "" && (len(got) == 0 || got[0] != want) {
			t.Errorf("%q: %v, want %q", name, got, want)
		}
	}
}
