package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/hosttest"
	"rdma_exporter/internal/host/rooted"
)

// A FIFO without a writer blocks its reader, like a driver whose firmware does not answer.
func TestAReadThatDoesNotReturnCostsItsLane(t *testing.T) {
	hosttest.BothWays(t, func(t *testing.T, dir string, files *rooted.Tree) {
		l := &host.Host{Files: files, Turns: access.NewTurns(), RTNL: access.NewRTNL()}
		hosttest.Put(t, dir, "sys/good/rate", "100")
		hosttest.Put(t, dir, "sys/bad/lid", "")
		fifo := filepath.Join(dir, "sys/bad/rate")
		if err := unix.Mkfifo(fifo, 0o644); err != nil {
			t.Fatal(err)
		}
		hosttest.List(t, l.Files, "sys/bad")

		ctx, cancel := context.WithCancelCause(t.Context())
		var late error // of the read that returns after the deadline
		returned := make(chan struct{})
		err := l.Turns.Do(ctx, "bad", func() {
			cancel(context.DeadlineExceeded)
			_, late = l.Files.Read("sys/bad/rate", nil)
			close(returned)
		})
		if !access.Unanswered(err) { // too short to be known as blocked
			t.Errorf("first: %v", err)
		}
		started := false
		if err := l.Turns.Do(t.Context(), "bad", func() { started = true }); !access.Unanswered(err) || started {
			t.Errorf("second: %v, started %v, want an error at once", err, started)
		}
		if _, err := l.Turns.Enter("bad"); !access.Unanswered(err) {
			t.Errorf("Enter: %v", err)
		}
		if err := l.Turns.Do(t.Context(), "good", func() {
			if got := hosttest.Content(t, l.Files, "sys/good/rate"); got != "100" {
				t.Errorf("another device: %q", got)
			}
			hosttest.Content(t, l.Files, "sys/bad/lid")
		}); err != nil {
			t.Errorf("another device: %v", err)
		}

		w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		<-returned
		if !errors.Is(late, unix.ESPIPE) {
			t.Errorf("the read returned %v, want ESPIPE as FIFOs answer pread", late)
		}
		for l.Turns.Do(t.Context(), "bad", func() {}) != nil {
			runtime.Gosched()
		}
	})
}

// TestStarvedReaderIsNotBlocked: the same FIFO blocks both readers. One belongs to a process that has a CPU, the other
// to one that waits for it, of which nothing is known. The deadline is one that a slow machine only prolongs.
func TestStarvedReaderIsNotBlocked(t *testing.T) {
	for _, c := range []struct {
		name  string
		share float64 // of the time in which the process waits for a CPU
		want  access.Reason
	}{
		{"has a CPU", 0, access.Stuck},
		{"waits for a CPU", 0.9, access.Late},
	} {
		t.Run(c.name, func(t *testing.T) {
			hosttest.BothWays(t, func(t *testing.T, dir string, files *rooted.Tree) {
				l := &host.Host{Files: files, Turns: access.NewTurns(), RTNL: access.NewRTNL()}
				hosttest.Put(t, dir, "sys/bad/lid", "")
				fifo := filepath.Join(dir, "sys/bad/rate")
				if err := unix.Mkfifo(fifo, 0o644); err != nil {
					t.Fatal(err)
				}
				hosttest.List(t, l.Files, "sys/bad")
				start := time.Now()
				cpu := access.NewCPUWait(func() (access.CPUTimes, error) {
					waited := time.Duration(c.share * float64(time.Since(start)))
					return access.CPUTimes{Threads: map[int]time.Duration{1: waited}}, nil
				})
				cpu.Read()
				l.MeasureCPU(cpu)

				ctx, cancel := context.WithTimeout(t.Context(), 2*access.ShortRead)
				defer cancel()
				returned := make(chan struct{})
				first := l.Turns.Do(ctx, "bad", func() {
					defer close(returned)
					l.Files.Read("sys/bad/rate", nil)
				})
				_, second := l.Turns.Enter("bad")
				for i, err := range []error{first, second} {
					says := strings.Contains(fmt.Sprint(err), "for a CPU")
					if access.ReasonOf(err) != c.want || says != (c.want == access.Late) {
						t.Errorf("error %d: %v, want reason %s", i, err, c.want)
					}
				}
				w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				<-returned
			})
		})
	}
}
