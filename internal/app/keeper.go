package app

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/state"
)

// keeper saves the known links and devices of a live host in the state directory. Without one it keeps them for this run.
type keeper struct {
	memory  *expect.Memory
	planned *planned
	dir     string
	store   *state.Store // nil: nothing is saved
	server  *http.Server // of the control socket
	// commands add further handlers to the control socket.
	commands []func(*http.ServeMux)
	log      *slog.Logger
	retry    bool          // later: the directory cannot be used
	done     chan struct{} // closed when run has ended; nil until it starts

	mu    sync.Mutex
	state rounds.FileState // of the state file
}

// keeper starts with the saved state. If the directory cannot be used, only the state of earlier runs is missing.
func (c *config) keeper(m *machine, log *slog.Logger) *keeper {
	known, err := c.remembered(m)
	discard(log, "could not restore the known links and devices", err)
	k := &keeper{dir: c.stateDir, memory: expect.NewMemory(known), log: log}
	k.planned = &planned{dir: filepath.Join(c.stateDir, maintenanceFolder), clock: m.maintenanceClock, log: log}
	if m.player != nil {
		return k
	}
	if err := k.open(); err != nil {
		log.Warn("cannot use the state directory, trying again every minute; until then a restart loses the known links and devices, and "+unreachable+" cannot reach this exporter", "err", err)
		k.retry = true
	}
	return k
}

// open locks the directory and reads its state. A file that cannot be read is not overwritten.
func (k *keeper) open() error {
	store, err := state.Open(k.dir)
	if err == nil {
		var known expect.Data
		if err = store.Read(&known); err == nil || errors.Is(err, fs.ErrNotExist) {
			if aside := store.SetAside(); aside != "" {
				k.log.Warn("state file damaged, using the earlier one", "moved to", aside)
			}
			k.memory.Absorb(known)
			k.store = store
			discard(k.log, "cannot use the maintenance directory, maintenance cannot be announced", k.planned.open())
			k.note(nil)
			return nil
		}
		err = errors.Join(err, store.Close())
	}
	k.note(err)
	return err
}

// A write is delayed to combine changes, and is retried after a failure.
const (
	stateSettles = time.Second
	stateRetry   = time.Minute
)

// start writes changes until ctx ends.
func (k *keeper) start(ctx context.Context) {
	if k.store != nil || k.retry {
		k.planned.start(ctx)
		k.done = make(chan struct{})
		go k.run(ctx)
	}
}

// listen serves the control socket, with these commands too, as soon as the state directory is locked.
func (k *keeper) listen(commands ...func(*http.ServeMux)) {
	k.commands = commands
	if k.store == nil {
		return
	}
	server, err := k.control()
	discard(k.log, "cannot serve the control socket, "+unreachable+" cannot reach this exporter", err)
	k.server = server
}

func (k *keeper) run(ctx context.Context) {
	defer close(k.done)
	for k.store == nil {
		if !pause(ctx, stateRetry) {
			return
		}
		if k.open() == nil {
			k.log.Info("state directory is available, known links and devices are saved")
			k.listen(k.commands...)
		}
	}
	wait := stateSettles
	for {
		select {
		case <-k.memory.Changed():
		case <-ctx.Done():
			return
		}
		if !pause(ctx, wait) {
			k.memory.Touch() // for close
			return
		}
		wait = stateSettles
		if k.write() != nil {
			k.memory.Touch()
			wait = stateRetry
		}
	}
}

// pause reports whether it waited for all of d; ctx may end it earlier.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// write logs the beginning and the end of a persistent failure.
func (k *keeper) write() error {
	err := k.store.Write(k.memory.Data())
	switch failed := k.note(err); {
	case err != nil && !failed:
		k.log.Warn("cannot write the state file, known links and devices are lost at the next restart", "err", err)
	case err == nil && failed:
		k.log.Info("writing the state file works again")
	}
	return err
}

// note records a result, and reports whether the previous one was a failure.
func (k *keeper) note(err error) (failed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	failed, k.state.Failed = k.state.Failed, err != nil
	if err == nil {
		k.state.At = time.Now()
	}
	return failed
}

// current is the result of the last write; false for a replay.
func (k *keeper) current() (rounds.FileState, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state, k.state != rounds.FileState{}
}

// close writes changes and unlocks the directory. The context of start has ended.
func (k *keeper) close() {
	if k.done != nil {
		<-k.done
	}
	if k.store == nil {
		return
	}
	if k.server != nil {
		discard(k.log, "cannot close the control socket", k.server.Close())
	}
	k.planned.close()
	select {
	case <-k.memory.Changed():
		discard(k.log, "cannot write the state file, the last changes of links and devices are lost", k.write())
	default:
	}
	discard(k.log, "cannot close the state directory", k.store.Close())
}
