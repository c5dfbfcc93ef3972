package shared

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

// LastRound holds the RDMA devices and GPUs of the last round, read by the collector infiniband, for the other
// collectors.
type LastRound struct {
	mu        sync.Mutex
	devices   []snapshot.Device
	at        time.Time     // when they were read
	gpus      []string      // paths of the GPUs' PCI functions
	first     chan struct{} // closed when the first round is over; nil before it has begun
	published bool

	job     *nccl.Topology // from the topology file of a running job; nil: none
	jobText string

	holders map[int]time.Time // processes with RDMA devices, and when they were last seen
}

// firstRoundTimeout is how long a collector waits for the first round, which includes reads of vital product data.
const firstRoundTimeout = vpdTimeout + time.Second

// Begin records that a round has started.
func (f *LastRound) Begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil {
		f.first = make(chan struct{})
	}
}

// Publish publishes the result of a round.
func (f *LastRound) Publish(at time.Time, devices []snapshot.Device, gpus []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.devices, f.at, f.gpus = slices.Clone(devices), at, gpus
	if !f.published {
		f.published = true
		close(f.first)
	}
}

// Last returns the result of the last round, and its time. It waits for the first round if that has started.
func (f *LastRound) Last(ctx context.Context) (devices []snapshot.Device, gpus []string, at time.Time) {
	f.mu.Lock()
	first := f.first
	f.mu.Unlock()
	if first != nil {
		timer := time.NewTimer(firstRoundTimeout)
		defer timer.Stop()
		select {
		case <-first:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.devices, f.gpus, f.at
}

// holderRetention is how long a process that has ended stays known as a holder of RDMA devices.
const holderRetention = 10 * time.Minute

// PublishJob publishes the processes that hold RDMA devices, and the topology file of a running job.
func (f *LastRound) PublishJob(processes []accel.Process, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.holders == nil {
		f.holders = map[int]time.Time{}
	}
	maps.DeleteFunc(f.holders, func(_ int, seen time.Time) bool { return at.Sub(seen) > holderRetention })
	for i := range processes {
		if len(processes[i].Verbs) > 0 {
			f.holders[processes[i].PID] = at
		}
	}
	i := slices.IndexFunc(processes, func(p accel.Process) bool { return p.Topology != "" })
	switch {
	case i < 0:
		f.job, f.jobText = nil, ""
	case f.jobText != processes[i].Topology:
		f.job, f.jobText = TopologyOf(&processes[i]), processes[i].Topology
	}
}

// Holds reports whether a process holds RDMA devices, or did when it was last seen.
func (f *LastRound) Holds(pid int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.holders[pid].IsZero()
}

// JobTopology returns the topology published by PublishJob; nil: none.
func (f *LastRound) JobTopology() *nccl.Topology {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.job
}

// TopologyOf returns the topology of a process's own file; nil where it has none.
func TopologyOf(p *accel.Process) *nccl.Topology {
	if p.Topology == "" {
		return nil
	}
	t, err := nccl.ParseTopology(strings.NewReader(p.Topology))
	if err != nil { // not a topology file of NCCL
		return nil
	}
	return t
}

// LastStateTime is how long the last state of a device or port that cannot be read is served: an alert on it must not
// resolve during the incident. Old counters are not served.
const LastStateTime = 10 * time.Minute
