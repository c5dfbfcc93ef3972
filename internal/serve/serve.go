// Package serve has the daemons, serve and fabric: HTTP, rule evaluation and alerts, saved state, reload, flight
// recorder.
package serve

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/job"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/rulefiles"
	"rdma_exporter/internal/web"
)

// Config is the command serve, with its flags.
type Config struct {
	Serve Serve
	Web
	minInterval    time.Duration
	noBudget       bool
	sampleInterval time.Duration // of ports that are paused or send pause; 0: disabled
	moduleInterval time.Duration // of transceivers; 0: disabled
	gpuInterval    time.Duration
	listenLLDP     bool
	askNCCL        bool
	lifecycle      bool
	alerting       alertingConfig
}

// Commands of the daemons; serveCommand is the default.
const (
	Command       = "serve"
	FabricCommand = "fabric"
)

// Flags adds the flags.
func (s *Config) Flags(a *kingpin.CmdClause) {
	s.Web.flags(a, machine.DefaultPort)
	a.Flag("web.enable-lifecycle", "Accept reload and release of the GPUs over HTTP (POST /-/reload, /-/gpu/release), from every client that can scrape.").BoolVar(&s.lifecycle)
	s.alerting.flags(a, "rdma_exporter", "15s")
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

func (s *Config) check() error {
	return cmp.Or(command.Checks{
		{s.minInterval < 0, fmt.Errorf("--collect.min-interval=%s: must be 0s or more", s.minInterval)},
		{s.sampleInterval != 0 && s.sampleInterval < time.Second, fmt.Errorf("--pfc.sample-interval=%s: must be 1s or more, or 0s to disable: each sample blocks network configuration (RTNL)", s.sampleInterval)},
		{s.moduleInterval != 0 && s.moduleInterval < 5*time.Second, fmt.Errorf("--transceiver.interval=%s: must be 5s or more, or 0s to disable: each read takes milliseconds on the bus of the module and blocks network configuration (RTNL)", s.moduleInterval)},
		{s.gpuInterval < time.Second, fmt.Errorf("--collector.gpu.interval=%s: must be 1s or more", s.gpuInterval)},
	}.First(), s.Web.check(), s.alerting.check())
}

// alertingGC is GOGC with alerting, where each round leaves several MiB of garbage. Without alerting GOGC is 100, the
// default of Go.
const alertingGC = 25

// setGC sets GOGC, unless the environment does.
func setGC(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// sampleNothing ends the sampling of allocations, which only --web.pprof serves. The samples take 1 MiB.
var sampleNothing = sync.OnceFunc(func() { runtime.MemProfileRate = 0 })

// Run runs the command.
func (s *Config) Run(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	if err := cmp.Or(s.check(), s.checkFile(), s.checkDescriptors()); err != nil {
		return command.Usage(err)
	}
	if !s.pprof {
		sampleNothing()
	}
	c.Paths.Reserved = s.descriptors()
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
	keeper := newKeeper(ctx, c, m, std.Log)
	defer keeper.close()
	on, err := c.Collectors(m, keeper.memory)
	if err != nil {
		return command.Usage(err)
	}
	at := address{&s.Web, &s.alerting, m}
	if s.alerting.on {
		s.alerting.runbooks = at.books()
	}
	if c.Rules, err = rulefiles.Read(s.alerting.ruleFiles, s.alerting.runbooks); err != nil {
		return command.Usage(err)
	}
	d, err := at.daemon(ctx, c, c.StateDir, c.Rules, std.Log)
	if err != nil {
		return command.Usage(err)
	}
	if d != nil {
		defer d.close()
		d.flight = newFlightRecorder(ctx, c, m, keeper.memory, d, std.Log)
		if s.askNCCL && m.Player == nil { // a recording has no service
			d.nccl = job.NewWatch(c.Paths, std.Log)
		}
	}
	reload := &reloader{
		site: &c.Site, daemon: d, ruleFiles: s.alerting.ruleFiles, read: rulefiles.Read, rules: c.Rules,
		books: s.alerting.runbooks, log: std.Log, state: rounds.FileState{At: time.Now()},
	}
	if err := reload.begin(); err != nil {
		return command.Usage(err)
	}
	runtime.GOMAXPROCS(c.MaxProcs)
	if d != nil {
		setGC(alertingGC)
	}
	std.Log.Info("starting rdma_exporter, reading "+m.Describe(c), "version", version.Version,
		"revision", version.GetRevision())

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reload.onHangup(ctx)
	sched := rounds.New(ctx, rounds.Options{
		Host: m.Host, Collectors: on, Limits: c.Limits, Timeout: c.Timeout, MinInterval: s.minInterval, Before: m.Seek,
		Now: m.Clock, Logger: std.Log,
		Config: reload.current, State: keeper.current, Maintenance: keeper.planned.current, Incident: d.incident,
		Alerting: d.current, Coverage: reload.coverage.Load, Replay: m.Recorded(),
	})
	if d != nil {
		d.rounds = sched
	}
	err = m.PlayRounds(func() error {
		if d != nil {
			return d.round(ctx, 0)
		}
		_, err := sched.Collect(ctx, nil)
		return err
	})
	if err != nil {
		return command.Usage(err)
	}
	shown, err := s.page(c, at, sched, d)
	if err != nil {
		return command.Usage(err)
	}
	gpus := gpuRelease{m.GPUs, std.Log}
	o := web.Options{
		Rounds: sched, Page: shown, Logger: std.Log,
		Lifecycle:   s.lifecycle,
		Reload:      reload.reload,
		ReleaseGPUs: gpus.release,
		Findings:    d.findings(),
	}
	if d != nil {
		o.Alerting = d.engine
	}
	h, err := s.handler(o)
	if err != nil {
		return command.Usage(err)
	}
	var listeners sync.WaitGroup
	defer listeners.Wait()
	defer cancel()
	return s.Serve(ctx, h, s.toolkit, std.Log, func() {
		listeners.Go(func() { sched.Listen(ctx) })
		if d != nil {
			listeners.Go(func() { d.run(ctx) })
			d.flight.start(ctx)
		}
		// Serving starts before the first collection has finished: a hung device must not hide the others.
		go func() {
			if _, err := sched.Collect(ctx, nil); ctx.Err() == nil { // else the program stops
				command.LogError(std.Log, "first collection failed", err)
			}
			h.Ready()
		}()
		keeper.listen(reload.control, gpus.control)
		keeper.start(ctx)
	})
}
