package serve

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/state"
)

// StateRetry is the interval of retries to open a state directory.
const StateRetry = time.Minute

// alertMemory keeps the start times of active alerts, so that a restart does not restart their `for`, even if the
// samples are lost.
type alertMemory struct {
	file   *state.File[[]alerting.Active]
	locked bool      // by another process
	tried  time.Time // to open the directory
	known  []alerting.Active
	kept   []alerting.Active // in the file
	last   []alerting.Active // in the last round
	log    *slog.Logger
}

// openAlertMemory locks the directory, which includes the samples below it, and reads the file of alerts.
func openAlertMemory(ctx context.Context, dir string, log *slog.Logger) *alertMemory {
	a := &alertMemory{log: log, file: &state.File[[]alerting.Active]{
		Dir: dir, Log: log, Context: ctx, Unread: "could not restore alert state",
		Lost: "cannot write alert state, a restart restarts the for duration of alerts",
		Well: "writing alert state works again",
	}}
	if err := a.open(); err != nil {
		log.Warn("cannot use the alert state directory, trying again every minute; until then a restart loses alert state and history", "err", err)
	}
	return a
}

// open opens the directory and reads the alerts.
func (a *alertMemory) open() error {
	a.tried = time.Now()
	known, err := a.file.Open()
	if err != nil {
		a.locked = errors.Is(err, state.ErrLocked)
		return err
	}
	a.known, a.kept = known, known
	return nil
}

// reopen retries to open a directory that could not be used, and reports whether it succeeded. A locked directory is
// retried in each round, so that the alerts continue as soon as the other process ends.
func (a *alertMemory) reopen() bool {
	if a.file.IsOpen() || !a.locked && time.Since(a.tried) < StateRetry || a.open() != nil {
		return false
	}
	a.log.Info("alert state directory is available, alert state and history are saved")
	return true
}

// resume continues in a directory that has become available, with the alerts of the process that had locked it, or else
// with those of this process.
func (a *alertMemory) resume(e *alerting.Engine) {
	if a.locked {
		e.MoveTo(a.samplesDir(), a.known)
		return
	}
	e.SetDir(a.samplesDir())
}

// samplesDir returns the folder of the samples. The directory must be open.
func (a *alertMemory) samplesDir() string { return filepath.Join(a.file.Dir, "store") }

// alertsKept is the maximum age of the last-seen times of firing alerts in the file if nothing else changes. Those of
// pending alerts are written in each round: if the program is killed and the samples are lost, they are the only record
// of how long an alert was pending.
const alertsKept = time.Minute

// save writes the active alerts if they have changed.
func (a *alertMemory) save(active []alerting.Active) {
	a.last = active
	if _, failed := a.file.Last(); failed || isNews(a.kept, active) {
		a.write()
	}
}

// write writes the active alerts of the last round.
func (a *alertMemory) write() {
	if a.file.IsOpen() && a.file.Save(a.last) == nil {
		a.kept = a.last
	}
}

// isNews reports whether the alerts have to be written: they, their states or their start times differ from those in
// the file, or the file is too old.
func isNews(kept, active []alerting.Active) bool {
	return !slices.EqualFunc(kept, active, func(k, a alerting.Active) bool {
		age := a.SeenAt.Sub(k.SeenAt)
		return maps.Equal(k.Labels, a.Labels) && k.ActiveAt.Equal(a.ActiveAt) && k.Pending == a.Pending &&
			(age == 0 || age > 0 && age < alertsKept && !a.Pending)
	})
}

// close writes the last-seen times of the alerts.
func (a *alertMemory) close() {
	if len(a.last) > 0 {
		a.write()
	}
	command.LogError(a.log, "cannot close the alert state directory", a.file.Close())
}
