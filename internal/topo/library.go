package topo

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/snapshot/accel"
)

// Library is a communication library of a process, with the transports to other hosts that it can use.
type Library struct {
	Library  string             `json:"library"`
	InUse    string             `json:"transport"`
	Reason   string             `json:"reason"`
	Words    string             `json:"explanation"`
	Remedy   string             `json:"remedy,omitempty"`
	Possible []LibraryTransport `json:"transports"` // the best first
}

// LibraryTransport is whether a library can use a transport.
type LibraryTransport struct {
	Transport string `json:"transport"`
	Possible  string `json:"possible"` // yes, no, unknown
	Reason    string `json:"reason,omitempty"`
}

// librariesOf returns the libraries of a process.
func librariesOf(d *accel.GDR, p *accel.Process) (out []Library) {
	for i := range d.Libraries {
		l := &d.Libraries[i]
		if l.Process.PID != p.PID {
			continue
		}
		one := Library{Library: l.Library, InUse: l.InUse, Reason: l.Reason, Words: l.Words, Remedy: l.Remedy}
		for _, t := range l.Possible {
			one.Possible = append(one.Possible, LibraryTransport(t))
		}
		out = append(out, one)
	}
	return out
}

// possible lists the transports that can be used, and those of which it is unknown.
func (l *Library) possible() string {
	var out []string
	for _, t := range l.Possible {
		switch t.Possible {
		case "yes":
			out = append(out, t.Transport)
		case "unknown":
			out = append(out, t.Transport+"?")
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// libraryGroup is processes of a job whose libraries have one result.
type libraryGroup struct {
	names, command, job string
	library             Library
	processes           []string
}

// groupLibraries returns the results in the order of the processes, but for those of NCCL that are in the data path of
// a GPU.
func (m *Machine) groupLibraries() (all []libraryGroup) {
	for i := range m.Processes {
		p := &m.Processes[i]
		var own []libraryGroup
		for _, l := range p.Libraries {
			if slices.ContainsFunc(m.GPUs, func(g GPU) bool {
				return g.Transport != nil && g.Transport.PID == p.PID && g.Transport.Reason == l.Reason
			}) {
				continue
			}
			k := slices.IndexFunc(own, func(g libraryGroup) bool { return g.library.same(&l) })
			if k >= 0 {
				own[k].names += ", " + l.Library
				continue
			}
			own = append(own, libraryGroup{l.Library, p.Command, p.Job, l, []string{strconv.Itoa(p.PID)}})
		}
		for _, one := range own {
			k := slices.IndexFunc(all, func(g libraryGroup) bool {
				return g.names == one.names && g.command == one.command && g.job == one.job && g.library.same(&one.library)
			})
			if k < 0 {
				all = append(all, one)
				continue
			}
			all[k].processes = append(all[k].processes, one.processes...)
		}
	}
	return all
}

// same reports whether two libraries have one result.
func (l *Library) same(o *Library) bool {
	return l.InUse == o.InUse && l.Reason == o.Reason && l.possible() == o.possible()
}

// writeLibraries writes the results.
func (m *Machine) writeLibraries(w io.Writer) {
	for i, g := range m.groupLibraries() {
		if i == 0 {
			fmt.Fprint(w, "\nLibraries of running jobs\n")
		}
		l := &g.library
		fmt.Fprintf(w, "  %s: %s, possible: %s\n    %s (%s)\n    Process: %s\n", g.names, l.InUse, l.possible(), l.Words,
			l.Reason, strings.TrimRight(strings.TrimSpace(g.command+" "+strings.Join(g.processes, ", "))+", "+g.job, ", "))
		if l.Remedy != "" {
			fmt.Fprintf(w, "    Action: %s\n", l.Remedy)
		}
	}
}
