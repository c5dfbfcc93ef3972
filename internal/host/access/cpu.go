package access

import (
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/prometheus/procfs"
)

// CPUTimes is how long this process has waited for a CPU since it started, from two sources.
type CPUTimes struct {
	// Threads is the time that each thread was runnable and did not run, by thread ID: run_delay of
	// /proc/self/task/TID/schedstat. /proc/self/schedstat is that of the first thread only.
	Threads map[int]time.Duration
	// Pressure is the time in which a task of the control group of this process waited: "some" of cpu.pressure. It
	// includes other processes of that group. nil: the kernel has no pressure stall information, or no unified hierarchy.
	Pressure *time.Duration
}

// waitedSince returns the time that this process waited for a CPU since an earlier reading, at most the time in
// between. Threads wait at the same time, so it is between the longest wait of a thread and the sum of all. The control
// group waits whenever one of its threads does.
func (now CPUTimes) waitedSince(before CPUTimes, elapsed time.Duration) time.Duration {
	var sum, longest time.Duration
	for id, total := range now.Threads {
		d := max(0, total-before.Threads[id]) // less than before: another thread with the ID of one that ended
		sum, longest = sum+d, max(longest, d)
	}
	waited := longest
	if now.Pressure != nil && before.Pressure != nil {
		waited = max(longest, min(sum, *now.Pressure-*before.Pressure))
	}
	return min(waited, elapsed)
}

// CPUWait adds up how long this process waited for a CPU. A nil CPUWait has measured nothing.
type CPUWait struct {
	read func() (CPUTimes, error)

	mu    sync.Mutex
	at    time.Time // of the last reading; zero: none
	last  CPUTimes
	total time.Duration
}

// NewCPUWait returns a CPUWait by readings of a source. Its total begins with the first one.
func NewCPUWait(read func() (CPUTimes, error)) *CPUWait { return &CPUWait{read: read} }

// cpuReadPause is the shortest time between two readings: many reads miss the same deadline.
const cpuReadPause = 10 * time.Millisecond

// Read takes a reading. One that fails changes nothing.
func (c *CPUWait) Read() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.at.IsZero() && now.Sub(c.at) < cpuReadPause {
		return
	}
	times, err := c.read()
	if err != nil {
		return
	}
	if !c.at.IsZero() {
		c.total += times.waitedSince(c.last, now.Sub(c.at))
	}
	c.at, c.last = now, times
}

// Total returns the total of the last reading; false: there is none.
func (c *CPUWait) Total() (time.Duration, bool) {
	if c == nil {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total, !c.at.IsZero()
}

// Moment is a time, and the total of the last reading before it.
type Moment struct {
	at     time.Time
	waited time.Duration
}

// Moment returns the present one. It takes no reading.
func (c *CPUWait) Moment() Moment {
	m := Moment{at: time.Now()}
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		m.waited = c.total
	}
	return m
}

// CPUOfProcess returns the source of CPUTimes of this process.
func CPUOfProcess() func() (CPUTimes, error) {
	return cpuTimes(procfs.DefaultMountPoint, "/sys/fs/cgroup")
}

// cpuTimes reads below the mount points of proc and of the control groups.
func cpuTimes(proc, cgroup string) func() (CPUTimes, error) {
	group := controlGroup(proc, cgroup)
	return func() (t CPUTimes, err error) {
		fs, err := procfs.NewFS(proc)
		if err != nil {
			return t, err
		}
		self, err := fs.Self()
		if err != nil {
			return t, err
		}
		threads, err := fs.AllThreads(self.PID)
		if err != nil {
			return t, err
		}
		t.Threads = make(map[int]time.Duration, len(threads))
		for _, thread := range threads {
			if s, err := thread.Schedstat(); err == nil { // else it has ended
				t.Threads[thread.PID] = time.Duration(s.WaitingNanoseconds)
			}
		}
		if len(t.Threads) == 0 {
			return t, errors.New("no thread has a schedstat")
		}
		if group != nil {
			t.Pressure = group()
		}
		return t, nil
	}
}

// controlGroup returns the pressure of the control group of this process; nil: it has none. Its path is read once,
// since that takes a lock of all control groups (cgroup_mutex, proc_cgroup_show).
func controlGroup(proc, mount string) func() *time.Duration {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return nil
	}
	self, err := fs.Self()
	if err != nil {
		return nil
	}
	groups, err := self.Cgroups()
	if err != nil {
		return nil
	}
	for _, g := range groups {
		if g.HierarchyID != 0 { // the unified one has 0
			continue
		}
		for _, root := range []string{mount, mount + "/unified"} { // the second beside hierarchies of version 1
			read := pressureOf(path.Join(root, g.Path))
			if read() != nil {
				return read
			}
		}
	}
	return nil
}

// pressureOf reads cpu.pressure of a control group. The library knows the same file as /proc/pressure/cpu, hence the
// path beside that directory.
func pressureOf(dir string) func() *time.Duration {
	return func() *time.Duration {
		group, err := procfs.NewFS(dir)
		if err != nil {
			return nil
		}
		stats, err := group.PSIStatsForResource("../cpu.pressure")
		if err != nil || stats.Some == nil {
			return nil
		}
		return new(time.Duration(stats.Some.Total) * time.Microsecond)
	}
}

const (
	// ShortRead is the time that a read has to last before it counts as blocked.
	ShortRead = 100 * time.Millisecond
	// nextLook is how long a read is observed anew after a time in which this process waited for a CPU.
	nextLook = time.Second
)

// pending is a read that has not returned: because the kernel blocks it, or because this process waits for a CPU.
type pending struct {
	start, since Moment // since: of the present look
	blocked      bool   // until it returns
}

func newPending(c *CPUWait) pending {
	now := c.Moment()
	return pending{start: now, since: now}
}

// missed is the error at the deadline. It wraps ErrStuck if this process waited for a CPU for less than half of the
// time since the last look, else ErrLate. A process whose reads are blocked does not wait for a CPU.
func (p *pending) missed(c *CPUWait) error {
	c.Read()
	now := c.Moment()
	look, least := now.at.Sub(p.since.at), ShortRead
	if p.since != p.start {
		least = nextLook
	}
	switch {
	case look < least: // decided by the next one
	case 2*(now.waited-p.since.waited) < look:
		p.blocked = true
	default:
		p.since = now
	}
	if p.blocked {
		return ErrStuck
	}
	return late(p.start, now)
}

// Late is the error of a read that was not begun at its deadline. It wraps ErrLate.
func (c *CPUWait) Late(since Moment) error {
	c.Read()
	return late(since, c.Moment())
}

// late is ErrLate with the time since start, and how much of it this process waited for a CPU.
func late(start, now Moment) error {
	took, waited := rounded(now.at.Sub(start.at)), rounded(now.waited-start.waited)
	if waited == 0 {
		return fmt.Errorf("%w in %s", ErrLate, took)
	}
	return fmt.Errorf("%w in %s; this process waited %s for a CPU", ErrLate, took, min(waited, took))
}

// rounded has one decimal of a second, or is in milliseconds.
func rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}
