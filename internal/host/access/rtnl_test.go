package access

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestRTNLBacksOffAfterASlowRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRTNL()
		made := 0
		quick := func() { made++ }
		if err := r.Do(t.Context(), quick); err != nil || made != 1 {
			t.Fatalf("quick: %v, %d made", err, made)
		}
		for i, wait := range []time.Duration{
			time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute,
		} {
			start := time.Now()
			if err := r.Do(t.Context(), func() { time.Sleep(30 * time.Second) }); !errors.Is(err, ErrStuck) ||
				time.Since(start) != time.Second {
				t.Fatalf("slow request %d: %v after %s", i, err, time.Since(start))
			}
			if err := r.Do(t.Context(), quick); !errors.Is(err, ErrStuck) {
				t.Errorf("while it is inside: %v", err)
			}
			time.Sleep(29 * time.Second)
			synctest.Wait()
			if s := r.Stats(); !s.BackOff || s.Slow != uint64(i+1) {
				t.Errorf("after slow request %d: %+v", i, s)
			}
			time.Sleep(wait - time.Second)
			if err := r.Do(t.Context(), quick); !errors.Is(err, ErrBackOff) {
				t.Errorf("a second before the end of %s: %v", wait, err)
			}
			time.Sleep(2 * time.Second)
			if s := r.Stats(); s.BackOff {
				t.Errorf("after %s: %+v", wait, s)
			}
		}
		if err := r.Do(t.Context(), quick); err != nil || made != 2 {
			t.Errorf("afterwards: %v, %d made", err, made)
		}
		if s := r.Stats(); s.Slow != 5 {
			t.Errorf("stats %+v", s)
		}
		_ = r.Do(t.Context(), func() { time.Sleep(2 * time.Second) })
		time.Sleep(2*time.Second + rtnlFirstWait)
		if s := r.Stats(); s.BackOff {
			t.Error("a quick request does not shorten the next wait to the first")
		}
	})
}
