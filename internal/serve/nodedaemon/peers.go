package nodedaemon

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/peers"
	"rdma_exporter/internal/serve"
	"rdma_exporter/internal/state"
)

// peersFolder is the directory of the connected queue pairs below the state directory.
const peersFolder = "peers"

// peersInterval is the least time between two writes: a queue pair that was connected since the last one is lost by a
// kill, and its peer unknown to the next run.
const peersInterval = 30 * time.Second

// peersKeeper saves the peers of connected queue pairs, which the kernel reports only when they connect.
type peersKeeper struct {
	table  *peers.Table
	file   *state.File[peers.Saved]
	log    *slog.Logger
	writes sync.WaitGroup
}

// newPeersKeeper returns a keeper with the saved peers. Without the directory a restart loses them.
func newPeersKeeper(ctx context.Context, stateDir string, log *slog.Logger) *peersKeeper {
	k := &peersKeeper{table: peers.New(), log: log, file: &state.File[peers.Saved]{
		Dir: filepath.Join(stateDir, peersFolder), Log: log, Context: ctx,
		Lost:   "cannot write the peers of queue pairs, they are unknown after the next restart",
		Well:   "writing the peers of queue pairs works again",
		Unread: "could not restore the peers of queue pairs, those of earlier connections are unknown",
	}}
	command.LogError(log, "cannot use the directory of peers, a restart loses the peers of queue pairs", k.open())
	return k
}

func (k *peersKeeper) open() error {
	saved, err := k.file.Open()
	if err == nil {
		k.table.Absorb(saved)
	}
	return err
}

// start writes changes until ctx ends.
func (k *peersKeeper) start(ctx context.Context) {
	if k == nil {
		return
	}
	k.writes.Go(func() {
		for !k.file.IsOpen() {
			if !serve.Pause(ctx, serve.StateRetry) {
				return
			}
			_ = k.open() // the failure is logged
		}
		for {
			select {
			case <-k.table.Changed():
				_ = k.file.Save(k.table.Data()) // logs a failure
			case <-ctx.Done():
				return
			}
			if !serve.Pause(ctx, peersInterval) {
				return
			}
		}
	})
}

// close writes what is connected. The context of start has ended.
func (k *peersKeeper) close() {
	if k == nil {
		return
	}
	k.writes.Wait()
	if !k.file.IsOpen() {
		return
	}
	_ = k.file.Save(k.table.Data())
	command.LogError(k.log, "cannot close the directory of peers", k.file.Close())
}
