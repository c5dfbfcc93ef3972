package proc

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/gdr/library"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/snapshot/accel"
)

// librariesKept is how long the libraries of a process are not read again: once NCCL is mapped, or it holds no GPU. A
// server may load another library later.
const librariesKept = 10 * time.Minute

// libraries are the libraries that a process has mapped, with its start time and program file: PIDs are reused, and a
// process may execute another program.
type libraries struct {
	start, exe             string
	at                     time.Time
	version                string
	hasNCCL, plugin, mover bool
	names                  []string // sorted
}

// readLibraries sets the libraries of a process that started at start.
func (p *processTable) readLibraries(out *accel.Process, start string) {
	dir := "proc/" + strconv.Itoa(out.PID) + "/"
	exe, _ := p.Tree.Link(dir + "exe")
	lib, ok := p.lib[out.PID]
	if !ok || lib.start != start || lib.exe != exe || len(out.GPUs) > 0 && !lib.hasNCCL ||
		p.begun.Sub(lib.at) >= librariesKept {
		lib = libraries{start: start, exe: exe, at: p.begun}
		if maps, err := p.Tree.Lines(dir+"maps", library.Words); err == nil {
			lib.version, lib.hasNCCL, lib.plugin = mapped(maps)
			lib.names = librariesIn(maps)
			lib.mover = slices.Contains(lib.names, library.NIXL) || slices.Contains(lib.names, library.Mooncake)
		}
	}
	p.lib[out.PID] = lib
	out.Libraries = lib.names
	if len(out.GPUs) > 0 {
		out.NCCL, out.HasNCCL, out.Plugin, out.Mover = lib.version, lib.hasNCCL, lib.plugin, lib.mover
	}
}

// librariesIn returns the names of the libraries in lines of /proc/PID/maps, sorted; nil if there are none.
func librariesIn(maps []byte) (names []string) {
	for line := range strings.Lines(string(maps)) {
		if name := library.Of(mappedFile(line)); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// areLibraries reports whether a list has the form of one from librariesIn.
func areLibraries(names []string) bool {
	return slices.IsSorted(names) && len(slices.Compact(slices.Clone(names))) == len(names) && allOf(names, library.IsName)
}

// initialUsers is the initial user namespace (PROC_USER_INIT_INO, include/linux/proc_ns.h).
const initialUsers = "user:[4026531837]"

// capabilitiesOf returns the effective capabilities of a process for devices, which are those in the initial user
// namespace: none in another one. Nil: unknown.
func capabilitiesOf(t *rooted.Tree, pid int, status []byte) *uint64 {
	has, err := strconv.ParseUint(rooted.StatusField(status, "CapEff"), 16, 64)
	if err != nil {
		return nil
	}
	its, err := t.Link("proc/" + strconv.Itoa(pid) + "/ns/user")
	if err != nil {
		return nil
	}
	if its != initialUsers {
		has = 0
	}
	return &has
}

// deviceNodes is which device nodes are below the root directory of a process. Nil: unknown.
type deviceNodes struct{ rdma, imex *bool }

// maxNodes limits the names in a directory of device nodes: the IMEX channels of a driver are 2048 (nv-reg.h).
const maxNodes = 4096

// openDeviceNodes reads them in the root directory of a process, which may be a container's.
func openDeviceNodes(t *rooted.Tree, pid int) (out deviceNodes) {
	root, err := rootOf(t, pid)
	if err != nil {
		return out
	}
	defer unix.Close(root)
	return deviceNodes{hasNode(root, nodesDir, "uverbs"), hasNode(root, "dev/nvidia-caps-imex-channels", "channel")}
}

// hasNode reports whether a directory below a root directory has a name of a prefix and a number. Nil: unknown.
func hasNode(root int, dir, prefix string) *bool {
	fd, err := unix.Openat2(root, dir, &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	switch {
	case access.IsAbsent(err), errors.Is(err, unix.ENOTDIR):
		return new(false)
	case err != nil: // also where openat2 is missing, before Linux 5.6
		return nil
	}
	defer unix.Close(fd)
	names, whole, err := rooted.SomeNames(fd, maxNodes)
	found := slices.ContainsFunc(names, func(name string) bool {
		number, ok := strings.CutPrefix(name, prefix)
		_, failed := strconv.ParseUint(number, 10, 32)
		return ok && failed == nil
	})
	if err != nil || !found && !whole {
		return nil
	}
	return &found
}
