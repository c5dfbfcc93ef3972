package kernellog

import (
	"time"

	"rdma_exporter/internal/lazy"
)

// Joiner recognises lines, and those whose meaning is in the lines that follow: a task that is stuck is a fault of an
// RDMA device if a function of its driver is on the stack, and a report of the host's firmware is one event. The zero
// Joiner is ready.
type Joiner struct {
	begun Event
	at    time.Duration
	open  bool
	rest  int

	firmware firmwareReport
}

const (
	stackLines = 120             // of a report: registers, modules and stacks of several CPUs
	stackTime  = 5 * time.Second // in which a report is printed
)

// frame is a function of a module in a stack (kernel/kallsyms.c, sprint_symbol).
var frame = lazy.Regexp(`\+0x[0-9a-f]+/0x[0-9a-f]+ \[(\w+)(?: [0-9a-f]+)?\]`)

// rdmaModules are the modules whose functions on a stack make a report one of an RDMA device or a GPU.
var rdmaModules = of("mlx5_core", "mlx5_ib", "mlx4_core", "mlx4_ib", "mlx4_en", "bnxt_en", "bnxt_re", "ice", "irdma",
	"i40e", "ionic", "ionic_rdma", "hns3", "hns_roce_hw_v2",
	"efa", "ib_core", "ib_uverbs", "ib_cm", "iw_cm", "rdma_cm", "rdma_ucm", "ib_umad", "ib_ipoib", "ib_iser", "ib_srp",
	"nvme_rdma", "nvidia_peermem", "nv_peer_mem", "nvidia_fs", "rdma_rxe")

var stuck = map[Kind]bool{SoftLockup: true, HungTask: true, RCUStall: true}

// Line takes the next line of the log, printed at a time since boot.
func (j *Joiner) Line(at time.Duration, line string) (Event, bool) {
	e, ok := Parse(line)
	if e, ok, mine := j.firmware.line(at, line, e, ok); mine {
		return e, ok
	}
	if ok && stuck[e.Kind] {
		j.begun, j.at, j.open, j.rest = e, at, true, stackLines
		return Event{}, false
	}
	if ok || !j.open {
		return e, ok
	}
	if j.rest--; j.rest < 0 || at-j.at > stackTime {
		j.open = false
		return Event{}, false
	}
	m := frame().FindStringSubmatch(line)
	if m == nil || !rdmaModules[m[1]] {
		return Event{}, false
	}
	j.open = false
	e = j.begun
	e.Driver = m[1]
	return e, true
}

// Flush returns the report whose last line has not come: at the end of the log.
func (j *Joiner) Flush() (Event, bool) { return j.firmware.release() }
