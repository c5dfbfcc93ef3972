package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestReasonOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Reason
	}{
		{ErrStuck, Stuck},
		{fmt.Errorf("mlx5_0: %w: no answer in time", ErrStuck), Stuck},
		{context.DeadlineExceeded, Stuck},
		{ErrGarbled("sys/x", []byte("?")), Malformed},
		{ErrMalformed, Malformed},
		{syscall.ENOENT, Absent},
		{syscall.ENOTDIR, Absent},
		{syscall.EPROTONOSUPPORT, Absent},
		{syscall.EAFNOSUPPORT, Absent},
		{fs.ErrNotExist, Absent},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, Absent},
		{syscall.EOPNOTSUPP, Unsupported},
		{syscall.ENOTSUP, Unsupported},
		{syscall.ENOSYS, Unsupported},
		{syscall.EINVAL, Invalid},
		{syscall.ENODEV, Gone},
		{syscall.ENXIO, Gone},
		{syscall.EACCES, Permission},
		{syscall.EPERM, Permission},
		{syscall.EIO, IO},
		{syscall.ETIMEDOUT, IO},
		{syscall.EFBIG, IO},
		{syscall.EISDIR, IO},
		{errors.New("anything"), IO},
		{os.ErrClosed, IO},
	} {
		for _, err := range []error{c.err, &Error{"read", "sys/x", c.err}, fmt.Errorf("more: %w", &Error{"read", "sys/x", c.err})} {
			if got := ReasonOf(err); got != c.want {
				t.Errorf("%v: %s, want %s", err, got, c.want)
			}
			if IsAbsent(err) != (c.want == Absent) {
				t.Errorf("IsAbsent(%v) = %v", err, IsAbsent(err))
			}
		}
	}
}

func TestErrorsNameWhatWasAttempted(t *testing.T) {
	err := error(&Error{"read", "sys/class/x", syscall.EINVAL})
	if got := err.Error(); got != "read sys/class/x: invalid argument" {
		t.Error(got)
	}
	if !errors.Is(err, syscall.EINVAL) {
		t.Error("the cause is lost")
	}
	garbled := ErrGarbled("sys/class/x", []byte("\x00"+strings.Repeat("long", 100)))
	if got := garbled.Error(); !strings.HasPrefix(got, `parse sys/class/x: malformed: "\x00longlong`) || len(got) > 80 {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
