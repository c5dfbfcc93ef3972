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
)

// Whoever may write into the state directory may make the running exporter forget, and announce maintenance: through a socket there, so that it
// alone writes its state.
const (
	controlSocket = "control.sock"
	controlMode   = 0o660
	controlTime   = time.Minute                    // a sweep of a fabric whose nodes do not answer takes long
	controlAnswer = controlTime + 10*time.Second   // until the answer, that it took longer, is written
	controlWait   = controlAnswer + 10*time.Second // of who asks, so that the answer is what it sees
)

// control answers on the socket until the listener is closed.
func (k *keeper) control() (*http.Server, error) {
	mux := http.NewServeMux()
	controlAccept(mux, k.plan, k.accept)
	k.planned.control(mux)
	return listenControl(k.dir, mux, k.log)
}

// listenControl serves on the socket of a directory that is locked: a socket that is there is a dead process's.
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
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			discard(log, "control socket", err)
		}
	}()
	return s, nil
}

// controlServer answers in time, whatever a handler waits for.
func controlServer(h http.Handler) *http.Server {
	late := fmt.Sprintf("not done within %s: a sweep of the fabric, or a write to the state directory, takes longer: try again", controlTime)
	return &http.Server{Handler: http.TimeoutHandler(h, controlTime, late), ReadTimeout: controlAnswer, WriteTimeout: controlAnswer, IdleTimeout: controlAnswer}
}

// controlClient asks a controlServer.
func controlClient(dial func(context.Context) (net.Conn, error)) *http.Client {
	return &http.Client{Timeout: controlWait, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}}
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that has gone away is nobody's fault
}

var errNoExporter = errors.New("no rdma_exporter answers")

// askControl asks the running exporter through the socket in its state directory.
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
		return out, fmt.Errorf("%w for --state.dir=%s: %w: name the directory of the one that runs, as a user that may write there", errNoExporter, dir, err)
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
