// Package workers runs tasks that may block indefinitely. One goroutine runs them all, which is cheapest as long as
// none blocks. If one blocks, another goroutine continues with the remaining tasks.
package workers

import (
	"context"
	"sync"
	"time"
)

// MaxDelay is how long a task may delay the others. A read takes microseconds; unresponsive firmware takes up to a
// minute.
const MaxDelay = 100 * time.Millisecond

type group struct {
	ctx     context.Context
	n       int
	task    func(int)
	finally func()
	unwatch func() bool // stops watching ctx

	mu    sync.Mutex
	next  int // next task to start
	ended int
	seen  int // ended, as of the last check
	timer *time.Timer
}

// Go is Do in a separate goroutine. The channel is closed when all tasks have ended or ctx has.
func Go(ctx context.Context, n int, task func(i int)) <-chan struct{} {
	done := make(chan struct{})
	go Do(ctx, n, task, func() { close(done) })
	return done
}

// Do runs tasks 0 to n-1 in order, none after ctx has ended, and calls finally once: when all have ended or ctx has.
// The caller is the first worker, and returns when no task is left to start. A task that blocks indefinitely blocks the
// caller, but not finally.
func Do(ctx context.Context, n int, task func(i int), finally func()) {
	if n == 0 {
		finally()
		return
	}
	c := &group{ctx: ctx, n: n, task: task, finally: sync.OnceFunc(finally)}
	c.mu.Lock()
	c.unwatch = context.AfterFunc(ctx, c.finally)
	c.timer = time.AfterFunc(MaxDelay, c.check)
	c.mu.Unlock()
	c.work()
}

// check starts another worker if no task has ended since the last check.
func (c *group) check() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next >= c.n || c.ctx.Err() != nil {
		return
	}
	if c.ended == c.seen {
		go c.work()
	}
	c.seen = c.ended
	c.timer.Reset(MaxDelay)
}

func (c *group) work() {
	for c.ctx.Err() == nil {
		c.mu.Lock()
		i := c.next
		c.next++
		c.mu.Unlock()
		if i >= c.n {
			return
		}
		c.task(i)
		c.mu.Lock()
		c.ended++
		last := c.ended == c.n
		c.mu.Unlock()
		if last {
			c.timer.Stop()
			c.unwatch()
			c.finally()
		}
	}
}
