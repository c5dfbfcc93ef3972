package accel

import "time"

// Trace is what eBPF programs at functions of DMA-BUF and of the RDMA core have seen since they were attached.
type Trace struct {
	// Complete is the time since boot (CLOCK_BOOTTIME) from which no event is missing: of the attachment, or of the last
	// loss.
	Complete time.Duration
	Since    time.Time // the same by the wall clock
	Begun    uint64    // registrations, so far
	Lost     uint64    // events
	// Functions that are observed in addition to those of DMA-BUF.
	Host     bool // registrations of host memory
	Peermem  bool // registrations by a peer memory module
	Events   bool // events of ports and devices
	QPEvents bool // events of queue pairs and completion queues

	Missing []string // what is not observed in this kernel, and why

	Registrations []Registration // present ones, sorted
	Totals        []AsyncTotal   // sorted
	Recent        []AsyncEvent   // of queue pairs and completion queues, the oldest first
}

// Registration sums up the memory that one process has registered with one RDMA device by one mechanism.
type Registration struct {
	PID    int    // in the initial PID namespace; 0: unknown
	Device string // RDMA device; empty: unknown
	// Device that performs the DMA, by its kernel name: the PCI function; empty: unknown.
	Function  string
	Mechanism string // RegisteredDMABUF, RegisteredPeermem, RegisteredHost
	Exporter  string // of a DMA-BUF: dma_buf.exp_name
	Regions   uint64
	Bytes     uint64
}

// Mechanisms of a registration.
const (
	RegisteredDMABUF  = "dmabuf"
	RegisteredPeermem = "peermem"
	RegisteredHost    = "host" // including queues of user space drivers
)

// AsyncTotal is the number of asynchronous events of one kind.
type AsyncTotal struct {
	Device string
	Port   int    // of a port event; 0: none
	Kind   string // enum ib_event_type: qp_fatal
	Count  uint64
}

// AsyncEvent is an asynchronous event of a queue pair or completion queue.
type AsyncEvent struct {
	At     time.Time // when it was read, within a second
	Device string
	Kind   string
	PID    int    // of the process that created the object; 0: unknown
	Job    string // of that process; empty: unknown
}
