package collector

import (
	"context"
	"strconv"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

var numaBalancing = &Desc{
	Name: "rdma_kernel_numa_balancing_enabled", Type: gauge, Scope: scopeHost, Asks: host.SourceTuning.Name(),
	Help:   "Whether the kernel moves pages to the NUMA node of the CPU that uses them. It unmaps pages to find out, and faults of the CPU delay the threads that post work requests.",
	Source: "/proc/sys/kernel/numa_balancing, bit 0 (NUMA_BALANCING_NORMAL)",
}

type tuning struct {
	Options
	at   time.Time
	last *snapshot.Tuning
}

func newTuning(o Options) *Collector {
	c := &tuning{Options: o}
	return &Collector{
		Name:    "tuning",
		Help:    "kernel settings that delay RDMA",
		Default: true,
		Descs:   []*Desc{numaBalancing},
		Read:    c.read,
		Emit:    emitTuning,
	}
}

func (c *tuning) read(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error)) {
	if now := h.Now(); c.last == nil || now.Sub(c.at) >= slowInterval {
		r := &reader{ctx: ctx, h: h, since: time.Now()}
		var section *snapshot.Tuning
		if err := h.Lanes.Do(ctx, "tuning", func() {
			r.begin(host.SourceTuning)
			defer r.end()
			section = &snapshot.Tuning{NUMABalancing: r.numaBalancing()}
		}); err != nil {
			done(err)
			return
		}
		c.last, c.at = section, now
		n.Issues = append(n.Issues, r.issues...)
	}
	n.Tuning = c.last
	done(nil)
}

// numaBalancing is nil where the kernel is built without CONFIG_NUMA_BALANCING.
func (r *reader) numaBalancing() *uint64 {
	const file = "proc/sys/kernel/numa_balancing"
	text := r.optional(file)
	if text == "" {
		return nil
	}
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		r.issue(host.ErrGarbled(file, []byte(text)))
		return nil
	}
	return &v
}

func emitTuning(n *snapshot.Node, s Sink) {
	if n.Tuning != nil && n.Tuning.NUMABalancing != nil {
		s.Emit(numaBalancing, float64(*n.Tuning.NUMABalancing&1))
	}
}
