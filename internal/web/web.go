// Package web is what the program serves: metrics, health and a page that leads to them.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	toolkit "github.com/prometheus/exporter-toolkit/web"

	"rdma_exporter/internal/rounds"
)

// Options configure a Handler.
type Options struct {
	Rounds *rounds.Scheduler
	// Process is gathered beside the node's metrics when all collectors are asked for; nil leaves it out.
	Process      prometheus.Gatherer
	MetricsPath  string // below RoutePrefix
	RoutePrefix  string // "/" or "/prefix"
	MaxRequests  int    // scrapes at a time; more are answered 503
	Pprof        bool
	Version      string
	Introduction string // on the page: which machine this is
	Logger       *slog.Logger
}

// Handler serves one node.
type Handler struct {
	Options
	mux      *http.ServeMux
	slots    chan struct{}
	ready    atomic.Bool
	errorLog promhttp.Logger
}

// New makes a handler. It answers at once; Ready says when /-/ready does.
func New(o Options) (*Handler, error) {
	h := &Handler{Options: o, mux: http.NewServeMux(), slots: make(chan struct{}, o.MaxRequests), errorLog: errorLog{o.Logger}}
	at := func(p string) string { return path.Join("/", o.RoutePrefix, p) }
	h.mux.HandleFunc("GET "+at(o.MetricsPath), h.metrics)
	h.mux.HandleFunc("GET "+at("/-/healthy"), func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "healthy") })
	h.mux.HandleFunc("GET "+at("/-/ready"), h.readiness)
	if o.Pprof {
		h.mux.HandleFunc("GET "+at("/debug/pprof")+"/", pprof.Index)
		h.mux.HandleFunc("GET "+at("/debug/pprof/profile"), pprof.Profile)
		h.mux.HandleFunc("GET "+at("/debug/pprof/symbol"), pprof.Symbol)
		h.mux.HandleFunc("GET "+at("/debug/pprof/trace"), pprof.Trace)
	}
	if at(o.MetricsPath) == at("/") {
		return h, nil
	}
	page, err := toolkit.NewLandingPage(toolkit.LandingConfig{
		RoutePrefix: at("/"),
		Name:        "rdma_exporter",
		Description: "Health of the RDMA fabric as this node sees it. " + o.Introduction,
		Version:     o.Version,
		Profiling:   strconv.FormatBool(o.Pprof),
		Links: []toolkit.LandingLinks{
			{Address: strings.TrimPrefix(o.MetricsPath, "/"), Text: "Metrics"},
			{Address: "-/healthy", Text: "Healthy"},
			{Address: "-/ready", Text: "Ready"},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("landing page: %w", err)
	}
	root := strings.TrimSuffix(at("/"), "/") + "/"
	h.mux.Handle("GET "+root+"{$}", page)
	if root != "/" {
		h.mux.Handle("GET /{$}", http.RedirectHandler(root, http.StatusFound))
	}
	return h, nil
}

// Ready makes /-/ready answer 200.
func (h *Handler) Ready() { h.ready.Store(true) }

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

func (h *Handler) readiness(w http.ResponseWriter, _ *http.Request) {
	if !h.ready.Load() {
		http.Error(w, "the first collection has not finished", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

// metrics serves a picture of the collectors named by collect[], of all when none is.
func (h *Handler) metrics(w http.ResponseWriter, r *http.Request) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		http.Error(w, fmt.Sprintf("%d scrapes are in progress, try again later", cap(h.slots)), http.StatusServiceUnavailable)
		return
	}
	names := r.URL.Query()["collect[]"]
	ctx, cancel := deadline(r)
	defer cancel()
	picture, err := h.Rounds.Collect(ctx, names)
	var unknown *rounds.UnknownCollectorError
	switch {
	case errors.As(err, &unknown):
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	gatherers := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families := picture.Families
		if h.Process != nil && len(names) == 0 {
			own, err := h.Process.Gather()
			return append(own, families...), err
		}
		return families, nil
	})
	promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{
		ErrorLog: h.errorLog, ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true,
	}).ServeHTTP(w, r)
}

// answerTime is what a scrape leaves for the answer to travel.
const answerTime = 500 * time.Millisecond

// deadline ends the wait for collections when the scraper is about to give up.
func deadline(r *http.Request) (context.Context, context.CancelFunc) {
	s, err := strconv.ParseFloat(r.Header.Get("X-Prometheus-Scrape-Timeout-Seconds"), 64)
	if err != nil || !(s > 0 && s < 3600) {
		return context.WithCancel(r.Context())
	}
	left := time.Duration(s * float64(time.Second))
	return context.WithTimeout(r.Context(), max(left-answerTime, left/2))
}

type errorLog struct{ log *slog.Logger }

func (l errorLog) Println(v ...any) { l.log.Error("cannot serve metrics", "err", fmt.Sprint(v...)) }
