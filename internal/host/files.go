package host

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Paths says where a machine's trees are. Empty Sys and Proc stand for RootFS/sys and RootFS/proc.
type Paths struct {
	RootFS, Sys, Proc string
}

// tree is the Files of a real directory tree: the machine's own, one that is mounted into a container, or a replay's.
type tree struct {
	sys, proc, rest *root

	mu    sync.Mutex
	dirs  map[string]*dir
	files map[string]*file
	max   int // descriptors that may stay open
}

// dir is a directory as it was at the last List.
type dir struct {
	dev, ino     uint64
	sec, nsec    int64
	names        []string
	openChildren map[string]struct{} // paths in tree.files
}

// file is a descriptor that stays open between rounds. It is closed when the cache and all readers have let go.
type file struct {
	fd   int
	refs int // guarded by tree.mu
}

// openTree opens the three trees. The error names the one that cannot be read.
func openTree(p Paths) (*tree, error) {
	if p.RootFS == "" {
		p.RootFS = "/"
	}
	if p.Sys == "" {
		p.Sys = path.Join(p.RootFS, "sys")
	}
	if p.Proc == "" {
		p.Proc = path.Join(p.RootFS, "proc")
	}
	t := &tree{dirs: map[string]*dir{}, files: map[string]*file{}, max: maxDescriptors()}
	for _, x := range []struct {
		to   **root
		path string
		flag string
	}{{&t.rest, p.RootFS, "--path.rootfs"}, {&t.sys, p.Sys, "--path.sysfs"}, {&t.proc, p.Proc, "--path.procfs"}} {
		r, err := newRoot(x.path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w: give a directory that this user can read", x.flag, err), t.close())
		}
		*x.to = r
	}
	return t, nil
}

// maxDescriptors leaves half of what the process may open to sockets and connections.
func maxDescriptors() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 256
	}
	return int(min(l.Cur/2, 16384))
}

func (t *tree) close() error {
	t.mu.Lock()
	for p := range t.files {
		t.drop(p)
	}
	t.mu.Unlock()
	var errs []error
	for _, r := range []*root{t.rest, t.sys, t.proc} {
		if r != nil {
			errs = append(errs, r.close())
		}
	}
	return errors.Join(errs...)
}

func (t *tree) at(p string) (*root, string) {
	if rest, ok := strings.CutPrefix(p, "sys/"); ok {
		return t.sys, rest
	}
	if rest, ok := strings.CutPrefix(p, "proc/"); ok {
		return t.proc, rest
	}
	return t.rest, p
}

func (t *tree) open(p string, flags int) (int, error) {
	if !Clean(p) {
		return -1, syscall.EINVAL
	}
	r, rel := t.at(p)
	return r.open(rel, flags)
}

// Read uses a descriptor that stays open, so that the steady state costs one system call a file. A descriptor of a
// device that went answers ENODEV: it is opened again once, for a device that came back.
func (t *tree) Read(p string, buf []byte) ([]byte, error) {
	f, err := t.acquire(p)
	if err != nil {
		return nil, &Error{"read", p, err}
	}
	b, err := t.pread(p, f.fd, buf)
	t.release(f)
	if err == unix.ENODEV {
		t.forget(p)
		if f, err = t.acquire(p); err == nil {
			b, err = t.pread(p, f.fd, buf)
			t.release(f)
		}
	}
	if err != nil {
		return nil, &Error{"read", p, err}
	}
	return b, nil
}

// pread reads from the start. sysfs answers a whole attribute at once and regular files are short only at their end;
// procfs may answer in pieces, so it is read up to its end.
func (t *tree) pread(p string, fd int, buf []byte) ([]byte, error) {
	if cap(buf) < 512 {
		buf = make([]byte, 0, 4096+1)
	}
	buf = buf[:0]
	whole := !strings.HasPrefix(p, "proc/")
	for {
		n, err := unix.Pread(fd, buf[len(buf):cap(buf)], int64(len(buf)))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		buf = buf[:len(buf)+n]
		if n == 0 || whole && len(buf) < cap(buf) {
			return buf, nil
		}
		if len(buf) > MaxFile {
			return nil, unix.EFBIG
		}
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, len(buf))
		}
	}
}

func (t *tree) acquire(p string) (*file, error) {
	t.mu.Lock()
	if f := t.files[p]; f != nil {
		f.refs++
		t.mu.Unlock()
		return f, nil
	}
	t.mu.Unlock()
	fd, err := t.open(p, 0) // may block: not under the lock
	if err != nil {
		return nil, err
	}
	f := &file{fd: fd, refs: 1}
	t.mu.Lock()
	defer t.mu.Unlock()
	// Only a directory that is listed each round can tell when its descriptors are no longer the files of that name.
	if d := t.dirs[path.Dir(p)]; d != nil && t.files[p] == nil && len(t.files) < t.max {
		t.files[p], d.openChildren[p] = f, struct{}{}
		f.refs++
	}
	return f, nil
}

func (t *tree) release(f *file) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unref(f)
}

func (t *tree) unref(f *file) {
	if f.refs--; f.refs == 0 {
		unix.Close(f.fd)
	}
}

func (t *tree) forget(p string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(p)
}

// drop takes a descriptor out of the cache; tree.mu is held.
func (t *tree) drop(p string) {
	if f := t.files[p]; f != nil {
		delete(t.files, p)
		t.unref(f)
	}
}

// List reads a directory afresh. It costs five system calls, and makes the descriptors below it trustworthy.
func (t *tree) List(p string) ([]string, error) {
	fd, err := t.open(p, unix.O_DIRECTORY)
	if err != nil {
		t.leave(p)
		return nil, &Error{"list", p, err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &Error{"list", p, err}
	}
	names, err := readNames(fd)
	if err != nil {
		return nil, &Error{"list", p, err}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.dirs[p]
	if d != nil && d.dev == st.Dev && d.ino == st.Ino && d.sec == st.Mtim.Sec && d.nsec == st.Mtim.Nsec && slices.Equal(d.names, names) {
		return d.names, nil
	}
	t.leaveLocked(p)
	t.dirs[p] = &dir{
		dev: st.Dev, ino: st.Ino, sec: st.Mtim.Sec, nsec: st.Mtim.Nsec, names: names,
		openChildren: map[string]struct{}{},
	}
	return names, nil
}

func (t *tree) leave(p string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaveLocked(p)
}

func (t *tree) leaveLocked(p string) {
	d := t.dirs[p]
	if d == nil {
		return
	}
	delete(t.dirs, p)
	for c := range d.openChildren {
		t.drop(c)
	}
}

func readNames(fd int) ([]string, error) {
	buf := make([]byte, 8192)
	var names []string
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	slices.Sort(names)
	return names, nil
}

func (t *tree) Link(p string) (string, error) {
	if !Clean(p) || p == "sys" || p == "proc" { // those two are mounts, wherever they are
		return "", &Error{"follow", p, syscall.EINVAL}
	}
	r, rel := t.at(p)
	s, err := r.dir.Readlink(rel)
	if err != nil {
		return "", &Error{"follow", p, errno(err)}
	}
	return s, nil
}

// Resolve follows the links of p one component at a time.
func (t *tree) Resolve(p string) (string, error) { return ResolveBy(t.Link, p) }

// ResolveBy follows the links of p with link, which answers EINVAL for what is no link. A link that leads outside is
// EXDEV, a circle ELOOP.
func ResolveBy(link func(string) (string, error), p string) (string, error) {
	if !Clean(p) {
		return "", &Error{"follow", p, syscall.EINVAL}
	}
	todo, done := strings.Split(p, "/"), ""
	for hops := 0; len(todo) > 0; {
		next := path.Join(done, todo[0])
		todo = todo[1:]
		target, err := link(next)
		switch {
		case err == nil:
			if hops++; hops > 40 {
				return "", &Error{"follow", p, syscall.ELOOP}
			}
			to := path.Join(path.Dir(next), target)
			if path.IsAbs(target) || to == ".." || strings.HasPrefix(to, "../") {
				return "", &Error{"follow", p, syscall.EXDEV}
			}
			todo, done = append(strings.Split(to, "/"), todo...), ""
		case errors.Is(err, syscall.EINVAL): // no link
			done = next
		default:
			return "", err
		}
	}
	return done, nil
}

func (t *tree) Readable(p string) error {
	if !Clean(p) {
		return &Error{"look at", p, syscall.EINVAL}
	}
	r, rel := t.at(p)
	// O_PATH touches no driver; the check goes through the descriptor, so that it stays inside the root.
	fd, err := r.open(rel, unix.O_PATH)
	if err != nil {
		return &Error{"look at", p, err}
	}
	defer unix.Close(fd)
	if err := unix.Faccessat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.R_OK, 0); err != nil {
		return &Error{"look at", p, err}
	}
	return nil
}

// isSysfs says whether the sys tree is a kernel's own and not a copy.
func (t *tree) isSysfs() bool {
	var st unix.Statfs_t
	return unix.Fstatfs(t.sys.fd, &st) == nil && st.Type == unix.SYSFS_MAGIC
}
