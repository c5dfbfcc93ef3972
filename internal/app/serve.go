package app

import (
	"context"
	"errors"
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
	minInterval time.Duration
	noBudget    bool
	// sampleInterval is that of ports that are being paused.
	sampleInterval time.Duration
	moduleInterval time.Duration // 0: modules are not read
	gpuInterval    time.Duration
	listenLLDP     bool
	alerting       alertingConfig
}

// defaultPort is that of the exporter in the list of Prometheus' ports.
const defaultPort = "10879"

func (s *serveConfig) flags(a *kingpin.CmdClause) {
	s.webConfig.flags(a, defaultPort)
	s.alerting.flags(a)
	a.Flag("pfc.sample-interval", "How often the pause times of ports are read that are being paused, or pause their switch; at least 1s, 0s for never.").Default("1s").DurationVar(&s.sampleInterval)
	a.Flag("transceiver.interval", "How often the modules in the cages of ports are read, in the background; at least 5s, 0s for never.").Default("30s").DurationVar(&s.moduleInterval)
	a.Flag("collector.gpu.interval", "How often the GPUs are read, in the background.").Default("15s").DurationVar(&s.gpuInterval)
	a.Flag("collector.neighbour.listen", "Hear what switches announce by LLDP on the ports' interfaces, which puts its multicast addresses into the filters of the NICs; needs CAP_NET_RAW.").BoolVar(&s.listenLLDP)
	a.Flag("collect.min-interval", "A result younger than this serves again; 0s always collects afresh.").Default("1s").DurationVar(&s.minInterval)
	a.Flag("collect.no-budget", "Reads take as much of the time as they need: for tests in machines whose processors are emulated.").Hidden().BoolVar(&s.noBudget)
}

func (s *serveConfig) check() error {
	if s.minInterval < 0 {
		return errors.New("--collect.min-interval: has to be 0s or more")
	}
	if s.sampleInterval != 0 && s.sampleInterval < time.Second {
		return errors.New("--pfc.sample-interval: has to be 1s or more, or 0s for never: each sample is a call that holds up network configuration")
	}
	if s.moduleInterval != 0 && s.moduleInterval < 5*time.Second {
		return errors.New("--transceiver.interval: has to be 5s or more, or 0s for never: each reading takes milliseconds on the module's bus, with network configuration held up")
	}
	if s.gpuInterval < time.Second {
		return errors.New("--collector.gpu.interval: has to be 1s or more")
	}
	if err := s.webConfig.check(); err != nil {
		return err
	}
	return s.alerting.check()
}

const (
	// judgingGC is GOGC where rules are judged: each round leaves several MiB of garbage. Against 100 it saves 4 MiB and costs 6 ms of
	// CPU in 15 s.
	judgingGC = 50
	// exportingGC is GOGC where none are: a scrape leaves little. Against 100 it saves a tenth of the CPU and costs 4 MiB.
	exportingGC = 200
)

func runServe(ctx context.Context, c *config, s *serveConfig, log *slog.Logger) (int, error) {
	if err := s.check(); err != nil {
		return usage(err)
	}
	if err := s.checkFile(); err != nil {
		return usage(err)
	}
	m, err := c.open(time.Now())
	if err != nil {
		return usage(err)
	}
	defer func() { discard(log, "cannot close the machine", m.close()) }()
	if m.player == nil { // there is nothing between the rounds of a recording
		c.sampleInterval, c.moduleInterval, c.gpuInterval = s.sampleInterval, s.moduleInterval, s.gpuInterval
		c.listenLLDP = s.listenLLDP
	}
	if s.moduleInterval == 0 {
		*c.chosen["transceiver"] = choice{set: true}
	}
	if s.noBudget {
		m.Budget = nil
	}
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
			percent = judgingGC
		}
		debug.SetGCPercent(percent)
	}
	log.Info("rdma_exporter reads "+m.describe(c), "version", version.Version, "revision", version.GetRevision())

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reload.onHangup(ctx)
	sched := rounds.New(ctx, rounds.Options{
		Host: m.Host, Collectors: on, Timeout: c.timeout, MinInterval: s.minInterval, Before: m.seek, Now: m.clock, Logger: log,
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
	o := web.Options{
		Rounds: sched, Page: shown, Logger: log,
		Reload:      reload.reload,
		ReleaseGPUs: m.GPUs.ReleaseGPUs,
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
	// Listening does not wait for the machine: a device that does not answer must not keep the others unwatched.
	go func() {
		_, err := sched.Collect(ctx, nil)
		discard(log, "first collection", err)
		h.Ready()
	}()
	keeper.start(ctx)
	return s.serve(ctx, h, s.toolkit, log)
}
