package serve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/version"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/rulefiles"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/web"
)

// fabricGC is GOGC in fabric mode, where most of the memory is the text of series: with 2,048 hosts it saves some 40
// MiB.
const fabricGC = 25

// Fabric is the command fabric, with its flags.
type Fabric struct {
	Web
	machine.FabricConfig
	alerting alertingConfig
	interval time.Duration
	full     time.Duration
	forget   time.Duration
}

// Flags adds the flags.
func (f *Fabric) Flags(a *kingpin.CmdClause) {
	f.Web.flags(a, machine.FabricPort)
	f.alerting.flags(a, machine.FabricJob, "1m")
	f.FabricConfig.Flags(a)
	a.Flag("fabric.interval", "Sweep interval; at least 1s.").Default("1m").DurationVar(&f.interval)
	a.Flag("fabric.full-interval",
		"Interval of querying the identity of all nodes, not only of those with changed links.").
		Default("10m").DurationVar(&f.full)
	a.Flag("fabric.forget-after", "Retention of nodes and links that are gone.").Default("168h").DurationVar(&f.forget)
}

func (f *Fabric) check() error {
	return cmp.Or(command.Checks{
		{f.interval < time.Second, fmt.Errorf("--fabric.interval=%s: must be 1s or more: each sweep queries every port of every switch", f.interval)},
		{f.full < f.interval, fmt.Errorf("--fabric.full-interval=%s: must be --fabric.interval (%s) or more", f.full, model.Duration(f.interval))},
		{f.forget < f.full, fmt.Errorf("--fabric.forget-after=%s: must be --fabric.full-interval (%s) or more", f.forget, model.Duration(f.full))},
	}.First(), f.FabricConfig.Check(), f.Web.check(), f.alerting.check())
}

// Run runs the command.
func (f *Fabric) Run(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	if err := cmp.Or(f.check(), f.checkFile(), f.checkDescriptors()); err != nil {
		return command.Usage(err)
	}
	runtime.GOMAXPROCS(c.MaxProcs)
	setGC(fabricGC)
	m, err := c.Open(time.Now())
	if err != nil {
		return command.Usage(err)
	}
	defer func() { command.LogError(std.Log, "cannot release the host files", m.Close()) }()
	kept, known, err := f.keeper(ctx, c, m, std.Log)
	if err != nil {
		return command.Usage(err)
	}
	defer kept.close()
	x := c.NewFabric(&f.FabricConfig, m, known, m.Clock, std.Log)
	x.Monitor.Interval, x.Monitor.Full, x.Monitor.Forget = f.interval, f.full, f.forget
	if m.Player != nil {
		x.Monitor.Full = 0 // a recording has the answers to full sweeps
	}
	kept.keep(x)
	j, err := f.loadRules(ctx, c, x, std.Log)
	if err != nil {
		return command.Usage(err)
	}
	defer j.close()
	shown, pages, err := f.page(x, j.daemon)
	if err != nil {
		return command.Usage(err)
	}
	o := web.Options{Rounds: x, Page: pages, Logger: std.Log, Findings: j.daemon.findings()}
	if j.daemon != nil {
		o.Alerting = j.engine
	}
	h, err := f.handler(o)
	if err != nil {
		return command.Usage(err)
	}
	kept.listen(x.Monitor)
	std.Log.Info("starting rdma_exporter fabric, sweeping from "+m.Describe(c), "version", version.Version,
		"revision", version.GetRevision())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	j.reload.onHangup(ctx)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel()
	s := sweeps{
		phase: phase(cmp.Or(m.Hostname(), f.Device), f.interval), interval: f.interval, log: std.Log,
		played: make(chan error, 1), begin: make(chan struct{}), swept: make(chan struct{}),
		done: func() {
			shown.forget()
			h.Ready()
		},
	}
	parts.Go(func() { x.Run(ctx, func(sweep func() error) { s.run(ctx, m, j.daemon, sweep) }) })
	if err := <-s.played; err != nil {
		return command.Usage(err)
	}
	return Until(ctx, h, f.toolkit, std.Log, func() {
		close(s.begin)
		if j.daemon != nil {
			parts.Go(func() { j.run(ctx, s.swept) })
		}
	})
}

// sweeps are the times of the sweeps of a daemon.
type sweeps struct {
	phase, interval time.Duration
	played          chan error    // of the recorded sweeps of a replay
	begin           chan struct{} // closed once the program serves
	swept           chan struct{} // closed after the first sweep
	done            func()        // called after each sweep
	log             *slog.Logger
}

// run plays the rounds of a replay, with their evaluation. Once the program serves, it sweeps immediately and at this
// host's phase of the interval, so that two exporters of one fabric do not sweep at the same time.
func (s *sweeps) run(ctx context.Context, m *machine.Machine, d *daemon, sweep func() error) {
	s.played <- m.PlayRounds(func() error {
		err := sweep()
		if err == nil && d != nil {
			err = d.round(ctx, 0)
		}
		return err
	})
	select {
	case <-s.begin:
	case <-ctx.Done():
		return
	}
	first := sync.OnceFunc(func() { close(s.swept) })
	tick(ctx, s.interval, s.phase, func() {
		command.LogError(s.log, "cannot replay the sweep", sweep())
		s.done()
		first()
	})
}

// fabricRules evaluates the rules of a fabric on its sweeps.
type fabricRules struct {
	*daemon // nil: no rules are evaluated
	reload  *reloader
}

// loadRules loads the rules of a fabric.
func (f *Fabric) loadRules(
	ctx context.Context, c *machine.Config, x *machine.Fabric, log *slog.Logger,
) (j fabricRules, err error) {
	at := address{&f.Web, &f.alerting, x.Machine}
	if f.alerting.on {
		f.alerting.runbooks = at.books()
	}
	read := func(globs []string, books rulefiles.RunbookURL) (*rulefiles.Files, error) {
		return readFabric(x, globs, books)
	}
	files, err := read(f.alerting.ruleFiles, f.alerting.runbooks)
	if err != nil {
		return j, err
	}
	if j.daemon, err = at.daemon(ctx, c, c.FabricDir(), files, log); err != nil {
		return j, err
	}
	j.reload = &reloader{
		site: &c.Site, daemon: j.daemon, ruleFiles: f.alerting.ruleFiles, read: read, rules: files,
		books: f.alerting.runbooks, log: log, state: rounds.FileState{At: time.Now()},
	}
	if err := j.reload.begin(); err != nil {
		j.close()
		return j, err
	}
	x.Coverage = j.reload.coverage.Load
	if j.daemon != nil {
		j.phase += f.alerting.interval / 4 // after the sweep, where both have one interval
		j.rounds, j.seen.of = x, x.Seen
		x.Alerting = func() []exposition.Family { return rounds.AlertingFamilies(j.daemon.current()) }
	}
	return j, nil
}

// readFabric reads the rules, and adds what they read to the metrics of the rounds of a fabric.
func readFabric(x *machine.Fabric, globs []string, books rulefiles.RunbookURL) (*rulefiles.Files, error) {
	files, err := rulefiles.ReadFabric(globs, books)
	if err != nil {
		return nil, err
	}
	own, err := files.Own()
	if before := x.Reads.Load(); before != nil {
		maps.Copy(own, *before) // a reload may fail
	}
	x.Reads.Store(&own)
	return files, err
}

// run evaluates the rules from the first sweep on, or from an interval later: a sweep that does not end is a fault.
func (j fabricRules) run(ctx context.Context, swept <-chan struct{}) {
	select {
	case <-swept:
	case <-time.After(j.config.interval):
	case <-ctx.Done():
		return
	}
	j.daemon.run(ctx)
}

func (j fabricRules) close() {
	if j.daemon != nil {
		j.daemon.close()
	}
}

// fabricKeeper saves what is known of a live fabric in the state directory.
type fabricKeeper struct {
	file   *state.File[machine.FabricKept] // nil for a replay: nothing is saved
	server *http.Server                    // of the control socket
	log    *slog.Logger
}

// keeper starts with the saved state. If the directory cannot be used, only the state of earlier runs is missing.
func (f *Fabric) keeper(
	ctx context.Context, c *machine.Config, m *machine.Machine, log *slog.Logger,
) (k *fabricKeeper, known machine.FabricKept, err error) {
	k = &fabricKeeper{log: log}
	if m.Player != nil {
		known, err = c.RememberedFabric(ctx, m)
		return k, known, err
	}
	k.file = &state.File[machine.FabricKept]{Dir: c.FabricDir(), Log: log}
	known, err = k.file.Open()
	command.LogError(log, "cannot use the state directory, the state of the fabric is lost at the next restart", err)
	return k, known, nil
}

// keep saves the state after each first sweep through a port that has not failed.
func (k *fabricKeeper) keep(x *machine.Fabric) {
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
func (k *fabricKeeper) listen(m *fabric.Monitor) {
	if k.file == nil || !k.file.IsOpen() {
		return
	}
	server, err := fabricControl(k.file.Dir, m, k.log)
	if err != nil {
		k.log.Warn("cannot serve the control socket, rdma_exporter accept cannot reach this exporter", "err", err)
		return
	}
	k.server = server
}

func (k *fabricKeeper) close() {
	if k.server != nil {
		command.LogError(k.log, "cannot close the control socket", k.server.Close())
	}
	if k.file != nil && k.file.IsOpen() {
		command.LogError(k.log, "cannot close the state directory", k.file.Close())
	}
}
