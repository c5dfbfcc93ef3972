package replay

import (
	"testing"

	"rdma_exporter/internal/capture"
	"rdma_exporter/test/archives"
)

// recordFrom records an archive from one of its rounds on, and keeps the last keep rounds.
func recordFrom(t *testing.T, a *capture.Archive, from, keep int) string {
	t.Helper()
	p := play(t, a)
	rec := NewRecorder(p.Host())
	begun := a.Rounds[from].At
	for _, r := range a.Rounds[from:] {
		seek(t, p, r.At)
		rd := newReader(t.Context(), rec.Host(), a)
		for _, top := range []string{"proc", "sys"} {
			rd.walk(top)
		}
		rec.EndRound(r.At - begun)
		begun += rec.Keep(keep)
	}
	meta := a.Meta
	meta.Time = meta.Time.Add(begun)
	return archives.Format(t, rec.Archive(meta))
}

// TestKeep: keeping the last rounds is the same as recording only these.
func TestKeep(t *testing.T) {
	a := archives.Parse(t, archives.Header+`-- sys/class/infiniband/mlx5_0 -> ../../devices/mlx5_0 --
-- sys/class/infiniband/mlx5_1 -> ../../devices/mlx5_1 --
-- sys/devices/mlx5_0/board_id !EINVAL --
-- sys/devices/mlx5_0/fw_ver --
28.39.1002
-- sys/devices/mlx5_0/gids @dir --
-- sys/devices/mlx5_0/rx --
1
-- sys/devices/mlx5_1/fw_ver --
28.39.1002
-- +15s/sys/class/infiniband/mlx5_1 !ENOENT --
-- +15s/sys/devices/mlx5_0/board_id --
MT_0000000838
-- +15s/sys/devices/mlx5_0/gids/0 --
fe80::1
-- +15s/sys/devices/mlx5_0/rx --
2
-- +15s/sys/devices/mlx5_1 !ENOENT --
-- +30s/sys/class/infiniband/mlx5_1 -> ../../devices/mlx5_1 --
-- +30s/sys/devices/mlx5_0/gids/0 !ENOENT --
-- +30s/sys/devices/mlx5_0/rx --
3
-- +30s/sys/devices/mlx5_1/fw_ver --
28.42.1000
`)
	for keep := 1; keep <= len(a.Rounds)+1; keep++ {
		got := recordFrom(t, a, 0, keep)
		b := archives.Parse(t, got)
		archives.Differ(t, recordFrom(t, b, 0, len(a.Rounds)), recordFrom(t, a, max(0, len(a.Rounds)-keep), len(a.Rounds)))
		if len(b.Rounds) != min(keep, len(a.Rounds)) || b.Rounds[0].At != 0 {
			t.Errorf("%d rounds are kept, want %d: %v", len(b.Rounds), keep, b.Meta.Rounds)
		}
	}
}
