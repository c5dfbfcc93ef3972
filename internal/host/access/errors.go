// Package access has what all reads of a machine share: errors and their reasons, one reader at a time for each
// device, budgets, the lock of the network configuration, and waits for a CPU.
package access

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// ErrStuck is the error of a device with a read that has not returned from the kernel.
var ErrStuck = errors.New("read blocked in the kernel")

// ErrLate is the error of a read that did not end in time, and is not known to be blocked: this process waited for a
// CPU, the read was not begun, or another process has not answered.
var ErrLate = errors.New("no answer")

// Unanswered reports whether err is of a read that has not returned, for whatever reason.
func Unanswered(err error) bool { return errors.Is(err, ErrStuck) || errors.Is(err, ErrLate) }

// ErrOverloaded is wrapped by errors of an observation that is paused because of too many events.
var ErrOverloaded = errors.New("too many events")

// ErrMalformed is wrapped by errors of content that could not be parsed.
var ErrMalformed = errors.New("malformed")

// ErrGarbled returns the error of a file with malformed content. The content is quoted and truncated.
func ErrGarbled(path string, content []byte) error {
	if len(content) > 32 {
		content = content[:32]
	}
	return &Error{Op: "parse", Path: path, Err: fmt.Errorf("%w: %q", ErrMalformed, content)}
}

// Error is a failed operation on a path.
type Error struct {
	Op   string // "read", "list", "readlink", "query", "parse"
	Path string
	Err  error
}

func (e *Error) Error() string { return e.Op + " " + e.Path + ": " + e.Err.Error() }

// Wrapped is the error of an operation on a path; nil without an error.
func Wrapped(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{op, path, err}
}

// Unwrap returns the cause, a syscall.Errno if it is from the kernel.
func (e *Error) Unwrap() error { return e.Err }

// Reason is the class of a failed read, as in the metric label.
type Reason string

// The classes, and the errors of each.
const (
	Absent      Reason = "absent"      // ENOENT, ENOTDIR; no such netlink family
	Unsupported Reason = "unsupported" // EOPNOTSUPP, ENOSYS
	Invalid     Reason = "invalid"     // EINVAL: the driver's query failed, or the firmware lacks it
	Gone        Reason = "gone"        // ENODEV, ENXIO: the device was removed during the read
	Permission  Reason = "permission"  // EACCES, EPERM
	Stuck       Reason = "stuck"       // a read has not returned from the kernel
	Late        Reason = "late"        // no answer in time, and not known to be blocked
	Overloaded  Reason = "overloaded"  // not observed for a time, because of too many events
	BackedOff   Reason = "back_off"    // not queried, because an earlier request was slow
	Malformed   Reason = "malformed"   // the content could not be parsed
	Panic       Reason = "panic"       // bug in the exporter, recovered by Guard
	IO          Reason = "io"          // EIO and all others
)

// ReasonOf classifies an error of a read.
func ReasonOf(err error) Reason {
	for _, c := range []struct {
		err    error
		reason Reason
	}{
		{ErrPanic, Panic},
		{ErrStuck, Stuck},
		{ErrLate, Late},
		{ErrBackOff, BackedOff},
		{ErrOverloaded, Overloaded},
		{context.DeadlineExceeded, Late},
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

// Refused reports whether err is a permanent rejection by driver or firmware: EINVAL, EIO, EOPNOTSUPP. With any other
// error the device may be busy or gone.
func Refused(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EOPNOTSUPP)
}

// Passing reports whether the kernel itself refuses to read an attribute of the directory, and will not for long: of an
// interface that is being created or removed it answers EINVAL (netdev_show, net/core/net-sysfs.c).
func Passing(dir string, err error) bool {
	name, inside := strings.CutPrefix(dir, "sys/class/net/")
	return inside && !strings.Contains(name, "/") && errors.Is(err, syscall.EINVAL)
}

// Denied is the error of a path that this process may not access.
func Denied(path string) error { return &Error{Op: "access", Path: path, Err: syscall.EACCES} }

// NotSupported is the error of a file whose text marks the value as unsupported by the driver.
func NotSupported(path string) error {
	return &Error{Op: "read", Path: path, Err: syscall.EOPNOTSUPP}
}

// NotPermitted reports whether err is due to missing permission.
func NotPermitted(err error) bool {
	return errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM)
}

// IsAbsent reports whether err means that the path does not exist. That is a fact, not a failure.
func IsAbsent(err error) bool { return ReasonOf(err) == Absent }

// Clean reports whether path is a logical path: relative, without "." and "..", without NUL. The kernel's names need
// not be UTF-8.
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

// ErrNoHelper is wrapped by errors of reads by a helper that is not running. It is a permission error: this process may
// not read the source itself. That is not a fault of a device, and lasts until the helper is started.
var ErrNoHelper error = noHelper{}

type noHelper struct{}

func (noHelper) Error() string { return "helper does not answer" }

func (noHelper) Is(target error) bool { return target == syscall.EPERM }

// RunningHelper is the remedy for ErrNoHelper.
const RunningHelper = "a running helper: systemctl status rdma_exporter-helper.socket rdma_exporter-helper.service"

// ErrOtherNetwork is wrapped by errors of queries that were not made because the answer would be about another network
// namespace. It is a permission error: not a fault of a device, and permanent until the exporter is run differently.
var ErrOtherNetwork = fmt.Errorf("%w: not in the network namespace of the host", syscall.EPERM)

// HostNetwork is the remedy for ErrOtherNetwork.
const HostNetwork = "the network namespace of the host (--network host, hostNetwork)"
