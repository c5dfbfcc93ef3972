package rooted

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Root opens files below one directory and never outside it, whatever the links. openat2(2) with RESOLVE_BENEATH does
// so in one system call. If the kernel (before 5.6) or a seccomp filter rejects it, os.Root resolves component by
// component.
type Root struct {
	dir  *os.Root
	fd   int          // the directory, for openat2
	shut func() error // closes fd; called once, by the last user
	uses atomic.Int64
	Slow atomic.Bool // openat2 is not available
}

func newRoot(path string) (*Root, error) {
	dir, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	file, err := dir.Open(".")
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	if _, err := file.ReadDir(1); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, file.Close(), dir.Close())
	}
	return &Root{dir: dir, fd: int(file.Fd()), shut: sync.OnceValue(file.Close)}, nil
}

// Name returns the path of the directory.
func (r *Root) Name() string { return r.dir.Name() }

// Use passes the directory's descriptor to f. The descriptor is not reused until f returns.
func (r *Root) Use(f func(fd int) error) error {
	defer r.leave()
	if r.uses.Add(1) <= 0 {
		return unix.EBADF
	}
	return f(r.fd)
}

// closing is added to the use count of a root that is being closed. The last user closes the directory.
const closing = math.MinInt64 / 2

func (r *Root) leave() {
	if r.uses.Add(-1) == closing {
		_ = r.shut()
	}
}

// close does not wait for users.
func (r *Root) close() error {
	if r.uses.Add(closing) == closing {
		return errors.Join(r.shut(), r.dir.Close())
	}
	return r.dir.Close()
}

// Open returns a descriptor of path for reading.
func (r *Root) Open(path string, flags int) (int, error) {
	flags |= unix.O_RDONLY | unix.O_CLOEXEC
	for !r.Slow.Load() {
		var fd int
		err := r.Use(func(dir int) (err error) {
			fd, err = unix.Openat2(dir, path,
				&unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS})
			return err
		})
		switch {
		case err == nil:
			return fd, nil
		case err == unix.EINTR, err == unix.EAGAIN:
			// Interrupted, or a rename raced with the resolution of "..": the same call may succeed.
		case err == unix.ENOSYS, err == unix.EPERM:
			// EPERM is returned by seccomp filters that do not list the call; EPERM of the file itself recurs below.
			r.Slow.Store(true)
		default:
			return -1, err
		}
	}
	f, err := r.dir.OpenFile(path, flags, 0)
	if err != nil {
		return -1, Errno(err)
	}
	defer f.Close()
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

// readlink returns the target of a link; EINVAL if path is not a link.
func (r *Root) readlink(path string) (string, error) {
	fd, err := r.Open(path, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	switch {
	case err == unix.ENOENT: // readlinkat(2) returns it for a descriptor that is not a link
		return "", unix.EINVAL
	case err != nil:
		return "", err
	}
	return string(buf[:n]), nil
}

// Errno extracts the errno from an error of package os.
func Errno(err error) error {
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	if errors.Is(err, fs.ErrNotExist) {
		return syscall.ENOENT
	}
	if strings.Contains(err.Error(), "escapes") {
		return syscall.EXDEV // as openat2 does
	}
	return err
}
