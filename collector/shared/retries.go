package shared

import (
	"slices"
	"sync"
	"time"
)

// Retries holds the requests that exceeded their retries by port, read by the collector hwcounters in the last round.
type Retries struct {
	mu     sync.Mutex
	latest []PortRetries
}

// PortRetries is the counter of a port.
type PortRetries struct {
	Device   string
	Port     int
	Exceeded uint64
	At       time.Time // when it was read
}

// Publish publishes the counters of a round.
func (r *Retries) Publish(latest []PortRetries) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = latest
}

// Latest returns the counters of the last round.
func (r *Retries) Latest() []PortRetries {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.latest)
}
