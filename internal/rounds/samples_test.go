//go:build !race

package rounds_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/verdict"
	"rdma_exporter/test/machines"
)

// stormy answers as a machine whose mlx5_1 is paused by its switch for three of every forty seconds, and whose other
// ports are always paused a little, as usual.
type stormy struct {
	host.Ethtool
	since time.Time
}

// paused returns the pause time in microseconds.
func (s stormy) paused() uint64 {
	const every, length = 40 * time.Second, 3 * time.Second
	at := time.Since(s.since)
	return uint64((at/every*length + min(at%every, length)).Microseconds())
}

func (s stormy) NetdevStats(ctx context.Context, netdev string) ([]host.Stat, error) {
	stats, err := s.Ethtool.NetdevStats(ctx, netdev)
	stats = slices.Clone(stats)
	for i := range stats {
		switch x := &stats[i]; {
		case x.Name == "rx_prio3_pause_duration" && netdev == "enp64s0np0":
			x.Value += s.paused()
		case x.Name == "rx_prio3_pause_duration":
			x.Value += uint64(time.Since(s.since).Microseconds()) / 50
		}
	}
	return stats, err
}

// TestShortStorms: storms of three seconds, which the averages of rounds of 15 s do not show, are counted by the
// samples and detected by the rules.
func TestShortStorms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := machines.Open(t, machines.Fixture("bursty-pause-ok"))
		h := *m.Host
		h.Now, h.Turns, h.RTNL, h.Budget = time.Now, access.NewTurns(), access.NewRTNL(), access.NewBudget(time.Now)
		h.Ethtool = stormy{m.Ethtool, time.Now()}
		m.Host, m.Player = &h, nil

		c := machine.Config{Timeout: 10 * time.Second, SampleInterval: time.Second}
		ctx, cancel := context.WithCancel(t.Context())
		sched := rounds.New(ctx, rounds.Options{
			Host: m.Host, Collectors: collector.All(c.Options(m, nil)), Timeout: c.Timeout,
			Logger: slog.New(slog.DiscardHandler),
		})
		j, err := verdict.New(m, sched, machines.Builtin(t), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		listening := make(chan struct{})
		go func() { defer close(listening); sched.Listen(ctx) }()
		time.Sleep(time.Second / 2) // rounds are between the samples
		for range 40 {
			if err := j.Round(t.Context(), time.Now()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(15 * time.Second)
		}
		var got []string
		for _, a := range j.Engine.Alerts() {
			if a.State == alerting.StateFiring && strings.HasPrefix(a.Name, "RDMAPFC") {
				got = append(got, machines.Describe(a))
			}
		}
		if want := []string{"warning RDMAPFCStormSource/short_storms mlx5_1/1"}; !slices.Equal(got, want) {
			t.Errorf("fires %q, want %q", got, want)
		}
		p, err := sched.Collect(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		text := string(exposition.AppendText(nil, p.Families))
		const labels = `{device="mlx5_1",direction="receive",netdev="enp64s0np0",port="1",priority="3"`
		for _, want := range []string{
			"rdma_port_pfc_stalled_seconds_total" + labels + "} 4",
			`rdma_port_pfc_stalled_seconds_total{device="mlx5_0",direction="receive",netdev="enp24s0np0",port="1",priority="3"} 0`,
			"rdma_port_pfc_paused_sample_ratio_bucket" + labels + `,le="0.9"} 5`,
			"rdma_port_pfc_paused_sample_ratio_count" + labels + "} 5",
			`rdma_port_pfc_sampled_seconds_total{device="mlx5_1",netdev="enp64s0np0",port="1"} 5`,
			`rdma_port_pfc_sample_interval_seconds{device="mlx5_1",netdev="enp64s0np0",port="1"} 1`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("lacks %s", want)
			}
		}
		if t.Failed() {
			for l := range strings.Lines(text) {
				if strings.HasPrefix(l, "rdma_port_pfc_s") || strings.HasPrefix(l, "rdma_port_pfc_paused") {
					t.Log(l)
				}
			}
		}
		cancel()
		<-listening
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
}
