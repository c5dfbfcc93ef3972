// Package web is what the program serves: metrics, health, and a page for people.
package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/rounds"
)

// Rounds makes the picture that is served.
type Rounds interface {
	// Collect is rounds.Scheduler's.
	Collect(ctx context.Context, names []string) (*rounds.Picture, error)
}

// Options configure a Handler.
type Options struct {
	Rounds Rounds
	// Process is gathered beside the node's metrics when all collectors are asked for; nil leaves it out.
	Process     prometheus.Gatherer
	MetricsPath string // below RoutePrefix
	RoutePrefix string // "/" or "/prefix"
	MaxRequests int    // scrapes at a time, and as many requests to the API and the page; more are answered 503
	Pprof       bool
	Page        *Page // nil: there is none
	Logger      *slog.Logger
	Reload      func() error // POST /-/reload: reads all configuration files again
	Alerting    Alerting     // /api/v1/alerts, /api/v1/rules; nil: no rules are judged
	// ReleaseGPUs lets go of every GPU for a time: POST /-/gpu/release?for=30m.
	ReleaseGPUs func(ctx context.Context, d time.Duration) error
	// Findings writes what is wrong with the node as JSON: GET /api/v1/findings. Nil: nothing is judged here.
	Findings func(io.Writer) error
}

// Handler serves one node.
type Handler struct {
	Options
	mux   *http.ServeMux
	all   http.Handler // mux, behind what keeps other sites' pages from posting
	ready atomic.Bool
}

// New makes a handler. It answers at once; Ready says when /-/ready does. The error is for a MetricsPath at which something else is served.
func New(o Options) (*Handler, error) {
	h := &Handler{Options: o, mux: http.NewServeMux()}
	at := func(p string) string { return path.Join("/", o.RoutePrefix, p) }
	// What is asked of the engine waits while it judges, and a client that goes away does not end that: it takes no scrape's place.
	api := newLimit(o.MaxRequests, "requests").handle
	h.mux.HandleFunc("GET "+at("/-/healthy"), func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "healthy") })
	h.mux.HandleFunc("GET "+at("/-/ready"), h.readiness)
	if o.Reload != nil {
		h.mux.HandleFunc("POST "+at("/-/reload"), h.reload)
	}
	if o.ReleaseGPUs != nil {
		h.mux.HandleFunc("POST "+at("/-/gpu/release"), h.releaseGPUs)
	}
	if o.Alerting != nil {
		h.mux.HandleFunc("GET "+at("/api/v1/alerts"), api(h.alerts))
		h.mux.HandleFunc("GET "+at("/api/v1/rules"), api(h.rules))
	}
	if o.Findings != nil {
		h.mux.HandleFunc("GET "+at("/api/v1/findings"), api(h.findings))
	}
	if o.Pprof {
		h.mux.Handle("GET "+at("/debug/pprof")+"/", http.StripPrefix(strings.TrimSuffix(at("/"), "/"), http.HandlerFunc(pprof.Index)))
		h.mux.HandleFunc("GET "+at("/debug/pprof/profile"), pprof.Profile)
		h.mux.HandleFunc("GET "+at("/debug/pprof/symbol"), pprof.Symbol)
		h.mux.HandleFunc("GET "+at("/debug/pprof/trace"), pprof.Trace)
	}
	if o.Page != nil && at(o.MetricsPath) != at("/") {
		h.page(at, api)
	}
	metrics := at(o.MetricsPath) // the last: what has the path already is known
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if _, taken := h.mux.Handler(&http.Request{Method: method, URL: &url.URL{Path: metrics}}); taken != "" {
			return nil, fmt.Errorf("the exporter serves %s there", taken)
		}
	}
	h.mux.HandleFunc("GET "+metrics, newLimit(o.MaxRequests, "scrapes").handle(h.metrics))
	h.all = http.NewCrossOriginProtection().Handler(h.mux)
	return h, nil
}

// Ready makes /-/ready answer 200.
func (h *Handler) Ready() { h.ready.Store(true) }

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.all.ServeHTTP(w, r) }

func (h *Handler) readiness(w http.ResponseWriter, _ *http.Request) {
	if !h.ready.Load() {
		http.Error(w, "the first collection has not finished", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

func (h *Handler) reload(w http.ResponseWriter, _ *http.Request) {
	if err := h.Reload(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintln(w, "reloaded")
}

func (h *Handler) findings(w http.ResponseWriter, r *http.Request) {
	var b bytes.Buffer
	if err := h.Findings(&b); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	compressed(w, r, b.Bytes())
}

// longestRelease bounds a release: what is forgotten ends by itself.
const longestRelease = 24 * time.Hour

func (h *Handler) releaseGPUs(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("for")
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > longestRelease {
		http.Error(w, fmt.Sprintf("for=%s: has to be a time from 0s, which ends a release, to %s: POST /-/gpu/release?for=30m", text, longestRelease), http.StatusBadRequest)
		return
	}
	switch err := h.ReleaseGPUs(r.Context(), d); {
	case err != nil:
		h.Logger.Warn("GPUs are not all released", "for", d, "err", err)
		http.Error(w, fmt.Sprintf("not released: %v; GPUs are not read for %s, and are let go of as soon as that can be", err, d), http.StatusServiceUnavailable)
	case d == 0:
		h.Logger.Info("GPUs are read again")
		fmt.Fprintln(w, "the release has ended: GPUs are read again")
	default:
		h.Logger.Info("GPUs are released", "for", d)
		fmt.Fprintf(w, "released: the exporter holds no GPU for %s; for=0s ends it\n", d)
	}
}

// metrics serves a picture of the collectors named by collect[], of all when none is.
func (h *Handler) metrics(w http.ResponseWriter, r *http.Request) {
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
	h.write(w, r, picture.Families, len(names) == 0)
}

// write answers in the format that the client asks for. The two text formats, which is what scrapers ask for, are written
// from the series' own text; protobuf goes through the client library.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, families []exposition.Family, whole bool) {
	var own []*dto.MetricFamily
	if h.Process != nil && whole {
		var err error
		if own, err = h.Process.Gather(); err != nil {
			h.Logger.Error("cannot gather the exporter's own metrics", "err", err)
		}
	}
	format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
	b := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(b)
	b.Reset()
	switch format.FormatType() {
	case expfmt.TypeTextPlain:
		encode(b, own, format)
		b.Write(exposition.AppendText(b.AvailableBuffer(), families))
	case expfmt.TypeOpenMetrics:
		encode(b, own, format)
		b.Write(exposition.AppendOpenMetrics(b.AvailableBuffer(), families))
		b.WriteString("# EOF\n")
	default:
		encode(b, append(own, exposition.DTO(families)...), format)
	}
	w.Header().Set("Content-Type", string(format))
	compressed(w, r, b.Bytes())
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// encode uses the library's encoder, without the closing line of OpenMetrics.
func encode(b *bytes.Buffer, families []*dto.MetricFamily, format expfmt.Format) {
	e := expfmt.NewEncoder(b, format)
	for _, f := range families {
		// A bytes.Buffer takes all, and a family that the library made is valid.
		if err := e.Encode(f); err != nil {
			continue
		}
	}
}

var gzipWriters = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	return z
}}

// compressed writes an answer at once, with gzip if the client takes it.
func compressed(w http.ResponseWriter, r *http.Request, b []byte) {
	if acceptsGzip(r) {
		send(w, pack(b), "gzip")
		return
	}
	send(w, b, "")
}

func pack(b []byte) []byte {
	var z bytes.Buffer
	g := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(g)
	g.Reset(&z)
	_, _ = g.Write(b) // a bytes.Buffer takes all
	_ = g.Close()
	return z.Bytes()
}

func send(w http.ResponseWriter, b []byte, encoding string) {
	if encoding != "" {
		w.Header().Set("Content-Encoding", encoding)
	}
	w.Header().Add("Vary", "Accept-Encoding")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b) // a client that has gone away is nobody's fault
}

func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, q, _ := strings.Cut(strings.ReplaceAll(part, " ", ""), ";")
		if coding == "gzip" || coding == "*" {
			return q != "q=0" && q != "q=0.0"
		}
	}
	return false
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
