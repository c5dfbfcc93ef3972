package app

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/state"
)

// alertMemory keeps the start times of active alerts, so that a restart does not restart their `for`, even if the samples are lost.
type alertMemory struct {
	dir    string
	store  *state.Store // nil: the directory cannot be used
	retry  bool         // later: another process holds the lock
	known  []alerting.Active
	kept   []alerting.Active // in the file
	last   []alerting.Active // in the last round
	failed bool
	log    *slog.Logger
}

// openAlertMemory locks the directory, which includes the samples below it, and reads the file of alerts.
func openAlertMemory(dir string, log *slog.Logger) *alertMemory {
	a := &alertMemory{dir: dir, log: log}
	if err := a.open(); err != nil {
		log.Warn("cannot use the alert state directory, alert state and history are lost at the next restart", "err", err)
		a.retry = errors.Is(err, state.ErrLocked)
	}
	return a
}

func (a *alertMemory) open() (err error) {
	if a.store, err = state.Open(a.dir); err != nil {
		return err
	}
	if err := a.store.Read(&a.known); err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.log.Warn("could not restore alert state", "err", err)
	}
	a.kept, a.retry = a.known, false
	return nil
}

// reopen reports whether the directory was taken after another process released it.
func (a *alertMemory) reopen() bool {
	if !a.retry || a.open() != nil {
		return false
	}
	a.log.Info("alert state directory is available, alert state and history are saved")
	return true
}

// samples is the folder of the samples. The directory must be open.
func (a *alertMemory) samples() string { return filepath.Join(a.dir, "store") }

// alertsKept is the maximum age of the last-seen times in the file of alerts if nothing else changes. If the program is killed and the
// samples are lost, the outage that a restart assumes is longer by that at most.
const alertsKept = time.Minute

// save writes what has changed.
func (a *alertMemory) save(active []alerting.Active) {
	if a.last = active; a.failed || isNews(a.kept, active) {
		a.write()
	}
}

// write logs the beginning and the end of a persistent failure.
func (a *alertMemory) write() {
	if a.store == nil {
		return
	}
	err := a.store.Write(a.last)
	switch {
	case err == nil:
		a.kept = a.last
		if a.failed {
			a.log.Info("writing alert state works again")
		}
	case !a.failed:
		a.log.Warn("cannot write alert state, a restart restarts the for duration of alerts", "err", err)
	}
	a.failed = err != nil
}

// isNews reports whether alerts or their start times differ from those in the file, or the file is older than alertsKept.
func isNews(kept, active []alerting.Active) bool {
	return !slices.EqualFunc(kept, active, func(k, a alerting.Active) bool {
		age := a.SeenAt.Sub(k.SeenAt)
		return maps.Equal(k.Labels, a.Labels) && k.ActiveAt.Equal(a.ActiveAt) && age >= 0 && age < alertsKept
	})
}

// close writes the last-seen times of the alerts.
func (a *alertMemory) close() {
	if a.store != nil {
		if len(a.last) > 0 {
			a.write()
		}
		discard(a.log, "cannot close the alert state directory", a.store.Close())
	}
}
