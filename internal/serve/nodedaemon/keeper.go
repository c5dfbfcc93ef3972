package nodedaemon

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/control"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/serve"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/words"
)

// listenControl serves the control socket until the listener is closed.
func (k *keeper) listenControl() (*http.Server, error) {
	mux := http.NewServeMux()
	control.HandleAccept(mux, k.plan, k.accept)
	k.planned.addHandlers(mux)
	for _, add := range k.commands {
		add(mux)
	}
	return control.Listen(k.file.Dir, mux, k.log)
}

// keeper saves the known links and devices of a live host in the state directory. Without a state directory it keeps
// them in memory.
type keeper struct {
	memory  *expect.Memory
	planned *planned
	file    *state.File[expect.Data] // nil for a replay: nothing is saved
	server  *http.Server             // of the control socket
	// commands add further handlers to the control socket.
	commands []func(*http.ServeMux)
	log      *slog.Logger
	writes   sync.WaitGroup
}

// newKeeper returns a keeper with the saved state. If the directory cannot be used, only the state of earlier runs is
// missing.
func newKeeper(ctx context.Context, c *machine.Config, m *machine.Machine, log *slog.Logger) *keeper {
	known, err := c.Remembered(ctx, m)
	command.LogError(log, "could not restore the known links and devices", err)
	k := &keeper{
		memory: expect.NewMemory(known), log: log,
		planned: newPlanned(filepath.Join(c.StateDir, machine.MaintenanceFolder), m.MaintenanceClock, log),
	}
	if m.Player != nil {
		return k
	}
	k.file = newStateFile(c.StateDir, log)
	k.file.Context, k.planned.file.Context = ctx, ctx
	if err := k.open(); err != nil {
		log.Warn("cannot use the state directory, trying again every minute; until then a restart loses the known links and devices, and "+
			control.Unreachable+" cannot reach this exporter", "err", err)
	}
	return k
}

// newStateFile returns the file of the known links and devices.
func newStateFile(dir string, log *slog.Logger) *state.File[expect.Data] {
	return &state.File[expect.Data]{
		Dir: dir, Log: log,
		Lost: "cannot write the state file, known links and devices are lost at the next restart",
		Well: "writing the state file works again",
	}
}

// open locks the directory and reads its state.
func (k *keeper) open() error {
	known, err := k.file.Open()
	if err != nil {
		return err
	}
	k.memory.Absorb(known)
	command.LogError(k.log, "cannot use the maintenance directory, maintenance cannot be announced", k.planned.open())
	return nil
}

// stateSettles is the delay of a write, to combine changes.
const stateSettles = time.Second

// start writes changes until ctx ends.
func (k *keeper) start(ctx context.Context) {
	if k.file != nil {
		k.planned.start(ctx)
		k.writes.Go(func() { k.writeChanges(ctx) })
	}
}

// listen serves the control socket, with the handlers of commands, as soon as the state directory is locked.
func (k *keeper) listen(commands ...func(*http.ServeMux)) {
	k.commands = commands
	if k.file == nil || !k.file.IsOpen() {
		return
	}
	server, err := k.listenControl()
	command.LogError(k.log, "cannot serve the control socket, "+control.Unreachable+" cannot reach this exporter", err)
	k.server = server
}

// writeChanges writes changes until ctx ends.
func (k *keeper) writeChanges(ctx context.Context) {
	for !k.file.IsOpen() {
		if !serve.Pause(ctx, serve.StateRetry) {
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
		if !serve.Pause(ctx, wait) {
			k.memory.Touch() // for close
			return
		}
		wait = stateSettles
		if k.write() != nil {
			k.memory.Touch()
			wait = serve.StateRetry
		}
	}
}

// write writes the known links and devices.
func (k *keeper) write() error { return k.file.Save(k.memory.Data()) }

// lastWrite returns the result of the last write; false for a replay.
func (k *keeper) lastWrite() (rounds.FileState, bool) {
	if k.file == nil {
		return rounds.FileState{}, false
	}
	at, failed := k.file.Last()
	return rounds.FileState{At: at, Failed: failed}, true
}

// close writes changes and unlocks the directory. The context of start has ended.
func (k *keeper) close() {
	k.writes.Wait()
	if k.file == nil || !k.file.IsOpen() {
		return
	}
	if k.server != nil {
		command.LogError(k.log, "cannot close the control socket", k.server.Close())
	}
	k.planned.close()
	select {
	case <-k.memory.Changed():
		command.LogError(k.log, "cannot write the state file, the last changes of links and devices are lost", k.write())
	default:
	}
	command.LogError(k.log, "cannot close the state directory", k.file.Close())
}

// plan returns the state that accept would discard.
func (k *keeper) plan(_ context.Context, names []string) (control.Accepted, error) {
	return newAnswer(k.memory.Accept(names, true))
}

// accept discards the state of some devices and links. It responds when the change is on disk.
func (k *keeper) accept(_ context.Context, names []string) (control.Accepted, error) {
	a, err := newAnswer(k.memory.Accept(names, false))
	if err != nil {
		return a, err
	}
	k.log.Info("change accepted", "discarded", a.Forgets)
	if err := k.write(); err != nil {
		return a, fmt.Errorf("accepted, but not saved: the earlier state returns at the next restart of the exporter: %w", err)
	}
	return a, nil
}

// newAnswer returns the state that is discarded, a line each.
func newAnswer(what expect.Accepted, unknown []string, err error) (control.Accepted, error) {
	a := control.Accepted{Unknown: map[string]string{}}
	for _, l := range what.Links {
		was := cmp.Or(command.RateText(l.Rate, l.Lanes), "ACTIVE")
		a.Forgets = append(a.Forgets, fmt.Sprintf("link %s: was %s", linkName(l), was))
	}
	for _, r := range what.Roles {
		a.Forgets = append(a.Forgets, fmt.Sprintf("port %s/%d: role was %s", r.Device, r.Port, r.Role))
	}
	ports := words.Map(what.Baselines, func(b expect.Baseline) string { return fmt.Sprintf("%s/%d", b.Device, b.Port) })
	slices.Sort(ports)
	for _, port := range slices.Compact(ports) {
		a.Forgets = append(a.Forgets, "port "+port+": baselines of bit errors and optics")
	}
	for _, p := range what.Idle {
		a.Forgets = append(a.Forgets, fmt.Sprintf("port %s: not ACTIVE, accepted as not in use", p))
	}
	for _, g := range what.GPUs {
		a.Forgets = append(a.Forgets, fmt.Sprintf("GPU %d (%s, %s): was present", g.Index, g.UUID, g.PCIAddress))
	}
	for _, f := range what.Functions {
		if f.Earlier != "" {
			a.Forgets = append(a.Forgets, fmt.Sprintf("device %s (%s): was named %s", f.Device, f.PCIAddress, f.Earlier))
			continue
		}
		a.Forgets = append(a.Forgets, fmt.Sprintf("device %s (%s): was present", f.Device, f.PCIAddress))
	}
	for _, name := range unknown {
		a.Unknown[name] = name + ": unknown device or port (see rdma_exporter expect list, rdma_exporter inventory list)"
	}
	return a, err
}

// linkName returns the name of a link, with its netdev.
func linkName(l expect.LinkRecord) string {
	s := fmt.Sprintf("%s/%d", l.Device, l.Port)
	if l.Netdev != "" {
		s += " " + l.Netdev
	}
	return words.Plain(s)
}
