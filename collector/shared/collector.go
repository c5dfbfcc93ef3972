// Package shared is what the domains of collector have in common: the form of a collector, the devices of a round, and
// what one domain provides to others.
package shared

import (
	"context"
	"regexp"
	"time"

	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/peers"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
)

// Collector measures one domain. Read is called by one goroutine at a time; Emit is pure.
type Collector struct {
	Name  string // label value and flag name
	Help  string // one line for --help
	Descs []*metric.Desc
	// Run, if set, covers events and reads between the rounds of a long-running program, until ctx ends. It is started
	// again after an error; nil means that there is nothing to run.
	Run func(ctx context.Context, h *host.Host) error
	// Read fills its own section of the node and calls done once: with the complete section, or with the available part
	// when ctx ends. A failed item becomes an Issue and costs its own sample; an error means that there is no section. A
	// read that hangs in the kernel blocks Read, but not done.
	Read readFunc
	Emit func(*snapshot.Node, metric.Sink)
	// Derive, if set, adds to the complete node what follows from the sections of several collectors, and emits it. It is
	// called by several goroutines.
	Derive func(*snapshot.Node, metric.Sink)
}

// Options are what all collectors share.
type Options struct {
	Include *regexp.Regexp // devices to read; nil: all
	Exclude *regexp.Regexp // devices never to open; nil: none
	// Site is the site configuration at present, queried in each round. Nil: none.
	Site     *site.Store
	Hostname string // of the machine, for Site; empty if unknown
	// SampleInterval is the interval of PFC samples on ports that are being paused; 0 disables.
	SampleInterval time.Duration
	// ModuleInterval is the interval at which Run reads transceivers; 0: Read reads them, in a program that runs once.
	ModuleInterval time.Duration
	// NCCL is the job for which GPUDirect RDMA is evaluated.
	NCCL gdr.Job
	// GPUInterval is the interval of GPU reads in the background; 0: one in each round.
	GPUInterval time.Duration
	GPUFull     bool // all GPU metrics, not only those of NVLinks, PCIe and faults
	// Bufinfo permits a read of the host's DMA-BUF list if a GPU is suspected of staging. It blocks jobs briefly.
	Bufinfo bool
	// EBPF permits Run to observe registrations of memory, and queue pairs, by eBPF programs.
	EBPF EBPF
	// AskSubnet permits subnet management datagrams to both ends of InfiniBand links. Requires privileges.
	AskSubnet bool
	// MADCounters permits performance management datagrams to the host's own InfiniBand ports.
	MADCounters MADCounters
	// ListenLLDP permits Run to receive LLDP frames, for which it joins multicast groups on the NICs.
	ListenLLDP bool
	// Memory outlives the collectors; nil: an empty one.
	Memory *expect.Memory
	// Peers outlives the collectors; nil: an empty one.
	Peers *peers.Table
	// PartMetrics returns the metrics that are read of virtual functions and subfunctions beside their physical function;
	// nil: all.
	PartMetrics func() map[string]bool
	// MaxDevices is the maximum number of devices to read; 0: no limit.
	MaxDevices int
}

// readFunc is Collector.Read.
type readFunc = func(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error))

// ReadDevices returns the Read of a collector that only reads each device. fresh is Devices.New.
func ReadDevices[S, T any](
	ro *Roster, name string, fresh func() *S,
	read func(*reading.Reader, *reading.Device, *S) (T, bool), use func(*snapshot.Node, []T),
) readFunc {
	devices := reading.Devices[S, T]{Collector: name, Quarantines: true, New: fresh}
	return ro.Read(func(
		ctx context.Context, h *host.Host, n *snapshot.Node, roster *reading.Roster, done func(error),
	) {
		devices.ReadAll(ctx, h, n, roster, read, func(out []T) { use(n, out) }, done)
	})
}

// ReadHost returns the Read of a collector that reads data of the host each SlowInterval, one at a time.
func ReadHost[T any](name string, s source.Source, read func(reading.Reads) T, use func(*snapshot.Node, T)) readFunc {
	var last reading.Kept[T]
	return func(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error)) {
		if now := h.Now(); last.Due(now, SlowInterval) {
			var v T
			issues, err := reading.OfHost(ctx, h, name, s, func(r reading.Reads) { v = read(r) })
			if err != nil {
				done(err)
				return
			}
			last.Keep(v, now)
			n.Issues = append(n.Issues, issues...)
		}
		use(n, last.Value)
		done(nil)
	}
}

// SlowInterval is how long data is kept that changes only with a link or a configuration: identity, GID and P_Key
// tables, the netdev of a port, link modes.
const SlowInterval = time.Minute

// EBPF is whether registrations of memory are observed by eBPF programs.
type EBPF string

// The modes.
const (
	EBPFAuto EBPF = "auto" // with CAP_BPF and CAP_PERFMON
	EBPFOn   EBPF = "on"   // a failure for lack of them is reported
	EBPFOff  EBPF = "off"
)

// MADCounters selects whether the counters of InfiniBand ports are read by management datagrams.
type MADCounters int

// The values.
const (
	CountersOfFiles MADCounters = iota // ports/N/counters only
	CountersByMAD                      // agents of the host's own ports; a failure is reported
	// The same; files without a report where the agent does not answer or is not permitted.
	CountersIfPermitted
	CountersRecorded // as recorded; files where no datagram was recorded
)

// SettingsRetention is the same for pause and FEC, read each SlowInterval.
const SettingsRetention = 3 * SlowInterval
