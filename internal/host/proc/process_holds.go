package proc

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/snapshot/accel"
)

// maxOpenFiles limits the open files that are checked per process and scan. The kernel's own limit is half a million;
// ranks of a job have some hundred.
const maxOpenFiles = 4096

// eachFile visits the open files of a process: the name of the descriptor, and what it links to, which the next one
// overwrites. whole is false if it has more than maxOpenFiles.
func eachFile(t *rooted.Tree, pid string, visit func(name string, link []byte)) (whole bool, err error) {
	r, rel := t.At("proc/" + pid + "/fd")
	fd, err := r.Open(rel, unix.O_DIRECTORY)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	names, whole, err := rooted.SomeNames(fd, maxOpenFiles)
	if err != nil {
		return false, err
	}
	buf := make([]byte, 128)
	for _, name := range names {
		if n, err := unix.Readlinkat(fd, name, buf); err == nil {
			visit(name, buf[:n])
		}
	}
	return whole, nil
}

// holds returns the GPUs and RDMA devices that a process has open.
func (p *processTable) holds(pid int) (out accel.Process, err error) {
	out.PID = pid
	var dmabufs []string
	kfd := false
	whole, err := eachFile(p.Tree, strconv.Itoa(pid), func(name string, link []byte) {
		if len(link) < 5 || link[1] != 'd' { // most are sockets, pipes and files
			return
		}
		target := string(link)
		if rest, ok := strings.CutPrefix(target, "/dev/infiniband/uverbs"); ok {
			if _, err := strconv.Atoi(rest); err == nil && !slices.Contains(out.Verbs, "uverbs"+rest) {
				out.Verbs = append(out.Verbs, "uverbs"+rest)
			}
		} else if rest, ok := strings.CutPrefix(target, "/dev/nvidia"); ok {
			if minor, err := strconv.Atoi(rest); err == nil && !slices.Contains(out.GPUs, minor) {
				out.GPUs = append(out.GPUs, minor)
			}
		} else if strings.HasPrefix(target, dmabufLink) {
			dmabufs = append(dmabufs, name)
		}
		kfd = kfd || target == "/dev/kfd"
	})
	if err != nil {
		return out, err
	}
	out.Cut = !whole
	if len(out.Verbs) > 0 && len(dmabufs) > 0 {
		out.DMABUFs = dmabufsOf(p.Tree, pid, dmabufs, kfd)
	}
	slices.Sort(out.GPUs)
	slices.Sort(out.Verbs)
	return out, nil
}

// describe reads more of a process: the device nodes that it could open only if it uses a communication library, and
// its NCCL configuration files only if it uses NCCL.
func (p *processTable) describe(out *accel.Process) {
	dir := "proc/" + strconv.Itoa(out.PID) + "/"
	read := func(name string) []byte {
		b, err := p.Tree.Read(dir+name, nil)
		if err != nil { // it has ended, or belongs to another user
			return nil
		}
		return b
	}
	// The environment and the user are read before the program file and the libraries: a program with other permissions
	// that the process executes (set-user-ID) has no NCCL.
	environ, err := p.Tree.Read(dir+"environ", nil)
	known := err == nil || access.IsAbsent(err) || errors.Is(err, unix.ESRCH)
	stat, status := read("stat"), read("status")
	out.Command = commandOf(stat)
	who, certain := credentialsOf(status)
	if certain && len(p.groups) > 0 {
		out.MayOpen = new(who.uid == 0 || containsAll(who.groups, p.groups))
	}
	out.LockedMemory, out.Unlimited = lockedMemory(read("limits"))
	var whole bool
	out.Env, whole = environment(environ)
	p.place(out, read("cgroup"), environ, status)
	p.network(out)
	start := statField(stat, statStart)
	out.Started = sinceBootOf(start)
	if out.Hidden {
		return
	}
	p.readLibraries(out, start)
	if len(out.Libraries) > 0 {
		out.Capabilities = capabilitiesOf(p.Tree, out.PID, status)
	}
	p.peers(out)
	who.all = certain && who.uid == 0 && readsAll(p.Tree, out.PID, status)
	switch {
	case len(out.Libraries) == 0:
	case !out.HasNCCL || known && whole && certain:
		p.jobs.request(job{
			pid: out.PID, start: start, of: cmp.Or(out.Job, out.Container, out.Unit, strconv.Itoa(out.PID)), env: out.Env,
			who: who, home: variable(environ, "HOME"), nodesOnly: !out.HasNCCL,
		})
	default: // a setting that could not be read may disable GPUDirect
		p.jobs.drop(out.PID)
	}
}
