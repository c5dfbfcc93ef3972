package topo

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/words"
)

// Observation holds the registered memory and the asynchronous events that eBPF programs observed.
type Observation struct {
	Since         time.Time      `json:"since"` // complete from then on
	Lost          uint64         `json:"lost_events"`
	Missing       []string       `json:"not_observed,omitempty"` // not observable in this kernel, with the reason
	Registrations []Registration `json:"registrations"`
	Events        []Event        `json:"queue_events,omitempty"` // the last ones, the oldest first
}

// Registration is the total memory that a process has registered with an RDMA device by one mechanism.
type Registration struct {
	Device    string `json:"device,omitempty"` // empty: unknown
	GPU       string `json:"gpu,omitempty"`    // index of the GPU that the process holds, if it holds one only
	Mechanism string `json:"mechanism"`        // dmabuf, peermem, dmabuf_host, dmabuf_other, host
	PID       int    `json:"pid,omitempty"`
	Job       string `json:"job,omitempty"`
	Regions   uint64 `json:"memory_regions"`
	Bytes     uint64 `json:"bytes"`
}

// Event is an asynchronous event of a queue pair or completion queue.
type Event struct {
	At     time.Time `json:"at"`
	Device string    `json:"device"`
	Kind   string    `json:"event"`
	PID    int       `json:"pid,omitempty"`
	Job    string    `json:"job,omitempty"`
}

// addObservation adds the observation of the eBPF programs.
func (m *Machine) addObservation(d *accel.GDR) {
	t := d.Trace
	if t == nil {
		return
	}
	o := &Observation{Since: t.Since, Lost: t.Lost, Missing: t.Missing, Registrations: []Registration{}}
	for _, r := range d.Registered {
		o.Registrations = append(o.Registrations,
			Registration{r.Device, r.GPU, r.Mechanism, r.PID, r.Job, r.Regions, r.Bytes})
	}
	for _, e := range t.Recent {
		o.Events = append(o.Events, Event{e.At, e.Device, e.Kind, e.PID, e.Job})
	}
	m.Observation = o
}

const (
	processesShown = 32
	eventsShown    = 8
)

// writeRegistrations writes the memory that processes have registered, and the last events of their queues.
func (m *Machine) writeRegistrations(w io.Writer) {
	o := m.Observation
	if o == nil {
		return
	}
	lost := ""
	if o.Lost > 0 {
		lost = fmt.Sprintf(", %d events lost before", o.Lost)
	}
	fmt.Fprintf(w, "\nMemory registered with RDMA devices, observed by eBPF since %s%s:\n",
		o.Since.UTC().Format("2006-01-02 15:04:05 UTC"), lost)
	if len(o.Registrations) == 0 {
		fmt.Fprintln(w, "  none")
	}
	left := processesShown
	for rest := o.Registrations; len(rest) > 0; left-- {
		if left == 0 {
			fmt.Fprintf(w, "  and %s more, all with --json\n", words.Count(len(rest), "registration"))
			break
		}
		n := 1
		for n < len(rest) && rest[n].PID == rest[0].PID {
			n++
		}
		fmt.Fprintf(w, "  %s: %s\n", m.describeProcess(rest[0].PID, rest[0].Job), describeRegistrations(rest[:n]))
		rest = rest[n:]
	}
	for _, e := range o.Events[max(0, len(o.Events)-eventsShown):] {
		fmt.Fprintf(w, "  %s: %s on %s, %s\n",
			m.describeProcess(e.PID, e.Job), e.Kind, cmp.Or(e.Device, "unknown device"),
			e.At.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
}

// describeRegistrations formats sums of registered memory: "mlx5_0 dmabuf 192 MiB, host 22 MiB; mlx5_1 host 4 MiB".
func describeRegistrations(regions []Registration) string {
	var b strings.Builder
	for i, r := range regions {
		device := cmp.Or(r.Device, "unknown device")
		switch {
		case i == 0:
			b.WriteString(device + " ")
		case r.Device != regions[i-1].Device:
			b.WriteString("; " + device + " ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(r.Mechanism + " " + formatMebibytes(r.Bytes))
	}
	return b.String()
}

// describeProcess returns the PID of a process with its command, if known, and its job.
func (m *Machine) describeProcess(pid int, job string) string {
	if pid == 0 {
		return "unknown process"
	}
	name := strings.TrimSpace(m.findProcess(pid).Command + " " + strconv.Itoa(pid))
	if job != "" {
		name += ", " + job
	}
	return name
}
