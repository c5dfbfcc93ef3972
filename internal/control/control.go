// Package control is the way to the exporter that runs on this host: its control socket, and HTTP.
package control

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/web"
	"rdma_exporter/internal/words"
)

// Users with write permission on the state directory may control the exporter: accept changes, announce maintenance,
// release the GPUs, reload. They do so through a socket there: only the exporter writes its state, and permission to
// scrape is not permission to control.
const (
	socketName  = "control.sock"
	socketMode  = 0o660
	connections = 16                          // each in a request of one user
	Time        = time.Minute                 // a sweep of a fabric with nodes that do not respond takes long
	answerTime  = Time + 10*time.Second       // until the timeout response is written
	waitTime    = answerTime + 10*time.Second // of the client, so that it receives the timeout response
	// unreachable are the commands that need the socket.
	Unreachable = "rdma_exporter accept, gpu, maintenance and reload"
)

// Listen serves the socket of a locked directory. An existing socket belongs to a process that has ended.
func Listen(dir string, h http.Handler, log *slog.Logger) (*http.Server, error) {
	name := filepath.Join(dir, socketName)
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", name)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(name, socketMode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s := newServer(h)
	web.NewConnections(connections, 0).Limit(s)
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			command.LogError(log, "control socket failed, "+Unreachable+" cannot reach this exporter", err)
		}
	}()
	return s, nil
}

// newServer responds in time, whatever a handler waits for.
func newServer(h http.Handler) *http.Server {
	late := fmt.Sprintf("timed out after %s: a sweep of the fabric or a write to the state directory is in progress, try again",
		model.Duration(Time))
	return &http.Server{
		Handler: http.TimeoutHandler(h, Time, late), ReadHeaderTimeout: HeaderTime, MaxHeaderBytes: HeaderBytes - HeaderSlop,
		ReadTimeout: answerTime, WriteTimeout: answerTime, IdleTimeout: answerTime,
	}
}

// newClient returns a client of a controlServer.
func newClient(dial func(context.Context) (net.Conn, error)) *http.Client {
	return &http.Client{Timeout: waitTime, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}}
}

type badRequest struct{ error }

// BadRequest is the error of a request that the client has to change.
func BadRequest(err error) error { return badRequest{err} }

// Handle adds a handler on the socket: it responds with what answer returns as JSON, or with the text of its error.
func Handle[T any](mux *http.ServeMux, pattern string, answer func(*http.Request) (T, error)) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		v, err := answer(r)
		switch bad := (badRequest{}); {
		case errors.As(err, &bad):
			http.Error(w, err.Error(), http.StatusBadRequest)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v) // the client may have disconnected
		}
	})
}

var ErrNoExporter = errors.New("no running rdma_exporter")

// Ask sends a request to the running exporter through the socket in its state directory.
func Ask[T any](ctx context.Context, dir, method, path string, q url.Values) (out T, err error) {
	client := newClient(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(dir, socketName))
	})
	r, err := http.NewRequestWithContext(ctx, method, "http://rdma_exporter"+path+"?"+q.Encode(), nil)
	if err != nil {
		return out, err
	}
	answer, err := client.Do(r)
	if err != nil {
		if e := new(net.OpError); errors.As(err, &e) {
			err = e.Err
		}
		return out, fmt.Errorf("%w in --state.dir=%s: %w: set --state.dir to the directory of the running exporter, and run as root or as its user", ErrNoExporter, dir, err)
	}
	b, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(words.Foreign(strings.TrimSpace(string(b))))
	}
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	return words.AllForeign(out), err
}

// FabricFolder is the folder below the state directory, which serve locks.
const FabricFolder = "fabric"

// Paths of the control socket.
const (
	GPUPath        = "/gpu"
	GPUReleasePath = "/gpu/release"
	GPUResumePath  = "/gpu/resume"
)

// Paths of the control socket.
const (
	MaintenancePath      = "/maintenance"
	MaintenanceStartPath = "/maintenance/start"
	MaintenanceEndPath   = "/maintenance/end"
)

const ReloadPath = "/reload"

const (
	HeaderTime  = 5 * time.Second
	HeaderBytes = 8 << 10
	HeaderSlop  = 4096 // net/http reads that much more than Server.MaxHeaderBytes (Server.initialReadLimitSize)
)

// AcceptPath is the path on the control sockets: GET lists, POST discards.
const AcceptPath = "/accept"

// Accepted is the state that an exporter discards, and the reasons for unknown names.
type Accepted struct {
	Forgets []string          `json:"forgets"`
	Unknown map[string]string `json:"unknown,omitempty"`
}

// HandleAccept adds the handlers on a socket. No names means all.
func HandleAccept(mux *http.ServeMux, plan, accept func(ctx context.Context, names []string) (Accepted, error)) {
	for method, answer := range map[string]func(context.Context, []string) (Accepted, error){
		http.MethodGet: plan, http.MethodPost: accept,
	} {
		Handle(mux, method+" "+AcceptPath, func(r *http.Request) (Accepted, error) {
			return answer(r.Context(), r.URL.Query()["name"])
		})
	}
}

// ExporterURL parses the URL of an exporter.
func ExporterURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("must be http://HOST:PORT or https://HOST:PORT, with the route prefix of the exporter")
	}
	return u, nil
}

// HTTPClient is for the exporter of this host: without proxies and redirects.
func HTTPClient(c *tls.Config) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: c},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
