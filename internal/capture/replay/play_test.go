package replay

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/test/archives"
)

func TestRoundsArePlayedInOrder(t *testing.T) {
	p := play(t, archives.Parse(t, archives.Header+`-- sys/a --
0
-- sys/d/x --
0
-- sys/d/y --
0
-- +15s/sys/a --
1
-- +15s/sys/d/y !ENOENT --
-- +15s/sys/d/z --
1
-- +30s/sys/a --
2
-- +30s/sys/d !ENOENT --
`))
	f := p.Host().Files
	for _, step := range []struct {
		after time.Duration
		a, d  string
	}{
		{0, "0\n", "x y"},
		{14 * time.Second, "0\n", "x y"},
		{15 * time.Second, "1\n", "x z"},
		{29 * time.Second, "1\n", "x z"},
		{30 * time.Second, "2\n", ""},
		{time.Hour, "2\n", ""},
	} {
		seek(t, p, step.after)
		if got := readFile(t, f, "sys/a"); got != step.a {
			t.Errorf("after %v: a is %q, want %q", step.after, got, step.a)
		}
		if step.d != "" {
			if got := list(t, f, "sys/d"); got != step.d {
				t.Errorf("after %v: d has %q, want %q", step.after, got, step.d)
			}
		} else if _, err := f.List("sys/d"); !access.IsAbsent(err) {
			t.Errorf("after %v: d is there: %v", step.after, err)
		}
		if now := p.Now(); !now.Equal(archives.Start.Add(step.after)) {
			t.Errorf("now is %v", now)
		}
	}
}

func TestRoundsThatWereMissedArePlayedAtOnce(t *testing.T) {
	p := play(t, archives.Parse(t, archives.Header+"-- sys/a --\n0\n-- +15s/sys/a !ENOENT --\n-- +15s/sys/b --\n1\n-- +30s/sys/b --\n2\n"))
	seek(t, p, time.Minute)
	if got := list(t, p, "sys"); got != "b" {
		t.Errorf("%q", got)
	}
	if got := readFile(t, p, "sys/b"); got != "2\n" {
		t.Errorf("%q", got)
	}
}

func TestTimesOfRounds(t *testing.T) {
	p := play(t, archives.Parse(t, archives.Header))
	if want := []time.Time{
		archives.Start, archives.Start.Add(15 * time.Second), archives.Start.Add(30 * time.Second),
	}; !slices.EqualFunc(p.Times(), want, time.Time.Equal) {
		t.Errorf("%v", p.Times())
	}
	if !p.Last().Equal(archives.Start.Add(30 * time.Second)) {
		t.Errorf("%v", p.Last())
	}
	if !p.Host().Now().Equal(archives.Start) {
		t.Errorf("the clock of the machine is at %v", p.Host().Now())
	}
}

func TestSeekBackwardsIsIgnored(t *testing.T) {
	p := play(t, archives.Parse(t, archives.Header+"-- sys/a --\n0\n-- +15s/sys/a --\n1\n"))
	seek(t, p, 20*time.Second)
	seek(t, p, 0)
	if got := readFile(t, p, "sys/a"); got != "1\n" || !p.Now().Equal(archives.Start.Add(20*time.Second)) {
		t.Errorf("%q at %v", got, p.Now())
	}
}

// A file system's clock may give a directory the same time before and after a round.
func TestARoundIsSeenHoweverCoarseTheClock(t *testing.T) {
	p := play(t,
		archives.Parse(t, archives.Header+"-- sys/d/x --\n0\n-- sys/d/y --\n0\n-- +15s/sys/d/x !ENOENT --\n-- +30s/sys/d/z --\n2\n"))
	d := filepath.Join(p.folder, "sys/d")
	for after, want := range []string{"x y", "y", "y z"} {
		seek(t, p, time.Duration(after)*15*time.Second)
		if err := os.Chtimes(d, archives.Start, archives.Start); err != nil {
			t.Fatal(err)
		}
		if got := list(t, p, "sys/d"); got != want {
			t.Errorf("round %d: %q, want %q", after, got, want)
		}
	}
}

func TestRecordedErrors(t *testing.T) {
	p := play(t, archives.Parse(t, archives.Header+`-- sys/class/infiniband/mlx5_0 -> ../../devices/mlx5_0 --
-- sys/class/rate -> infiniband/mlx5_0/rate --
-- sys/class/gids -> ../devices/mlx5_0/gids --
-- sys/devices/mlx5_0/gids !EACCES --
-- sys/devices/mlx5_0/rate !EINVAL --
-- sys/devices/mlx5_0/state --
4: ACTIVE
-- +15s/sys/devices/mlx5_0/rate --
100
-- +15s/sys/devices/mlx5_0/state !EIO --
-- +30s/sys/devices/mlx5_0/rate !ENOENT --
-- +30s/sys/devices/mlx5_0/state !524 --
`))
	const through = "sys/class/infiniband/mlx5_0"
	check := func(name string, want error) {
		t.Helper()
		dir, base := filepath.Split(name)
		dir = strings.TrimSuffix(dir, "/")
		_, read := p.Read(name, nil)
		_, readIn := p.ReadIn(dir, base, nil)
		var readEach error
		p.ReadEach(dir, []string{base}, nil, func(_ string, _ []byte, err error) { readEach = err })
		for op, err := range map[string]error{"Read": read, "ReadIn": readIn, "ReadEach": readEach} {
			var e *access.Error
			if !errors.Is(err, want) || want != nil && (!errors.As(err, &e) || e.Path != name) {
				t.Errorf("%s(%s): %v, want %v", op, name, err, want)
			}
		}
	}
	for _, name := range []string{through + "/rate", "sys/devices/mlx5_0/rate", "sys/class/rate"} {
		check(name, syscall.EINVAL)
		if err := p.Readable(name); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("Readable(%s): %v", name, err)
		}
	}
	for _, name := range []string{through + "/gids", "sys/class/gids"} {
		if _, err := p.List(name); !errors.Is(err, syscall.EACCES) {
			t.Errorf("List(%s): %v, want EACCES", name, err)
		}
	}
	check(through+"/state", nil)
	if got := list(t, p, through); got != "gids rate state" {
		t.Errorf("what fails is listed: %q", got)
	}

	seek(t, p, 15*time.Second)
	check(through+"/rate", nil)
	check("sys/class/rate", nil)
	check(through+"/state", syscall.EIO)

	seek(t, p, 30*time.Second)
	check(through+"/rate", syscall.ENOENT)
	check("sys/class/rate", syscall.ENOENT)
	check(through+"/state", syscall.Errno(524))
	if got := list(t, p, through); got != "gids state" {
		t.Errorf("what went is listed: %q", got)
	}
}

func TestWhatWentIsForgotten(t *testing.T) {
	p := play(t, archives.Parse(t, archives.Header+`-- sys/d/bad !EIO --
-- sys/d/counters/c --
10
-- sys/d/l -> counters --
-- sys/d/unread @unread --
-- +15s/sys/d !ENOENT --
-- +30s/sys/d/bad --
good
-- +30s/sys/d/counters/c --
50
-- +30s/sys/d/l/c --
plain
-- +30s/sys/d/unread --
read
`))
	seek(t, p, 15*time.Second)
	if got := list(t, p, "sys"); got != "" {
		t.Errorf("%q", got)
	}
	seek(t, p, time.Minute)
	for name, want := range map[string]string{
		"bad": "good\n", "counters/c": "50\n", "l/c": "plain\n", "unread": "read\n",
	} {
		if got := readFile(t, p, "sys/d/"+name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestADirectoryThatCannotBeListed(t *testing.T) {
	p := play(t, archives.Parse(t, archives.Header+"-- sys/always !EACCES --\n-- sys/always/x/y --\n0\n-- sys/later/x --\n0\n-- +15s/sys/later !EIO --\n-- +30s/sys/later/x --\n2\n-- +30s/sys/later/y --\n2\n"))
	check := func(name string, want error) {
		t.Helper()
		if _, err := p.List(name); !errors.Is(err, want) {
			t.Errorf("List(%s): %v, want %v", name, err, want)
		}
	}
	check("sys/always", syscall.EACCES)
	if got := readFile(t, p, "sys/always/x/y"); got != "0\n" {
		t.Errorf("below it: %q", got)
	}
	check("sys/later", nil)
	seek(t, p, 15*time.Second)
	check("sys/later", syscall.EIO)
	if got := readFile(t, p, "sys/later/x"); got != "0\n" {
		t.Errorf("below it: %q", got)
	}
	seek(t, p, 30*time.Second)
	check("sys/later", syscall.EIO)
	if got := readFile(t, p, "sys/later/x") + readFile(t, p, "sys/later/y"); got != "2\n2\n" {
		t.Errorf("below it: %q", got)
	}
}

func TestALinkIsReplacedAndNotWrittenThrough(t *testing.T) {
	p := play(t, archives.Parse(t, archives.Header+`-- sys/a --
one
-- sys/b --
two
-- sys/d/x --
below
-- sys/l -> a --
-- sys/m -> a --
-- +15s/sys/l --
three
-- +15s/sys/m -> b --
-- +30s/sys/m -> d --
`))
	seek(t, p, 15*time.Second)
	for name, want := range map[string]string{"sys/a": "one\n", "sys/l": "three\n", "sys/m": "two\n"} {
		if got := readFile(t, p, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got, err := p.Resolve("sys/m"); err != nil || got != "sys/b" {
		t.Errorf("Resolve: %q, %v", got, err)
	}
	if _, err := p.Link("sys/l"); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("Link of a file: %v", err)
	}
	seek(t, p, 30*time.Second)
	if got := readFile(t, p, "sys/m/x"); got != "below\n" {
		t.Errorf("through the new link: %q", got)
	}
}

func TestErrorsFollowALinkThatLeadsElsewhere(t *testing.T) {
	p := play(t, archives.Parse(t, archives.Header+"-- sys/bad/x !EIO --\n-- sys/good/x --\n1\n-- sys/l -> good --\n-- +15s/sys/l -> bad --\n-- +30s/sys/l !ENOENT --\n-- +30s/sys/l/x --\n2\n"))
	if got := readFile(t, p, "sys/l/x"); got != "1\n" {
		t.Errorf("%q", got)
	}
	seek(t, p, 15*time.Second)
	if _, err := p.Read("sys/l/x", nil); !errors.Is(err, syscall.EIO) {
		t.Errorf("%v, want EIO", err)
	}
	seek(t, p, 30*time.Second)
	if got := readFile(t, p, "sys/l/x"); got != "2\n" {
		t.Errorf("%q", got)
	}
}

func TestWhatIsReadLaterIsThere(t *testing.T) {
	p := play(t, archives.Parse(t, archives.Header+"-- sys/x @unread --\n-- +15s/sys/x --\n1\n-- +30s/sys/x @unread --\n"))
	seek(t, p, 15*time.Second)
	if got := readFile(t, p, "sys/x"); got != "1\n" {
		t.Errorf("%q", got)
	}
	seek(t, p, 30*time.Second)
	if b, err := p.Read("sys/x", nil); !access.IsAbsent(err) {
		t.Errorf("%q, %v", b, err)
	}
}

func TestWhatWasNotReadIsListedAndReadable(t *testing.T) {
	p := play(t, archives.Parse(t, archives.Header+"-- dev/infiniband/umad0 !EACCES --\n-- dev/infiniband/uverbs0 @unread --\n-- dev/infiniband/empty @dir --\n"))
	if got := list(t, p, "dev/infiniband"); got != "empty umad0 uverbs0" {
		t.Errorf("%q", got)
	}
	if _, err := p.Read("dev/infiniband/uverbs0", nil); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("Read: %v", err)
	}
	if err := p.Readable("dev/infiniband/uverbs0"); err != nil {
		t.Errorf("Readable: %v", err)
	}
	if err := p.Readable("dev/infiniband/umad0"); !errors.Is(err, syscall.EACCES) {
		t.Errorf("Readable of what must not be read: %v", err)
	}
	if got := list(t, p, "dev/infiniband/empty"); got != "" {
		t.Errorf("%q", got)
	}
}

const counting = `-- ethtool/eth0/linkmodes --
speed: 100
-- rdma/mlx5_0/1/stats --
moving: 1000
resting: 7
-- sys/p/counters/moving --
100
-- sys/p/counters/reset --
100
-- sys/p/counters/resting --
100
-- sys/p/hw_counters/lifespan --
10
-- sys/p/hw_counters/moving --
5
-- sys/p/state --
1
-- sys/net/statistics/rx_bytes --
0
`

// Counters continue by the step of the last round, not of the one before it.
const counted = `-- +15s/rdma/mlx5_0/1/stats --
moving: 1500
resting: 7
-- +15s/sys/p/counters/moving --
110
-- +15s/sys/p/counters/resting --
130
-- +15s/sys/p/counters/reset --
120
-- +30s/rdma/mlx5_0/1/stats --
moving: 1600
resting: 7
-- +30s/sys/net/statistics/rx_bytes --
1
-- +30s/sys/p/counters/moving --
130
-- +30s/sys/p/counters/reset --
5
-- +30s/sys/p/hw_counters/lifespan --
20
-- +30s/sys/p/hw_counters/moving --
8
-- +30s/sys/p/state --
4
`

func TestCountersGoOnByTheirLastStep(t *testing.T) {
	p := play(t, archives.Parse(t, archives.Header+counting+counted))
	last := map[string]string{
		"sys/p/counters/moving": "130\n", "sys/p/hw_counters/moving": "8\n", "sys/net/statistics/rx_bytes": "1\n",
		"sys/p/counters/resting": "130\n", "sys/p/counters/reset": "5\n", "sys/p/hw_counters/lifespan": "20\n",
		"sys/p/state": "4\n",
	}
	onward := func(moving, hw, rx string) map[string]string {
		return map[string]string{
			"sys/p/counters/moving": moving, "sys/p/hw_counters/moving": hw, "sys/net/statistics/rx_bytes": rx,
			"sys/p/counters/resting": "130\n", "sys/p/counters/reset": "5\n", "sys/p/hw_counters/lifespan": "20\n",
			"sys/p/state": "4\n",
		}
	}
	for _, step := range []struct {
		after time.Duration
		files map[string]string
		stat  uint64
	}{
		{15 * time.Second, map[string]string{"sys/p/counters/moving": "110\n", "sys/p/counters/reset": "120\n"}, 1500},
		{29 * time.Second, map[string]string{"sys/p/counters/moving": "110\n"}, 1500},
		{30 * time.Second, last, 1600},
		{44 * time.Second, last, 1600},
		{45 * time.Second, onward("150\n", "11\n", "2\n"), 1700},
		{75 * time.Second, onward("190\n", "17\n", "4\n"), 1900},
		{30*time.Second + 24*time.Hour, onward("115330\n", "17288\n", "5761\n"), 577600},
	} {
		seek(t, p, step.after)
		for name, want := range step.files {
			if got := readFile(t, p, name); got != want {
				t.Errorf("after %v: %s is %q, want %q", step.after, name, got, want)
			}
		}
		stats, err := p.Stats(t.Context(), "mlx5_0", 1, nil)
		if want := []host.Stat{{Name: "moving", Value: step.stat}, {Name: "resting", Value: 7}}; err != nil ||
			!slices.Equal(stats, want) {
			t.Errorf("after %v: %v, %v, want %v", step.after, stats, err, want)
		}
		if m, err := p.LinkModes(t.Context(), "eth0"); err != nil || *m.Speed != 100 {
			t.Errorf("after %v: %+v, %v", step.after, m, err)
		}
	}
}

func TestCountersOfOneRoundRest(t *testing.T) {
	p := play(t, archives.Parse(t, "-- capture.json --\n{\"version\":1,\"rounds\":[\"0s\"]}\n"+counting))
	seek(t, p, time.Hour)
	if got := readFile(t, p, "sys/p/counters/moving"); got != "100\n" {
		t.Errorf("%q", got)
	}
	if stats, err := p.Stats(t.Context(), "mlx5_0", 1, nil); err != nil || stats[0].Value != 1000 {
		t.Errorf("%v, %v", stats, err)
	}
}

func TestPlayedAnswers(t *testing.T) {
	p := play(t, archives.Parse(t, archives.Header+"-- rdma/mlx5_0/1/port --\nstate: 4\nnetdev: eth0\n-- rdma/mlx5_0/1/stats !EINVAL --\n-- ethtool/eth0/linkmodes --\nspeed: x\n"+
		"-- devlink/health --\npci/0000:18:00.0/fw: state=1 errors=2 recoveries=0\n"))
	h := p.Host()
	if a, err := h.RDMA.Port(t.Context(), "mlx5_0", 1); err != nil || *a.State != 4 || a.Netdev != "eth0" || a.LID != nil {
		t.Errorf("%+v, %v", a, err)
	}
	if r, err := h.Devlink.Health(t.Context()); err != nil || len(r) != 1 || r[0].Device != "0000:18:00.0" ||
		*r[0].State != 1 || *r[0].Errors != 2 {
		t.Errorf("health: %+v, %v", r, err)
	}
	if _, err := h.RDMA.Stats(t.Context(), "mlx5_0", 1, nil); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("stats: %v", err)
	}
	if _, err := h.Ethtool.LinkModes(t.Context(), "eth0"); access.ReasonOf(err) != access.Malformed {
		t.Errorf("link modes: %v", err)
	}
	if _, err := h.RDMA.Port(t.Context(), "mlx5_0", 2); !access.IsAbsent(err) {
		t.Errorf("a port that was not recorded: %v", err)
	}
}

func TestCloseRemovesWhatWasUnpacked(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	p, err := Play(archives.Parse(t, archives.Header+"-- sys/d/x --\n0\n-- sys/l -> d --\n"), archives.Start)
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(tmp); len(left) != 1 {
		t.Fatalf("unpacked into %v", left)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(tmp); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

func TestWhatCannotBeUnpackedLeavesNothing(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	p, err := Play(archives.Parse(t, archives.Header+"-- sys/l -> %00 --\n"), archives.Start)
	if err == nil || !strings.HasPrefix(err.Error(), `replay: entry "sys/l": `) {
		t.Errorf("%v, %v", p, err)
	}
	if left, _ := os.ReadDir(tmp); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
	t.Setenv("TMPDIR", filepath.Join(tmp, "no-such"))
	_, err = Play(archives.Parse(t, archives.Header), archives.Start)
	if err == nil || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("%v", err)
	}
}

func TestReadersWhileTheMachineMoves(t *testing.T) {
	p := play(t, archives.Parse(t, archives.Header+counting+counted+"-- +15s/sys/new --\n-- +30s/sys/new !ENOENT --\n"))
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range 50 {
				if _, err := p.Read("sys/p/counters/moving", nil); err != nil {
					t.Error(err)
				}
				if _, err := p.List("sys/p/counters"); err != nil {
					t.Error(err)
				}
				if _, err := p.Stats(t.Context(), "mlx5_0", 1, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for s := range 60 {
		seek(t, p, time.Duration(s)*time.Second)
	}
	wg.Wait()
}
