package serve

import (
	"testing"

	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/verdict"
)

// TestPageReadsNothing: while rules are evaluated the page shows the round that they saw, and asks for no other.
func TestPageReadsNothing(t *testing.T) {
	d := &daemon{}
	x := &shown{daemon: d} // without a scheduler that could collect
	if p, err := x.picture(t.Context()); p != nil || err != nil {
		t.Errorf("before the first round: %v, %v", p, err)
	}
	round := &rounds.Picture{}
	d.seen.note(round, verdict.Conclusion{}, true)
	d.seen.note(nil, verdict.Conclusion{}, false)
	if p, err := x.picture(t.Context()); p != round || err != nil {
		t.Errorf("%v, %v", p, err)
	}
}
