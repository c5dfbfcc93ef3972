package check

import (
	"fmt"
	"strings"

	"rdma_exporter/internal/maintenance"
)

// Seen is what a look has seen beside what the alerts tell.
type Seen struct {
	NotExpected []Port `json:"ports_not_expected"` // down, with nothing that says they ought to be up
	// Stack is there where functions on PCI could do RDMA, the kernel's RDMA stack is not loaded, and nothing says whether it is meant to be.
	Stack *Stack `json:"rdma_stack,omitempty"`
	Rates Rates  `json:"rates_unvouched"`
	// Maintenance is there while it is announced for the host.
	Maintenance *maintenance.Notice `json:"maintenance,omitempty"`
}

// Port is a port of an RDMA device.
type Port struct {
	Device string `json:"device"`
	Port   int    `json:"port"`
}

// Stack is an RDMA stack that is not loaded.
type Stack struct {
	State     string   `json:"state"`     // snapshot.StackState
	Functions []string `json:"functions"` // PCI addresses of what could do RDMA
}

// Rates are those of ACTIVE links that neither the configuration nor the far end vouches for.
type Rates struct {
	Ports int `json:"ports"`
	// Capable is the fastest in bits per second that one of the ports could have and has not; 0: none is known to have one.
	Capable float64 `json:"capable_bits_per_second,omitempty"`
}

// Alerts whose evidence the notes are: a report without the alert has no note.
const (
	portDown     = "RDMAPortDown"
	stackMissing = "RDMAStackNotLoaded"
	downshifted  = "RDMALinkDownshifted"
)

// of leaves out what belongs to alerts that are not named.
func (s Seen) of(named func(alert string) bool) Seen {
	if !named(portDown) {
		s.NotExpected = []Port{}
	}
	if !named(stackMissing) {
		s.Stack = nil
	}
	if !named(downshifted) {
		s.Rates = Rates{}
	}
	return s
}

// most is how many things a note names.
const most = 16

// Notes are sentences on what was seen, without a full stop: ports that are down, a stack that is not loaded, rates that nothing vouches for.
func (s *Seen) Notes() (out []string) {
	for _, note := range []string{s.idle(), s.stack(), s.Rates.note()} {
		if note != "" {
			out = append(out, note)
		}
	}
	return out
}

// idle is "2 ports DOWN, not expected to be up: mlx5_8/1, mlx5_9/1".
func (s *Seen) idle() string {
	var names []string
	for _, p := range s.NotExpected {
		names = append(names, fmt.Sprintf("%s/%d", p.Device, p.Port))
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s DOWN, not expected to be up: %s", count(len(names), "port"), listed(names))
}

func (s *Seen) stack() string {
	if s.Stack == nil {
		return ""
	}
	return fmt.Sprintf("The RDMA stack is not loaded, and nothing says whether it is expected (pin the devices to have it evaluated): %s could do RDMA: %s",
		count(len(s.Stack.Functions), "PCI function"), listed(s.Stack.Functions))
}

// note says that links that were slow from the start look well.
func (r Rates) note() string {
	var able string
	if r.Capable > 0 {
		able = fmt.Sprintf("; their NICs could do %.0f Gb/s", r.Capable/1e9)
	}
	switch r.Ports {
	case 0:
		return ""
	case 1:
		return "Nothing outside this host confirms the rate of 1 port, which is compared with its own past" + able
	}
	return fmt.Sprintf("Nothing outside this host confirms the rates of %d ports, which are compared with each other only%s", r.Ports, able)
}

// listed are names, the first of many.
func listed(names []string) string {
	if n := len(names) - most; n > 0 {
		names = append(names[:most:most], fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}
