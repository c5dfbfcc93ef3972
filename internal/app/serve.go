package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/web"
)

type serveConfig struct {
	toolkit     *toolkit.FlagConfig
	metricsPath string
	externalURL string
	routePrefix string
	minInterval time.Duration
	noBudget    bool
	// sampleInterval is that of ports that are being paused.
	sampleInterval time.Duration
	moduleInterval time.Duration // 0: modules are not read
	gpuInterval    time.Duration
	listenLLDP     bool
	maxRequests    int
	pprof          bool
	process        bool
	alerting       alertingConfig
}

// defaultPort is that of the exporter in the list of Prometheus' ports.
const defaultPort = "10879"

func (s *serveConfig) flags(a *kingpin.CmdClause) {
	s.toolkit = kingpinflag.AddFlags(a, ":"+defaultPort)
	a.GetFlag("web.config.file").PlaceHolder("FILE")
	a.Flag("web.telemetry-path", "Path of the metrics.").Default("/metrics").StringVar(&s.metricsPath)
	a.Flag("web.external-url", "URL under which the program is reached from outside; its path is the default of --web.route-prefix.").PlaceHolder("URL").StringVar(&s.externalURL)
	a.Flag("web.route-prefix", "Prefix of all paths.").PlaceHolder("PATH").StringVar(&s.routePrefix)
	a.Flag("web.max-requests", "Scrapes at a time, and as many requests to the API; more are answered 503.").Default("40").IntVar(&s.maxRequests)
	a.Flag("web.pprof", "Serve profiles at /debug/pprof.").BoolVar(&s.pprof)
	a.Flag("web.exporter-metrics", "Serve the exporter's own process_* and go_* metrics.").Default("true").BoolVar(&s.process)
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
	if s.maxRequests < 1 {
		return errors.New("--web.max-requests: has to be at least 1")
	}
	if !strings.HasPrefix(s.metricsPath, "/") {
		return errors.New("--web.telemetry-path: has to begin with /")
	}
	if s.externalURL != "" {
		u, err := url.Parse(s.externalURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("--web.external-url=%s: has to be http://HOST/… or https://HOST/…", s.externalURL)
		}
		if s.routePrefix == "" {
			s.routePrefix = u.Path
		}
	}
	s.routePrefix = "/" + strings.Trim(s.routePrefix, "/")
	return s.alerting.check()
}

// judgingGC is GOGC where rules are judged: each round leaves several MiB of garbage. Against 100 it saves 4 MiB and costs 6 ms of CPU in
// 15 s.
const judgingGC = 50

// shutdownTime is what scrapes in progress get to end.
const shutdownTime = 5 * time.Second

func runServe(ctx context.Context, c *config, s *serveConfig, log *slog.Logger) (int, error) {
	if err := s.check(); err != nil {
		return usage(err)
	}
	if err := toolkit.Validate(*s.toolkit.WebConfigFile); err != nil {
		return usage(fmt.Errorf("--web.config.file: %w", err))
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
	}
	reload := &reloader{site: &c.site, daemon: d, ruleFiles: s.alerting.ruleFiles, log: log, state: rounds.FileState{At: time.Now()}}
	if err := reload.begin(); err != nil {
		return usage(err)
	}
	runtime.GOMAXPROCS(c.maxProcs)
	if d != nil && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(judgingGC)
	}
	log.Info("rdma_exporter reads "+m.describe(c), "version", version.Version, "revision", version.GetRevision())

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reload.onHangup(ctx)
	sched := rounds.New(ctx, rounds.Options{
		Host: m.Host, Collectors: on, Timeout: c.timeout, MinInterval: s.minInterval, Before: m.seek, Now: m.clock, Logger: log,
		Config: reload.current, State: keeper.current, Alerting: d.current, Blind: reload.blind.Load,
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
		Rounds: sched, Process: s.processMetrics(), MetricsPath: s.metricsPath, RoutePrefix: s.routePrefix,
		MaxRequests: s.maxRequests, Pprof: s.pprof, Page: shown, Logger: log,
		Reload:      reload.reload,
		ReleaseGPUs: m.GPUs.ReleaseGPUs,
		Findings:    d.findings(),
	}
	if d != nil {
		o.Alerting = d.engine
	}
	h, err := web.New(o)
	if err != nil {
		return usage(err)
	}
	var listeners sync.WaitGroup
	listeners.Go(func() { sched.Listen(ctx) })
	if d != nil {
		listeners.Go(func() { d.run(ctx) })
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
	return serveUntil(ctx, h, s.toolkit, log)
}

func (s *serveConfig) processMetrics() prometheus.Gatherer {
	if !s.process {
		return nil
	}
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	return r
}

// newServer bounds what a client may take of time and memory.
func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      2 * time.Minute,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
}

// serveUntil serves until ctx ends or the listener fails, which is a matter of the command line: exit code 2.
func serveUntil(ctx context.Context, h http.Handler, flags *toolkit.FlagConfig, log *slog.Logger) (int, error) {
	server := newServer(h)
	failed := make(chan error, 1)
	go func() { failed <- toolkit.ListenAndServe(server, flags, log) }()
	select {
	case err := <-failed:
		return usage(fmt.Errorf("cannot serve: %w", err))
	case <-ctx.Done():
	}
	log.Info("stopping")
	end, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		discard(log, "some scrapes did not end in time", server.Close())
	}
	return exitOK, nil
}
