package collector

import (
	"slices"
	"testing"
	"time"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/replay"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/reading"
)

// machine replays entries of a capture: a real tree of files, with driver errors.
func machine(t testing.TB, entries string) *host.Host {
	t.Helper()
	a, err := capture.Parse([]byte("-- capture.json --\n{\"version\":1,\"rounds\":[\"0s\"]}\n" + entries))
	if err != nil {
		t.Fatal(err)
	}
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

func readerOf(t testing.TB, entries string) *reading.Reader {
	t.Helper()
	return reading.New(t.Context(), machine(t, entries), "mlx5_0")
}

func value(v *uint64) any {
	if v == nil {
		return nil
	}
	return *v
}

// collectorOf is one of the collectors of All.
func collectorOf(o Options, name string) *Collector {
	all := All(o)
	return all[slices.IndexFunc(all, func(c *Collector) bool { return c.Name == name })]
}
