//go:build !race

package nodedaemon

import (
	"bytes"
	"context"
	"log/slog"
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
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/transceiver"
	"rdma_exporter/test/locked"
	"rdma_exporter/test/machines"
)

// swappable is a machine whose transceivers can be replaced and unplugged.
type swappable struct {
	host.Ethtool
	swapped, empty atomic.Value // netdev
}

// ModuleEEPROM returns the memory with two digits of the serial number exchanged if the transceiver was replaced, which
// keeps its checksum.
func (s *swappable) ModuleEEPROM(ctx context.Context, netdev string, ref transceiver.Ref) ([]byte, error) {
	if netdev == s.empty.Load() {
		return nil, syscall.EIO
	}
	b, err := s.Ethtool.ModuleEEPROM(ctx, netdev, ref)
	if netdev == s.swapped.Load() {
		b = bytes.ReplaceAll(b, []byte("FT04"), []byte("FT40"))
	}
	return b, err
}

func (s *swappable) LinkState(ctx context.Context, netdev string) (host.LinkState, error) {
	st, err := s.Ethtool.LinkState(ctx, netdev)
	if netdev == s.empty.Load() {
		noCable := uint64(4)
		st.ExtState = &noCable
	}
	return st, err
}

// baselineRun is an exporter on three rails with transceivers, with a state directory. It has no socket: the time of a
// synctest bubble stands still while a goroutine waits for a connection.
type baselineRun struct {
	t       *testing.T
	keeper  *keeper
	sched   *rounds.Scheduler
	log     *locked.Buffer
	samples map[string]string
	stop    func()
}

// startBaselines starts an exporter.
func startBaselines(t *testing.T, modules *swappable, stateDir string) *baselineRun {
	m, _ := machines.Open(t, machines.Fixture("three-optics-ok"))
	h := *m.Host
	h.Now, h.Turns, h.RTNL, h.Budget = time.Now, access.NewTurns(), access.NewRTNL(), access.NewBudget(time.Now)
	modules.Ethtool = m.Ethtool
	h.Ethtool = modules
	m.Host, m.Player = &h, nil

	r := &baselineRun{t: t, log: &locked.Buffer{}}
	log := slog.New(slog.NewTextHandler(r.log, nil))
	c := machine.Config{Timeout: 10 * time.Second, ModuleInterval: 30 * time.Second, StateDir: stateDir}
	k := newKeeper(t.Context(), &c, m, log)
	r.keeper = k
	ctx, cancel := context.WithCancel(t.Context())
	k.start(ctx)
	r.sched = rounds.New(ctx,
		rounds.Options{Host: m.Host, Collectors: collector.All(c.Options(m, k.memory)), Timeout: c.Timeout, Logger: log})
	var listening sync.WaitGroup
	listening.Go(func() { r.sched.Listen(ctx) })
	r.stop = func() {
		cancel()
		listening.Wait()
		k.close()
	}
	return r
}

// run lets time pass, with a round each minute.
func (r *baselineRun) run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Minute) {
		r.samples = machines.Collect(r.t, r.sched)
	}
}

// want checks which ports have a baseline of received power, by the digits of their devices.
func (r *baselineRun) want(when, ports string) {
	r.t.Helper()
	got := ""
	for i, netdev := range []string{"enp24s0np0", "enp64s0np0", "enp79s0np0"} {
		device := "mlx5_" + string(rune('0'+i))
		if r.samples[`rdma_transceiver_receive_power_baseline_dbm{device="`+device+`",lane="1",netdev="`+netdev+
			`",port="1"}`] != "" {
			got += string(rune('0' + i))
		}
	}
	if got != ports {
		r.t.Errorf("%s: baselines of %q, want %q\n%s", when, got, ports, r.log)
	}
}

// TestBaselinesOutliveTheProgram: a baseline forms in 5h and survives a restart and a damaged state file. Another
// transceiver, unplugging it, and accept each begin the baseline of that port anew.
func TestBaselinesOutliveTheProgram(t *testing.T) {
	stateDir := filepath.Join(t.TempDir(), "state")
	synctest.Test(t, func(t *testing.T) {
		modules := &swappable{}
		r := startBaselines(t, modules, stateDir)
		r.run(4*time.Hour + 50*time.Minute)
		r.want("forming", "")
		r.run(15 * time.Minute)
		r.want("formed", "012")
		power := r.samples[`rdma_transceiver_receive_power_baseline_dbm{device="mlx5_0",lane="1",netdev="enp24s0np0",port="1"}`]
		if !strings.HasPrefix(power, "0.900110") {
			t.Errorf("baseline %s dBm, want the power received", power)
		}
		r.stop()

		r = startBaselines(t, modules, stateDir)
		r.run(3 * time.Minute)
		r.want("after a restart", "012")
		if a, err := r.keeper.accept(t.Context(), []string{"mlx5_0/1"}); err != nil ||
			!slices.Contains(a.Forgets, "port mlx5_0/1: baselines of bit errors and optics") {
			t.Errorf("accept: %+v, %v", a, err)
		}
		r.run(2 * time.Minute)
		r.want("accepted", "12")
		modules.empty.Store("enp64s0np0")
		r.run(3 * time.Minute)
		modules.empty.Store("")
		r.run(3 * time.Minute)
		r.want("reseated", "2")
		r.stop()

		r = startBaselines(t, modules, stateDir)
		r.run(3 * time.Minute)
		r.want("after a second restart", "2")
		r.stop()
		must(t, os.WriteFile(filepath.Join(stateDir, "state.v1.json"), []byte(`{"version":1,"value":{"baselines":`), 0o600))
		r = startBaselines(t, modules, stateDir)
		r.run(3 * time.Minute)
		r.want("with a damaged file", "2")
		if log := r.log.String(); strings.Count(log, "state file damaged") != 1 {
			t.Errorf("log:\n%s", log)
		}
		if was := r.samples[`rdma_port_was_active{device="mlx5_0",port="1"}`]; was != "1" {
			t.Errorf("the known links are lost: %q", was)
		}
		r.stop()
		modules.swapped.Store("enp79s0np0") // while the exporter is not running
		r = startBaselines(t, modules, stateDir)
		r.run(3 * time.Minute)
		r.want("another transceiver", "")
		r.stop()
	})
}
