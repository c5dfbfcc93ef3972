package proc

import (
	"context"
	"slices"
	"strconv"
	"time"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/snapshot/hostdata"
)

// launcherTime limits the search, which reads a file of each process once an hour: up to 0.1 ms each on a busy host.
const launcherTime = time.Second

// Launchers reads /proc/PID/stat of all processes, and /proc/PID/limits of those that match.
// launchers are those of a tree.
type Launchers struct{ Tree *rooted.Tree }

func (l Launchers) Launchers(ctx context.Context, names []string) (found []hostdata.Launcher, whole bool, err error) {
	pids, err := l.Tree.Pids()
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
		stat, err := l.Tree.Read(dir+"/stat", buf)
		if err != nil { // it has ended
			continue
		}
		buf = stat
		name := commandOf(stat)
		if !slices.Contains(names, name) || statField(stat, statParent) != "1" {
			continue
		}
		one := hostdata.Launcher{Name: name}
		b, err := l.Tree.Read(dir+"/limits", nil)
		if access.IsAbsent(err) {
			continue
		}
		if err != nil {
			one.Unread = string(access.ReasonOf(err))
		}
		one.LockedMemory, one.Unlimited = lockedMemory(b)
		if !slices.ContainsFunc(found, func(o hostdata.Launcher) bool { return o.Name == name }) {
			found = append(found, one)
		}
	}
	return found, true, nil
}
