package app

import (
	"context"
	"log/slog"
	"time"

	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/state"
)

// keeper keeps what is remembered of a live host in the state directory. Without one it remembers for this run.
type keeper struct {
	memory *expect.Memory
	store  *state.Store // nil where nothing is kept
	log    *slog.Logger
	failed bool // the last write did
}

// keeper begins with what is known. A directory that cannot be used costs the memory of earlier runs only.
func (c *config) keeper(m *machine, log *slog.Logger) *keeper {
	k := &keeper{log: log}
	if m.player == nil {
		var err error
		if k.store, err = state.Open(c.stateDir); err != nil {
			log.Warn("links and devices are remembered until the program ends only", "err", err)
		} else if aside := k.store.SetAside(); aside != "" {
			log.Warn("the state file was damaged and an earlier one is used", "set aside", aside)
		}
	}
	known, err := c.remembered(m)
	discard(log, "nothing is known of links and devices from before", err)
	k.memory = expect.NewMemory(known)
	return k
}

// A write waits for what changes together, and after a failure for somebody to mend it.
const (
	stateSettles = time.Second
	stateRetry   = time.Minute
)

// run writes what is new until ctx ends.
func (k *keeper) run(ctx context.Context) {
	if k.store == nil {
		return
	}
	wait := stateSettles
	for {
		select {
		case <-k.memory.Changed():
		case <-ctx.Done():
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			k.memory.Touch() // for close
			return
		}
		wait = stateSettles
		if !k.write() {
			k.memory.Touch()
			wait = stateRetry
		}
	}
}

// write logs a lasting failure when it starts and when it ends.
func (k *keeper) write() bool {
	err := k.store.Write(k.memory.Data())
	switch {
	case err != nil && !k.failed:
		k.log.Warn("cannot write the state file", "err", err)
	case err == nil && k.failed:
		k.log.Info("can write the state file again")
	}
	k.failed = err != nil
	return err == nil
}

// close writes what is new and lets another process have the directory.
func (k *keeper) close() {
	if k.store == nil {
		return
	}
	select {
	case <-k.memory.Changed():
		k.write()
	default:
	}
	discard(k.log, "cannot close the state directory", k.store.Close())
}
