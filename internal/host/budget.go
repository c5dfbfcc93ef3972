package host

import (
	"sync"
	"time"
)

// Wall time inside the kernel is what a read costs others: it holds the device's command queue, or a lock. What can wait is
// read only as far as all reads together stay below these shares of the time that passes.
const (
	deviceShare = 0.01
	hostShare   = 0.03
	// What may be spent at once: at start-up everything is read.
	deviceBurst = 2 * time.Second
	hostBurst   = 6 * time.Second
	// longestWait is how long a device that is always over its budget waits: its facts would age for ever.
	longestWait = 30 * time.Minute
)

// Budget says whether reads that can wait may be made now. A nil budget has no end.
type Budget struct {
	now func() time.Time

	mu      sync.Mutex
	host    bucket
	devices map[string]*bucket
}

// bucket leaks: what was spent is paid off as time passes.
type bucket struct {
	at      time.Time
	debt    time.Duration
	total   time.Duration
	allowed time.Time // when something that can wait was last let through
}

// NewBudget returns a budget of which nothing is spent.
func NewBudget(now func() time.Time) *Budget {
	return &Budget{now: now, devices: map[string]*bucket{}}
}

func (b *bucket) leak(now time.Time, share float64) {
	if !b.at.IsZero() && now.After(b.at) {
		b.debt = max(0, b.debt-time.Duration(share*float64(now.Sub(b.at))))
	}
	b.at = now
}

// spend adds to the debt, which ends where it is paid off within longestWait.
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

// Spend notes wall time inside reads of a device; of none where the name is empty. What a device spends beyond its own budget
// is not charged to the host, or one slow device would cost all others what can wait. Time is taken off when it is looked at,
// since the clock would cost a tenth of a read.
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

// Allow says whether what can wait may be read of a device now.
func (b *Budget) Allow(device string) bool {
	if b == nil {
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

// Spent is the wall time inside reads of a device, and whether its budget is spent: its own, or the host's.
type Spent struct {
	Total time.Duration
	Over  bool
}

// Spent tells of devices, in their order.
func (b *Budget) Spent(devices ...string) []Spent {
	out := make([]Spent, len(devices))
	if b == nil {
		return out
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for i, name := range devices {
		d := b.device(name)
		out[i] = Spent{d.total, b.over(d, now)}
	}
	return out
}

// Forget drops what is known of a device that is gone.
func (b *Budget) Forget(device string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.devices, device)
}

// Spare says whether there is room for what nobody would miss: less than half is spent of what may be spent at once. So what can
// wait still finds room.
func (b *Budget) Spare(device string) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	d := b.device(device)
	b.over(d, now)
	return d.debt < deviceBurst/2 && b.host.debt < hostBurst/2
}
