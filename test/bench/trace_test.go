//go:build bench

package bench

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdma_exporter/test/port"
)

// calls are the system calls of a program except nanosleep, and the files read by pread64.
type calls struct {
	all   int
	files map[string]int
}

// traced counts the system calls of a process and all its threads by ptrace(2), as strace does.
type traced struct {
	*server
	mu    sync.Mutex
	calls calls
}

// syscallInfo is the beginning of struct ptrace_syscall_info (linux/ptrace.h).
type syscallInfo struct {
	op   uint8 // 1: the call begins
	_    [3]byte
	arch uint32
	_    [2]uint64
	nr   uint64
	args [6]uint64
}

const ptraceGetSyscallInfo = 0x420e

// trace starts a traced program. The thread that starts it is its tracer and makes all requests until stop is called.
func (c command) trace(t *testing.T) (x *traced, stop func()) {
	t.Helper()
	c.argv = slices.Concat(c.argv, c.slow)
	x = &traced{server: &server{name: c.name, client: client()}, calls: calls{files: map[string]int{}}}
	x.cmd = c.cmd(t)
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := x.cmd.Start()
		var s unix.WaitStatus
		if err == nil {
			_, err = unix.Wait4(x.cmd.Process.Pid, &s, unix.WALL, nil)
		}
		if err == nil {
			err = unix.PtraceSetOptions(x.cmd.Process.Pid,
				unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL)
		}
		if err == nil {
			err = unix.PtraceSyscall(x.cmd.Process.Pid, 0)
		}
		started <- err
		if err == nil {
			x.follow()
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("trace %s: %v: the kernel has to permit ptrace", c.name, err)
	}
	x.address = port.Of(t, x.cmd.Process.Pid)
	return x, func() {
		x.client.CloseIdleConnections()
		_ = x.cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	}
}

// follow resumes all threads at each stop until the first one has ended. The kernel reports that after all others have
// ended.
func (x *traced) follow() {
	const threads = unix.WALL | unix.WNOTHREAD // no children of other tests
	for {
		var s unix.WaitStatus
		id, err := unix.Wait4(-1, &s, threads, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || id == x.cmd.Process.Pid && (s.Exited() || s.Signaled()) {
			return
		}
		if !s.Stopped() {
			continue
		}
		deliver := 0
		switch signal := s.StopSignal(); {
		case signal == unix.SIGTRAP|0x80:
			x.note(id)
		case signal == unix.SIGTRAP, signal == unix.SIGSTOP: // an event, or a new thread
		default:
			deliver = int(signal)
		}
		_ = unix.PtraceSyscall(id, deliver) // it may have been killed
	}
}

// note counts the start of a call. Go's runtime monitors its threads by nanosleep calls: a program slowed down a
// hundred times makes a hundred times more of them per scrape.
func (x *traced) note(id int) {
	var info syscallInfo
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, ptraceGetSyscallInfo, uintptr(id), unsafe.Sizeof(info),
		uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 || info.op != 1 || info.nr == unix.SYS_NANOSLEEP {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls.all++
	if info.nr == unix.SYS_PREAD64 {
		if name, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", id, info.args[0])); err == nil {
			x.calls.files[name]++
		}
	}
}

// during returns the calls while f runs, n times.
func (x *traced) during(n int, f func()) (all float64, files []string) {
	x.mu.Lock()
	x.calls = calls{files: map[string]int{}}
	x.mu.Unlock()
	for range n {
		f()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, reads := range maps.All(x.calls.files) {
		if reads >= n && strings.HasPrefix(name, "/") { // others are read occasionally
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return float64(x.calls.all) / float64(n), files
}
