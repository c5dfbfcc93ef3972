package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/control"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/web"
)

// Web holds the HTTP flags of serve and fabric.
type Web struct {
	Toolkit     *toolkit.FlagConfig
	metricsPath string
	externalURL string
	routePrefix string
	maxRequests int
	// maxConnections limits open connections, fromAddress those from one address; 0: no limit.
	maxConnections, fromAddress int
	Pprof                       bool
	process                     bool
}

// Flags adds the flags.
func (w *Web) Flags(a *kingpin.CmdClause, port string) {
	w.Toolkit = kingpinflag.AddFlags(a, ":"+port)
	a.GetFlag("web.config.file").PlaceHolder("FILE")
	a.Flag("web.telemetry-path", "Path under which metrics are served.").Default("/metrics").StringVar(&w.metricsPath)
	a.Flag("web.external-url",
		"URL under which the exporter is reachable from outside. Its path is the default of --web.route-prefix.").
		PlaceHolder("URL").StringVar(&w.externalURL)
	a.Flag("web.route-prefix", "Prefix of all HTTP paths.").PlaceHolder("PATH").StringVar(&w.routePrefix)
	a.Flag("web.max-requests",
		"Maximum number of concurrent scrapes, and of concurrent API requests. Others are answered with 503.").
		Default("40").IntVar(&w.maxRequests)
	a.Flag("web.max-connections",
		"Maximum number of open connections. At the limit the connection that is idle or unread for the longest time is closed for a new one. 0 disables.").
		Default("512").IntVar(&w.maxConnections)
	a.Flag("web.max-connections-per-address",
		"Maximum number of open connections from one IP address. Raise it behind a reverse proxy. 0 disables.").
		Default("64").IntVar(&w.fromAddress)
	a.Flag("web.pprof", "Serve profiles under /debug/pprof.").BoolVar(&w.Pprof)
	a.Flag("web.exporter-metrics", "Expose the exporter's own process_* and go_* metrics.").
		Default("true").BoolVar(&w.process)
}

// Check validates the flags, and completes the route prefix.
func (w *Web) Check() error {
	u, err := url.Parse(w.externalURL)
	wrongURL := err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == ""
	if w.externalURL != "" && !wrongURL {
		w.routePrefix = cmp.Or(w.routePrefix, u.Path)
	}
	err = command.Checks{
		{w.maxRequests < 1, fmt.Errorf("--web.max-requests=%d: must be at least 1", w.maxRequests)},
		{w.maxConnections < 0, fmt.Errorf("--web.max-connections=%d: must be at least 1, or 0 to disable", w.maxConnections)},
		{w.fromAddress < 0, fmt.Errorf("--web.max-connections-per-address=%d: must be at least 1, or 0 to disable", w.fromAddress)},
		{!strings.HasPrefix(w.metricsPath, "/"), fmt.Errorf("--web.telemetry-path=%s: must begin with /", w.metricsPath)},
		{strings.ContainsAny(w.metricsPath, notInPath), fmt.Errorf("--web.telemetry-path=%s: must be a path without any of %s", w.metricsPath, notInPath)},
		{w.externalURL != "" && wrongURL, fmt.Errorf("--web.external-url=%s: must be http://HOST/… or https://HOST/…", w.externalURL)},
		{strings.ContainsAny(w.routePrefix, notInPath), fmt.Errorf("--web.route-prefix=%s: must be a path without any of %s", w.routePrefix, notInPath)},
	}.First()
	w.routePrefix = "/" + strings.Trim(w.routePrefix, "/")
	return err
}

// notInPath are the characters with a meaning in URLs or in patterns of http.ServeMux.
const notInPath = "{}%?#"

// NewHandler returns the handler of o with the settings of the flags.
func (w *Web) NewHandler(o web.Options) (*web.Handler, error) {
	o.Process, o.MetricsPath, o.RoutePrefix, o.MaxRequests, o.Pprof = w.process, w.metricsPath, w.routePrefix,
		w.maxRequests, w.Pprof
	o.Connections = web.NewConnections(w.maxConnections, w.fromAddress)
	h, err := web.New(o)
	if err != nil {
		return nil, fmt.Errorf("--web.telemetry-path=%s: %w: choose another path, such as /metrics", w.metricsPath, err)
	}
	return h, nil
}

// CheckFile validates the file of TLS and authentication.
func (w *Web) CheckFile() error {
	if err := toolkit.Validate(*w.Toolkit.WebConfigFile); err != nil {
		return fmt.Errorf("--web.config.file=%s: %w", *w.Toolkit.WebConfigFile, err)
	}
	return nil
}

// FooterLinks returns the links of the page footer: the metrics, the own links of the command, and the common links.
func (w *Web) FooterLinks(own ...page.Link) []page.Link {
	out := append([]page.Link{{Href: strings.TrimPrefix(w.metricsPath, "/"), Text: "Metrics"}}, own...)
	out = append(out, page.Link{Href: "-/ready", Text: "Ready"}, page.Link{Href: "-/healthy", Text: "Healthy"})
	if w.Pprof {
		out = append(out, page.Link{Href: "debug/pprof/", Text: "Profiles"})
	}
	return out
}

// shutdownTime is the timeout of scrapes in progress at shutdown.
const shutdownTime = 5 * time.Second

// newServer returns a server that limits the time and memory of a client, and the number of clients. It calls listening
// for each listener.
func newServer(h http.Handler, connections *web.Connections, listening func()) *http.Server {
	s := &http.Server{
		Handler:           h,
		BaseContext:       func(net.Listener) context.Context { listening(); return context.Background() },
		ReadHeaderTimeout: control.HeaderTime,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      2 * time.Minute,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    control.HeaderBytes - control.HeaderSlop,
	}
	connections.Limit(s)
	return s
}

// Serve serves a handler until ctx ends, and returns the exit code of the program. It calls begin once it listens, so
// that a start that fails because the address is invalid or in use reads and stores nothing.
type Serve func(
	ctx context.Context, h *web.Handler, flags *toolkit.FlagConfig, log *slog.Logger, begin func(),
) (int, error)

// ListenAndServe serves until ctx ends or the listener fails, which is an error of the command line: exit code 2. Exit
// code 1: no descriptors are left. See Serve.
func ListenAndServe(
	ctx context.Context, h *web.Handler, flags *toolkit.FlagConfig, log *slog.Logger, begin func(),
) (int, error) {
	listening := make(chan struct{})
	server := newServer(h, h.Connections, sync.OnceFunc(func() { close(listening) }))
	failed, out := make(chan error, 1), make(chan error, 1)
	go func() { failed <- toolkit.ListenAndServe(server, flags, log) }()
	go func() { out <- awaitExhaustion(ctx) }()
	select {
	case <-listening:
		begin()
	case err := <-failed:
		failed <- err
	case <-ctx.Done():
	}
	select {
	case err := <-failed:
		return command.Usage(fmt.Errorf("cannot serve on --web.listen-address=%s: %w",
			strings.Join(*flags.WebListenAddresses, ","), err))
	case err := <-out:
		if err != nil {
			return command.Failed, errors.Join(err, server.Close())
		}
	}
	log.Info("stopping")
	end, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		command.LogError(log, "shutdown: scrapes in progress interrupted", server.Close())
	}
	return command.OK, nil
}

// URL returns the URL of an exporter with these flags in its own network namespace. The scheme is https if TLS may be
// enabled.
func (w *Web) URL() (*url.URL, error) {
	listen := *w.Toolkit.WebListenAddresses
	if *w.Toolkit.WebSystemdSocket || len(listen) == 0 {
		return nil, errors.New("the running exporter uses a systemd socket: set --url")
	}
	name, port, err := net.SplitHostPort(listen[0])
	if err != nil || port == "0" {
		return nil, fmt.Errorf("the running exporter listens on %s: set --url", listen[0])
	}
	switch ip := net.ParseIP(name); {
	case name == "" || ip.Equal(net.IPv4zero):
		name = "127.0.0.1"
	case ip.Equal(net.IPv6unspecified):
		name = "::1"
	}
	u := &url.URL{Scheme: "http", Host: net.JoinHostPort(name, port), Path: w.routePrefix}
	if *w.Toolkit.WebConfigFile != "" {
		u.Scheme = "https"
	}
	return u, nil
}
