// Package rooted reads files below a root: those of a kernel, or copies of them.
package rooted

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
)

// Paths are the roots of a machine's trees. Empty Sys and Proc mean RootFS/sys and RootFS/proc.
type Paths struct {
	RootFS, Sys, Proc string
	// Helper is the socket of the helper that reads processes, vital product data and DMA-BUFs. Empty: this process reads
	// them itself.
	Helper string
	// JobNames permits reading the names of jobs and the users of processes.
	JobNames bool
	// PodResources is the socket of the kubelet's PodResources API. Empty: pods are not named.
	PodResources string
	// Reserved are the descriptors of the process that are not for files that stay open; 0: 256.
	Reserved int
}

// Tree implements Files on a directory tree: the machine's own, one mounted into a container, or a replay's.
type Tree struct {
	Sys, Proc, Rest *Root

	mu     sync.Mutex
	dirs   map[string]*directory
	inodes map[string]uint64     // of directories, as of the last Identity
	linked map[string]linkedDirs // as of the last Identities
	kept   int                   // open descriptors
	max    int                   // limit of open descriptors
	opened atomic.Uint64         // paths of sys
}

// openFile is a descriptor that stays open between rounds. It is closed once the cache and all readers have released
// it.
type openFile struct {
	fd   int
	refs int // guarded by tree.mu
}

// Open opens the three trees. The error names the unreadable one.
func Open(p Paths) (*Tree, error) {
	if p.RootFS == "" {
		p.RootFS = "/"
	}
	if p.Sys == "" {
		p.Sys = path.Join(p.RootFS, "sys")
	}
	if p.Proc == "" {
		p.Proc = path.Join(p.RootFS, "proc")
	}
	t := &Tree{
		dirs: map[string]*directory{}, inodes: map[string]uint64{}, linked: map[string]linkedDirs{},
		max: maxDescriptors(cmp.Or(p.Reserved, 256)),
	}
	for _, x := range []struct {
		to   **Root
		path string
		flag string
	}{{&t.Rest, p.RootFS, "--path.rootfs"}, {&t.Sys, p.Sys, "--path.sysfs"}, {&t.Proc, p.Proc, "--path.procfs"}} {
		r, err := newRoot(x.path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w: set it to a directory that this user can read", x.flag, err), t.Close())
		}
		*x.to = r
	}
	return t, nil
}

func maxDescriptors(reserved int) int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 256
	}
	return descriptorsOf(l.Cur, uint64(reserved))
}

// descriptorsOf returns the limit of open descriptors of a tree: half of those that the process may open and has not
// reserved, since the flight recorder has a separate tree. The upper limit bounds kernel memory, one page for each open
// sysfs file (seq_file), to 40 MiB.
func descriptorsOf(limit, reserved uint64) int {
	return int(min((limit-min(limit, reserved))/2, 10240))
}

func (t *Tree) Close() error {
	t.mu.Lock()
	t.max = 0 // concurrent readers keep nothing open
	t.mu.Unlock()
	t.ForgetAll()
	var errs []error
	for _, r := range []*Root{t.Rest, t.Sys, t.Proc} {
		if r != nil {
			errs = append(errs, r.close())
		}
	}
	return errors.Join(errs...)
}

// ForgetAll discards all cached directories and files.
func (t *Tree) ForgetAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := range t.dirs {
		t.leaveLocked(p)
	}
	clear(t.linked)
}

func (t *Tree) At(p string) (*Root, string) {
	if rest, ok := strings.CutPrefix(p, "sys/"); ok {
		return t.Sys, rest
	}
	if rest, ok := strings.CutPrefix(p, "proc/"); ok {
		return t.Proc, rest
	}
	return t.Rest, p
}

func (t *Tree) Open(p string, flags int) (int, error) {
	if !access.Clean(p) {
		return -1, syscall.EINVAL
	}
	return t.openAt(p, flags)
}

// openAt opens a clean path, and counts those of sys.
func (t *Tree) openAt(p string, flags int) (int, error) {
	r, rel := t.At(p)
	if r == t.Sys {
		t.opened.Add(1)
	}
	return r.Open(rel, flags)
}

func (t *Tree) Opened() uint64 { return t.opened.Load() }

// Read reads a file by its path.
func (t *Tree) Read(p string, buf []byte) ([]byte, error) {
	dir, name := path.Split(p)
	return t.ReadIn(strings.TrimSuffix(dir, "/"), name, buf)
}

// ReadIn uses a cached descriptor, so that the steady state costs one system call per file. A descriptor of a removed
// device returns ENODEV: the file is opened again once, in case the device has returned.
func (t *Tree) ReadIn(dir, name string, buf []byte) ([]byte, error) {
	for again := false; ; again = true {
		f, err := t.acquire(dir, name)
		if err != nil {
			return nil, &access.Error{Op: "read", Path: path.Join(dir, name), Err: err}
		}
		b, err := Pread(f.fd, buf, strings.HasPrefix(dir, "proc"))
		t.release(f)
		if err == nil {
			return b, nil
		}
		if err != unix.ENODEV || again {
			return nil, &access.Error{Op: "read", Path: path.Join(dir, name), Err: err}
		}
		t.forget(dir, name)
	}
}

// ReadEach reads many files of a directory, with two lock operations in all.
func (t *Tree) ReadEach(
	dir string, names []string, buf []byte, each func(name string, content []byte, err error),
) []byte {
	var few [64]*openFile
	open := few[:0]
	if len(names) > len(few) {
		open = make([]*openFile, 0, len(names))
	}
	open = open[:len(names)]
	t.mu.Lock()
	if d := t.dirs[dir]; d != nil {
		d.find(names, open)
	}
	t.mu.Unlock()
	for i, name := range names {
		var b []byte
		err := error(unix.ENODEV)
		if open[i] != nil {
			b, err = Pread(open[i].fd, buf, false)
		}
		switch {
		case err == unix.ENODEV: // not cached, or stale
			b, err = t.ReadIn(dir, name, buf)
		case err != nil: // another attempt would cost the driver another query
			err = &access.Error{Op: "read", Path: path.Join(dir, name), Err: err}
		}
		if err == nil {
			buf = b
		}
		each(name, b, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range open {
		if f != nil {
			t.unref(f)
		}
	}
	return buf
}

// find takes the files that are open.
func (d *directory) find(names []string, open []*openFile) {
	if slices.Equal(names, d.each.names) {
		copy(open, d.each.files)
		for _, f := range open {
			f.refs++
		}
		return
	}
	whole := true
	for i, name := range names {
		if f := d.files[name]; f != nil {
			f.refs++
			open[i] = f
		} else {
			whole = false
		}
	}
	if whole {
		d.each = fileSet{slices.Clone(names), slices.Clone(open)}
	}
}

// Pread reads from the start. sysfs returns a whole attribute in one read, and regular files are short only at their
// end. procfs may return pieces, so it is read to the end.
func Pread(fd int, buf []byte, pieces bool) ([]byte, error) {
	if cap(buf) < 512 {
		buf = make([]byte, 0, 1024) // most attributes are one line
	}
	buf = buf[:0]
	for {
		n, err := unix.Pread(fd, buf[len(buf):cap(buf)], int64(len(buf)))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		buf = buf[:len(buf)+n]
		if len(buf) > host.MaxFile {
			return nil, unix.EFBIG
		}
		if n == 0 || !pieces && len(buf) < cap(buf) {
			return buf, nil
		}
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, len(buf))
		}
	}
}

func (t *Tree) acquire(dir, name string) (*openFile, error) {
	t.mu.Lock()
	if d := t.dirs[dir]; d != nil {
		if f := d.files[name]; f != nil {
			f.refs++
			t.mu.Unlock()
			return f, nil
		}
	}
	t.mu.Unlock()
	fd, err := t.Open(path.Join(dir, name), 0) // may block: not under the lock
	if err != nil {
		return nil, err
	}
	f := &openFile{fd: fd, refs: 1}
	t.mu.Lock()
	defer t.mu.Unlock()
	// Stale descriptors are detected only in directories that are listed each round.
	if d := t.dirs[dir]; d != nil && d.files[name] == nil && t.kept < t.max {
		d.files[name] = f
		f.refs++
		t.kept++
	}
	return f, nil
}

func (t *Tree) release(f *openFile) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unref(f)
}

func (t *Tree) unref(f *openFile) {
	if f.refs--; f.refs == 0 {
		unix.Close(f.fd)
	}
}

// forget removes a descriptor from the cache.
func (t *Tree) forget(dir, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if d := t.dirs[dir]; d != nil && d.files[name] != nil {
		t.unref(d.files[name])
		t.kept--
		delete(d.files, name)
		d.each = fileSet{}
	}
}

func (t *Tree) Link(p string) (string, error) {
	if !access.Clean(p) || p == "sys" || p == "proc" { // the two may be mounts elsewhere
		return "", &access.Error{Op: "readlink", Path: p, Err: syscall.EINVAL}
	}
	r, rel := t.At(p)
	if r == t.Sys {
		t.opened.Add(1)
	}
	s, err := r.readlink(rel)
	if err != nil {
		return "", &access.Error{Op: "readlink", Path: p, Err: err}
	}
	return s, nil
}

// Resolve follows the links of p one component at a time.
func (t *Tree) Resolve(p string) (string, error) { return ResolveBy(t.Link, p) }

// ResolveBy follows the links of p with link, which returns EINVAL for a path that is not a link. A link to the outside
// is EXDEV, a loop ELOOP.
func ResolveBy(link func(string) (string, error), p string) (string, error) {
	if !access.Clean(p) {
		return "", &access.Error{Op: "readlink", Path: p, Err: syscall.EINVAL}
	}
	todo, done := strings.Split(p, "/"), ""
	for hops := 0; len(todo) > 0; {
		next := path.Join(done, todo[0])
		todo = todo[1:]
		target, err := link(next)
		switch {
		case err == nil:
			if hops++; hops > 40 {
				return "", &access.Error{Op: "readlink", Path: p, Err: syscall.ELOOP}
			}
			to := path.Join(path.Dir(next), target)
			if path.IsAbs(target) || to == ".." || strings.HasPrefix(to, "../") {
				return "", &access.Error{Op: "readlink", Path: p, Err: syscall.EXDEV}
			}
			todo, done = append(strings.Split(to, "/"), todo...), ""
		case errors.Is(err, syscall.EINVAL): // not a link
			done = next
		default:
			return "", err
		}
	}
	return done, nil
}

func (t *Tree) Readable(p string) error {
	if !access.Clean(p) {
		return &access.Error{Op: "access", Path: p, Err: syscall.EINVAL}
	}
	// O_PATH makes no driver call. The check uses the descriptor, so that it stays inside the root.
	fd, err := t.openAt(p, unix.O_PATH)
	if err != nil {
		return &access.Error{Op: "access", Path: p, Err: err}
	}
	defer unix.Close(fd)
	if err := unix.Faccessat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.R_OK, 0); err != nil {
		return &access.Error{Op: "access", Path: p, Err: err}
	}
	return nil
}

func (t *Tree) Mode(p string) (mode uint32, group *uint32, err error) {
	if !access.Clean(p) {
		return 0, nil, &access.Error{Op: "stat", Path: p, Err: syscall.EINVAL}
	}
	fd, err := t.openAt(p, unix.O_PATH) // stays inside the root, and makes no driver call
	if err != nil {
		return 0, nil, &access.Error{Op: "stat", Path: p, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, nil, &access.Error{Op: "stat", Path: p, Err: err}
	}
	return st.Mode & 0o777, &st.Gid, nil
}

// IsSysfs reports whether the sys tree is a kernel's sysfs and not a copy.
func (t *Tree) IsSysfs() bool {
	var st unix.Statfs_t
	err := t.Sys.Use(func(fd int) error { return unix.Fstatfs(fd, &st) })
	return err == nil && st.Type == unix.SYSFS_MAGIC
}
