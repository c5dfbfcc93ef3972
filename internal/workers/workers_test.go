package workers

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func upTo(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

func TestOneGoroutineDoesAllWhileNoneBlocks(t *testing.T) {
	for _, each := range []time.Duration{0, time.Millisecond, MaxDelay / 2, MaxDelay - 1} {
		t.Run(fmt.Sprintf("tasks of %v", each), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var order []int // without a lock: the race detector reports a second goroutine
				inside := 0
				start := time.Now()
				done := Go(t.Context(), 50, func(i int) {
					if inside++; inside > 1 {
						t.Error("two at once")
					}
					order = append(order, i)
					time.Sleep(each)
					inside--
				})
				<-done
				if !slices.Equal(order, upTo(50)) {
					t.Error(order)
				}
				if took := time.Since(start); took != 50*each {
					t.Errorf("50 tasks took %v", took)
				}
			})
		})
	}
}

func TestATaskThatBlocksCostsItselfOnly(t *testing.T) {
	for _, blocking := range [][]int{{0}, {3}, {9}, {0, 1, 2}, {0, 4, 9}, {8, 9}} {
		t.Run(fmt.Sprintf("%v blocked", blocking), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				ended := make(chan int, 10)
				done := Go(t.Context(), 10, func(i int) {
					if slices.Contains(blocking, i) {
						<-release
					}
					ended <- i
				})
				time.Sleep(2 * MaxDelay * time.Duration(len(blocking)))
				synctest.Wait()
				var want, got []int
				for i := range 10 {
					if !slices.Contains(blocking, i) {
						want = append(want, i)
					}
				}
				for len(ended) > 0 {
					got = append(got, <-ended)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%v have ended, want %v", got, want)
				}
				if isClosed(done) {
					t.Errorf("%v block: done is closed before they have ended", blocking)
				}
				close(release)
				<-done
				for len(ended) > 0 {
					got = append(got, <-ended)
				}
				slices.Sort(got)
				if !slices.Equal(got, upTo(10)) {
					t.Errorf("%v have ended", got)
				}
			})
		})
	}
}

func TestSlowTasksGetHelpAndRunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun [20]chan struct{}
		for i := range begun {
			begun[i] = make(chan struct{})
		}
		start := time.Now()
		<-Go(t.Context(), len(begun), func(i int) {
			close(begun[i]) // panics if called twice
			time.Sleep(time.Second)
		})
		for i, c := range begun {
			if !isClosed(c) {
				t.Errorf("task %d was not begun", i)
			}
		}
		if took := time.Since(start); took > 7*time.Second {
			t.Errorf("twenty tasks of 1s took %v", took)
		}
	})
}

func TestNothingIsBegunAfterTheContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		release := make(chan struct{})
		begun := make(chan int, 100)
		done := Go(ctx, 100, func(i int) {
			begun <- i
			if i == 1 {
				<-release
			}
			time.Sleep(time.Second)
		})
		<-ctx.Done()
		synctest.Wait()
		if !isClosed(done) {
			t.Error("a task that blocks keeps done open after the end")
		}
		n := len(begun)
		if n == 0 || n == 100 {
			t.Fatalf("%d tasks were begun within the context", n)
		}
		close(release)
		time.Sleep(time.Hour)
		if len(begun) != n {
			t.Errorf("%d tasks were begun after the end", len(begun)-n)
		}
	})
}

func TestAnEndedContextBeginsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		Go(ctx, 5, func(i int) { t.Errorf("task %d was begun", i) })
		time.Sleep(time.Hour)
	})
}

// watched counts how often its end is queried.
type watched struct {
	context.Context
	asked atomic.Int64
}

func (w *watched) Err() error {
	w.asked.Add(1)
	return w.Context.Err()
}

func TestAnEndedContextEndsTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, cancel := context.WithCancel(t.Context())
		ctx := &watched{Context: inner}
		release := make(chan struct{})
		Go(ctx, 5, func(int) { <-release })
		time.Sleep(3 * MaxDelay)
		cancel()
		close(release)
		time.Sleep(2 * MaxDelay)
		before := ctx.asked.Load()
		time.Sleep(time.Hour)
		if n := ctx.asked.Load() - before; n != 0 {
			t.Errorf("the timer still fired %d times in an hour", n)
		}
	})
}

func TestWithoutTasksAllHaveEnded(t *testing.T) {
	<-Go(t.Context(), 0, func(int) { t.Error("a task was begun") })
}

// Do runs tasks in the calling goroutine: cheapest as long as nothing blocks.
func TestDoWorksItself(t *testing.T) {
	var order []int // -race reports another goroutine
	Do(t.Context(), 3, func(i int) { order = append(order, i) }, func() { order = append(order, -1) })
	if !slices.Equal(order, []int{0, 1, 2, -1}) {
		t.Errorf("order %v", order)
	}
}

// The task of the caller blocks: finally is still called once at the end of ctx, and the other tasks have run by then.
func TestABlockedCallerDoesNotKeepFinally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		release := make(chan struct{})
		var tasks, finals atomic.Int64
		go Do(ctx, 5, func(i int) {
			if i == 0 {
				<-release
			}
			tasks.Add(1)
		}, func() { finals.Add(1) })
		<-ctx.Done()
		synctest.Wait()
		if tasks.Load() != 4 || finals.Load() != 1 {
			t.Errorf("%d tasks ended, finally ran %d times", tasks.Load(), finals.Load())
		}
		close(release)
		synctest.Wait()
		if tasks.Load() != 5 || finals.Load() != 1 {
			t.Errorf("afterwards %d tasks ended, finally ran %d times", tasks.Load(), finals.Load())
		}
	})
}
