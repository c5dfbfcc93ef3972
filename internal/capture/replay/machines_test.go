//go:build !race

package replay

import (
	"testing"

	"rdma_exporter/internal/capture"
	"rdma_exporter/test/archives"
)

func TestARecordingPlayedAndRecordedAgainIsIdenticalOfMachines(t *testing.T) {
	archives.Each(t, func(t *testing.T, a *capture.Archive) {
		if len(a.Rounds)*len(a.Rounds[0].Entries) > 2000 {
			return // minutes under the race detector; internal/cli records every fixture with the real collectors
		}
		once := record(t, a)
		b := archives.Parse(t, once)
		archives.Differ(t, record(t, b), once)
		if len(b.Rounds) != len(a.Rounds) || len(b.Rounds[0].Entries) < len(a.Rounds[0].Entries)/2 {
			t.Errorf("%d of %d entries were recorded", len(b.Rounds[0].Entries), len(a.Rounds[0].Entries))
		}
	})
}
