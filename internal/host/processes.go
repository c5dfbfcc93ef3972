package host

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/snapshot"
)

// Processes tells which processes use RDMA devices.
type Processes interface {
	// Processes looks at what processes hold, for scanTime at most: at those of first, then at the others, with each of which it goes on
	// at the next call. Only says that there are no others to be looked for, which is not believed where one of first cannot be seen. It
	// gives those that hold an RDMA device, or a GPU with NCCL. Their files of settings are waited for a little longer, and are there at
	// the next call if they come late. Other users' processes need CAP_SYS_PTRACE; what is not permitted is left out, and refused says so.
	// A process that is stuck in the kernel may hold up the caller: it calls from a lane.
	Processes(ctx context.Context, first []int, only bool) (found []snapshot.Process, refused bool, err error)
}

// scanTime bounds one look: a link of /proc/PID/fd takes a microsecond.
const scanTime = 100 * time.Millisecond

// processTable is the processes of a tree.
type processTable struct {
	tree  *tree
	now   func() time.Time
	next  int                      // process to go on with
	named int                      // the one of those that are named; 0: the next look begins with the first
	held  map[int]snapshot.Process // those found, by number
	lib   map[int]libraries        // what is mapped does not change once NCCL is
	jobs  jobReader
}

// libraries are what a process has mapped, with the start of the process: numbers are used again.
type libraries struct {
	start                  string
	version                string
	hasNCCL, plugin, mover bool
}

func newProcessTable(t *tree) *processTable {
	return &processTable{tree: t, now: time.Now, held: map[int]snapshot.Process{}, lib: map[int]libraries{}, jobs: newJobReader(t)}
}

func (p *processTable) Processes(ctx context.Context, first []int, only bool) (found []snapshot.Process, refused bool, err error) {
	pids, err := p.pids()
	if err != nil {
		return nil, false, err
	}
	gone := func(pid int) bool {
		_, there := slices.BinarySearch(pids, pid)
		return !there
	}
	maps.DeleteFunc(p.held, func(pid int, _ snapshot.Process) bool { return gone(pid) })
	maps.DeleteFunc(p.lib, func(pid int, _ libraries) bool { return gone(pid) })
	p.jobs.forget(gone)

	only = only && !slices.ContainsFunc(first, gone)
	first = slices.Compact(slices.DeleteFunc(slices.Sorted(slices.Values(first)), gone))
	isNamed := func(pid int) bool {
		_, named := slices.BinarySearch(first, pid)
		return named
	}
	start := p.now()
	due := func() bool { return ctx.Err() == nil && p.now().Sub(start) <= scanTime }
	from, _ := slices.BinarySearch(first, p.named)
	p.named = 0
	for _, pid := range first[from:] {
		if !due() {
			p.named = pid
			break
		}
		refused = p.look(pid) || refused
	}
	if only {
		maps.DeleteFunc(p.held, func(pid int, _ snapshot.Process) bool { return !isNamed(pid) })
	} else {
		others := slices.DeleteFunc(slices.Clone(pids), isNamed)
		from, _ := slices.BinarySearch(others, p.next)
		p.next = 0
		for i := range others {
			pid := others[(from+i)%len(others)]
			if !due() && i > 0 { // one in each look, however many are named
				p.next = pid
				break
			}
			refused = p.look(pid) || refused
		}
	}
	p.jobs.read(ctx)
	found, unread := p.sorted()
	return found, refused || unread, nil
}

// sorted gives those that were found, with what their files say as far as that is read.
func (p *processTable) sorted() (out []snapshot.Process, refused bool) {
	for _, pid := range slices.Sorted(maps.Keys(p.held)) {
		one := p.held[pid]
		if one.HasNCCL {
			files, err := p.jobs.of(pid, p.lib[pid].start)
			refused = refused || denied(err)
			if files != nil {
				one.Conf, one.Topology = files.conf, files.topology
			}
		}
		out = append(out, one)
	}
	return out, refused
}

// look looks at one process, and keeps it if it is one of those that are looked for.
func (p *processTable) look(pid int) (refused bool) {
	one, err := p.holds(pid)
	if len(one.GPUs)+len(one.Verbs) > 0 {
		p.describe(&one)
	}
	if len(one.Verbs) > 0 || len(one.GPUs) > 0 && one.HasNCCL {
		p.held[pid] = one
	} else {
		delete(p.held, pid)
	}
	return denied(err)
}

func denied(err error) bool { return err == unix.EACCES || err == unix.EPERM }

func (p *processTable) pids() ([]int, error) {
	fd, err := p.tree.proc.open(".", unix.O_DIRECTORY)
	if err != nil {
		return nil, &Error{"list", "proc", err}
	}
	defer unix.Close(fd)
	names, err := readNames(fd)
	if err != nil {
		return nil, &Error{"list", "proc", err}
	}
	var out []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out, nil
}
