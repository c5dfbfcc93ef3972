package maintenance

import (
	"strings"
	"testing"
	"time"
)

var start = Clock{Now: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), Boot: "a", Uptime: 1000}

// after returns a moment in the same boot, by both clocks.
func after(wall, up time.Duration) Clock {
	return Clock{Now: start.Now.Add(wall), Boot: start.Boot, Uptime: start.Uptime + up.Seconds()}
}

// TestEnd: maintenance ends by the larger of both clocks.
func TestEnd(t *testing.T) {
	a, err := New(start, 2*time.Hour, "firmware")
	if err != nil {
		t.Fatal(err)
	}
	booted := func(wall, up time.Duration) Clock {
		return Clock{Now: start.Now.Add(wall), Boot: "b", Uptime: up.Seconds()}
	}
	for name, c := range map[string]struct {
		at   Clock
		left time.Duration // until its end; 0: it has ended
	}{
		"at once":                         {start, 2 * time.Hour},
		"a second before the end":         {after(2*time.Hour-time.Second, 2*time.Hour-time.Second), time.Second},
		"at the end":                      {after(2*time.Hour, 2*time.Hour), 0},
		"the clocks drift":                {after(time.Hour, time.Hour+30*time.Second), time.Hour},
		"the clock was set back a day":    {after(-23*time.Hour, time.Hour), time.Hour},
		"set back, and two hours up":      {after(-22*time.Hour, 2*time.Hour), 0},
		"the clock was set forward":       {after(3*time.Hour, time.Minute), 0},
		"booted":                          {booted(time.Hour, 10*time.Minute), time.Hour},
		"booted after the end":            {booted(5*time.Hour, time.Minute), 0},
		"booted, without a clock":         {booted(-50*365*24*time.Hour, time.Minute), 2*time.Hour - time.Minute},
		"booted without a clock, 2 hours": {booted(-50*365*24*time.Hour, 2*time.Hour), 0},
		"the uptime cannot be read":       {Clock{Now: start.Now.Add(time.Hour)}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			n := a.At(c.at)
			if (n == nil) != (c.left == 0) {
				t.Fatalf("%v, want %s left", n, c.left)
			}
			if n != nil && n.Until.Sub(c.at.Now) != c.left {
				t.Errorf("until %s, want %s left", n.Until, c.left)
			}
		})
	}
	unreadable, err := New(Clock{Now: start.Now}, 2*time.Hour, "")
	if err != nil {
		t.Fatal(err)
	}
	if n := unreadable.Advance(start).Advance(Clock{}).At(after(time.Hour, time.Hour)); n == nil {
		t.Error("an uptime that could not be read for a while ended it")
	}
}

// TestClockThatIsLostInEachBoot: what was noted counts, so that boots do not prolong it either.
func TestClockThatIsLostInEachBoot(t *testing.T) {
	a, err := New(start, 2*time.Hour, "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		c := Clock{Now: time.Unix(0, 0), Boot: strings.Repeat("b", i+1)}
		if n := a.At(c); n == nil {
			t.Fatalf("ended before boot %d", i)
		} else if left := n.Until.Sub(c.Now); left != 2*time.Hour-time.Duration(i)*30*time.Minute {
			t.Errorf("%s are left in boot %d", left, i)
		}
		c.Uptime = 1800
		a = a.Advance(c)
	}
	if n := a.At(Clock{Now: time.Unix(0, 0), Boot: "c"}); n != nil {
		t.Errorf("after two hours up: %v", n)
	}
	if n := (Announcement{}).At(start); n != nil {
		t.Errorf("nothing was announced: %v", n)
	}
}

// TestRefused: what cannot be announced.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		length time.Duration
		reason string
		want   string // of the error; empty: none
	}{
		"shortest":          {time.Minute, "", ""},
		"longest":           {7 * 24 * time.Hour, strings.Repeat("ü", 200), ""},
		"too short":         {time.Minute - 1, "", "--for: must be from 1m to 7d"},
		"negative":          {-time.Hour, "", "--for: must be from 1m to 7d"},
		"too long":          {7*24*time.Hour + 1, "", "--for: must be from 1m to 7d"},
		"long reason":       {time.Hour, strings.Repeat("ü", 201), "--reason: must be at most 200 characters long"},
		"line break":        {time.Hour, "a\nb", "--reason: must not contain line breaks or other control characters"},
		"escape":            {time.Hour, "\x1b[2J", "--reason: must not contain line breaks or other control characters"},
		"right to left":     {time.Hour, "a\u202eb", "--reason: must not contain line breaks or other control characters"},
		"not UTF-8":         {time.Hour, "\xff", "--reason: not valid UTF-8"},
		"reason with marks": {time.Hour, `"NIC 3" & <firmware>`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(start, c.length, c.reason)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestString(t *testing.T) {
	n := Notice{Until: start.Now.Add(time.Hour), Reason: "firmware of NIC 3"}
	if got, want := n.String(), "Maintenance until 2026-07-01 13:00:00 UTC: firmware of NIC 3"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	n.Reason = ""
	if got, want := n.String(), "Maintenance until 2026-07-01 13:00:00 UTC"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
