package app

import (
	"errors"
	"io/fs"
	"log/slog"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/state"
)

// alertMemory keeps since when alerts are active, so that a restart does not begin their waiting anew even where the samples are lost.
type alertMemory struct {
	store  *state.Store // nil: the directory is not to be had
	known  []alerting.Active
	kept   int // alerts in the file
	failed bool
	log    *slog.Logger
}

// openAlertMemory takes the directory and reads what is in it. While it is open nobody else has the samples below it either.
func openAlertMemory(dir string, log *slog.Logger) *alertMemory {
	a := &alertMemory{log: log}
	store, err := state.Open(dir)
	if err != nil {
		log.Warn("alerts and their history are kept until the program ends only", "err", err)
		return a
	}
	a.store = store
	if err := store.Read(&a.known); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("nothing is known of the alerts before", "err", err)
	}
	a.kept = len(a.known)
	return a
}

// save writes while there is something to keep, and logs a lasting failure when it starts and when it ends.
func (a *alertMemory) save(active []alerting.Active) {
	if a.store == nil || len(active) == 0 && a.kept == 0 {
		return
	}
	err := a.store.Write(active)
	switch {
	case err == nil:
		a.kept = len(active)
		if a.failed {
			a.log.Info("can write the file of alerts again")
		}
	case !a.failed:
		a.log.Warn("cannot write the file of alerts: a restart begins their waiting anew", "err", err)
	}
	a.failed = err != nil
}

func (a *alertMemory) close() {
	if a.store != nil {
		discard(a.log, "cannot close the directory of alerts", a.store.Close())
	}
}
