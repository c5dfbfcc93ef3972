package access

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestALaneIsTakenInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns()
		inside := 0
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if err := turns.Do(t.Context(), "a", func() {
					if inside++; inside > 1 {
						t.Error("two are inside")
					}
					time.Sleep(time.Second)
					inside--
				}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			start := time.Now()
			if err := turns.Do(t.Context(), "b", func() {}); err != nil || time.Since(start) != 0 {
				t.Errorf("another turn waited %v: %v", time.Since(start), err)
			}
		})
		start := time.Now()
		wg.Wait()
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("five turns of 1s took %v", took)
		}
	})
}

func TestWhoComesLateIsStuckUntilItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns()
		within := func(d time.Duration, f func()) (time.Duration, error) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			start := time.Now()
			err := turns.Do(ctx, "a", f)
			return time.Since(start), err
		}
		if took, err := within(time.Second, func() { time.Sleep(time.Minute) }); !errors.Is(err, ErrStuck) ||
			took != time.Second {
			t.Errorf("late: %v after %v", err, took)
		}
		ran := 0
		for range 3 {
			if took, err := within(time.Hour, func() { ran++ }); !errors.Is(err, ErrStuck) || took != 0 {
				t.Errorf("while it is inside: %v after %v", err, took)
			}
		}
		time.Sleep(time.Minute)
		if took, err := within(time.Hour, func() { ran++ }); err != nil || took != 0 || ran != 1 {
			t.Errorf("after its return: %v after %v, %d were started", err, took, ran)
		}
	})
}

func TestATurnThatDoesNotComeInTimeIsNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns()
		first := make(chan error)
		go func() { first <- turns.Do(t.Context(), "a", func() { time.Sleep(time.Minute) }) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		started := false
		if err := turns.Do(ctx, "a", func() { started = true }); !errors.Is(err, ErrStuck) {
			t.Errorf("second: %v", err)
		}
		if err := <-first; err != nil {
			t.Errorf("first: %v", err)
		}
		synctest.Wait()
		if started {
			t.Error("it was started after its deadline")
		}
	})
}

func TestEnter(t *testing.T) {
	turns := NewTurns()
	leave, err := turns.Enter("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := turns.Enter("a"); !Unanswered(err) {
		t.Errorf("a turn was entered twice: %v", err)
	}
	other, err := turns.Enter("b")
	if err != nil {
		t.Errorf("another turn: %v", err)
	}
	other()
	leave()
	if leave, err = turns.Enter("a"); err != nil {
		t.Fatalf("after leaving: %v", err)
	}
	leave()
}

// A reader that returns just at its deadline leaves a turn that others can use.
func TestALaneIsNotLateWhenItIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns()
		for range 10_000 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_ = turns.Do(ctx, "a", func() { time.Sleep(time.Second) })
			synctest.Wait()
			select {
			case <-turns.get("a").lateness():
				t.Fatal("the turn is free and late")
			default:
			}
			cancel()
		}
	})
}

// A reader that waits for its turn gives up when the one in the turn exceeds its deadline.
func TestWaitingEndsWithLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() { _ = turns.Do(ctx, "a", func() { time.Sleep(5 * time.Second) }) }()
		time.Sleep(700 * time.Millisecond)
		start := time.Now()
		if err := turns.Do(t.Context(), "a", func() {}); !errors.Is(err, ErrStuck) ||
			time.Since(start) != 300*time.Millisecond {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		time.Sleep(5 * time.Second)
		if err := turns.Do(t.Context(), "a", func() {}); err != nil {
			t.Error(err)
		}
	})
}
