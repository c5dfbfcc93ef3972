package host

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/snapshot"
)

// Processes tells which processes use RDMA devices.
type Processes interface {
	// Processes looks at what processes hold, for scanTime at most: at those of first, then at the others, with which it goes on at the
	// next call. Only says that there are no others to be looked for, which is not believed where one of first cannot be seen. It gives those that hold an RDMA device, or a GPU with NCCL. Other users' processes need CAP_SYS_PTRACE; what is not
	// permitted is left out, and refused says so. A process that is stuck in the kernel may hold up the caller: it calls from a lane.
	Processes(ctx context.Context, first []int, only bool) (found []snapshot.Process, refused bool, err error)
}

// scanTime bounds one look: a link of /proc/PID/fd takes a microsecond.
const scanTime = 100 * time.Millisecond

// processTable is the processes of a tree.
type processTable struct {
	tree *tree
	now  func() time.Time
	next int                      // process to go on with
	held map[int]snapshot.Process // those found, by number
	lib  map[int]libraries        // what is mapped does not change once NCCL is
	// lanes has one for files of jobs, which may be on a file server that is away.
	lanes *Lanes
}

// libraries are what a process has mapped, with the start of the process: numbers are used again.
type libraries struct {
	start                  string
	version                string
	hasNCCL, plugin, mover bool
	files                  *jobFiles // NCCL reads them once; nil: not read
}

func newProcessTable(t *tree) *processTable {
	return &processTable{tree: t, now: time.Now, held: map[int]snapshot.Process{}, lib: map[int]libraries{}, lanes: NewLanes()}
}

func (p *processTable) Processes(ctx context.Context, first []int, only bool) (found []snapshot.Process, refused bool, err error) {
	pids, err := p.pids()
	if err != nil {
		return nil, false, err
	}
	for pid := range p.held {
		if _, there := slices.BinarySearch(pids, pid); !there {
			delete(p.held, pid)
		}
	}
	for pid := range p.lib {
		if _, there := slices.BinarySearch(pids, pid); !there {
			delete(p.lib, pid)
		}
	}
	start := p.now()
	due := func() bool { return ctx.Err() == nil && p.now().Sub(start) <= scanTime }
	for _, pid := range first {
		_, there := slices.BinarySearch(pids, pid)
		only = only && there
		if there && due() {
			refused = p.look(ctx, pid) || refused
		}
	}
	if only {
		maps.DeleteFunc(p.held, func(pid int, _ snapshot.Process) bool { return !slices.Contains(first, pid) })
		return p.sorted(), refused, nil
	}
	from, _ := slices.BinarySearch(pids, p.next)
	p.next = 0
	for i := range pids {
		pid := pids[(from+i)%len(pids)]
		if !due() {
			p.next = pid
			break
		}
		if !slices.Contains(first, pid) {
			refused = p.look(ctx, pid) || refused
		}
	}
	return p.sorted(), refused, nil
}

func (p *processTable) sorted() (out []snapshot.Process) {
	for _, pid := range slices.Sorted(maps.Keys(p.held)) {
		out = append(out, p.held[pid])
	}
	return out
}

// look looks at one process, and keeps it if it is one of those that are looked for.
func (p *processTable) look(ctx context.Context, pid int) (refused bool) {
	gpus, verbs, err := p.holds(pid)
	one := snapshot.Process{PID: pid, GPUs: gpus, Verbs: verbs}
	if len(gpus)+len(verbs) > 0 {
		refused = p.describe(ctx, &one)
	}
	if len(verbs) > 0 || len(gpus) > 0 && one.HasNCCL {
		p.held[pid] = one
	} else {
		delete(p.held, pid)
	}
	return refused || denied(err)
}

func denied(err error) bool { return err == unix.EACCES || err == unix.EPERM }

func (p *processTable) pids() ([]int, error) {
	names, err := p.names("proc/")
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

// names lists a directory without keeping anything of it.
func (p *processTable) names(dir string) ([]string, error) {
	r, rel := p.tree.at(dir)
	if rel == "" {
		rel = "."
	}
	fd, err := r.open(rel, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return readNames(fd)
}

// holds finds the GPUs and RDMA devices among what a process has open.
func (p *processTable) holds(pid int) (gpus []int, verbs []string, err error) {
	r, rel := p.tree.at("proc/" + strconv.Itoa(pid) + "/fd")
	fd, err := r.open(rel, unix.O_DIRECTORY)
	if err != nil {
		return nil, nil, err
	}
	defer unix.Close(fd)
	names, err := readNames(fd)
	if err != nil {
		return nil, nil, err
	}
	buf := make([]byte, 128)
	for _, name := range names {
		n, err := unix.Readlinkat(fd, name, buf)
		if err != nil || n < 5 || buf[1] != 'd' { // most are sockets, pipes and files
			continue
		}
		target := string(buf[:n])
		if rest, ok := strings.CutPrefix(target, "/dev/infiniband/uverbs"); ok {
			if _, err := strconv.Atoi(rest); err == nil && !slices.Contains(verbs, "uverbs"+rest) {
				verbs = append(verbs, "uverbs"+rest)
			}
		} else if rest, ok := strings.CutPrefix(target, "/dev/nvidia"); ok {
			if minor, err := strconv.Atoi(rest); err == nil && !slices.Contains(gpus, minor) {
				gpus = append(gpus, minor)
			}
		}
	}
	slices.Sort(gpus)
	slices.Sort(verbs)
	return gpus, verbs, nil
}

// describe reads more of a process: its libraries only where it uses GPUs, and its files of settings where NCCL is among them.
func (p *processTable) describe(ctx context.Context, out *snapshot.Process) (refused bool) {
	dir := "proc/" + strconv.Itoa(out.PID) + "/"
	read := func(name string) []byte {
		b, err := p.tree.Read(dir+name, nil)
		if err != nil { // it has ended, or is another user's
			return nil
		}
		return b
	}
	environ, stat := read("environ"), read("stat")
	out.Command = commandOf(stat)
	out.LockedMemory = lockedMemory(read("limits"))
	out.Env = environment(environ)
	out.Job = jobOf(out.Env, read("cgroup"))
	if len(out.GPUs) == 0 {
		return false
	}
	start := startOf(stat)
	lib, ok := p.lib[out.PID]
	if !ok || lib.start != start || !lib.hasNCCL {
		lib = libraries{start: start}
		if maps, err := p.tree.Lines(dir+"maps", mappedWords); err == nil {
			lib.version, lib.hasNCCL, lib.plugin, lib.mover = mapped(maps)
		}
	}
	if lib.hasNCCL && lib.files == nil {
		var err error
		lib.files, err = p.jobFiles(ctx, out.PID, out.Env, uidOf(read("status")), variable(environ, "HOME"))
		refused = denied(err)
	}
	p.lib[out.PID] = lib
	out.NCCL, out.HasNCCL, out.Plugin, out.Mover = lib.version, lib.hasNCCL, lib.plugin, lib.mover
	if lib.files != nil {
		out.Conf, out.Topology = lib.files.conf, lib.files.topology
	}
	return refused
}
