package replay

import (
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/host"
	"rdma_exporter/test/archives"
)

func play(t testing.TB, a *capture.Archive) *Player {
	t.Helper()
	p, err := Play(a, archives.Start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func seek(t testing.TB, p *Player, after time.Duration) {
	t.Helper()
	if err := p.Seek(archives.Start.Add(after)); err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, f host.Files, name string) string {
	t.Helper()
	b, err := f.Read(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func list(t testing.TB, f host.Files, name string) string {
	t.Helper()
	names, err := f.List(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}
