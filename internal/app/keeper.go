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

// keeper keeps what is remembered of a live host in the state directory. Without one it remembers for this run.
type keeper struct {
	memory  *expect.Memory
	planned *planned
	dir     string
	store   *state.Store // nil where nothing is kept
	server  *http.Server // of the control socket
	log     *slog.Logger
	retry   bool          // the directory may be to be had later: another process has it
	done    chan struct{} // closed when run has ended; nil until it starts

	mu    sync.Mutex
	state rounds.FileState // of the state file
}

// keeper begins with what is known. A directory that cannot be used costs the memory of earlier runs only.
func (c *config) keeper(m *machine, log *slog.Logger) *keeper {
	known, err := c.remembered(m)
	discard(log, "nothing is known of links and devices from before", err)
	k := &keeper{dir: c.stateDir, memory: expect.NewMemory(known), log: log}
	k.planned = &planned{dir: filepath.Join(c.stateDir, maintenanceFolder), clock: m.maintenanceClock, log: log}
	if m.player != nil {
		return k
	}
	if err := k.open(); err != nil {
		log.Warn("links and devices are remembered until the program ends only", "err", err)
		k.retry = errors.Is(err, state.ErrLocked)
	}
	return k
}

// open takes the directory, and what is in it. What cannot be read is not written over.
func (k *keeper) open() error {
	store, err := state.Open(k.dir)
	if err == nil {
		var known expect.Data
		if err = store.Read(&known); err == nil || errors.Is(err, fs.ErrNotExist) {
			if aside := store.SetAside(); aside != "" {
				k.log.Warn("the state file was damaged and an earlier one is used", "set aside", aside)
			}
			k.memory.Absorb(known)
			k.store, err = store, nil
			discard(k.log, "maintenance cannot be announced", k.planned.open())
			k.server, err = k.control()
			discard(k.log, "accept and maintenance do not reach this exporter", err)
			k.note(nil)
			return nil
		}
		err = errors.Join(err, store.Close())
	}
	k.note(err)
	return err
}

// A write waits for what changes together, and after a failure for somebody to mend it.
const (
	stateSettles = time.Second
	stateRetry   = time.Minute
)

// start writes what is new until ctx ends.
func (k *keeper) start(ctx context.Context) {
	if k.store != nil || k.retry {
		k.planned.start(ctx)
		k.done = make(chan struct{})
		go k.run(ctx)
	}
}

func (k *keeper) run(ctx context.Context) {
	defer close(k.done)
	for k.store == nil {
		if !pause(ctx, stateRetry) {
			return
		}
		if k.open() == nil {
			k.log.Info("the state directory is free: links and devices are remembered")
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

// pause waits; false when ctx has ended before.
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

// write logs a lasting failure when it starts and when it ends.
func (k *keeper) write() error {
	err := k.store.Write(k.memory.Data())
	switch failed := k.note(err); {
	case err != nil && !failed:
		k.log.Warn("cannot write the state file", "err", err)
	case err == nil && failed:
		k.log.Info("can write the state file again")
	}
	return err
}

// note keeps how it went, and returns whether it went wrong the last time.
func (k *keeper) note(err error) (failed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	failed, k.state.Failed = k.state.Failed, err != nil
	if err == nil {
		k.state.At = time.Now()
	}
	return failed
}

// current says how the last write went; false where nothing is kept on purpose.
func (k *keeper) current() (rounds.FileState, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state, k.state != rounds.FileState{}
}

// close writes what is new and lets another process have the directory. The context of start has ended.
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
		discard(k.log, "what is new is lost", k.write())
	default:
	}
	discard(k.log, "cannot close the state directory", k.store.Close())
}
