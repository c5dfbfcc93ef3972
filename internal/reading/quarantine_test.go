package reading

import (
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"
)

func TestQuarantine(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const dir = "sys/class/infiniband/mlx5_0/ports/1/counters"
	var q Quarantine
	fail := func(name string, at time.Time, err error) { q.Note(dir, name, at, err) }
	rest := func(at time.Time) []string { return q.allowed(dir, []string{"a", "b", "c"}, at) }

	fail("a", start, syscall.EIO)
	if !slices.Equal(rest(start), []string{"a", "b", "c"}) {
		t.Error("one failure is enough")
	}
	fail("a", start.Add(time.Second), syscall.EINVAL)
	q.Note(dir, "b", start, nil)
	if got := rest(start); !slices.Equal(got, []string{"b", "c"}) || q.Items(start) != 1 {
		t.Errorf("after two failures: %q, %d items", got, q.Items(start))
	}
	for range 2 {
		fail("c", start, syscall.EOPNOTSUPP)
	}
	if got := rest(start); !slices.Equal(got, []string{"b"}) {
		t.Errorf("two items fail and one answers: %q", got)
	}
	if got := rest(start.Add(quarantineTime + time.Second)); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("after %s: %q", quarantineTime, got)
	}
	q.Release("sys/class/infiniband/mlx5_0/ports/1")
	if got := rest(start); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("after a link event: %q", got)
	}
}

// TestQuarantineOfAGroup: a group without a successful read is held as a whole.
func TestQuarantineOfAGroup(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var q Quarantine
	for range 2 {
		q.Note("d", "a", now, syscall.EIO)
		q.Note("d", "b", now, syscall.EIO)
	}
	if got := q.allowed("d", []string{"a", "b", "c"}, now); len(got) != 0 {
		t.Errorf("asked on: %q", got)
	}
	if q.Held("e", "a", now) {
		t.Error("another directory is held as well")
	}
}

// TestQuarantineOfRefusalsOnly: errors that cost the driver nothing do not count.
func TestQuarantineOfRefusalsOnly(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, err := range []error{
		syscall.ENOENT, syscall.ENODEV, syscall.EACCES, syscall.EAGAIN, syscall.ETIMEDOUT, errors.New("malformed"),
	} {
		t.Run(err.Error(), func(t *testing.T) {
			var q Quarantine
			for range 5 {
				q.Note("d", "a", now, err)
			}
			if q.Held("d", "a", now) {
				t.Errorf("%v is held", err)
			}
		})
	}
	var none *Quarantine
	none.Note("d", "a", now, syscall.EIO)
	if none.Held("d", "a", now) || none.Items(now) != 0 {
		t.Error("no quarantine holds something")
	}
}

// TestQuarantineOfInterfaces: an interface that is being removed answers EINVAL; a new interface of that name is read.
func TestQuarantineOfInterfaces(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		dir  string
		err  error
		held bool
	}{
		{"sys/class/net/ib0", syscall.EINVAL, false},
		{"sys/class/net/ib0", syscall.EIO, true},
		{"sys/class/net/ib0/ecn/roce_np/enable", syscall.EINVAL, true},
		{"sys/class/infiniband/mlx5_0", syscall.EINVAL, true},
	} {
		var q Quarantine
		for range failuresToQuarantine {
			q.Note(c.dir, "flags", now, c.err)
		}
		if got := q.Held(c.dir, "flags", now); got != c.held {
			t.Errorf("%s, %v: held %t", c.dir, c.err, got)
		}
	}
}
