package nccl

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Formats of an answer.
const (
	JSON = "json" // NCCL 2.28.7 and later: every rank
	Text = "text" // ranks with a problem only
)

// Kinds of problems, in NCCL's words.
const (
	Dead       = "DEAD"       // a process: no contact for 60 s, given up
	Incomplete = "INCOMPLETE" // no data from a process or rank
	Failed     = "ERROR"      // initialization error or asynchronous error of a rank
	Mismatch   = "MISMATCH"   // ranks differ in status or operation counts; normal while the counts increase
)

// Limits of an answer.
const (
	maxProblems = 256
	maxMembers  = 64 // of a problem
	maxGroups   = 256
)

// Answer is the state of a job as NCCL reports it.
type Answer struct {
	Format        string    `json:"format"`
	NCCL          string    `json:"nccl_version"`
	CUDARuntime   int       `json:"cuda_runtime_version,omitempty"`
	CUDADriver    int       `json:"cuda_driver_version,omitempty"`
	Nodes         int       `json:"nodes,omitempty"` // 0: not in the answer
	Processes     int       `json:"processes,omitempty"`
	GPUs          int       `json:"gpus,omitempty"`
	Communicators []Group   `json:"communicators"`
	Problems      []Problem `json:"problems"`
	LeftOut       int       `json:"left_out,omitempty"` // problems and groups beyond the limits
	Timeouts      int       `json:"timeouts"`           // of the connections between the job's processes
	Seconds       float64   `json:"seconds"`            // that NCCL has collected data for
	NotUnderstood int       `json:"lines_not_understood,omitempty"`
	Local         []int     `json:"local_pids,omitempty"` // PIDs of the job on this host that are in the answer
	Raw           string    `json:"-" foreign:"parsed"`
	// listed are the processes in the answer; complete: all that have a communicator.
	listed   map[Process]bool
	complete bool
}

// Group is a number of communicators with equal properties.
type Group struct {
	Communicators int `json:"communicators"`
	Nodes         int `json:"nodes"` // with a rank that has answered
	Ranks         int `json:"ranks"` // of each communicator
	// INIT, RUNNING, FINALIZE, ABORT, NOCOMM, UNKNOWN: the last of these that a rank has.
	Status string   `json:"status"`
	Errors []string `json:"errors"` // kinds of problems; empty: OK
}

// Problem is what NCCL reports about some ranks or processes.
type Problem struct {
	Kind         string   `json:"kind"`
	Communicator string   `json:"communicator,omitempty"` // hash
	What         string   `json:"what"`
	Count        int      `json:"count"`
	Members      []Member `json:"members"` // at most 64; fewer than Count where NCCL does not list them
}

// Process is a process of a job.
type Process struct {
	Host string `json:"host,omitempty"` // IP address of NCCL's bootstrap interface; empty: unknown
	PID  int    `json:"pid,omitempty"`  // in the process's own PID namespace; 0: unknown
}

// Member is a rank, or a process of any rank.
type Member struct {
	Rank *int   `json:"rank,omitempty"` // nil: a process
	GPU  string `json:"gpu,omitempty"`  // CUDA devices: 5, 5 (NVML 1), 0,1
	Process
}

// Local identifies the job on this host.
type Local struct {
	PIDs      []int        // of its processes, each in its own PID namespace; empty: unknown
	Addresses []netip.Addr // of this host; empty: unknown
}

// ErrForeign is an answer of another job: jobs of one user share the port.
var ErrForeign = errors.New("the answer is that of another job")

// check sets Local. It returns ErrForeign if the answer lists processes of this host, and none of them is of the job,
// or if it lists all processes, and none of them is on this host.
func (a *Answer) check(job Local) error {
	if len(job.PIDs) == 0 || len(a.listed) == 0 {
		return nil
	}
	var here []int
	for p := range a.listed {
		if p.PID > 0 && (len(job.Addresses) == 0 || slices.Contains(job.Addresses, parseAddress(p.Host))) {
			here = append(here, p.PID)
		}
	}
	slices.Sort(here)
	here = slices.Compact(here)
	for _, pid := range here {
		if slices.Contains(job.PIDs, pid) {
			a.Local = append(a.Local, pid)
		}
	}
	if len(a.Local) > 0 || len(here) == 0 && !a.complete {
		return nil
	}
	return fmt.Errorf("%w: its processes on this host are %s, this job's are %s", ErrForeign, pids(here), pids(job.PIDs))
}

func parseAddress(text string) netip.Addr {
	a, _ := netip.ParseAddr(text)
	return a.Unmap().WithZone("")
}

// pids lists the first PIDs.
func pids(all []int) string {
	const shown = 8
	if len(all) == 0 {
		return "none"
	}
	var out []string
	for _, p := range all[:min(shown, len(all))] {
		out = append(out, fmt.Sprint(p))
	}
	if len(all) > shown {
		out = append(out, "…")
	}
	return strings.Join(out, ", ")
}

// host returns an address in an answer in its usual form; empty if the text is not an address.
func host(text string) string {
	a := parseAddress(text)
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func (a *Answer) list(p Process) {
	if p.PID > 0 {
		a.listed[p] = true
	}
}

// add adds a problem with its members, as far as there is room for them.
func (p *Problem) add(members ...Member) {
	room := max(0, maxMembers-len(p.Members))
	p.Members = append(p.Members, members[:min(room, len(members))]...)
}

// severity orders kinds, the worst first.
var severity = []string{Dead, Failed, Incomplete, Mismatch}

// finish sorts the problems, the worst first, and applies the limits.
func (a *Answer) finish() {
	slices.SortStableFunc(a.Problems, func(x, y Problem) int {
		return cmp.Compare(slices.Index(severity, x.Kind), slices.Index(severity, y.Kind))
	})
	a.LeftOut = max(0, len(a.Problems)-maxProblems) + max(0, len(a.Communicators)-maxGroups)
	a.Problems = a.Problems[:min(maxProblems, len(a.Problems))]
	a.Communicators = a.Communicators[:min(maxGroups, len(a.Communicators))]
}

// groups counts communicators by their properties.
type groups map[groupKey]int

type groupKey struct {
	nodes, ranks int
	status       string
	errors       string // separated by commas
}

// sorted lists the groups, that of the largest communicators first.
func (g groups) sorted() []Group {
	out := []Group{}
	for k, n := range g {
		out = append(
			out,
			Group{Communicators: n, Nodes: k.nodes, Ranks: k.ranks, Status: k.status, Errors: splitKinds(k.errors)},
		)
	}
	slices.SortFunc(out, func(x, y Group) int {
		return cmp.Or(cmp.Compare(y.Ranks, x.Ranks), cmp.Compare(y.Nodes, x.Nodes), cmp.Compare(x.Status, y.Status),
			slices.Compare(x.Errors, y.Errors))
	})
	return out
}

// splitKinds splits the errors of a communicator.
func splitKinds(text string) []string {
	if text == "" || text == "OK" {
		return []string{}
	}
	return strings.Split(text, ",")
}
