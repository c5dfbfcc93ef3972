package host

import (
	"bytes"
	"context"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/snapshot"
)

// Processes tells which processes use RDMA devices.
type Processes interface {
	// Processes looks at what processes hold, for scanTime at most: it goes on with the others at the next call. Other users' processes
	// need CAP_SYS_PTRACE; what is not permitted is left out, and refused says so. A process that is stuck in the kernel may hold up
	// the caller: it calls from a lane.
	Processes(ctx context.Context) (found []snapshot.Process, refused bool, err error)
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
}

// libraries are what a process has mapped, with the start of the process: numbers are used again.
type libraries struct {
	start           string
	version         string
	hasNCCL, plugin bool
}

func newProcessTable(t *tree) *processTable {
	return &processTable{tree: t, now: time.Now, held: map[int]snapshot.Process{}, lib: map[int]libraries{}}
}

func (p *processTable) Processes(ctx context.Context) (found []snapshot.Process, refused bool, err error) {
	pids, err := p.pids()
	if err != nil {
		return nil, false, err
	}
	for pid := range p.held {
		if _, there := slices.BinarySearch(pids, pid); !there {
			delete(p.held, pid)
			delete(p.lib, pid)
		}
	}
	first, _ := slices.BinarySearch(pids, p.next)
	start := p.now()
	p.next = 0
	for i := range pids {
		pid := pids[(first+i)%len(pids)]
		if ctx.Err() != nil || p.now().Sub(start) > scanTime {
			p.next = pid
			break
		}
		gpus, verbs, err := p.holds(pid)
		if err == unix.EACCES || err == unix.EPERM {
			refused = true
		}
		if len(verbs) == 0 {
			delete(p.held, pid)
			continue
		}
		p.held[pid] = p.describe(pid, gpus, verbs)
	}
	for _, pid := range pids {
		if one, ok := p.held[pid]; ok {
			found = append(found, one)
		}
	}
	return found, refused, nil
}

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

// describe reads more of a process that uses RDMA: its libraries only where it uses GPUs as well.
func (p *processTable) describe(pid int, gpus []int, verbs []string) snapshot.Process {
	dir := "proc/" + strconv.Itoa(pid) + "/"
	out := snapshot.Process{PID: pid, GPUs: gpus, Verbs: verbs}
	read := func(name string) []byte {
		b, err := p.tree.Read(dir+name, nil)
		if err != nil { // it has ended, or is another user's
			return nil
		}
		return b
	}
	out.LockedMemory = lockedMemory(read("limits"))
	out.Env = environment(read("environ"))
	out.Job = jobOf(out.Env, read("cgroup"))
	if len(gpus) == 0 {
		return out
	}
	start := startOf(read("stat"))
	lib, ok := p.lib[pid]
	if !ok || lib.start != start || !lib.hasNCCL {
		lib = libraries{start: start}
		if maps, err := p.tree.Lines(dir+"maps", []string{"libnccl"}); err == nil {
			lib.version, lib.hasNCCL, lib.plugin = mapped(maps)
		}
		p.lib[pid] = lib
	}
	out.NCCL, out.HasNCCL, out.Plugin = lib.version, lib.hasNCCL, lib.plugin
	return out
}

// environment keeps what is about the job: /proc/PID/environ has NAME=VALUE, each with a NUL behind it.
func environment(b []byte) map[string]string {
	out := map[string]string{}
	for entry := range bytes.SplitSeq(b, []byte{0}) {
		name, value, ok := strings.Cut(string(entry), "=")
		if ok && (strings.HasPrefix(name, "NCCL_") || slices.Contains([]string{"SLURM_JOB_ID", "SLURM_JOB_NUM_NODES", "WORLD_SIZE", "LOCAL_WORLD_SIZE"}, name)) {
			out[name] = value
		}
	}
	return out
}

// lockedMemory reads "Max locked memory  67108864  67108864  bytes" of /proc/PID/limits: the soft limit.
func lockedMemory(b []byte) *uint64 {
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "Max locked memory"); ok {
			soft, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			if n, err := strconv.ParseUint(soft, 10, 64); err == nil {
				return &n
			}
		}
	}
	return nil
}

var (
	slurmJob = regexp.MustCompile(`/job_([0-9]+)(?:/|$)`)
	podUID   = regexp.MustCompile(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})`)
)

// jobOf names the job by what its scheduler has left in the environment or in the control group.
func jobOf(env map[string]string, cgroup []byte) string {
	if id := env["SLURM_JOB_ID"]; id != "" {
		return "slurm/" + id
	}
	for line := range strings.Lines(string(cgroup)) {
		line = strings.TrimSpace(line)
		if m := slurmJob.FindStringSubmatch(line); m != nil {
			return "slurm/" + m[1]
		}
		if m := podUID.FindStringSubmatch(line); m != nil {
			return "kubernetes/" + strings.ReplaceAll(m[1], "_", "-")
		}
	}
	return ""
}

// startOf is the field starttime of /proc/PID/stat: the 22nd, or the 20th behind the name in parentheses.
func startOf(b []byte) string {
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

var ncclLibrary = regexp.MustCompile(`^libnccl\.so\.([0-9]+\.[0-9]+\.[0-9]+)$`)

// mapped looks for NCCL and its net plugins in lines of /proc/PID/maps, by their file names.
func mapped(maps []byte) (version string, nccl, plugin bool) {
	for line := range strings.Lines(string(maps)) {
		base := path.Base(strings.TrimSuffix(strings.TrimSpace(line), " (deleted)"))
		switch m := ncclLibrary.FindStringSubmatch(base); {
		case m != nil:
			version, nccl = m[1], true
		case strings.HasPrefix(base, "libnccl.so"):
			nccl = true
		case strings.HasPrefix(base, "libnccl-net"):
			plugin = true
		}
	}
	return version, nccl, plugin
}
