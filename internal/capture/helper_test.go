package capture

import (
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/host"
)

// header begins an archive of three rounds.
const header = "-- capture.json --\n" + `{
  "version": 2,
  "hostname": "gpu-1",
  "kernel": "6.12.0",
  "time": "2026-01-02T03:04:05Z",
  "rounds": ["0s","15s","30s"]
}
`

var base = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func parse(t testing.TB, text string) *Archive {
	t.Helper()
	a, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func format(t testing.TB, a *Archive) string {
	t.Helper()
	b, err := Format(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func play(t testing.TB, a *Archive) *Player {
	t.Helper()
	p, err := Play(a, base)
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
	if err := p.Seek(base.Add(after)); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, f host.Files, name string) string {
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

// differ reports the first line in which two texts differ.
func differ(t testing.TB, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			t.Errorf("line %d: %q, want %q", i+1, g[min(i, len(g)):min(i+1, len(g))], w[min(i, len(w)):min(i+1, len(w))])
			return
		}
	}
}
