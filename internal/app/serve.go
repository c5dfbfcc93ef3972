package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"

	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/web"
)

type serveConfig struct {
	serve Serve
	webConfig
	minInterval    time.Duration
	noBudget       bool
	sampleInterval time.Duration // of ports that are paused or send pause; 0: disabled
	moduleInterval time.Duration // of transceivers; 0: disabled
	gpuInterval    time.Duration
	listenLLDP     bool
	lifecycle      bool
	alerting       alertingConfig
}

// defaultPort is the port of the exporter in the port allocations of Prometheus.
const defaultPort = "10879"

func (s *serveConfig) flags(a *kingpin.CmdClause) {
	s.webConfig.flags(a, defaultPort)
	a.Flag("web.enable-lifecycle", "Accept reload and release of the GPUs over HTTP (POST /-/reload, /-/gpu/release), from every client that can scrape.").BoolVar(&s.lifecycle)
	s.alerting.flags(a)
	a.Flag("pfc.sample-interval", "Interval of reading the pause times of ports that are paused or send pause; at least 1s. 0s disables.").Default("1s").DurationVar(&s.sampleInterval)
	a.Flag("transceiver.interval", "Interval of reading transceivers; at least 5s. 0s disables.").Default("30s").DurationVar(&s.moduleInterval)
	a.Flag("collector.gpu.interval", "Interval of reading GPUs; at least 1s.").Default("15s").DurationVar(&s.gpuInterval)
	a.Flag("collector.neighbour.listen", "Receive the LLDP announcements of switches on the interfaces of RDMA ports. Adds the LLDP multicast addresses to the filters of the NICs. Requires CAP_NET_RAW. Off by default.").BoolVar(&s.listenLLDP)
	a.Flag("collect.min-interval", "A collection younger than this is served again. 0s collects for each scrape.").Default("1s").DurationVar(&s.minInterval)
	a.Flag("collect.no-budget", "No time budget for reads: for tests on emulated CPUs.").Hidden().BoolVar(&s.noBudget)
}

func (s *serveConfig) check() error {
	if s.minInterval < 0 {
		return fmt.Errorf("--collect.min-interval=%s: must be 0s or more", s.minInterval)
	}
	if s.sampleInterval != 0 && s.sampleInterval < time.Second {
		return fmt.Errorf("--pfc.sample-interval=%s: must be 1s or more, or 0s to disable: each sample blocks network configuration (RTNL)", s.sampleInterval)
	}
	if s.moduleInterval != 0 && s.moduleInterval < 5*time.Second {
		return fmt.Errorf("--transceiver.interval=%s: must be 5s or more, or 0s to disable: each read takes milliseconds on the bus of the module and blocks network configuration (RTNL)", s.moduleInterval)
	}
	if s.gpuInterval < time.Second {
		return fmt.Errorf("--collector.gpu.interval=%s: must be 1s or more", s.gpuInterval)
	}
	if err := s.webConfig.check(); err != nil {
		return err
	}
	return s.alerting.check()
}

const (
	// alertingGC is GOGC with alerting: each round leaves several MiB of garbage. Compared with 100 it saves 4 MiB and costs 6 ms of
	// CPU in 15 s.
	alertingGC = 50
	// exportingGC is GOGC without alerting: a scrape leaves little. Compared with 100 it saves a tenth of the CPU and costs 4 MiB.
	exportingGC = 200
)

func runServe(ctx context.Context, c *config, s *serveConfig, log *slog.Logger) (int, error) {
	if err := s.check(); err != nil {
		return usage(err)
	}
	if err := s.checkFile(); err != nil {
		return usage(err)
	}
	if err := s.checkDescriptors(); err != nil {
		return usage(err)
	}
	c.paths.Reserved = s.descriptors()
	m, err := c.open(time.Now())
	if err != nil {
		return usage(err)
	}
	defer func() { discard(log, "cannot release the host files", m.close()) }()
	if m.player == nil { // a recording has no data between its rounds
		c.sampleInterval, c.moduleInterval, c.gpuInterval = s.sampleInterval, s.moduleInterval, s.gpuInterval
		c.listenLLDP = s.listenLLDP
	}
	if s.moduleInterval == 0 {
		*c.chosen["transceiver"] = choice{set: true}
	}
	if s.noBudget {
		m.Budget = nil
	}
	c.ruleFiles = s.alerting.ruleFiles
	keeper := c.keeper(m, log)
	defer keeper.close()
	on, err := c.collectors(m, keeper.memory)
	if err != nil {
		return usage(err)
	}
	d, err := s.daemon(c, m, log)
	if err != nil {
		return usage(err)
	}
	if d != nil {
		defer d.close()
		d.flight = c.flightRecorder(m, keeper.memory, d, log)
	}
	reload := &reloader{site: &c.site, daemon: d, ruleFiles: s.alerting.ruleFiles, books: s.alerting.runbooks, log: log, state: rounds.FileState{At: time.Now()}}
	if err := reload.begin(); err != nil {
		return usage(err)
	}
	runtime.GOMAXPROCS(c.maxProcs)
	if os.Getenv("GOGC") == "" {
		percent := exportingGC
		if d != nil {
			percent = alertingGC
		}
		debug.SetGCPercent(percent)
	}
	log.Info("starting rdma_exporter, reading "+m.describe(c), "version", version.Version, "revision", version.GetRevision())

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reload.onHangup(ctx)
	sched := rounds.New(ctx, rounds.Options{
		Host: m.Host, Collectors: on, Limits: c.limits, Timeout: c.timeout, MinInterval: s.minInterval, Before: m.seek, Now: m.clock, Logger: log,
		Config: reload.current, State: keeper.current, Maintenance: keeper.planned.current, Incident: d.incident, Alerting: d.current, Coverage: reload.coverage.Load, Replay: m.recorded(),
	})
	if d != nil {
		d.rounds = sched
	}
	err = m.playRounds(func() error {
		if d != nil {
			return d.round(ctx, 0)
		}
		_, err := sched.Collect(ctx, nil)
		return err
	})
	if err != nil {
		return usage(err)
	}
	shown, err := s.page(c, m, sched, d)
	if err != nil {
		return usage(err)
	}
	gpus := gpuRelease{m.GPUs, log}
	o := web.Options{
		Rounds: sched, Page: shown, Logger: log,
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
		return usage(err)
	}
	var listeners sync.WaitGroup
	listeners.Go(func() { sched.Listen(ctx) })
	if d != nil {
		listeners.Go(func() { d.run(ctx) })
		d.flight.start(ctx)
	}
	defer listeners.Wait()
	defer cancel()
	// Serving starts before the first collection has finished: a hung device must not hide the others.
	go func() {
		_, err := sched.Collect(ctx, nil)
		discard(log, "first collection failed", err)
		h.Ready()
	}()
	keeper.listen(reload.control, gpus.control)
	keeper.start(ctx)
	return s.serve(ctx, h, s.toolkit, log)
}
