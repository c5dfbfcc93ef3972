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
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/expect"
)

// Whoever may write into the state directory may tell the running exporter to forget: through a socket there, so that it alone writes
// the state file.
const (
	controlSocket = "control.sock"
	controlMode   = 0o660
	controlTime   = time.Minute                    // a sweep of a fabric whose nodes do not answer takes long
	controlAnswer = controlTime + 10*time.Second   // until the answer, that it took longer, is written
	controlWait   = controlAnswer + 10*time.Second // of who asks, so that the answer is what it sees

	acceptLinks   = "/links/accept"
	acceptDevices = "/devices/accept"
	acceptFabric  = "/fabric/accept"
)

// control answers on the socket until the listener is closed.
func (k *keeper) control() (*http.Server, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+acceptLinks, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		k.answer(w, k.memory.AcceptLinks(func(l expect.LinkRecord) bool { return asks(q, l.Device) }))
	})
	mux.HandleFunc("POST "+acceptDevices, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		k.answer(w, k.memory.AcceptFunctions(func(f expect.FunctionRecord) bool { return asks(q, f.Device, f.PCIAddress) }))
	})
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

// asks says whether a request names one of the names, or all.
func asks(q url.Values, names ...string) bool {
	return q.Get("all") == "true" || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(q["device"], n) })
}

// answer says what was forgotten, once it is so on disk.
func (k *keeper) answer(w http.ResponseWriter, v any) {
	if err := k.write(); err != nil {
		http.Error(w, "forgotten until the exporter ends only: "+err.Error(), http.StatusInternalServerError)
		return
	}
	answerJSON(w, v)
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that has gone away is nobody's fault
}

// accept asks the running exporter to forget what it remembers of devices, or of links of a fabric, and returns what that was.
func accept[T any](ctx context.Context, dir, path string, devices []string, all bool) ([]T, error) {
	q := url.Values{"device": devices}
	if all {
		q.Set("all", "true")
	}
	return askControl[[]T](ctx, dir, http.MethodPost, path, q)
}

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
		return out, fmt.Errorf("no rdma_exporter answers for --state.dir=%s: %w: name the directory of the one that runs, as a user that may write there", dir, err)
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
