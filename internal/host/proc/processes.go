// Package proc finds who uses devices: processes, pods, launchers; and the services that read for this process, the
// helper and systemd-networkd.
package proc

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/snapshot/accel"
)

// scanTime limits one scan: a link of /proc/PID/fd takes a microsecond.
const scanTime = 100 * time.Millisecond

// processTable is the processes of a tree.
type processTable struct {
	Tree  *rooted.Tree
	now   func() time.Time
	next  int                   // process to continue with
	named int                   // next of those in first; 0: the next scan begins with the first
	held  map[int]accel.Process // found processes, by PID
	lib   map[int]libraries
	jobs  jobReader
	names bool // with the names of jobs and users
	// groups are those of nodeGroups.
	groups []uint32

	// Of a scan: its start, the network namespace of process 1, and by number the netdevs of the others and the
	// connections in all.
	begun       time.Time
	hostNetwork string
	netdevs     map[string]string
	connections map[string]map[uint64]connection
}

// NewProcessTable returns the processes of a tree, with the names of jobs and users if names is set.
func NewProcessTable(t *rooted.Tree, names bool) *processTable {
	return &processTable{
		Tree: t, now: time.Now, held: map[int]accel.Process{}, lib: map[int]libraries{},
		jobs: newJobReader(t), names: names,
	}
}

func (p *processTable) Processes(
	ctx context.Context, first []int, only bool,
) (found []accel.Process, refused bool, err error) {
	p.groups = nodeGroups(p.Tree)
	return p.find(ctx, first, only)
}

func (p *processTable) find(
	ctx context.Context, first []int, only bool,
) (found []accel.Process, refused bool, err error) {
	pids, err := p.Tree.Pids()
	if err != nil {
		return nil, false, err
	}
	gone := func(pid int) bool {
		_, there := slices.BinarySearch(pids, pid)
		return !there
	}
	maps.DeleteFunc(p.held, func(pid int, _ accel.Process) bool { return gone(pid) })
	maps.DeleteFunc(p.lib, func(pid int, _ libraries) bool { return gone(pid) })
	p.jobs.forget(gone)

	only = only && !slices.ContainsFunc(first, gone)
	first = slices.Compact(slices.DeleteFunc(slices.Sorted(slices.Values(first)), gone))
	isNamed := func(pid int) bool {
		_, named := slices.BinarySearch(first, pid)
		return named
	}
	start := p.now()
	p.begun = start
	p.hostNetwork, p.netdevs, p.connections = networkOf(p.Tree, "1"), map[string]string{},
		map[string]map[uint64]connection{}
	due := func() bool { return ctx.Err() == nil && p.now().Sub(start) <= scanTime }
	from, _ := slices.BinarySearch(first, p.named)
	p.named = 0
	for _, pid := range first[from:] {
		if !due() {
			p.named = pid
			break
		}
		refused = p.scan(pid, true) || refused
	}
	if only {
		maps.DeleteFunc(p.held, func(pid int, _ accel.Process) bool { return !isNamed(pid) })
	} else {
		others := slices.DeleteFunc(slices.Clone(pids), isNamed)
		from, _ := slices.BinarySearch(others, p.next)
		p.next = 0
		for i := range others {
			pid := others[(from+i)%len(others)]
			if !due() && i > 0 { // one per scan, however many are in first
				p.next = pid
				break
			}
			refused = p.scan(pid, false) || refused
		}
	}
	p.jobs.read(ctx)
	found, unread := p.sorted()
	return found, refused || unread, nil
}

// sorted returns the found processes, with their files as far as they have been read.
func (p *processTable) sorted() (out []accel.Process, refused bool) {
	for _, pid := range slices.Sorted(maps.Keys(p.held)) {
		one := p.held[pid]
		if len(one.Libraries) > 0 {
			files, nodes, err := p.jobs.of(pid, p.lib[pid].start)
			one.RDMANodes, one.IMEXChannels = nodes.rdma, nodes.imex
			refused = refused || denied(err)
			if files != nil && one.HasNCCL {
				one.Conf, one.Topology = files.conf, files.topology
			}
		}
		out = append(out, one)
	}
	return out, refused
}

// scan checks one process, and keeps it if it uses a device. It reports whether access was denied. A named process is
// kept then too: its name and control group are readable.
func (p *processTable) scan(pid int, named bool) (refused bool) {
	one, err := p.holds(pid)
	if named && denied(err) {
		one.Hidden = true
		p.describe(&one)
		p.held[pid] = one
		return true
	}
	if len(one.GPUs)+len(one.Verbs) > 0 {
		p.describe(&one)
	}
	if len(one.Verbs) > 0 || len(one.GPUs) > 0 && len(one.Libraries) > 0 {
		p.held[pid] = one
	} else {
		delete(p.held, pid)
	}
	return denied(err)
}

func denied(err error) bool { return err == unix.EACCES || err == unix.EPERM }
