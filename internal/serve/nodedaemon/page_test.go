package nodedaemon

import (
	"testing"

	"rdma_exporter/internal/rounds"
)

// TestPageReadsNothing: with rules the page shows the last evaluated round, and starts no collection.
func TestPageReadsNothing(t *testing.T) {
	var last *rounds.Picture
	x := &pageCache{last: func() *rounds.Picture { return last }} // without a scheduler that could collect
	if p, err := x.readPicture(t.Context()); p != nil || err != nil {
		t.Errorf("before the first round: %v, %v", p, err)
	}
	last = &rounds.Picture{}
	if p, err := x.readPicture(t.Context()); p != last || err != nil {
		t.Errorf("%v, %v", p, err)
	}
}
