// Package crew runs tasks that may block for ever. One goroutine does them all, because that is the cheapest way while none
// blocks; when one keeps the others waiting, another goroutine goes on with them.
package crew

import (
	"context"
	"sync"
	"time"
)

// Patience is how long a task may keep the others waiting. A read takes microseconds; firmware that does not answer takes up
// to a minute.
const Patience = 100 * time.Millisecond

type crew struct {
	ctx  context.Context
	n    int
	task func(int)
	done chan struct{}

	mu    sync.Mutex
	next  int // task that nobody has begun
	ended int
	seen  int // ended at the last look
	timer *time.Timer
}

// Go begins tasks 0 to n-1 in their order, none after ctx has ended. The channel is closed when all have ended.
func Go(ctx context.Context, n int, task func(i int)) <-chan struct{} {
	c := &crew{ctx: ctx, n: n, task: task, done: make(chan struct{})}
	if n == 0 {
		close(c.done)
		return c.done
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(Patience, c.look)
	go c.work()
	return c.done
}

// look brings help when nothing has ended since the last look.
func (c *crew) look() {
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

func (c *crew) work() {
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
		if c.ended++; c.ended == c.n {
			c.timer.Stop()
			close(c.done)
		}
		c.mu.Unlock()
	}
}
