// Package web is the HTTP server: metrics, health, API and pages.
package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/rounds"
)

// Rounds makes the metrics.
type Rounds interface {
	// Collect is rounds.Scheduler's.
	Collect(ctx context.Context, names []string) (*rounds.Picture, error)
}

// Options configure a Handler.
type Options struct {
	Rounds      Rounds
	Process     bool         // go_* and process_* metrics, if collect[] is not set
	MetricsPath string       // below RoutePrefix
	RoutePrefix string       // "/" or "/prefix"
	MaxRequests int          // concurrent scrapes, and concurrent requests to API and pages; others get 503
	Connections *Connections // nil: not limited, without metrics
	Pprof       bool
	Page        *Page // nil: none
	Logger      *slog.Logger
	Alerting    Alerting // /api/v1/alerts, /api/v1/rules; nil: no alerting
	// Lifecycle enables the requests below; without it they get 403. Whoever may scrape may not control.
	Lifecycle bool
	Reload    func() error // POST /-/reload
	// ReleaseGPUs releases every GPU for a time: POST /-/gpu/release?for=30m. by names the client.
	ReleaseGPUs func(ctx context.Context, d time.Duration, by string) error
	// Findings writes the findings as JSON: GET /api/v1/findings. Nil: no alerting.
	Findings func(io.Writer) error
}

// Handler serves one node.
type Handler struct {
	Options
	mux   *http.ServeMux
	own   *process     // nil: not exposed
	all   http.Handler // mux with cross-origin protection
	ready atomic.Bool
	size  atomic.Int64 // about that of the metrics
}

// New makes a handler. /-/ready responds with 200 after Ready was called. The error is for a MetricsPath that is in
// use.
func New(o Options) (*Handler, error) {
	h := &Handler{Options: o, mux: http.NewServeMux()}
	if o.Process {
		h.own = newProcess()
	}
	at := func(p string) string { return path.Join("/", o.RoutePrefix, p) }
	// API requests wait for the engine, also after the client disconnected. A separate limit keeps them from blocking
	// scrapes.
	api := newLimit(o.MaxRequests, "requests").handle
	h.mux.HandleFunc("GET "+at("/-/healthy"), func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "healthy") })
	h.mux.HandleFunc("GET "+at("/-/ready"), h.readiness)
	if o.Reload != nil {
		h.mux.HandleFunc("POST "+at("/-/reload"), h.lifecycle(h.reload, "rdma_exporter reload"))
	}
	if o.ReleaseGPUs != nil {
		h.mux.HandleFunc("POST "+at("/-/gpu/release"), h.lifecycle(h.releaseGPUs, "rdma_exporter gpu release"))
	}
	if o.Alerting != nil {
		h.mux.HandleFunc("GET "+at("/api/v1/alerts"), api(h.alerts))
		h.mux.HandleFunc("GET "+at("/api/v1/rules"), api(h.rules))
	}
	if o.Findings != nil {
		h.mux.HandleFunc("GET "+at("/api/v1/findings"), api(h.findings))
	}
	if o.Pprof {
		h.mux.Handle("GET "+at("/debug/pprof")+"/",
			http.StripPrefix(strings.TrimSuffix(at("/"), "/"), http.HandlerFunc(pprof.Index)))
		h.mux.HandleFunc("GET "+at("/debug/pprof/profile"), pprof.Profile)
		h.mux.HandleFunc("GET "+at("/debug/pprof/symbol"), pprof.Symbol)
		h.mux.HandleFunc("GET "+at("/debug/pprof/trace"), pprof.Trace)
	}
	if o.Page != nil && at(o.MetricsPath) != at("/") {
		h.page(at, api)
	}
	metrics := at(o.MetricsPath) // last, since it needs the other paths
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if _, taken := h.mux.Handler(&http.Request{Method: method, URL: &url.URL{Path: metrics}}); taken != "" {
			return nil, fmt.Errorf("path in use: %s", taken)
		}
	}
	h.mux.HandleFunc("GET "+metrics, newLimit(o.MaxRequests, "scrapes").handle(h.metrics))
	h.all = http.NewCrossOriginProtection().Handler(h.mux)
	return h, nil
}

// Ready makes /-/ready respond with 200.
func (h *Handler) Ready() { h.ready.Store(true) }

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.all.ServeHTTP(w, r) }

func (h *Handler) readiness(w http.ResponseWriter, _ *http.Request) {
	if !h.ready.Load() {
		http.Error(w, "not ready: the first collection has not finished", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
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

// metrics serves the metrics of the collectors in collect[], by default all.
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

// write responds in the negotiated format. The text formats are written directly, protobuf by the client library.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, families []exposition.Family, whole bool) {
	lists, own := [][]exposition.Family{families}, []*dto.MetricFamily(nil)
	if whole {
		lists = append(lists, h.Connections.families())
	}
	if h.own != nil && whole {
		var err error
		if own, err = h.own.golang.Gather(); err != nil {
			h.Logger.Error("cannot gather process metrics, they are missing in this scrape", "err", err)
		}
		lists = slices.Insert(lists, 0, h.own.families())
	}
	format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
	kind := format.FormatType()
	b := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(b)
	b.Reset()
	b.Grow(int(h.size.Load()))
	encode(b, own, format)
	for _, list := range lists {
		switch kind {
		case expfmt.TypeTextPlain:
			b.Write(exposition.AppendText(b.AvailableBuffer(), list))
		case expfmt.TypeOpenMetrics:
			b.Write(exposition.AppendOpenMetrics(b.AvailableBuffer(), list))
		default:
			encode(b, slices.Collect(exposition.DTO(list)), format)
		}
	}
	if kind == expfmt.TypeOpenMetrics {
		b.WriteString("# EOF\n")
	}
	h.size.Store(int64(b.Len() + 1024))
	w.Header().Set("Content-Type", string(format))
	compressed(w, r, b.Bytes())
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// encode uses the encoder of the library, without the final line of OpenMetrics.
func encode(b *bytes.Buffer, families []*dto.MetricFamily, format expfmt.Format) {
	if len(families) == 0 { // making an encoder parses the format
		return
	}
	e := expfmt.NewEncoder(b, format)
	for _, f := range families {
		// A bytes.Buffer does not fail, and families of the library are valid.
		if err := e.Encode(f); err != nil {
			continue
		}
	}
}

// gzipWriters are those of a library that takes less than half the time of the standard one for the same length.
var gzipWriters = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	return z
}}

// compressed writes a response in one call, with gzip if the client accepts it.
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
	_, _ = g.Write(b) // a bytes.Buffer does not fail
	_ = g.Close()
	return z.Bytes()
}

func send(w http.ResponseWriter, b []byte, encoding string) {
	if encoding != "" {
		w.Header().Set("Content-Encoding", encoding)
	}
	w.Header().Add("Vary", "Accept-Encoding")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b) // the client may have disconnected
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

// answerTime is the part of the scrape timeout reserved for the response.
const answerTime = 500 * time.Millisecond

// deadline ends the wait for collections shortly before the scrape timeout.
func deadline(r *http.Request) (context.Context, context.CancelFunc) {
	s, err := strconv.ParseFloat(r.Header.Get("X-Prometheus-Scrape-Timeout-Seconds"), 64)
	if err != nil || !(s > 0 && s < 3600) {
		return context.WithCancel(r.Context())
	}
	left := time.Duration(s * float64(time.Second))
	return context.WithTimeout(r.Context(), max(left-answerTime, left/2))
}
