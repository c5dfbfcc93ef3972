package serve

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestPhaseOfFleet: the rounds of 10,000 hosts that are started together are spread evenly over the seconds of the
// interval.
func TestPhaseOfFleet(t *testing.T) {
	const hosts, interval = 10000, 15 * time.Second
	seconds := map[int]int{}
	for i := range hosts {
		next := nextTick(time.Unix(1e9, 0), interval, HostPhase(fmt.Sprintf("gpu-%05d.cluster.example", i), interval))
		seconds[int(next.Unix())%int(interval/time.Second)]++
	}
	share := hosts / int(interval/time.Second)
	for second, n := range seconds {
		if n > share*5/4 || n < share*3/4 {
			t.Errorf("%d hosts in second %d of the interval, %d are its share", n, second, share)
		}
	}
	one, two := HostPhase("gpu-1", interval), HostPhase("gpu-2", interval)
	if one == two || one >= interval || two >= interval {
		t.Errorf("%s and %s are no moments of their own", one, two)
	}
}

// TestTick: the first call is made immediately, the others at the phase of the host, whenever the program was started;
// after a long call none is lost.
func TestTick(t *testing.T) {
	const interval = 15 * time.Second
	for _, c := range []struct {
		name  string
		after time.Duration // from a whole interval to the start
		long  time.Duration // the third call takes
	}{
		{"started with the interval", 0, 0},
		{"started later", 4 * time.Second, 0},
		{"started at its moment", 10 * time.Second, 0},
		{"a long call", 14999 * time.Millisecond, 40 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const own = 10 * time.Second
				time.Sleep(interval - time.Duration(time.Now().UnixNano()%int64(interval)) + c.after)
				ctx, cancel := context.WithCancel(t.Context())
				start := time.Now()
				var at []time.Time
				Tick(ctx, interval, own, func() {
					at = append(at, time.Now())
					if len(at) == 3 {
						time.Sleep(c.long)
					}
					if len(at) == 6 {
						cancel()
					}
				})
				if len(at) != 6 || !at[0].Equal(start) {
					t.Fatalf("called at %s, started at %s", at, start)
				}
				for i := 1; i < len(at); i++ {
					gap := at[i].Sub(at[i-1])
					if late := i == 3 && c.long > 0; late {
						if gap != c.long {
							t.Errorf("call %d comes %s after the one before, which took %s", i, gap, c.long)
						}
						continue
					}
					if at[i].UnixNano()%int64(interval) != int64(own) || gap < interval/2 || gap > interval*3/2 {
						t.Errorf("call %d at %s, %s after the one before", i, at[i], gap)
					}
				}
			})
		})
	}
}
