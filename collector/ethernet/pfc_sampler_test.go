package ethernet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector/counters"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/snapshot/wire"
)

// pausedPort is a port with the pause time of a test, in the time of the bubble.
type pausedPort struct {
	since time.Time
	// paused reports whether the port is paused at a moment; costs is the duration of a read, and err its error.
	paused func(at time.Duration) bool
	costs  func(at time.Duration) time.Duration
	err    func(at time.Duration) error
	reads  atomic.Int64
}

// now returns the pause time, by tenths of a second.
func (w *pausedPort) now() map[flow]float64 {
	sum := 0.0
	for at := time.Duration(0); at < time.Since(w.since); at += 100 * time.Millisecond {
		if w.paused(at) {
			sum += 0.1
		}
	}
	return map[flow]float64{{"transmit", "3"}: sum, {"receive", "3"}: 0}
}

func (w *pausedPort) ask() (map[flow]float64, error) {
	w.reads.Add(1)
	at := time.Since(w.since)
	if w.costs != nil {
		time.Sleep(w.costs(at))
	}
	if w.err != nil {
		if err := w.err(at); err != nil {
			return nil, err
		}
	}
	return w.now(), nil
}

func (w *pausedPort) read(
	ctx context.Context, h *host.Host, n counters.NetdevTarget,
) (r pauseReading, took time.Duration, err error) {
	var late struct { // may still be written to after a refusal
		pauseReading
		took time.Duration
		err  error
	}
	if refused := h.UnderRTNL(ctx, source.NetdevStats, n.Device, 1, func() {
		start := time.Now()
		late.seconds, late.err = w.ask()
		late.at, late.took = time.Now(), time.Since(start)
	}); refused != nil {
		return pauseReading{}, 0, refused
	}
	return late.pauseReading, late.took, late.err
}

// bubbleHost returns a host without files.
func bubbleHost() *host.Host {
	return &host.Host{
		Turns: access.NewTurns(), RTNL: access.NewRTNL(), Meter: &source.Meter{},
		Budget: access.NewBudget(time.Now), Now: time.Now,
	}
}

// watch runs a sampler over a pausedPort, with a round each 15 s, and returns its final state.
func (w *pausedPort) watch(
	t *testing.T, h *host.Host, interval, length time.Duration, each func(at time.Duration, text string),
) (last string) {
	t.Helper()
	s := newPFCSampler(interval, w.read)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.run(ctx, h) }()
	w.since = time.Now()
	time.Sleep(time.Second / 2) // rounds are between the samples
	for at := time.Duration(0); at <= length; at += 15 * time.Second {
		got := s.note(counters.NetdevTarget{Device: "mlx5_0", Port: 1, Netdev: "eth0", Driver: "mlx5_core"},
			driverReading(pauseReading{at: time.Now(), seconds: w.now()}), time.Now())
		last = "none"
		if got != nil {
			last = fmt.Sprintf("sampled %.0f stalled %.0f refused %v", got.Sampled, got.Flows[0].Stalled, got.Refused)
			if got.Interval != nil {
				last += fmt.Sprintf(" interval %.2g", *got.Interval)
			}
		}
		if each != nil {
			each(at, last)
		}
		time.Sleep(15 * time.Second)
	}
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	return last
}

// driverReading returns the reading of a driver with these pause times.
func driverReading(r pauseReading) *wire.NetdevReading {
	w := &wire.NetdevReading{At: r.at, Shown: 1<<counters.Priorities - 1}
	for f, s := range r.seconds {
		i, _ := strconv.Atoi(f.priority)
		w.Counts = append(w.Counts,
			wire.NetdevCount{What: wire.PFCPauseSeconds, Label: f.direction, Index: i, Value: s})
	}
	return w
}

func never(time.Duration) bool { return false }

// storms reports whether a port is paused: for 3s of each minute, 7s after a round.
func storms(at time.Duration) bool {
	at = (at - 7*time.Second) % time.Minute
	return at >= 0 && at < 3*time.Second
}

func TestSamplerSeesStormsBetweenRounds(t *testing.T) {
	for _, c := range []struct {
		name     string
		paused   func(time.Duration) bool
		interval time.Duration
		want     string
		reads    int64
	}{
		{"a quiet port is not sampled", never, time.Second, "sampled 0 stalled 0 refused map[]", 0},
		{"off", storms, 0, "none", 0},
		{"storms", storms, time.Second, "sampled 584 stalled 27 refused map[] interval 1", 600},
		{"one, and 10 minutes", func(at time.Duration) bool { return at < 2*time.Second }, time.Second, "sampled 584 stalled 0 refused map[] interval 1", 600},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &pausedPort{paused: c.paused}
				if got := w.watch(t, bubbleHost(), c.interval, 10*time.Minute, nil); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
				if n := w.reads.Load(); n < c.reads-2 || n > c.reads+2 {
					t.Errorf("%d reads, want about %d", n, c.reads)
				}
			})
		})
	}
}

func TestSamplingEndsAndBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pausedPort{paused: func(at time.Duration) bool { return at%(20*time.Minute) < 4*time.Second }}
		var off, on int
		w.watch(t, bubbleHost(), time.Second, 40*time.Minute, func(at time.Duration, text string) {
			var sampled, stalled float64
			if _, err := fmt.Sscanf(text, "sampled %g stalled %g", &sampled, &stalled); err != nil {
				t.Fatal(text, err)
			}
			if at == 19*time.Minute && sampled != 599 {
				t.Errorf("%s at %s", text, at)
			}
			if at == 35*time.Minute && (sampled < 1198 || stalled > 4) { // the second storm begins while nothing is sampled
				t.Errorf("%s at %s", text, at)
			}
			if len(text) > 3 && text[len(text)-1] == '1' {
				on++
			} else {
				off++
			}
		})
		if on < 75 || off < 75 {
			t.Errorf("%d rounds with sampling, %d without", on, off)
		}
	})
}

func TestSamplesThatCostTooMuchStretch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := bubbleHost()
		w := &pausedPort{paused: storms, costs: func(time.Duration) time.Duration { return 100 * time.Millisecond }}
		got := w.watch(t, h, time.Second, time.Hour, nil)
		share := h.Budget.Spent("mlx5_0")[0].Total.Seconds() / 3600
		if share > 0.0105 || share < 0.008 {
			t.Errorf("%.2f %% of the time: %s", 100*share, got)
		}
		if !h.Budget.Allow("mlx5_0") {
			t.Error("what can wait is held up")
		}
		var sampled float64
		if _, err := fmt.Sscanf(got, "sampled %g", &sampled); err != nil || sampled < 3500 {
			t.Errorf("%s: samples that are longer count as long", got)
		}
	})
}

func TestSamplingRestsAfterASlowCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pausedPort{paused: storms, costs: func(at time.Duration) time.Duration {
			if at > time.Minute && at < 62*time.Second {
				return 300 * time.Millisecond
			}
			return 0
		}}
		w.watch(t, bubbleHost(), time.Second, 7*time.Minute, func(at time.Duration, text string) {
			want := map[time.Duration]string{
				time.Minute:     "sampled 44 stalled 0 refused map[] interval 1",
				2 * time.Minute: "sampled 45 stalled 0 refused map[slow:1]",
				6 * time.Minute: "sampled 45 stalled 0 refused map[slow:1]",
				7 * time.Minute: "sampled 103 stalled 3 refused map[slow:1] interval 1",
			}[at]
			if want != "" && text != want {
				t.Errorf("%s at %s, want %s", text, at, want)
			}
		})
	})
}

// A call that hangs holds rtnl: no other request is made, and this netdev is not sampled.
func TestSamplingRestsAfterACallThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pausedPort{paused: storms, costs: func(at time.Duration) time.Duration {
			if at > time.Minute && at < 62*time.Second {
				return 90 * time.Second
			}
			return 0
		}}
		got := w.watch(t, bubbleHost(), time.Second, 5*time.Minute, nil)
		if want := "sampled 44 stalled 0 refused map[rtnl:1]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

func TestSamplesThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pausedPort{paused: storms, err: func(at time.Duration) error {
			if at > time.Minute && at < 90*time.Second {
				return errors.New("busy")
			}
			return nil
		}}
		got := w.watch(t, bubbleHost(), time.Second, 4*time.Minute, nil)
		if want := "sampled 224 stalled 6 refused map[error:4] interval 1"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

func TestSamplerForgetsNetdevsThatGo(t *testing.T) {
	s := newPFCSampler(time.Second, nil)
	s.running.Store(true)
	n := counters.NetdevTarget{Device: "mlx5_0", Port: 1, Netdev: "eth0", Driver: "mlx5_core"}
	note := func(r pauseReading) *wire.PFCSamples { return s.note(n, driverReading(r), r.at) }
	note(us(0, 0))
	note(us(15, 1))
	s.netdevs["eth0"].pauses.noteSample(us(16, 1))
	s.netdevs["eth0"].pauses.noteSample(us(17, 2))
	if got := note(us(30, 2)); got.Sampled != 1 || got.Flows[0].Stalled != 1 {
		t.Error(got)
	}
	n.Device = "mlx5_7"
	if got := note(us(45, 0)); got.Sampled != 0 || got.Flows[0].Stalled != 0 {
		t.Errorf("the netdev of another device goes on with %v", got)
	}
	if s.drop(us(3644, 0).at); len(s.netdevs) != 1 {
		t.Error("it is forgotten before its time")
	}
	if s.drop(us(3645, 0).at); len(s.netdevs) != 0 {
		t.Error("it is kept")
	}
}

// us returns a reading of one flow at a second.
func us(at float64, transmit3 float64) pauseReading {
	return reading2(at, map[flow]float64{{"transmit", "3"}: transmit3})
}

func reading2(at float64, seconds map[flow]float64) pauseReading {
	return pauseReading{at: time.Unix(0, 0).Add(time.Duration(at * float64(time.Second))), seconds: seconds}
}

func TestPauses(t *testing.T) {
	t3, r3 := flow{"transmit", "3"}, flow{"receive", "3"}
	for _, c := range []struct {
		name    string
		samples []pauseReading
		want    string // sampled; stalled, ratios and their sum of transmit 3
	}{
		{"none", nil, "0"},
		{"the first reading is no sample", []pauseReading{us(1, 100)}, "0"},
		{"quiet", []pauseReading{us(1, 5), us(2, 5), us(3, 5)}, "2 0 [2 0 0 0 0 0 0] 0"},
		{"a storm", []pauseReading{us(1, 0), us(2, 0.95), us(3, 1.9), us(4, 1.9)}, "3 2 [1 0 0 0 0 0 2] 1.9"},
		{"half is not stalled", []pauseReading{us(1, 0), us(2, 0.5)}, "1 0 [0 0 0 0 1 0 0] 0.5"},
		{"bounds belong below", []pauseReading{us(0, 0), us(1, 0.01), us(2, 0.06), us(4, 0.26), us(8, 1.26), us(10, 3.06)}, "10 2 [1 1 1 1 0 1 0] 1.31"},
		{"no more than all of the time", []pauseReading{us(1, 0), us(2, 7)}, "1 1 [0 0 0 0 0 0 1] 1"},
		{"weighed by their length", []pauseReading{us(0, 0), us(1, 0), us(5, 3)}, "5 4 [1 0 0 0 0 1 0] 0.75"},
		{"a counter that was reset", []pauseReading{us(1, 9), us(2, 9.8), us(3, 0.2), us(4, 1)}, "3 2 [0 0 0 0 0 2 0] 1.6"},
		{"no time has passed", []pauseReading{us(1, 0), us(1, 1), us(0, 1), us(2, 0)}, "1 0 [1 0 0 0 0 0 0] 0"},
		{"a set that changes", []pauseReading{us(1, 0), reading2(2, map[flow]float64{r3: 1}), us(3, 9), us(4, 10)}, "3 1 [0 0 0 0 0 0 1] 1"},
		{"one that begins later", []pauseReading{reading2(1, map[flow]float64{r3: 1}), reading2(2, map[flow]float64{r3: 1, t3: 5}), reading2(3, map[flow]float64{r3: 1, t3: 6})}, "2 1 [0 0 0 0 0 0 1] 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPauses()
			for _, r := range c.samples {
				p.noteSample(r)
			}
			got := fmt.Sprint(p.sampled)
			if f := p.flows[t3]; f != nil {
				got += fmt.Sprintf(" %.3g %v %.3g", f.stalled, f.ratios, f.sum)
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestRestIsNoSample(t *testing.T) {
	p := newPauses()
	p.noteSample(us(1, 0))
	p.noteSample(us(2, 1))
	p.interrupt()
	p.noteSample(us(300, 200))
	p.noteSample(us(301, 200))
	if f := p.flows[flow{"transmit", "3"}]; p.sampled != 2 || f.stalled != 1 {
		t.Errorf("sampled %v, stalled %v", p.sampled, f.stalled)
	}
}

func TestWhatMovedIsWanted(t *testing.T) {
	p := newPauses()
	at := func(s float64) bool { return p.wanted(us(s, 0).at) }
	p.noteRound(us(0, 100)) // from before the start
	p.noteRound(us(15, 100))
	if at(15) {
		t.Error("wanted without any pause")
	}
	p.noteRound(us(30, 100.001))
	if !at(30) || !at(629) || at(631) {
		t.Error("10 minutes after a pause")
	}
	p.noteSample(us(31, 100.001))
	p.noteSample(us(600, 100.1))
	if !at(1199) || at(1201) {
		t.Error("10 minutes after a pause in a sample")
	}
	p.noteRound(us(2000, 0)) // a reset
	p.noteRound(reading2(2015, map[flow]float64{{"receive", "0"}: 77}))
	if at(2016) {
		t.Error("a counter that begins has not moved")
	}
}

func TestFlowsInOrder(t *testing.T) {
	flows := []flow{{"receive", "3"}, {"transmit", "3"}, {"receive", "0"}, {"transmit", "0"}}
	slices.SortFunc(flows, compareFlows)
	if got := fmt.Sprint(flows); got != "[{transmit 0} {transmit 3} {receive 0} {receive 3}]" {
		t.Error(got)
	}
}
