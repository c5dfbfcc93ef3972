package access

import (
	"testing"
	"time"
)

// manualClock is a time that a test sets.
type manualClock struct{ at time.Time }

func (c *manualClock) now() time.Time         { return c.at }
func (c *manualClock) move(d time.Duration)   { c.at = c.at.Add(d) }
func newClock() *manualClock                  { return &manualClock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }
func (c *manualClock) budget() (b *Budget)    { return NewBudget(c.now) }
func shareOf(d, of time.Duration) float64     { return float64(d) / float64(of) }
func spent(b *Budget, d string) time.Duration { return b.Spent(d)[0].Total }

// TestBudgetOfADevice: deferrable reads are allowed within the share.
func TestBudgetOfADevice(t *testing.T) {
	c := newClock()
	b := c.budget()
	const hours = 6
	reads := 0
	for range hours * 240 {
		c.move(15 * time.Second)
		b.Spend("slow", 50*time.Millisecond) // each round: a third of a percent
		if b.Allow("slow") {
			b.Spend("slow", time.Second)
			reads++
		}
		b.Spend("quick", time.Millisecond)
		if !b.Allow("quick") {
			t.Fatal("another device is held up")
		}
	}
	if s := shareOf(spent(b, "slow")-deviceBurst, hours*time.Hour); s > deviceShare || s < 0.9*deviceShare {
		t.Errorf("%.2f %% of the time", 100*s)
	}
	if reads < 100 {
		t.Errorf("%d reads in %d hours", reads, hours)
	}
}

// TestBudgetAtStart: everything is read once, before time has passed.
func TestBudgetAtStart(t *testing.T) {
	c := newClock()
	b := c.budget()
	for _, d := range []string{"a", "b", "c"} {
		for range 19 {
			b.Spend(d, 100*time.Millisecond)
			if !b.Allow(d) {
				t.Fatalf("%s is refused", d)
			}
		}
	}
}

// TestBudgetOfTheHost: many devices below their own share exceed the host's. One far above its share does not.
func TestBudgetOfTheHost(t *testing.T) {
	c := newClock()
	b := c.budget()
	b.Spend("stuck", time.Hour)
	if b.Allow("stuck") || !b.Allow("other") {
		t.Error("one device that was stuck costs another what can wait")
	}
	for range 10 {
		for _, d := range []string{"a", "b", "c", "d", "e"} {
			b.Spend(d, 190*time.Millisecond)
		}
	}
	if !b.Spent("a")[0].Over || b.Allow("idle") {
		t.Error("the host has no budget of its own")
	}
	c.move(4 * time.Minute)
	if !b.Allow("idle") {
		t.Error("the host's debt is not paid off")
	}
}

// TestBudgetDefersNothingForever: a device that always exceeds its budget is read once in half an hour.
func TestBudgetDefersNothingForever(t *testing.T) {
	c := newClock()
	b := c.budget()
	allowed := 0
	for range 4 * 60 {
		c.move(time.Minute)
		b.Spend("slow", 30*time.Second)
		if b.Allow("slow") {
			allowed++
		}
	}
	if allowed != 7 {
		t.Errorf("let through %d times in 4 hours, want 7", allowed)
	}
	c.move(longestWait)
	if !b.Allow("slow") {
		t.Error("its debt is not paid off in time")
	}
	b.Forget("slow")
	if s := spent(b, "slow"); s != 0 {
		t.Errorf("forgotten, and still %s", s)
	}
}

func TestNoBudgetHasNoEnd(t *testing.T) {
	var b *Budget
	b.Spend("a", time.Hour)
	b.Forget("a")
	if b.Spent("a")[0].Over || !b.Allow("a") {
		t.Error("it ends")
	}
}

// TestSpare: optional reads leave room for deferrable ones.
func TestSpare(t *testing.T) {
	c := newClock()
	b := c.budget()
	const minutes = 60
	for range minutes * 60 {
		c.move(time.Second)
		for _, d := range []string{"a", "b", "c", "d", "e", "f"} {
			if b.Spare(d) {
				b.Spend(d, 20*time.Millisecond)
			}
			if !b.Allow(d) {
				t.Fatal("what can wait is held up")
			}
		}
	}
	all := time.Duration(0)
	for _, d := range []string{"a", "b", "c", "d", "e", "f"} {
		all += spent(b, d)
		if s := shareOf(spent(b, d)-deviceBurst/2, minutes*time.Minute); s > deviceShare {
			t.Errorf("%s: %.2f %% of the time", d, 100*s)
		}
	}
	if s := shareOf(all-hostBurst/2, minutes*time.Minute); s > 1.01*hostShare || s < 0.9*hostShare {
		t.Errorf("%.2f %% of the time", 100*s)
	}
	if !(*Budget)(nil).Spare("a") {
		t.Error("no budget has an end")
	}
}

// TestUnlimitedBudget: time is added up, nothing is refused.
func TestUnlimitedBudget(t *testing.T) {
	b := Unlimited()
	b.Spend("a", time.Hour)
	if s := b.Spent("a")[0]; s.Total != time.Hour || s.Over || !b.Allow("a") || !b.Spare("a") {
		t.Errorf("%+v, allowed %v, spare %v", s, b.Allow("a"), b.Spare("a"))
	}
}
