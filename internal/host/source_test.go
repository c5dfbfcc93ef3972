package host

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestEverySourceSaysWhatItLocks(t *testing.T) {
	seen := map[string]bool{}
	for s := range numSources {
		switch s.Lock() {
		case LockNone, LockDevice, LockDevlink, LockRTNL:
		default:
			t.Errorf("source %d locks %q", s, s.Lock())
		}
		if s.Name() == "" || seen[s.Name()] || s.Needs() == "" {
			t.Errorf("source %d: name %q, needs %q", s, s.Name(), s.Needs())
		}
		seen[s.Name()] = true
	}
}

// TestUnderRTNL: a request is counted when it starts, its time when it has returned. A request that is not made is not
// counted.
func TestUnderRTNL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &Host{RTNL: NewRTNL(), Meter: &Meter{}, Budget: NewBudget(time.Now)}
		ask := func(took time.Duration) error {
			return h.UnderRTNL(t.Context(), SourcePortState, "bnxt_re0", 1, func() { time.Sleep(took) })
		}
		cost := func() Cost {
			for _, c := range h.Meter.Costs() {
				if c.Source == SourcePortState && c.Lock == LockRTNL {
					return c
				}
			}
			return Cost{}
		}
		if err := ask(10 * time.Millisecond); err != nil || cost().Requests != 1 || cost().Took != 10*time.Millisecond {
			t.Fatalf("%v, %+v", err, cost())
		}
		if err := ask(30 * time.Second); !errors.Is(err, ErrStuck) || cost().Requests != 2 ||
			cost().Took != 10*time.Millisecond {
			t.Errorf("stuck: %v, %+v", err, cost())
		}
		if err := ask(0); !errors.Is(err, ErrStuck) || cost().Requests != 2 {
			t.Errorf("while it is inside: %v, %+v", err, cost())
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if err := ask(0); !errors.Is(err, ErrBackOff) || cost().Requests != 2 ||
			cost().Took != 30*time.Second+10*time.Millisecond {
			t.Errorf("back-off: %v, %+v", err, cost())
		}
		if s := h.Budget.Spent("bnxt_re0")[0]; s.Total != 30*time.Second+10*time.Millisecond || !s.Over {
			t.Errorf("the device was charged %+v", s)
		}
	})
}

func TestMeter(t *testing.T) {
	var none *Meter
	none.Begin(SourcePMA, LockDevice, 3)
	none.Spend(SourcePMA, LockDevice, time.Second)
	if none.Costs() != nil {
		t.Error("no meter counts")
	}
	m := &Meter{}
	m.Begin(SourceLinkModes, LockRTNL, 1)
	m.Begin(SourcePMA, LockDevice, 21)
	m.Spend(SourcePMA, LockDevice, time.Second)
	if c := m.Costs(); len(c) != 2 || c[0] != (Cost{SourcePMA, LockDevice, 21, time.Second}) ||
		c[1] != (Cost{SourceLinkModes, LockRTNL, 1, 0}) {
		t.Errorf("%+v", c)
	}
}
