// Package workers runs tasks that may block for ever. One goroutine does them all, because that is the cheapest way while none
// blocks; when one keeps the others waiting, another goroutine goes on with them.
package workers

import (
	"context"
	"sync"
	"time"
)

// Patience is how long a task may keep the others waiting. A read takes microseconds; firmware that does not answer takes up
// to a minute.
const Patience = 100 * time.Millisecond

type group struct {
	ctx     context.Context
	n       int
	task    func(int)
	finally func()
	unwatch func() bool // stops the watch on ctx

	mu    sync.Mutex
	next  int // task that nobody has begun
	ended int
	seen  int // ended at the last look
	timer *time.Timer
}

// Go is Do in a goroutine of its own. The channel is closed when all tasks have ended, or ctx has.
func Go(ctx context.Context, n int, task func(i int)) <-chan struct{} {
	done := make(chan struct{})
	go Do(ctx, n, task, func() { close(done) })
	return done
}

// Do runs tasks 0 to n-1 in their order, none after ctx has ended, and then finally: once, when all have ended or when ctx
// ends, whatever is first. The caller works itself, and returns when there is nothing more for it to do; a task that blocks
// for ever keeps it, but not finally.
func Do(ctx context.Context, n int, task func(i int), finally func()) {
	if n == 0 {
		finally()
		return
	}
	c := &group{ctx: ctx, n: n, task: task, finally: sync.OnceFunc(finally)}
	c.mu.Lock()
	c.unwatch = context.AfterFunc(ctx, c.finally)
	c.timer = time.AfterFunc(Patience, c.look)
	c.mu.Unlock()
	c.work()
}

// look brings help when nothing has ended since the last look.
func (c *group) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next >= c.n || c.ctx.Err() != nil {
		return
	}
	if c.ended == c.seen {
		go c.work()
	}
	c.seen = c.ended
	c.timer.Reset(Patience)
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
