package app

import (
	"context"
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

	"rdma_exporter/internal/web"
)

// Users with write permission on the state directory may control the exporter: accept changes, announce maintenance, release the GPUs, reload.
// They do so through a socket there: only the exporter writes its state, and whoever may scrape may not control.
const (
	controlSocket      = "control.sock"
	controlMode        = 0o660
	controlConnections = 16                             // each in a request of one user
	controlTime        = time.Minute                    // a sweep of a fabric with nodes that do not respond takes long
	controlAnswer      = controlTime + 10*time.Second   // until the timeout response is written
	controlWait        = controlAnswer + 10*time.Second // of the client, so that it receives the timeout response
	// unreachable are the commands that need the socket.
	unreachable = "rdma_exporter accept, gpu, maintenance and reload"
)

// control serves the control socket until the listener is closed.
func (k *keeper) control() (*http.Server, error) {
	mux := http.NewServeMux()
	controlAccept(mux, k.plan, k.accept)
	k.planned.control(mux)
	for _, add := range k.commands {
		add(mux)
	}
	return listenControl(k.dir, mux, k.log)
}

// listenControl serves the socket of a locked directory. An existing socket belongs to a process that has ended.
func listenControl(dir string, h http.Handler, log *slog.Logger) (*http.Server, error) {
	name := filepath.Join(dir, controlSocket)
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", name)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(name, controlMode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s := controlServer(h)
	web.NewConnections(controlConnections, 0).Limit(s)
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			discard(log, "control socket failed, "+unreachable+" cannot reach this exporter", err)
		}
	}()
	return s, nil
}

// controlServer responds in time, whatever a handler waits for.
func controlServer(h http.Handler) *http.Server {
	late := fmt.Sprintf("timed out after %s: a sweep of the fabric or a write to the state directory is in progress, try again", model.Duration(controlTime))
	return &http.Server{Handler: http.TimeoutHandler(h, controlTime, late), ReadHeaderTimeout: headerTime, MaxHeaderBytes: headerBytes - headerSlop, ReadTimeout: controlAnswer, WriteTimeout: controlAnswer, IdleTimeout: controlAnswer}
}

// controlClient is a client of a controlServer.
func controlClient(dial func(context.Context) (net.Conn, error)) *http.Client {
	return &http.Client{Timeout: controlWait, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}}
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client may have disconnected
}

var errNoExporter = errors.New("no running rdma_exporter")

// instead adds to the error of a missing socket what an exporter without one accepts.
func instead(err error, what string) error {
	if errors.Is(err, errNoExporter) {
		return fmt.Errorf("%w; an exporter without a usable state directory %s", err, what)
	}
	return err
}

// askControl sends a request to the running exporter through the socket in its state directory.
func askControl[T any](ctx context.Context, dir, method, path string, q url.Values) (out T, err error) {
	client := controlClient(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(dir, controlSocket))
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
		return out, fmt.Errorf("%w in --state.dir=%s: %w: set --state.dir to the directory of the running exporter, and run as root or as its user", errNoExporter, dir, err)
	}
	b, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(strings.TrimSpace(string(b)))
	}
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	return out, err
}
