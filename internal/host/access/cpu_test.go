package access

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitedSince(t *testing.T) {
	s := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	p := func(n float64) *time.Duration { return new(s(n)) }
	for _, c := range []struct {
		name        string
		before, now CPUTimes
		want        time.Duration
	}{
		{"nothing", CPUTimes{Threads: map[int]time.Duration{1: s(3)}}, CPUTimes{Threads: map[int]time.Duration{1: s(3)}}, 0},
		{"the longest", CPUTimes{}, CPUTimes{Threads: map[int]time.Duration{1: s(3), 2: s(2)}}, s(3)},
		{"pressure below the sum", CPUTimes{Pressure: p(1)}, CPUTimes{map[int]time.Duration{1: s(3), 2: s(2)}, p(5)}, s(4)},
		{"others of the group wait", CPUTimes{Pressure: p(1)}, CPUTimes{map[int]time.Duration{1: s(3), 2: s(2)}, p(9)}, s(5)},
		{"pressure below a thread", CPUTimes{Pressure: p(1)}, CPUTimes{map[int]time.Duration{1: s(3)}, p(1)}, s(3)},
		{"pressure unknown before", CPUTimes{}, CPUTimes{map[int]time.Duration{1: s(1)}, p(9)}, s(1)},
		{"a thread ID used again", CPUTimes{Threads: map[int]time.Duration{1: s(7)}}, CPUTimes{Threads: map[int]time.Duration{1: s(1)}}, 0},
		{"not more than the time", CPUTimes{}, CPUTimes{Threads: map[int]time.Duration{1: s(30)}}, s(10)},
	} {
		if got := c.now.waitedSince(c.before, s(10)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestLateOrBlocked: a read that does not return is blocked only if this process had a CPU meanwhile.
func TestLateOrBlocked(t *testing.T) {
	for _, c := range []struct {
		name  string
		share float64 // of the time in which a thread waits
		want  error
		text  string
	}{
		{"a CPU all the time", 0, ErrStuck, "a: read blocked in the kernel"},
		{"waits for less than half", 0.4, ErrStuck, "a: read blocked in the kernel"},
		{"waits for most", 0.81, ErrLate, "a: no answer in 10s; this process waited 8.1s for a CPU"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				turns := NewTurns()
				turns.CPU = NewCPUWait(func() (CPUTimes, error) {
					return CPUTimes{Threads: map[int]time.Duration{1: time.Duration(c.share * float64(time.Since(start)))}}, nil
				})
				turns.CPU.Read()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				err := turns.Do(ctx, "a", func() { time.Sleep(time.Minute) })
				if !errors.Is(err, c.want) || err.Error() != c.text {
					t.Errorf("%v, want %s", err, c.text)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// TestBlockedAfterAWait: once there is a CPU again, a read that is still out is blocked, and stays so until it returns.
func TestBlockedAfterAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waited time.Duration
		turns := NewTurns()
		turns.CPU = NewCPUWait(func() (CPUTimes, error) { return CPUTimes{Threads: map[int]time.Duration{1: waited}}, nil })
		turns.CPU.Read()
		leave, err := turns.Enter("a")
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			after, wait time.Duration
			want        error
		}{
			{time.Hour, time.Hour, ErrLate},
			{500 * time.Millisecond, 0, ErrLate}, // too short to tell
			{10 * time.Second, time.Second, ErrStuck},
			{10 * time.Second, 10 * time.Second, ErrStuck},
		} {
			time.Sleep(step.after)
			waited += step.wait
			if _, err := turns.Enter("a"); !errors.Is(err, step.want) {
				t.Errorf("%v, want %v", err, step.want)
			}
		}
		leave()
		if leave, err = turns.Enter("a"); err != nil {
			t.Error(err)
		}
		leave()
	})
}

// TestCancelledReadIsNoFailure of the device.
func TestCancelledReadIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		err := NewTurns().Do(ctx, "a", func() { time.Sleep(time.Minute) })
		if !errors.Is(err, context.Canceled) || Unanswered(err) {
			t.Error(err)
		}
		time.Sleep(time.Minute)
	})
}

func TestCPUTimes(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"proc/7/cgroup":                    "3:cpu:/other\n0::/unit\n",
		"proc/7/task/7/schedstat":          "1000 2000 3\n",
		"proc/7/task/8/schedstat":          "1000 5000 3\n",
		"cgroup/unified/unit/cpu.pressure": "some avg10=1.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
		"proc/7/task/9/comm":               "ended\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755),
			os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("7", filepath.Join(dir, "proc/self")); err != nil {
		t.Fatal(err)
	}
	want := CPUTimes{map[int]time.Duration{7: 2000, 8: 5000}, new(12 * time.Microsecond)}
	if got, err := cpuTimes(dir+"/proc", dir+"/cgroup")(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v, want %+v", got, err, want)
	}
	want.Pressure = nil
	if got, err := cpuTimes(dir+"/proc", dir+"/none")(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("without pressure: %+v %v, want %+v", got, err, want)
	}
	if _, err := cpuTimes(dir+"/none", dir+"/none")(); err == nil {
		t.Error("without proc: no error")
	}
}

func BenchmarkCPUOfProcess(b *testing.B) {
	read := CPUOfProcess()
	for b.Loop() {
		if _, err := read(); err != nil {
			b.Fatal(err)
		}
	}
}
