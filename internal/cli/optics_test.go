package cli

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/transceiver"
	"rdma_exporter/internal/transceiver/dump"
	"rdma_exporter/test/machines"
)

// moduleEntries hold a module of internal/transceiver/testdata in the cage of a netdev, with changes of its text: what
// and by what.
func moduleEntries(t *testing.T, netdev, name string, changes ...string) (out []capture.Entry) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "transceiver", "testdata", name+".txt"))
	must(t, err)
	memory, _, err := dump.Parse(strings.NewReplacer(changes...).Replace(string(text)))
	must(t, err)
	pages := memory.Captured()
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		out = append(out, capture.Entry{Path: "ethtool/" + netdev + "/eeprom/" + page, Data: []byte(pages[page])})
	}
	return out
}

func refusedModule(netdev string, errno syscall.Errno) capture.Entry {
	return capture.Entry{Path: "ethtool/" + netdev + "/eeprom/50-00-0", Kind: capture.Error, Errno: errno}
}

// opticsFile returns a machine with four kinds of modules and three cages without.
func opticsFile(t *testing.T) string {
	t.Helper()
	a := machines.Load(t, "hgx-h200-roce")
	a.Rounds = a.Rounds[:1]
	first := &a.Rounds[0]
	first.Entries = slices.DeleteFunc(first.Entries, func(e capture.Entry) bool {
		return e.Path == "ethtool/enp192s0np0/linkstate" || strings.Contains(e.Path, "/eeprom/")
	})
	netdevs := []string{"enp24s0np0", "enp64s0np0", "enp79s0np0", "enp94s0np0"}
	for i, name := range []string{"osfp-2xdr4", "osfp-2xdr4", "qsfp28-sr4", "osfp-dac"} {
		var changes []string
		if i == 1 {
			changes = []string{"14: 3c 00", "14: 4c 80", "186: 27 10", "186: 00 00"} // 76.5 °C, the first lane is dark
		}
		first.Entries = append(first.Entries, moduleEntries(t, netdevs[i], name, changes...)...)
	}
	first.Entries = append(first.Entries, refusedModule("enp154s0np0", syscall.EPERM),
		refusedModule("enp192s0np0", syscall.EIO),
		capture.Entry{Path: "ethtool/enp192s0np0/linkstate", Data: []byte("link: 0\next_state: 4\n")})
	return machines.Written(t, a)
}

func TestOptics(t *testing.T) {
	file := opticsFile(t)
	for name, args := range map[string][]string{
		"optics.txt": nil, "optics-lanes.txt": {"--lanes"}, "optics.json": {"--json"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			code := Run(t.Context(),
				append([]string{"optics", "--replay", file, "--state.dir", t.TempDir()}, args...), &stdout, &stderr)
			if code != command.OK || strings.Count(stderr.String(), "\n") != 1 ||
				!strings.Contains(stderr.String(), "CAP_NET_ADMIN") {
				t.Errorf("exit %d: %s", code, stderr.String())
			}
			machines.Golden(t, name, []byte(stdout.String()))
		})
	}
}

// slowModules answer for a module after a time.
type slowModules struct {
	host.Ethtool
	takes atomic.Int64
	asked atomic.Int64
}

func (m *slowModules) ModuleEEPROM(ctx context.Context, netdev string, ref transceiver.Ref) ([]byte, error) {
	m.asked.Add(1)
	time.Sleep(time.Duration(m.takes.Load()))
	return m.Ethtool.ModuleEEPROM(ctx, netdev, ref)
}

// TestNoScrapeWaitsForAModule: while a module takes 5 s to answer, a scrape has the last readings, with their age, at
// once. What else takes rtnl waits until that second is over, and is not asked for then.
func TestNoScrapeWaitsForAModule(t *testing.T) {
	file := opticsFile(t)
	synctest.Test(t, func(t *testing.T) {
		m, _ := machines.Open(t, file)
		h := *m.Host
		h.Now, h.Turns, h.RTNL, h.Budget = time.Now, access.NewTurns(), access.NewRTNL(), access.NewBudget(time.Now)
		modules := &slowModules{Ethtool: m.Ethtool}
		h.Ethtool = modules
		ctx, cancel := context.WithCancel(t.Context())
		sched := rounds.New(ctx, rounds.Options{
			Host: &h, Collectors: collector.All(collector.Options{ModuleInterval: 30 * time.Second}), Timeout: 10 * time.Second,
			Logger: slog.New(slog.DiscardHandler),
		})
		var listening sync.WaitGroup
		listening.Go(func() { sched.Listen(ctx) })
		defer time.Sleep(10 * time.Second) // what hangs returns
		defer listening.Wait()
		defer cancel()

		machines.Collect(t, sched)
		synctest.Wait() // the modules are read
		const (
			temperature = `rdma_transceiver_temperature_celsius{device="mlx5_0",netdev="enp24s0np0",port="1"}`
			age         = `rdma_transceiver_age_seconds{device="mlx5_0",netdev="enp24s0np0",port="1"}`
		)
		whole := machines.Collect(t, sched)
		if whole[temperature] != "60" || whole[age] != "0" {
			t.Fatalf("%q, age %q", whole[temperature], whole[age])
		}
		read := time.Now()
		modules.takes.Store(int64(5 * time.Second))
		before := modules.asked.Load()
		for modules.asked.Load() == before {
			time.Sleep(time.Second / 10)
		}
		for range 60 {
			start := time.Now()
			p, err := sched.Collect(t.Context(), []string{"transceiver"})
			must(t, err)
			if took := time.Since(start); took > 0 {
				t.Fatalf("the modules take %s of a scrape", took)
			}
			old := start.Sub(read).Seconds()
			text := string(exposition.AppendText(nil, p.Families))
			if !strings.Contains(text, temperature+" 60\n") || !strings.Contains(text, fmt.Sprintf("%s %g\n", age, old)) {
				t.Fatalf("after %g s:\n%s", old, text)
			}
			got := machines.Collect(t, sched)
			if took := time.Since(start); took > time.Second {
				t.Fatalf("a scrape takes %s", took)
			}
			if d := machines.Lost(whole, got); len(d) > 0 {
				t.Fatalf("after %g s: lost %v", old, d)
			}
			time.Sleep(time.Second / 10)
		}
		if asked := modules.asked.Load() - before; asked != 1 {
			t.Errorf("%d modules were asked meanwhile", asked)
		}
	})
}

// TestCaptureOfModules: a capture has what was read of the modules, and is the same when it is captured again.
func TestCaptureOfModules(t *testing.T) {
	dir := t.TempDir()
	first, again := filepath.Join(dir, "first.txtar"), filepath.Join(dir, "again.txtar")
	for _, step := range [][2]string{{opticsFile(t), first}, {first, again}} {
		if code, _, errs := runProgram(t, "capture", "--replay", step[0], "-o", step[1]); code != command.OK {
			t.Fatal(errs)
		}
	}
	a, err := os.ReadFile(first)
	must(t, err)
	b, err := os.ReadFile(again)
	must(t, err)
	if !strings.Contains(string(a), "-- ethtool/enp24s0np0/eeprom/50-11-0 --") {
		t.Error("the module is not in the capture")
	}
	if string(a) != string(b) {
		t.Errorf("the captures differ:\n%s", machines.FirstDifference(b, a))
	}
}
