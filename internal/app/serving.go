package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"rdma_exporter/internal/page"
	"rdma_exporter/internal/web"
)

// webConfig is how a command that stays serves.
type webConfig struct {
	toolkit     *toolkit.FlagConfig
	metricsPath string
	externalURL string
	routePrefix string
	maxRequests int
	pprof       bool
	process     bool
}

func (w *webConfig) flags(a *kingpin.CmdClause, port string) {
	w.toolkit = kingpinflag.AddFlags(a, ":"+port)
	a.GetFlag("web.config.file").PlaceHolder("FILE")
	a.Flag("web.telemetry-path", "Path of the metrics.").Default("/metrics").StringVar(&w.metricsPath)
	a.Flag("web.external-url", "URL under which the program is reached from outside; its path is the default of --web.route-prefix.").PlaceHolder("URL").StringVar(&w.externalURL)
	a.Flag("web.route-prefix", "Prefix of all paths.").PlaceHolder("PATH").StringVar(&w.routePrefix)
	a.Flag("web.max-requests", "Scrapes at a time, and as many requests to the API; more are answered 503.").Default("40").IntVar(&w.maxRequests)
	a.Flag("web.pprof", "Serve profiles at /debug/pprof.").BoolVar(&w.pprof)
	a.Flag("web.exporter-metrics", "Serve the exporter's own process_* and go_* metrics.").Default("true").BoolVar(&w.process)
}

func (w *webConfig) check() error {
	if w.maxRequests < 1 {
		return errors.New("--web.max-requests: has to be at least 1")
	}
	if !strings.HasPrefix(w.metricsPath, "/") {
		return errors.New("--web.telemetry-path: has to begin with /")
	}
	if strings.ContainsAny(w.metricsPath, notInPath) {
		return fmt.Errorf("--web.telemetry-path=%s: has to be a path without any of %s", w.metricsPath, notInPath)
	}
	if w.externalURL != "" {
		u, err := url.Parse(w.externalURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("--web.external-url=%s: has to be http://HOST/… or https://HOST/…", w.externalURL)
		}
		if w.routePrefix == "" {
			w.routePrefix = u.Path
		}
	}
	if strings.ContainsAny(w.routePrefix, notInPath) {
		return fmt.Errorf("--web.route-prefix=%s: has to be a path without any of %s", w.routePrefix, notInPath)
	}
	w.routePrefix = "/" + strings.Trim(w.routePrefix, "/")
	return nil
}

// notInPath are characters by which a path is another one, or a pattern.
const notInPath = "{}%?#"

// handler serves what o says as the flags say.
func (w *webConfig) handler(o web.Options) (*web.Handler, error) {
	o.Process, o.MetricsPath, o.RoutePrefix, o.MaxRequests, o.Pprof = w.processMetrics(), w.metricsPath, w.routePrefix, w.maxRequests, w.pprof
	h, err := web.New(o)
	if err != nil {
		return nil, fmt.Errorf("--web.telemetry-path=%s: %w: choose another path, such as /metrics", w.metricsPath, err)
	}
	return h, nil
}

// checkFile finds what is wrong with the file of TLS and authentication.
func (w *webConfig) checkFile() error {
	if err := toolkit.Validate(*w.toolkit.WebConfigFile); err != nil {
		return fmt.Errorf("--web.config.file: %w", err)
	}
	return nil
}

// links are those of a page's footer: the metrics, what the command has of its own, and what all have.
func (w *webConfig) links(own ...page.Link) []page.Link {
	out := append([]page.Link{{Href: strings.TrimPrefix(w.metricsPath, "/"), Text: "Metrics"}}, own...)
	out = append(out, page.Link{Href: "-/ready", Text: "Ready"}, page.Link{Href: "-/healthy", Text: "Healthy"})
	if w.pprof {
		out = append(out, page.Link{Href: "debug/pprof/", Text: "Profiles"})
	}
	return out
}

// processMetrics are the exporter's own; nil where they are not to be served.
func (w *webConfig) processMetrics() prometheus.Gatherer {
	if !w.process {
		return nil
	}
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	return r
}

// shutdownTime is what scrapes in progress get to end.
const shutdownTime = 5 * time.Second

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

// Serve lets clients reach a handler until ctx ends, and returns the exit code of the program.
type Serve func(ctx context.Context, h http.Handler, flags *toolkit.FlagConfig, log *slog.Logger) (int, error)

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
