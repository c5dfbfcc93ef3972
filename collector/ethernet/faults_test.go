package ethernet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot"
)

// sampled starts the sampling of a rig, with a sample a second. It ends with the test.
func (r *ethRig) sampled() (stop func()) {
	r.c = New(withStats(shared.Options{SampleInterval: time.Second}, r.stats))
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan error)
	go func() { ended <- r.c.Run(ctx, r.h) }()
	time.Sleep(time.Second / 2) // rounds are between the samples
	return func() {
		cancel()
		<-ended
	}
}

func eio(netdev string) error {
	return &access.Error{Op: "ask", Path: "ethtool/" + netdev + "/stats", Err: syscall.EIO}
}

// TestSamplingEndsWithRefusals: an item in quarantine is not read between rounds either.
func TestSamplingEndsWithRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newEthRig(t, collectortest.EthTree("mlx5_0", "eth0"))
		defer r.sampled()()
		for paused := uint64(0); paused < 4e6; paused += 1e6 {
			synctest.Wait()
			r.driver.stats = []host.Stat{{Name: "tx_prio3_pause", Value: 1}, {Name: "tx_prio3_pause_duration", Value: paused}}
			r.round()
			time.Sleep(15 * time.Second)
		}
		synctest.Wait()
		before := r.driver.asked
		r.driver.err = eio("eth0")
		for range 60 {
			r.round()
			time.Sleep(15 * time.Second)
		}
		synctest.Wait()
		if n := r.driver.asked - before; n > 4 {
			t.Errorf("asked %d times more", n)
		}
	})
}

// TestFirstStormIsSampled: with drivers that list all priorities and with drivers that list only those with PFC.
func TestFirstStormIsSampled(t *testing.T) {
	for driver, names := range map[string][2]string{
		"mlx5_core": {"tx_prio3_pause_duration", "tx_prio3_pause"},
		"bnxt_en":   {"pfc_pri3_tx_duration_us", "tx_pfc_ena_frames_pri3"},
	} {
		t.Run(driver, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newEthRig(t, strings.ReplaceAll(collectortest.EthTree("mlx5_0", "eth0"), "mlx5_core", driver))
				defer r.sampled()()
				var paused uint64
				var n *snapshot.Node
				for i := range 8 {
					if i == 4 {
						paused = 5e6
					}
					synctest.Wait()
					r.driver.stats = []host.Stat{
						{Name: names[0], Value: paused}, {Name: names[1], Value: paused}, {Name: "pfc_pri4_tx_duration_us"},
					}
					n = r.round()
					time.Sleep(15 * time.Second)
				}
				p := n.Ethernet.Netdevs[0].PFC
				if p == nil || p.Sampled < 40 || len(p.Flows) != 1 {
					t.Errorf("%+v", p)
				}
			})
		})
	}
}

// alwaysPaused is a port that is always paused, with a slow driver.
type alwaysPaused struct {
	ethDriver
	since time.Time
}

func (d *alwaysPaused) NetdevStats(context.Context, string) ([]host.Stat, error) {
	time.Sleep(d.takes)
	micros := uint64(time.Since(d.since).Microseconds())
	return []host.Stat{{Name: "rx_prio3_pause_duration", Value: micros}, {Name: "rx_prio3_pause", Value: micros}}, nil
}

// TestReadingsOfAPausedPortAreFresh: a value that a rule divides by the time between scrapes is of the time of the
// scrapes, so that a port that is always paused has a ratio of 1.
func TestReadingsOfAPausedPortAreFresh(t *testing.T) {
	for _, takes := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond} {
		for _, every := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute} {
			t.Run(fmt.Sprintf("calls of %s, scrapes each %s", takes, every), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newEthRig(t, collectortest.EthTree("mlx5_0", "eth0"))
					driver := &alwaysPaused{since: time.Now()}
					driver.takes = takes
					r.h.Ethtool = driver
					defer r.sampled()()
					type sample struct {
						at     time.Time
						paused float64
					}
					var scrapes []sample
					least := 1.0
					for range int(time.Hour / every) {
						at := time.Now()
						counts := r.round().Ethernet.Netdevs[0].Stats.Counts
						scrapes = append(scrapes, sample{at, counts[0].Value})
						if i := len(scrapes) - 1 - int(90*time.Second/every); i > 2 {
							least = min(least, (counts[0].Value-scrapes[i].paused)/at.Sub(scrapes[i].at).Seconds())
						}
						time.Sleep(every - time.Since(at))
					}
					if least < 0.95 {
						t.Errorf("a ratio of %.2f", least)
					}
				})
			})
		}
	}
}

// TestNameOfAnotherNetdev: a name that belonged to another device's netdev a moment ago.
func TestNameOfAnotherNetdev(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newEthRig(t, collectortest.EthTree("mlx5_0", "eth0"))
		r.driver.stats = []host.Stat{{Name: "rx_discards_phy", Value: 777}}
		of := counters.NetdevTarget{Device: "mlx5_9", Port: 1, Netdev: "eth0", Driver: "mlx5_core"}
		if _, err := r.stats.Read(t.Context(), r.h, of); err != nil {
			t.Fatal(err)
		}
		r.driver.stats = []host.Stat{{Name: "rx_discards_phy", Value: 1}}
		if got := strings.Join(r.lines(), " "); !strings.Contains(got, "} 1") || strings.Contains(got, "777") {
			t.Error(got)
		}
		if r.stats.Keep(nil); r.stats.Last(eth0) != nil {
			t.Error("what is known of a device that is gone is kept")
		}
	})
}

func TestIntervalsStretch(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{
		time.Second: 2 * time.Second, 20 * time.Second: maxStretch, 5 * time.Minute: 5 * time.Minute,
	} {
		n := &sampledNetdev{refused: map[string]uint64{}, interval: interval}
		if n.stretch(refusedBudget, time.Now()); n.interval != want {
			t.Errorf("%s becomes %s, want %s", interval, n.interval, want)
		}
	}
}

// TestStaleReadingHidesNothing: counts by netlink are left out only while the driver's own statistics are fresh.
func TestStaleReadingHidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newEthRig(t, collectortest.EthTree("mlx5_0", "eth0"))
		r.driver.stats = []host.Stat{{Name: "rx_corrected_bits_phy", Value: 77}, {Name: "rx_pause_ctrl_phy", Value: 5}}
		r.driver.pauseHas = host.Pause{RXFrames: collectortest.N64(12)}
		r.driver.fecHas = host.FEC{CorrectedBits: collectortest.N64(70)}
		tells := func(want ...string) {
			t.Helper()
			got := r.lines()
			for i, metric := range []string{"rdma_port_global_pause_frames_total", "rdma_port_fec_corrected_bit_errors_total"} {
				if !slices.ContainsFunc(got, func(l string) bool {
					return strings.HasPrefix(l, metric) && strings.HasSuffix(l, " "+want[i])
				}) {
					t.Errorf("%s is not %s: %s", metric, want[i], got)
				}
			}
		}
		tells("5", "77")
		r.driver.err = eio("eth0")
		for range 8 {
			time.Sleep(15 * time.Second)
			r.round()
		}
		tells("12", "70")
	})
}

// TestErrorsBesideWarnings: a driver with storm warnings in its own statistics and errors by netlink.
func TestErrorsBesideWarnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newEthRig(t, strings.ReplaceAll(collectortest.EthTree("bnxt_re0", "eth0"), "mlx5_core", "bnxt_en"))
		r.driver.stats = []host.Stat{{Name: "continuous_pause_events", Value: 2}}
		r.driver.pauseHas = host.Pause{TXStormEvents: collectortest.N64(1)}
		got := strings.Join(r.lines(), "\n")
		for _, want := range []string{`severity="warning"} 2`, `severity="error"} 1`} {
			if !strings.Contains(got, want) {
				t.Errorf("no %s in\n%s", want, got)
			}
		}
	})
}

// TestStandardStats: standard statistics are read for drivers without a table of their own.
func TestStandardStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newEthRig(t, strings.ReplaceAll(collectortest.EthTree("roce0", "eth0"), "mlx5_core", "newcomer"))
		r.driver.standard = []host.Stat{
			{Name: "FrameCheckSequenceErrors", Value: 3},
			{Name: "etherStatsJabbers", Value: 4},
			{Name: "AlignmentErrors", Value: 5},
			{Name: "FramesTransmittedOK", Value: 9},
		}
		const at = `{device="roce0",netdev="eth0",port="1"}`
		want := []string{"rdma_port_crc_errors_total" + at + " 3", "rdma_port_frame_errors_total" + at + " 9"}
		if got := r.lines(); !slices.Equal(got, want) {
			t.Errorf("%s", fmt.Sprint(got))
		}
		r.driver.err = &access.Error{Op: "ask", Path: "ethtool/eth0/standard", Err: syscall.EOPNOTSUPP}
		r.driver.asked = 0
		for range 20 {
			time.Sleep(15 * time.Second)
			if n := r.round(); len(n.Issues) != 0 {
				t.Fatal(n.Issues)
			}
		}
		if r.driver.asked != 2 {
			t.Errorf("asked %d times of a driver without", r.driver.asked)
		}
	})
}
