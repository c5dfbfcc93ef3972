package main

import (
	"context"
	"fmt"
	"math/bits"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// gaps are times in which the thread did not run its loop: an interrupt, another program, the hypervisor.
type gaps struct {
	watched, lost time.Duration
	longest       time.Duration
	switched      int64   // involuntary context switches
	count         [40]int // by the bit length of their duration in microseconds
}

// smallest is the minimum gap: reading the clock takes less than a tenth of it.
const smallest = time.Microsecond

// note records the time between two readings of the clock.
func (g *gaps) note(d time.Duration) {
	g.watched += d
	if d < smallest {
		return
	}
	g.lost += d
	g.longest = max(g.longest, d)
	g.count[min(bits.Len64(uint64(d/time.Microsecond)), len(g.count)-1)]++
}

// atLeast returns the number of gaps of 2^n microseconds or more.
func (g *gaps) atLeast(n int) (sum int) {
	for _, c := range g.count[n+1:] {
		sum += c
	}
	return sum
}

func (g *gaps) add(o gaps) {
	g.watched += o.watched
	g.lost += o.lost
	g.longest = max(g.longest, o.longest)
	g.switched += o.switched
	for i, c := range o.count {
		g.count[i] += c
	}
}

// measure measures a processor from a pinned thread.
func measure(ctx context.Context, cpu int, length time.Duration) (g gaps, err error) {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its affinity
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			done <- fmt.Errorf("-cpu=%d: %w", cpu, err)
			return
		}
		time.Sleep(100 * time.Millisecond) // settling time
		before := displaced()
		start := time.Now()
		for last := time.Duration(0); last < length; {
			now := time.Since(start)
			g.note(now - last)
			last = now
		}
		g.switched = displaced() - before
		done <- ctx.Err()
	}()
	return g, <-done
}

// displaced returns the number of involuntary context switches of the calling thread (ru_nivcsw).
func displaced() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return u.Nivcsw
}
