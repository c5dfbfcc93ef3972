package web

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host/own"
)

// process is the exporter's own go_* and process_* metrics. The latter are those of client_golang's process collector,
// with a third of its system calls.
type process struct {
	golang prometheus.Gatherer
	mu     sync.Mutex
	sink   *exposition.Sink
	buf    []byte
}

// processDescs are sorted by name.
var processDescs = []*exposition.Desc{
	{Name: "process_cpu_seconds_total", Type: exposition.Counter, Help: "Total user and system CPU time spent in seconds."},
	{Name: "process_max_fds", Help: "Maximum number of open file descriptors."},
	{Name: "process_network_receive_bytes_total", Type: exposition.Counter, Help: "Number of bytes received by the process over the network."},
	{Name: "process_network_transmit_bytes_total", Type: exposition.Counter, Help: "Number of bytes sent by the process over the network."},
	{Name: "process_open_fds", Help: "Number of open file descriptors."},
	{Name: "process_resident_memory_bytes", Help: "Resident memory size in bytes."},
	{Name: "process_start_time_seconds", Help: "Start time of the process since unix epoch in seconds."},
	{Name: "process_virtual_memory_bytes", Help: "Virtual memory size in bytes."},
	{Name: "process_virtual_memory_max_bytes", Help: "Maximum amount of virtual memory available in bytes."},
}

func newProcess() *process {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector())
	return &process{golang: r, sink: exposition.NewSink(processDescs), buf: make([]byte, 16<<10)}
}

// families returns the process_* metrics, sorted by name.
func (p *process) families() []exposition.Family {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sink.Begin()
	own.ReadSelf(p.buf, func(metric string, value float64) {
		for _, d := range processDescs {
			if d.Name == metric {
				p.sink.Emit(d, value)
			}
		}
	})
	return p.sink.End()
}
