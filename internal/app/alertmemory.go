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

// alertMemory keeps since when alerts are active, so that a restart does not begin their waiting anew even where the samples are lost.
type alertMemory struct {
	dir    string
	store  *state.Store // nil: the directory is not to be had
	retry  bool         // it may be later: another process has it
	known  []alerting.Active
	kept   []alerting.Active // in the file
	last   []alerting.Active // in the last round
	failed bool
	log    *slog.Logger
}

// openAlertMemory takes the directory and reads what is in it. While it is open nobody else has the samples below it either.
func openAlertMemory(dir string, log *slog.Logger) *alertMemory {
	a := &alertMemory{dir: dir, log: log}
	if err := a.open(); err != nil {
		log.Warn("alerts and their history are kept until the program ends only", "err", err)
		a.retry = errors.Is(err, state.ErrLocked)
	}
	return a
}

func (a *alertMemory) open() (err error) {
	if a.store, err = state.Open(a.dir); err != nil {
		return err
	}
	if err := a.store.Read(&a.known); err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.log.Warn("nothing is known of the alerts before", "err", err)
	}
	a.kept, a.retry = a.known, false
	return nil
}

// reopen takes the directory when another process has let it go.
func (a *alertMemory) reopen() bool {
	if !a.retry || a.open() != nil {
		return false
	}
	a.log.Info("the state directory is free: alerts and their history are kept")
	return true
}

// samples is the folder of the samples. The directory has been taken.
func (a *alertMemory) samples() string { return filepath.Join(a.dir, "store") }

// alertsKept is how long the file of alerts tells when they were seen last, if they do not change. What a restart takes for the time in
// which nobody looked is longer by that at most, where this program is killed and the samples are lost.
const alertsKept = time.Minute

// save writes what has changed.
func (a *alertMemory) save(active []alerting.Active) {
	if a.last = active; a.failed || isNews(a.kept, active) {
		a.write()
	}
}

// write logs a lasting failure when it starts and when it ends.
func (a *alertMemory) write() {
	if a.store == nil {
		return
	}
	err := a.store.Write(a.last)
	switch {
	case err == nil:
		a.kept = a.last
		if a.failed {
			a.log.Info("can write the file of alerts again")
		}
	case !a.failed:
		a.log.Warn("cannot write the file of alerts: a restart begins their waiting anew", "err", err)
	}
	a.failed = err != nil
}

// isNews says whether the alerts are others than those in the file, or wait since another time, or were seen there too long ago.
func isNews(kept, active []alerting.Active) bool {
	return !slices.EqualFunc(kept, active, func(k, a alerting.Active) bool {
		age := a.SeenAt.Sub(k.SeenAt)
		return maps.Equal(k.Labels, a.Labels) && k.ActiveAt.Equal(a.ActiveAt) && age >= 0 && age < alertsKept
	})
}

// close writes when the alerts were seen last.
func (a *alertMemory) close() {
	if a.store != nil {
		if len(a.last) > 0 {
			a.write()
		}
		discard(a.log, "cannot close the directory of alerts", a.store.Close())
	}
}
