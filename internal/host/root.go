package host

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

// root opens files below one directory and never outside it, whatever the links. openat2(2) with RESOLVE_BENEATH does
// so in one system call. If the kernel (before 5.6) or a seccomp filter rejects it, os.Root resolves component by
// component.
type root struct {
	dir  *os.Root
	fd   int          // the directory, for openat2
	shut func() error // closes fd; called once, by the last user
	uses atomic.Int64
	slow atomic.Bool // openat2 is not available
}

func newRoot(path string) (*root, error) {
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
	return &root{dir: dir, fd: int(file.Fd()), shut: sync.OnceValue(file.Close)}, nil
}

// use passes the directory's descriptor to f. The descriptor is not reused until f returns.
func (r *root) use(f func(fd int) error) error {
	defer r.leave()
	if r.uses.Add(1) <= 0 {
		return unix.EBADF
	}
	return f(r.fd)
}

// closing is added to the use count of a root that is being closed. The last user closes the directory.
const closing = math.MinInt64 / 2

func (r *root) leave() {
	if r.uses.Add(-1) == closing {
		_ = r.shut()
	}
}

// close does not wait for users.
func (r *root) close() error {
	if r.uses.Add(closing) == closing {
		return errors.Join(r.shut(), r.dir.Close())
	}
	return r.dir.Close()
}

// open returns a descriptor of path for reading.
func (r *root) open(path string, flags int) (int, error) {
	flags |= unix.O_RDONLY | unix.O_CLOEXEC
	for !r.slow.Load() {
		var fd int
		err := r.use(func(dir int) (err error) {
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
			r.slow.Store(true)
		default:
			return -1, err
		}
	}
	f, err := r.dir.OpenFile(path, flags, 0)
	if err != nil {
		return -1, errno(err)
	}
	defer f.Close()
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

// readlink returns the target of a link; EINVAL if path is not a link.
func (r *root) readlink(path string) (string, error) {
	fd, err := r.open(path, unix.O_PATH|unix.O_NOFOLLOW)
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

// errno extracts the errno from an error of package os.
func errno(err error) error {
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
