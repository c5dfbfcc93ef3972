package snapshot

import "time"

// Trace is what eBPF programs at functions of DMA-BUF and of the RDMA core have seen since they were attached.
type Trace struct {
	// Complete is the time since boot (CLOCK_BOOTTIME) from which no event is missing: of the attachment, or of the last
	// loss.
	Complete time.Duration `capture:"complete"`
	Since    time.Time     `capture:"age"`   // the same by the wall clock
	Begun    uint64        `capture:"begun"` // registrations, so far
	Lost     uint64        `capture:"lost"`  // events
	// Functions that are observed in addition to those of DMA-BUF.
	Host     bool `capture:"observes,set=host"`      // registrations of host memory
	Peermem  bool `capture:"observes,set=peermem"`   // registrations by a peer memory module
	Events   bool `capture:"observes,set=events"`    // events of ports and devices
	QPEvents bool `capture:"observes,set=qp_events"` // events of queue pairs and completion queues

	Missing []string `capture:"missing,each"` // what is not observed in this kernel, and why

	Registrations []Registration `capture:"registration"` // present ones, sorted
	Totals        []AsyncTotal   `capture:"events"`       // sorted
	Recent        []AsyncEvent   `capture:"event"`        // of queue pairs and completion queues, the oldest first
}

// Registration sums up the memory that one process has registered with one RDMA device by one mechanism.
type Registration struct {
	PID    int    `capture:"pid"`    // in the initial PID namespace; 0: unknown
	Device string `capture:"device"` // RDMA device; empty: unknown
	// Device that performs the DMA, by its kernel name: the PCI function; empty: unknown.
	Function  string `capture:"function"`
	Mechanism string `capture:"mechanism"` // RegisteredDMABUF, RegisteredPeermem, RegisteredHost
	Exporter  string `capture:"exporter"`  // of a DMA-BUF: dma_buf.exp_name
	Regions   uint64 `capture:"regions"`
	Bytes     uint64 `capture:"bytes"`
}

// Mechanisms of a registration.
const (
	RegisteredDMABUF  = "dmabuf"
	RegisteredPeermem = "peermem"
	RegisteredHost    = "host" // including queues of user space drivers
)

// AsyncTotal is the number of asynchronous events of one kind.
type AsyncTotal struct {
	Device string `capture:"device"`
	Port   int    `capture:"port"` // of a port event; 0: none
	Kind   string `capture:"kind"` // enum ib_event_type: qp_fatal
	Count  uint64 `capture:"count"`
}

// AsyncEvent is an asynchronous event of a queue pair or completion queue.
type AsyncEvent struct {
	At     time.Time `capture:"age"` // when it was read, within a second
	Device string    `capture:"device"`
	Kind   string    `capture:"kind"`
	PID    int       `capture:"pid"` // of the process that created the object; 0: unknown
	Job    string    // of that process; empty: unknown
}
