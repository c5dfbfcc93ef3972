// Package played replays entries of a capture for the tests of what reads them.
package played

import (
	"testing"
	"time"

	"rdma_exporter/internal/capture/replay"
	"rdma_exporter/internal/host"
	"rdma_exporter/test/archives"
)

// Machine replays entries of one round: a real tree of files, with driver errors.
func Machine(t testing.TB, entries string) *host.Host {
	t.Helper()
	a := archives.Parse(t, "-- capture.json --\n{\"version\":1,\"rounds\":[\"0s\"]}\n"+entries)
	p, err := replay.Play(a, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p.Host()
}
