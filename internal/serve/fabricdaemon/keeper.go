package fabricdaemon

import (
	"context"
	"log/slog"
	"net/http"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/control"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/state"
)

// keeper saves the known nodes and links of a live fabric in the state directory.
type keeper struct {
	file   *state.File[machine.FabricKept] // nil for a replay: nothing is saved
	server *http.Server                    // of the control socket
	log    *slog.Logger
}

// newKeeper returns a keeper and the saved state. If the directory cannot be used, only the state of earlier runs is
// missing.
func (f *Command) newKeeper(
	ctx context.Context, c *machine.Config, m *machine.Machine, log *slog.Logger,
) (k *keeper, known machine.FabricKept, err error) {
	k = &keeper{log: log}
	if m.Player != nil {
		known, err = c.RememberedFabric(ctx, m)
		return k, known, err
	}
	k.file = &state.File[machine.FabricKept]{Dir: c.FabricDir(), Log: log}
	known, err = k.file.Open()
	command.LogError(log, "cannot use the state directory, the state of the fabric is lost at the next restart", err)
	return k, known, nil
}

// keep saves the state after the first successful sweep through each port.
func (k *keeper) keep(x *machine.Fabric) {
	if k.file == nil {
		return
	}
	x.Monitor.Save = func(d fabric.Data) error {
		if !k.file.IsOpen() {
			return nil
		}
		return k.file.Write(machine.FabricKept{Data: d, From: *x.From.Load()})
	}
}

// listen serves the control socket.
func (k *keeper) listen(m *fabric.Monitor) {
	if k.file == nil || !k.file.IsOpen() {
		return
	}
	server, err := listenControl(k.file.Dir, m, k.log)
	if err != nil {
		k.log.Warn("cannot serve the control socket, rdma_exporter accept cannot reach this exporter", "err", err)
		return
	}
	k.server = server
}

// close closes the control socket and the directory.
func (k *keeper) close() {
	if k.server != nil {
		command.LogError(k.log, "cannot close the control socket", k.server.Close())
	}
	if k.file != nil && k.file.IsOpen() {
		command.LogError(k.log, "cannot close the state directory", k.file.Close())
	}
}

// listenControl serves the control socket of fabric until it is closed.
func listenControl(dir string, m *fabric.Monitor, log *slog.Logger) (*http.Server, error) {
	mux := http.NewServeMux()
	control.HandleAccept(mux, func(ctx context.Context, names []string) (a control.Accepted, err error) {
		a.Forgets, a.Unknown, err = m.Plan(ctx, names)
		return a, err
	}, func(ctx context.Context, names []string) (a control.Accepted, err error) {
		if a.Forgets, err = m.Accept(ctx, names, len(names) == 0); err == nil {
			log.Info("change accepted", "discarded", a.Forgets)
		}
		return a, err
	})
	return control.Listen(dir, mux, log)
}
