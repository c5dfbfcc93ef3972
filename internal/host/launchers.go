package host

import (
	"context"
	"slices"
	"strconv"
	"time"

	"rdma_exporter/internal/snapshot"
)

// Launchers finds the services that start jobs.
type Launchers interface {
	// Launchers returns the processes with these names that init has started, one for each name, with their limits. whole
	// is false if the search was stopped after launcherTime. It requires no permission, unless /proc is mounted with
	// hidepid.
	Launchers(ctx context.Context, names []string) (found []snapshot.Launcher, whole bool, err error)
}

// launcherTime limits the search, which reads a file of each process once an hour: up to 0.1 ms each on a busy host.
const launcherTime = time.Second

// Launchers reads /proc/PID/stat of all processes, and /proc/PID/limits of those that match.
func (t *tree) Launchers(ctx context.Context, names []string) (found []snapshot.Launcher, whole bool, err error) {
	pids, err := t.pids()
	if err != nil {
		return nil, false, err
	}
	start := time.Now()
	var buf []byte
	for _, pid := range pids {
		dir := "proc/" + strconv.Itoa(pid)
		if ctx.Err() != nil || time.Since(start) > launcherTime {
			return found, false, nil
		}
		stat, err := t.Read(dir+"/stat", buf)
		if err != nil { // it has ended
			continue
		}
		buf = stat
		name := commandOf(stat)
		if !slices.Contains(names, name) || statField(stat, statParent) != "1" {
			continue
		}
		l := snapshot.Launcher{Name: name}
		b, err := t.Read(dir+"/limits", nil)
		if IsAbsent(err) {
			continue
		}
		if err != nil {
			l.Unread = string(ReasonOf(err))
		}
		l.LockedMemory, l.Unlimited = lockedMemory(b)
		if !slices.ContainsFunc(found, func(o snapshot.Launcher) bool { return o.Name == name }) {
			found = append(found, l)
		}
	}
	return found, true, nil
}
