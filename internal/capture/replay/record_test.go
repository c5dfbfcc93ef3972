package replay

import (
	"context"
	"os"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/test/archives"
)

// reader reads a machine as collectors do. They distinguish directories and files that must not be opened: it lists,
// reads, follows links and queries netlink.
type reader struct {
	*host.Host
	ctx    context.Context
	dirs   map[string]bool
	closed map[string]bool
}

func newReader(ctx context.Context, h *host.Host, a *capture.Archive) reader {
	r := reader{h, ctx, map[string]bool{}, map[string]bool{}}
	for _, round := range a.Rounds {
		for _, e := range round.Entries {
			r.dirs[e.Path] = r.dirs[e.Path] || e.Kind == capture.Dir
			r.closed[e.Path] = r.closed[e.Path] || e.Kind == capture.Unread || strings.HasPrefix(e.Path, "dev/")
			for d := path.Dir(e.Path); d != "."; d = path.Dir(d) {
				r.dirs[d] = true
			}
		}
	}
	return r
}

func (r reader) walk(dir string) {
	names, err := r.Files.List(dir)
	if err != nil {
		return
	}
	for _, name := range names {
		p := path.Join(dir, name)
		if _, err := r.Files.Link(p); err == nil {
			_, _ = r.Files.Resolve(p)
			continue
		}
		switch {
		case r.dirs[p]:
			r.walk(p)
		case r.closed[p]:
			_ = r.Files.Readable(p)
		default:
			_, _ = r.Files.Read(p, nil)
		}
	}
}

func (r reader) ask() {
	_, _ = r.Devlink.Health(r.ctx)
	devices, _ := r.Files.List("sys/class/infiniband")
	for _, d := range devices {
		for port := 1; port <= 2; port++ {
			_, _ = r.RDMA.Port(r.ctx, d, port)
			_, _ = r.RDMA.Stats(r.ctx, d, port, nil)
		}
		netdevs, _ := r.Files.List("sys/class/infiniband/" + d + "/device/net")
		for _, nd := range netdevs {
			_, _ = r.Ethtool.LinkModes(r.ctx, nd)
			_, _ = r.DCB.IEEE(r.ctx, nd)
		}
	}
}

// record replays an archive and records it round by round.
func record(t *testing.T, a *capture.Archive) string {
	t.Helper()
	p := play(t, a)
	rec := NewRecorder(p.Host())
	for _, r := range a.Rounds {
		seek(t, p, r.At)
		rd := newReader(t.Context(), rec.Host(), a)
		for _, top := range []string{"dev", "etc", "lib", "proc", "sys"} {
			rd.walk(top)
		}
		rd.ask()
		rec.EndRound(r.At)
	}
	return archives.Format(t, rec.Archive(a.Meta))
}

func TestARecordingOfAPlayedMachineIsThatMachine(t *testing.T) {
	text := archives.Header + `-- dev/infiniband/umad0 !EACCES --
-- dev/infiniband/uverbs0 @unread --
-- devlink/health --
pci/mlx5_0/fw: state=0 errors=0 recoveries=0
pci/mlx5_0/1/tx: state=1 errors=1 recoveries=0
-- ethtool/eth0/linkmodes --
speed: 400000
lanes: 4
-- proc/sys/kernel/osrelease --
6.12.0
-- rdma/mlx5_0/1/port --
state: 4
physical_state: 5
netdev: eth0
-- rdma/mlx5_0/1/stats --
rx_write_requests: 1
RNR sent: 2
-- sys/class/infiniband/mlx5_0 -> ../../devices/mlx5_0/infiniband/mlx5_0 --
-- sys/class/infiniband/mlx5_1 -> ../../devices/mlx5_1/infiniband/mlx5_1 --
-- sys/devices/mlx5_0/infiniband/mlx5_0/board_id !EINVAL --
-- sys/devices/mlx5_0/infiniband/mlx5_0/device -> ../.. --
-- sys/devices/mlx5_0/infiniband/mlx5_0/fw_ver --

-- sys/devices/mlx5_0/infiniband/mlx5_0/hca_type @nonl --
MT4129
-- sys/devices/mlx5_0/infiniband/mlx5_0/node_desc @base64 --
AP8K
-- sys/devices/mlx5_0/infiniband/mlx5_0/ports/1/counters @files --
a: 1
b: 1
-- sys/devices/mlx5_0/infiniband/mlx5_0/ports/1/gids @dir --
-- sys/devices/mlx5_0/net/eth0/flags --
0x1003
-- sys/devices/mlx5_1/infiniband/mlx5_1/fw_ver --
28.39.1002
-- +15s/rdma/mlx5_0/1/stats --
rx_write_requests: 5
RNR sent: 2
-- +15s/sys/class/infiniband/mlx5_1 !ENOENT --
-- +15s/sys/devices/mlx5_0/infiniband/mlx5_0/board_id --
MT_0000000838
-- +15s/sys/devices/mlx5_0/infiniband/mlx5_0/ports/1/counters/a --
2
-- +15s/sys/devices/mlx5_0/infiniband/mlx5_0/ports/1/counters/b !EIO --
-- +15s/sys/devices/mlx5_0/infiniband/mlx5_0/ports/1/gids/0 --
fe80::1
-- +15s/sys/devices/mlx5_1 !ENOENT --
-- +30s/sys/class/infiniband/mlx5_1 -> ../../devices/mlx5_1/infiniband/mlx5_1 --
-- +30s/sys/devices/mlx5_0/infiniband/mlx5_0/ports/1/counters/a !ENOENT --
-- +30s/sys/devices/mlx5_0/infiniband/mlx5_0/ports/1/gids/0 !ENOENT --
-- +30s/sys/devices/mlx5_1/infiniband/mlx5_1/fw_ver --
28.42.1000
`
	archives.Differ(t, record(t, archives.Parse(t, text)), text)
}

func TestOnlyChangesAreRecorded(t *testing.T) {
	p := play(t, archives.Parse(t, archives.Header+"-- sys/d/x --\n1\n-- sys/d/y --\n1\n-- +30s/sys/d/x --\n2\n"))
	rec := NewRecorder(p.Host())
	f := rec.Host().Files
	for _, at := range []time.Duration{0, 15 * time.Second, 30 * time.Second} {
		seek(t, p, at)
		list(t, f, "sys/d")
		if at != 15*time.Second { // a round with listings only
			readFile(t, f, "sys/d/x")
			readFile(t, f, "sys/d/y")
		}
		rec.EndRound(at)
	}
	if got := archives.Format(t, rec.Archive(capture.Meta{})); !strings.HasSuffix(got,
		"}\n-- sys/d @files --\nx: 1\ny: 1\n-- +30s/sys/d/x --\n2\n") {
		t.Error(got)
	}
}

// A link with a target outside the tree cannot be followed, and its recording can still be replayed: /var/run links to
// /run.
func TestLinksThatLeadOutside(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(dir+"/var", 0o755), os.MkdirAll(dir+"/run", 0o755), os.Symlink("/run", dir+"/var/run"),
		os.WriteFile(dir+"/run/x", nil, 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	files, err := live.Open(rooted.Paths{Sys: dir, Proc: dir, RootFS: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	rec := NewRecorder(&files.Host)
	f := rec.Host().Files
	_, failed := f.Read("var/run/x", nil)
	if _, err := f.Link("var/run"); failed == nil || err != nil {
		t.Fatal(failed, err)
	}
	rec.EndRound(0)
	got := archives.Format(t, rec.Archive(capture.Meta{}))
	_, err = play(t, archives.Parse(t, got)).Host().Files.Read("var/run/x", nil)
	if access.ReasonOf(err) != access.ReasonOf(failed) {
		t.Errorf("%v, on the machine %v\n%s", err, failed, got)
	}
}

// The recording of a machine can be replayed, whatever was read and however.
func TestWhatWasAskedInTheWrongWay(t *testing.T) {
	a := archives.Parse(t, archives.Header+"-- sys/d/e/x --\n1\n-- +15s/sys/d/e/x --\n2\n")
	p := play(t, a)
	rec := NewRecorder(p.Host())
	f := rec.Host().Files
	for _, r := range a.Rounds {
		seek(t, p, r.At)
		for _, name := range []string{"sys/d", "sys/d/e", "sys/d/e/x"} {
			_ = f.Readable(name)
			_, _ = f.List(name)
			_, _ = f.Link(name)
			_, _ = f.Read(name, nil)
		}
		rec.EndRound(r.At)
	}
	again := play(t, archives.Parse(t, archives.Format(t, rec.Archive(capture.Meta{}))))
	seek(t, again, 15*time.Second)
	if got := readFile(t, again, "sys/d/e/x"); got != "2\n" {
		t.Errorf("%q", got)
	}
}

// Errors of drivers are recorded. Errors of this program are not facts of the machine.
func TestErrorsAreRecordedAsFarAsTheMachineGaveThem(t *testing.T) {
	p := play(t, archives.Parse(t, archives.Header+"-- sys/a !ETIMEDOUT --\n-- rdma/mlx5_0/1/port --\nstate: x\n"))
	rec := NewRecorder(p.Host())
	h := rec.Host()
	for name, want := range map[string]error{"sys/a": syscall.ETIMEDOUT, "sys/no-such": syscall.ENOENT} {
		if _, err := h.Files.Read(name, nil); access.ReasonOf(err) != access.ReasonOf(want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.RDMA.Port(t.Context(), "mlx5_0", 1); access.ReasonOf(err) != access.Malformed {
		t.Errorf("%v", err)
	}
	rec.EndRound(0)
	got := archives.Format(t, rec.Archive(capture.Meta{}))
	if !strings.HasSuffix(got, "-- sys/a !ETIMEDOUT --\n") || strings.Contains(got, "no-such") ||
		strings.Contains(got, "rdma/") {
		t.Error(got)
	}
}

// A device may return between the listing without it and the read of its files.
func TestWhatGoesComesBeforeWhatTakesItsPlace(t *testing.T) {
	for range 20 { // the order of maps varies
		p := play(t, archives.Parse(t, archives.Header+"-- sys/d/x/a --\n1\n-- sys/d/x/b --\n1\n-- sys/d/y --\n1\n-- +15s/sys/d/x !ENOENT --\n-- +30s/sys/d/x/a --\n2\n"))
		rec := NewRecorder(p.Host())
		f := rec.Host().Files
		list(t, f, "sys/d")
		list(t, f, "sys/d/x")
		readFile(t, f, "sys/d/x/a")
		rec.EndRound(0)
		seek(t, p, 15*time.Second)
		list(t, f, "sys/d")
		seek(t, p, 30*time.Second)
		readFile(t, f, "sys/d/x/a")
		rec.EndRound(15 * time.Second)
		readFile(t, f, "sys/d/x/a")
		rec.EndRound(30 * time.Second)
		got := archives.Format(t, rec.Archive(capture.Meta{}))
		want := "-- sys/d/x/a --\n1\n-- sys/d/x/b @unread --\n-- sys/d/y @unread --\n-- +15s/sys/d/x !ENOENT --\n-- +15s/sys/d/x/a --\n2\n"
		if !strings.HasSuffix(got, "}\n"+want) {
			t.Fatal(got)
		}
	}
}
