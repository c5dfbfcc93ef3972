package access

import (
	"sync"
	"time"
)

// The cost of a read to others is its wall time in the kernel: it holds the device's command queue or a lock.
// Deferrable reads are made only while all reads together stay below these shares of elapsed time.
const (
	deviceShare = 0.01
	hostShare   = 0.03
	// deviceBurst is what may be spent in a burst: at start-up everything is read.
	deviceBurst = 2 * time.Second
	hostBurst   = 6 * time.Second
	// longestWait limits the deferral for a device that always exceeds its budget.
	longestWait = 30 * time.Minute
)

// Budget limits deferrable reads. A nil budget is unlimited.
type Budget struct {
	now func() time.Time // nil: no limit, the time is only added up

	mu      sync.Mutex
	host    bucket
	devices map[string]*bucket
}

// bucket is a leaky bucket: debt is paid off over time.
type bucket struct {
	at      time.Time
	debt    time.Duration
	total   time.Duration
	allowed time.Time // when a deferrable read was last allowed
}

// NewBudget returns an unspent budget.
func NewBudget(now func() time.Time) *Budget {
	return &Budget{now: now, devices: map[string]*bucket{}}
}

// Unlimited returns a budget that only adds up the time of reads.
func Unlimited() *Budget { return &Budget{devices: map[string]*bucket{}} }

func (b *bucket) leak(now time.Time, share float64) {
	if !b.at.IsZero() && now.After(b.at) {
		b.debt = max(0, b.debt-time.Duration(share*float64(now.Sub(b.at))))
	}
	b.at = now
}

// spend adds to the debt. The debt is limited to what is paid off within longestWait.
func (b *bucket) spend(d, burst time.Duration, share float64) {
	b.total += d
	b.debt = min(b.debt+d, burst+time.Duration(share*float64(longestWait)))
}

func (b *Budget) device(name string) *bucket {
	d := b.devices[name]
	if d == nil {
		d = &bucket{}
		b.devices[name] = d
	}
	return d
}

// Spend records wall time in reads of a device; an empty name is the host. What a device spends beyond its own budget
// is not charged to the host. Otherwise one slow device would defer the reads of all others. The debt is reduced when
// it is read, since reading the clock would cost a tenth of a read.
func (b *Budget) Spend(device string, d time.Duration) {
	if b == nil || d <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if device != "" {
		own := b.device(device)
		over := own.debt >= deviceBurst
		own.spend(d, deviceBurst, deviceShare)
		if over {
			return
		}
		d = min(d, deviceBurst)
	}
	b.host.spend(d, hostBurst, hostShare)
}

// Allow reports whether a deferrable read of a device may be made now.
func (b *Budget) Allow(device string) bool {
	if b == nil || b.now == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	d := b.device(device)
	if d.allowed.IsZero() {
		d.allowed = now
	}
	if b.over(d, now) && now.Sub(d.allowed) < longestWait {
		return false
	}
	d.allowed = now
	return true
}

func (b *Budget) over(d *bucket, now time.Time) bool {
	b.host.leak(now, hostShare)
	d.leak(now, deviceShare)
	return d.debt >= deviceBurst || b.host.debt >= hostBurst
}

// Spent is the wall time in reads of a device, and whether its own or the host's budget is exhausted.
type Spent struct {
	Total time.Duration
	Over  bool
}

// Spent returns the state of devices, in their order.
func (b *Budget) Spent(devices ...string) []Spent {
	out := make([]Spent, len(devices))
	if b == nil {
		return out
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var now time.Time
	if b.now != nil {
		now = b.now()
	}
	for i, name := range devices {
		d := b.device(name)
		out[i] = Spent{d.total, b.now != nil && b.over(d, now)}
	}
	return out
}

// Forget discards a removed device.
func (b *Budget) Forget(device string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.devices, device)
}

// Spare reports whether optional reads are possible: less than half of the burst is spent. The rest is kept for
// deferrable reads.
func (b *Budget) Spare(device string) bool {
	if b == nil || b.now == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	d := b.device(device)
	b.over(d, now)
	return d.debt < deviceBurst/2 && b.host.debt < hostBurst/2
}
