// Package nodedaemon implements the command serve, the daemon of a node: page, saved state, maintenance, flight
// recorder.
package nodedaemon

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/job"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/rulefiles"
	"rdma_exporter/internal/serve"
	"rdma_exporter/internal/verdict"
	"rdma_exporter/internal/web"
)

// Command is the command serve, with its flags.
type Command struct {
	Serve serve.Serve
	serve.Web
	minInterval    time.Duration
	noBudget       bool
	sampleInterval time.Duration // of ports that are paused or send pause; 0: disabled
	moduleInterval time.Duration // of transceivers; 0: disabled
	gpuInterval    time.Duration
	listenLLDP     bool
	askNCCL        bool
	lifecycle      bool
	alerting       serve.Alerting
}

// Name is the name of the command, which is the default.
const Name = "serve"

// Flags adds the flags.
func (s *Command) Flags(a *kingpin.CmdClause) {
	s.Web.Flags(a, machine.DefaultPort)
	a.Flag("web.enable-lifecycle", "Accept reload and release of the GPUs over HTTP (POST /-/reload, /-/gpu/release), from every client that can scrape.").BoolVar(&s.lifecycle)
	s.alerting.Flags(a, "rdma_exporter", "15s")
	a.Flag("pfc.sample-interval",
		"Interval of reading the pause times of ports that are paused or send pause; at least 1s. 0s disables.").
		Default("1s").DurationVar(&s.sampleInterval)
	a.Flag("transceiver.interval", "Interval of reading transceivers; at least 5s. 0s disables.").
		Default("30s").DurationVar(&s.moduleInterval)
	a.Flag("collector.gpu.interval", "Interval of reading GPUs; at least 1s.").Default("15s").DurationVar(&s.gpuInterval)
	a.Flag("collector.neighbour.listen", "Receive the LLDP announcements of switches on the interfaces of RDMA ports. Adds the LLDP multicast addresses to the filters of the NICs. Requires CAP_NET_RAW. Off by default.").
		BoolVar(&s.listenLLDP)
	a.Flag("collector.gdr.nccl-ras", "While a port of a job has an alert, ask NCCL's RAS service about the job every 5m, on the host of its rank 0 only. The answer is evidence in check and on the page, and no alert depends on it. Reaches jobs in the network namespace of the exporter. Off by default.").BoolVar(&s.askNCCL)
	a.Flag("collect.min-interval", "A collection younger than this is served again. 0s collects for each scrape.").
		Default("1s").DurationVar(&s.minInterval)
	a.Flag("collect.no-budget", "No time budget for reads: for tests on emulated CPUs.").Hidden().BoolVar(&s.noBudget)
}

// check validates the flags.
func (s *Command) check() error {
	return cmp.Or(command.Checks{
		{s.minInterval < 0, fmt.Errorf("--collect.min-interval=%s: must be 0s or more", s.minInterval)},
		{s.sampleInterval != 0 && s.sampleInterval < time.Second, fmt.Errorf("--pfc.sample-interval=%s: must be 1s or more, or 0s to disable: each sample blocks network configuration (RTNL)", s.sampleInterval)},
		{s.moduleInterval != 0 && s.moduleInterval < 5*time.Second, fmt.Errorf("--transceiver.interval=%s: must be 5s or more, or 0s to disable: each read takes milliseconds on the bus of the module and blocks network configuration (RTNL)", s.moduleInterval)},
		{s.gpuInterval < time.Second, fmt.Errorf("--collector.gpu.interval=%s: must be 1s or more", s.gpuInterval)},
	}.First(), s.Web.Check(), s.alerting.Check())
}

// gcPercent is GOGC with alerting, where each round leaves several MiB of garbage. Without alerting GOGC is 100, the
// default of Go.
const gcPercent = 25

// sampleNothing stops the sampling of allocations, which only --web.pprof needs. The samples take 1 MiB.
var sampleNothing = sync.OnceFunc(func() { runtime.MemProfileRate = 0 })

// Run runs the command.
func (s *Command) Run(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	if err := cmp.Or(s.check(), s.CheckFile(), s.CheckDescriptors()); err != nil {
		return command.Usage(err)
	}
	if !s.Pprof {
		sampleNothing()
	}
	c.Paths.Reserved = s.Descriptors()
	m, err := c.Open(time.Now())
	if err != nil {
		return command.Usage(err)
	}
	defer func() { command.LogError(std.Log, "cannot release the host files", m.Close()) }()
	if m.Player == nil { // a recording has no data between its rounds
		c.SampleInterval, c.ModuleInterval, c.GPUInterval = s.sampleInterval, s.moduleInterval, s.gpuInterval
		c.ListenLLDP = s.listenLLDP
	}
	if s.moduleInterval == 0 {
		c.Disable("transceiver")
	}
	if s.noBudget {
		m.Budget = nil
	}
	kept := newKeeper(ctx, c, m, std.Log)
	defer kept.close()
	var connected *peersKeeper
	if m.Player == nil {
		connected = newPeersKeeper(ctx, c.StateDir, std.Log)
		c.Peers = connected.table
	}
	defer connected.close()
	on, err := c.Collectors(m, kept.memory)
	if err != nil {
		return command.Usage(err)
	}
	at := serve.Address{Web: &s.Web, Alerting: &s.alerting, Machine: m}
	at.SetRunbooks()
	if c.Rules, err = rulefiles.Read(s.alerting.RuleFiles, s.alerting.Runbooks); err != nil {
		return command.Usage(err)
	}
	d, err := at.NewDaemon(ctx, c, c.StateDir, c.Rules, verdict.Seen, std.Log)
	if err != nil {
		return command.Usage(err)
	}
	var flight *flightRecorder
	if d != nil {
		defer d.Close()
		flight = newFlightRecorder(ctx, c, m, kept.memory, d, std.Log)
		d.Hooks = s.newHooks(c, m, flight, std.Log)
	}
	reload, err := serve.NewReloader(&c.Site, &s.alerting, d, c.Rules, rulefiles.Read, std.Log)
	if err != nil {
		return command.Usage(err)
	}
	runtime.GOMAXPROCS(c.MaxProcs)
	if d != nil {
		serve.SetGC(gcPercent)
	}
	std.Log.Info("starting rdma_exporter, reading "+m.Describe(c), "version", version.Version,
		"revision", version.GetRevision())

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reload.ReloadOnHangup(ctx)
	sched := rounds.New(ctx, rounds.Options{
		Host: m.Host, Collectors: on, Limits: c.Limits, Timeout: c.Timeout, MinInterval: s.minInterval, Before: m.Seek,
		Now: m.Clock, Logger: std.Log,
		Config: reload.State, State: kept.lastWrite, Maintenance: kept.planned.currentNotice, Incident: flight.lastCapture,
		Alerting: d.State, Coverage: reload.Detector, Replay: m.Recorded(),
	})
	if d != nil {
		d.Rounds = sched
	}
	err = m.PlayRounds(func() error {
		if d != nil {
			return d.Round(ctx, 0)
		}
		_, err := sched.Collect(ctx, nil)
		return err
	})
	if err != nil {
		return command.Usage(err)
	}
	pages, err := s.newPages(c, at, sched, d, flight)
	if err != nil {
		return command.Usage(err)
	}
	gpus := gpuRelease{m.GPUs, std.Log}
	o := web.Options{
		Rounds: sched, Page: pages, Logger: std.Log,
		Lifecycle:   s.lifecycle,
		Reload:      reload.Reload,
		ReleaseGPUs: gpus.release,
		Findings:    d.FindingsWriter(),
	}
	if d != nil {
		o.Alerting = d.Engine
	}
	h, err := s.NewHandler(o)
	if err != nil {
		return command.Usage(err)
	}
	var listeners sync.WaitGroup
	defer listeners.Wait()
	defer cancel()
	return s.Serve(ctx, h, s.Toolkit, std.Log, func() {
		listeners.Go(func() { sched.Listen(ctx) })
		if d != nil {
			listeners.Go(func() { d.Run(ctx) })
			flight.start(ctx)
		}
		// Serving starts before the first collection has finished: a hung device must not hide the others.
		go func() {
			if _, err := sched.Collect(ctx, nil); ctx.Err() == nil { // else the program stops
				command.LogError(std.Log, "first collection failed", err)
			}
			h.Ready()
		}()
		kept.listen(reload.AddHandlers, gpus.addHandlers)
		kept.start(ctx)
		connected.start(ctx)
	})
}

// newHooks returns the hooks of the daemon of a node: captures of incidents, and answers of NCCL.
func (s *Command) newHooks(
	c *machine.Config, m *machine.Machine, flight *flightRecorder, log *slog.Logger,
) serve.Hooks {
	var nccl *job.Watch
	if s.askNCCL && m.Player == nil { // a recording has no service
		nccl = job.NewWatch(c.Paths, log)
	}
	return serve.Hooks{
		Evaluated: func(ctx context.Context, p *rounds.Picture, concluded verdict.Conclusion) {
			flight.note(concluded.To, concluded.Alerts)
			nccl.Note(ctx, p.Node(), concluded.Alerts, time.Now())
		},
		Input: nccl.Input,
		Close: func() {
			flight.close()
			nccl.Wait()
		},
	}
}
