// Package fabricdaemon implements the command fabric, the daemon of an InfiniBand subnet: sweeps, pages, saved state.
package fabricdaemon

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/version"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/rulefiles"
	"rdma_exporter/internal/serve"
	"rdma_exporter/internal/web"
)

// gcPercent is GOGC in fabric mode, where most of the memory is the text of series: with 2,048 hosts it saves some 40
// MiB.
const gcPercent = 25

// Name is the name of the command.
const Name = "fabric"

// Command is the command fabric, with its flags.
type Command struct {
	serve.Web
	machine.FabricConfig
	alerting serve.Alerting
	interval time.Duration
	full     time.Duration
	forget   time.Duration
}

// Flags adds the flags.
func (f *Command) Flags(a *kingpin.CmdClause) {
	f.Web.Flags(a, machine.FabricPort)
	f.alerting.Flags(a, machine.FabricJob, "1m")
	f.FabricConfig.Flags(a)
	a.Flag("fabric.interval", "Sweep interval; at least 1s.").Default("1m").DurationVar(&f.interval)
	a.Flag("fabric.full-interval",
		"Interval of querying the identity of all nodes, not only of those with changed links.").
		Default("10m").DurationVar(&f.full)
	a.Flag("fabric.forget-after", "Retention of nodes and links that are gone.").Default("168h").DurationVar(&f.forget)
}

// check validates the flags.
func (f *Command) check() error {
	return cmp.Or(command.Checks{
		{f.interval < time.Second, fmt.Errorf("--fabric.interval=%s: must be 1s or more: each sweep queries every port of every switch", f.interval)},
		{f.full < f.interval, fmt.Errorf("--fabric.full-interval=%s: must be --fabric.interval (%s) or more", f.full, model.Duration(f.interval))},
		{f.forget < f.full, fmt.Errorf("--fabric.forget-after=%s: must be --fabric.full-interval (%s) or more", f.forget, model.Duration(f.full))},
	}.First(), f.FabricConfig.Check(), f.Web.Check(), f.alerting.Check())
}

// Run runs the command.
func (f *Command) Run(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	if err := cmp.Or(f.check(), f.CheckFile(), f.CheckDescriptors()); err != nil {
		return command.Usage(err)
	}
	runtime.GOMAXPROCS(c.MaxProcs)
	serve.SetGC(gcPercent)
	m, err := c.Open(time.Now())
	if err != nil {
		return command.Usage(err)
	}
	defer func() { command.LogError(std.Log, "cannot release the host files", m.Close()) }()
	kept, known, err := f.newKeeper(ctx, c, m, std.Log)
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
	cache, pages, err := f.newPages(x, j.Daemon)
	if err != nil {
		return command.Usage(err)
	}
	o := web.Options{Rounds: x, Page: pages, Logger: std.Log, Findings: j.Daemon.FindingsWriter()}
	if j.Daemon != nil {
		o.Alerting = j.Engine
	}
	h, err := f.NewHandler(o)
	if err != nil {
		return command.Usage(err)
	}
	kept.listen(x.Monitor)
	std.Log.Info("starting rdma_exporter fabric, sweeping from "+m.Describe(c), "version", version.Version,
		"revision", version.GetRevision())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	j.reload.ReloadOnHangup(ctx)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel()
	s := sweeps{
		phase: serve.HostPhase(cmp.Or(m.Hostname(), f.Device), f.interval), interval: f.interval, log: std.Log,
		played: make(chan error, 1), begin: make(chan struct{}), swept: make(chan struct{}),
		done: func() {
			cache.forget()
			h.Ready()
		},
	}
	parts.Go(func() { x.Run(ctx, func(sweep func() error) { s.run(ctx, m, j.Daemon, sweep) }) })
	if err := <-s.played; err != nil {
		return command.Usage(err)
	}
	return serve.ListenAndServe(ctx, h, f.Toolkit, std.Log, func() {
		close(s.begin)
		if j.Daemon != nil {
			parts.Go(func() { j.run(ctx, s.swept) })
		}
	})
}

// sweeps is the schedule of the sweeps.
type sweeps struct {
	phase, interval time.Duration
	played          chan error    // of the recorded sweeps of a replay
	begin           chan struct{} // closed once the program serves
	swept           chan struct{} // closed after the first sweep
	done            func()        // called after each sweep
	log             *slog.Logger
}

// run plays the rounds of a replay and evaluates them. Once the program serves, it sweeps immediately and then at the
// host's phase of the interval, so that two exporters of one fabric do not sweep at the same time.
func (s *sweeps) run(ctx context.Context, m *machine.Machine, d *serve.Daemon, sweep func() error) {
	s.played <- m.PlayRounds(func() error {
		err := sweep()
		if err == nil && d != nil {
			err = d.Round(ctx, 0)
		}
		return err
	})
	select {
	case <-s.begin:
	case <-ctx.Done():
		return
	}
	first := sync.OnceFunc(func() { close(s.swept) })
	serve.Tick(ctx, s.interval, s.phase, func() {
		command.LogError(s.log, "cannot replay the sweep", sweep())
		s.done()
		first()
	})
}

// ruleDaemon evaluates the rules of a fabric on its sweeps.
type ruleDaemon struct {
	*serve.Daemon // nil: no rules are evaluated
	reload        *serve.Reloader
}

// loadRules loads the rules of a fabric.
func (f *Command) loadRules(
	ctx context.Context, c *machine.Config, x *machine.Fabric, log *slog.Logger,
) (j ruleDaemon, err error) {
	at := serve.Address{Web: &f.Web, Alerting: &f.alerting, Machine: x.Machine}
	at.SetRunbooks()
	read := func(globs []string, books rulefiles.RunbookURL) (*rulefiles.Files, error) {
		return readRules(x, globs, books)
	}
	files, err := read(f.alerting.RuleFiles, f.alerting.Runbooks)
	if err != nil {
		return j, err
	}
	if j.Daemon, err = at.NewDaemon(ctx, c, c.FabricDir(), files, x.Seen, log); err != nil {
		return j, err
	}
	if j.reload, err = serve.NewReloader(&c.Site, &f.alerting, j.Daemon, files, read, log); err != nil {
		j.close()
		return j, err
	}
	x.Coverage = j.reload.Detector
	if j.Daemon != nil {
		j.Phase += f.alerting.Interval / 4 // after the sweep, where both have one interval
		j.Rounds = x
		x.Alerting = func() []exposition.Family { return rounds.AlertingFamilies(j.Daemon.State()) }
	}
	return j, nil
}

// readRules reads the rules, and adds the metrics that they need to those of the rounds of a fabric.
func readRules(x *machine.Fabric, globs []string, books rulefiles.RunbookURL) (*rulefiles.Files, error) {
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

// run evaluates the rules after the first sweep, or after one interval if that sweep has not ended, which is a fault.
func (j ruleDaemon) run(ctx context.Context, swept <-chan struct{}) {
	select {
	case <-swept:
	case <-time.After(j.Interval()):
	case <-ctx.Done():
		return
	}
	j.Daemon.Run(ctx)
}

// close closes the daemon, after the last round has ended.
func (j ruleDaemon) close() {
	if j.Daemon != nil {
		j.Daemon.Close()
	}
}
