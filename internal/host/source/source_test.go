package source_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
)

func TestEverySourceSaysWhatItLocks(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range source.All() {
		switch s.Lock() {
		case source.LockNone, source.LockDevice, source.LockDevlink, source.LockRTNL:
		default:
			t.Errorf("source %v locks %q", s, s.Lock())
		}
		if s.Name() == "" || seen[s.Name()] || s.Needs() == "" {
			t.Errorf("source %v: name %q, needs %q", s, s.Name(), s.Needs())
		}
		seen[s.Name()] = true
	}
}

// TestUnderRTNL: a request is counted when it starts, its time when it has returned. A request that is not made is not
// counted.
func TestUnderRTNL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host.Host{RTNL: access.NewRTNL(), Meter: &source.Meter{}, Budget: access.NewBudget(time.Now)}
		ask := func(took time.Duration) error {
			return h.UnderRTNL(t.Context(), source.PortState, "bnxt_re0", 1, func() { time.Sleep(took) })
		}
		costOf := func() source.Cost {
			for _, c := range h.Meter.Costs() {
				if c.Source == source.PortState && c.Lock == source.LockRTNL {
					return c
				}
			}
			return source.Cost{}
		}
		if err := ask(10 * time.Millisecond); err != nil || costOf().Requests != 1 || costOf().Took != 10*time.Millisecond {
			t.Fatalf("%v, %+v", err, costOf())
		}
		if err := ask(30 * time.Second); !errors.Is(err, access.ErrStuck) || costOf().Requests != 2 ||
			costOf().Took != 10*time.Millisecond {
			t.Errorf("stuck: %v, %+v", err, costOf())
		}
		if err := ask(0); !errors.Is(err, access.ErrStuck) || costOf().Requests != 2 {
			t.Errorf("while it is inside: %v, %+v", err, costOf())
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if err := ask(0); !errors.Is(err, access.ErrBackOff) || costOf().Requests != 2 ||
			costOf().Took != 30*time.Second+10*time.Millisecond {
			t.Errorf("back-off: %v, %+v", err, costOf())
		}
		if s := h.Budget.Spent("bnxt_re0")[0]; s.Total != 30*time.Second+10*time.Millisecond || !s.Over {
			t.Errorf("the device was charged %+v", s)
		}
	})
}

func TestMeter(t *testing.T) {
	var none *source.Meter
	none.Begin(source.PMA, source.LockDevice, 3)
	none.Spend(source.PMA, source.LockDevice, time.Second)
	if none.Costs() != nil {
		t.Error("no meter counts")
	}
	m := &source.Meter{}
	m.Begin(source.LinkModes, source.LockRTNL, 1)
	m.Begin(source.PMA, source.LockDevice, 21)
	m.Spend(source.PMA, source.LockDevice, time.Second)
	if c := m.Costs(); len(c) != 2 ||
		c[0] != (source.Cost{Source: source.PMA, Lock: source.LockDevice, Requests: 21, Took: time.Second}) ||
		c[1] != (source.Cost{Source: source.LinkModes, Lock: source.LockRTNL, Requests: 1, Took: 0}) {
		t.Errorf("%+v", c)
	}
}
