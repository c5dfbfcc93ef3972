package app

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/state"
)

// keeper keeps what is remembered of a live host in the state directory. Without one it remembers for this run.
type keeper struct {
	memory *expect.Memory
	store  *state.Store // nil where nothing is kept
	server *http.Server // of the control socket
	log    *slog.Logger
	done   chan struct{} // closed when run has ended; nil until it starts

	mu    sync.Mutex
	state rounds.FileState // of the state file
}

// keeper begins with what is known. A directory that cannot be used costs the memory of earlier runs only.
func (c *config) keeper(m *machine, log *slog.Logger) *keeper {
	k := &keeper{log: log}
	if m.player == nil {
		var err error
		if k.store, err = state.Open(c.stateDir); err != nil {
			log.Warn("links and devices are remembered until the program ends only", "err", err)
			k.state.Failed = true
		} else if aside := k.store.SetAside(); aside != "" {
			log.Warn("the state file was damaged and an earlier one is used", "set aside", aside)
		}
	}
	known, err := c.remembered(m)
	discard(log, "nothing is known of links and devices from before", err)
	k.memory = expect.NewMemory(known)
	if k.store != nil {
		k.server, err = k.control(c.stateDir)
		discard(log, "expect accept and inventory accept do not reach this exporter", err)
	}
	return k
}

// A write waits for what changes together, and after a failure for somebody to mend it.
const (
	stateSettles = time.Second
	stateRetry   = time.Minute
)

// start writes what is new until ctx ends.
func (k *keeper) start(ctx context.Context) {
	if k.store != nil {
		k.done = make(chan struct{})
		go k.run(ctx)
	}
}

func (k *keeper) run(ctx context.Context) {
	defer close(k.done)
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
	k.mu.Lock()
	failed := k.state.Failed
	k.state.Failed = err != nil
	if err == nil {
		k.state.At = time.Now()
	}
	k.mu.Unlock()
	switch {
	case err != nil && !failed:
		k.log.Warn("cannot write the state file", "err", err)
	case err == nil && failed:
		k.log.Info("can write the state file again")
	}
	return err == nil
}

// current says how the last write went; false where nothing is kept on purpose.
func (k *keeper) current() (rounds.FileState, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state, k.store != nil || k.state.Failed
}

// close writes what is new and lets another process have the directory. The context of start has ended.
func (k *keeper) close() {
	if k.store == nil {
		return
	}
	if k.done != nil {
		<-k.done
	}
	if k.server != nil {
		discard(k.log, "cannot close the control socket", k.server.Close())
	}
	select {
	case <-k.memory.Changed():
		k.write()
	default:
	}
	discard(k.log, "cannot close the state directory", k.store.Close())
}
