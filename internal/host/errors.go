package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// ErrStuck is the error of a device whose earlier read has not returned from the kernel.
var ErrStuck = errors.New("an earlier read has not returned")

// ErrMalformed is wrapped by errors of content that was read and has no meaning.
var ErrMalformed = errors.New("malformed")

// ErrGarbled makes an error of a file whose content has no meaning. The content is quoted and cut.
func ErrGarbled(path string, content []byte) error {
	if len(content) > 32 {
		content = content[:32]
	}
	return &Error{Op: "parse", Path: path, Err: fmt.Errorf("%w: %q", ErrMalformed, content)}
}

// Error says which operation failed on which path.
type Error struct {
	Op   string // "read", "list", "follow", "ask", "parse"
	Path string
	Err  error
}

func (e *Error) Error() string { return e.Op + " " + e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause, a syscall.Errno where the kernel gave one.
func (e *Error) Unwrap() error { return e.Err }

// Reason is the class of a failed read, for a metric label.
type Reason string

// The classes, and what the kernel answers for each.
const (
	Absent      Reason = "absent"      // ENOENT, ENOTDIR; no such netlink family
	Unsupported Reason = "unsupported" // EOPNOTSUPP, ENOSYS
	Invalid     Reason = "invalid"     // EINVAL: the driver's query failed, or the firmware lacks it
	Gone        Reason = "gone"        // ENODEV, ENXIO: the device went during the read
	Permission  Reason = "permission"  // EACCES, EPERM
	Stuck       Reason = "stuck"       // the read has not returned
	BackedOff   Reason = "back_off"    // not asked, because an earlier request was slow
	Malformed   Reason = "malformed"   // the content has no meaning
	Panic       Reason = "panic"       // a fault of the exporter, which Guard has stopped
	IO          Reason = "io"          // EIO and all the rest
)

// ReasonOf classifies an error of a read.
func ReasonOf(err error) Reason {
	for _, c := range []struct {
		err    error
		reason Reason
	}{
		{ErrPanic, Panic},
		{ErrStuck, Stuck},
		{ErrBackOff, BackedOff},
		{context.DeadlineExceeded, Stuck},
		{ErrMalformed, Malformed},
		{syscall.ENOENT, Absent},
		{syscall.ENOTDIR, Absent},
		{syscall.EPROTONOSUPPORT, Absent},
		{syscall.EAFNOSUPPORT, Absent},
		{fs.ErrNotExist, Absent},
		{syscall.EOPNOTSUPP, Unsupported},
		{syscall.ENOSYS, Unsupported},
		{syscall.EINVAL, Invalid},
		{syscall.ENODEV, Gone},
		{syscall.ENXIO, Gone},
		{syscall.EACCES, Permission},
		{syscall.EPERM, Permission},
	} {
		if errors.Is(err, c.err) {
			return c.reason
		}
	}
	return IO
}

// Refused says whether err is a driver's or a firmware's answer that it cannot, which it gives again when asked again:
// EINVAL, EIO, EOPNOTSUPP. The device may be busy or away with any other.
func Refused(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EOPNOTSUPP)
}

// Denied is the error of something that this process may not look at, where others could be.
func Denied(path string) error { return &Error{Op: "look at", Path: path, Err: syscall.EACCES} }

// NotSupported is the error of a file whose text says that the driver has nothing to put there.
func NotSupported(path string) error {
	return &Error{Op: "read", Path: path, Err: syscall.EOPNOTSUPP}
}

// NotPermitted says whether err is a want of permission.
func NotPermitted(err error) bool {
	return errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM)
}

// IsAbsent says whether err means that the thing is not there, which is a fact and no failure.
func IsAbsent(err error) bool { return ReasonOf(err) == Absent }

// Clean reports whether path is a logical path: relative, without "." and "..", without NUL. The kernel's names need not be
// UTF-8.
func Clean(path string) bool {
	if strings.ContainsRune(path, 0) {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}
