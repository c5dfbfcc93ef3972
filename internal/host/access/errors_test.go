package access

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
		name string
		err  error
		want Reason
	}{
		{"ErrStuck", ErrStuck, Stuck},
		{"ErrStuck, wrapped", fmt.Errorf("mlx5_0: %w: no answer in time", ErrStuck), Stuck},
		{"ErrLate", fmt.Errorf("mlx5_0: %w in 10s", ErrLate), Late},
		{"DeadlineExceeded", context.DeadlineExceeded, Late},
		{"ErrGarbled", ErrGarbled("sys/x", []byte("?")), Malformed},
		{"NotSupported", NotSupported("sys/x"), Unsupported},
		{"ErrMalformed", ErrMalformed, Malformed},
		{"ErrOverloaded", fmt.Errorf("%w: 12000 a second", ErrOverloaded), Overloaded},
		{"ENOENT", syscall.ENOENT, Absent},
		{"ENOTDIR", syscall.ENOTDIR, Absent},
		{"EPROTONOSUPPORT", syscall.EPROTONOSUPPORT, Absent},
		{"EAFNOSUPPORT", syscall.EAFNOSUPPORT, Absent},
		{"fs.ErrNotExist", fs.ErrNotExist, Absent},
		{"PathError", &fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, Absent},
		{"EOPNOTSUPP", syscall.EOPNOTSUPP, Unsupported},
		{"ENOTSUP", syscall.ENOTSUP, Unsupported},
		{"ENOSYS", syscall.ENOSYS, Unsupported},
		{"EINVAL", syscall.EINVAL, Invalid},
		{"ENODEV", syscall.ENODEV, Gone},
		{"ENXIO", syscall.ENXIO, Gone},
		{"EACCES", syscall.EACCES, Permission},
		{"EPERM", syscall.EPERM, Permission},
		{"EIO", syscall.EIO, IO},
		{"ETIMEDOUT", syscall.ETIMEDOUT, IO},
		{"EFBIG", syscall.EFBIG, IO},
		{"EISDIR", syscall.EISDIR, IO},
		{"another error", errors.New("anything"), IO},
		{"os.ErrClosed", os.ErrClosed, IO},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, err := range []error{
				c.err, &Error{"read", "sys/x", c.err}, fmt.Errorf("more: %w", &Error{"read", "sys/x", c.err}),
			} {
				if got := ReasonOf(err); got != c.want {
					t.Errorf("%v: %s, want %s", err, got, c.want)
				}
				if IsAbsent(err) != (c.want == Absent) {
					t.Errorf("IsAbsent(%v) = %v", err, IsAbsent(err))
				}
			}
		})
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
