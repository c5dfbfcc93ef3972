package machines

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/capture/replay"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/rounds"
	testmachine "rdma_exporter/test/machine"
)

// Tree unpacks the first round of a fixture into real files, which a test may then spoil.
func Tree(t *testing.T, name string) string {
	t.Helper()
	return TreeIn(t, replay.Scratch(), name)
}

// TreeIn is tree in a folder of scratch, which says what file system the files have.
func TreeIn(t *testing.T, scratch, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp(scratch, "rdma_exporter-test-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, testmachine.Unpack(Fixture(name), dir))
	return dir
}

// Live returns a scheduler over a real tree.
func Live(t *testing.T, dir string, timeout time.Duration) *rounds.Scheduler {
	t.Helper()
	l, err := live.Open(rooted.Paths{RootFS: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return rounds.New(context.WithoutCancel(t.Context()), rounds.Options{
		Host: &l.Host, Collectors: collector.All(collector.Options{}), Timeout: timeout,
		Logger: slog.New(slog.DiscardHandler),
		Before: func(time.Time) error { l.Forget(); return nil }, // tests put other files in the place of some
	})
}

func Collect(t *testing.T, s *rounds.Scheduler) (samples map[string]string) {
	t.Helper()
	p, err := s.Collect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	samples = map[string]string{}
	for line := range strings.Lines(string(exposition.AppendText(nil, p.Families))) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "} "); ok && !strings.HasPrefix(line, "#") {
			samples[name+"}"] = value
		}
	}
	return samples
}

// Lost returns what the second collection lacks, without the metrics on the exporter itself.
func Lost(before, after map[string]string) (out []string) {
	for s := range before {
		if _, ok := after[s]; !ok && !strings.HasPrefix(s, "rdma_scrape_") {
			out = append(out, s)
		}
	}
	return out
}
