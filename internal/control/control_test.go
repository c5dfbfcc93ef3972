package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/test/pipes"
)

// TestControlTime: who asks sees the answer, or why there is none, however long it takes.
func TestControlTime(t *testing.T) {
	for took, want := range map[time.Duration]string{
		0:                "200 done",
		59 * time.Second: "200 done",
		time.Hour:        "503 timed out after 1m: a sweep of the fabric or a write to the state directory is in progress, try again",
	} {
		t.Run(took.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := make(pipes.Listener)
				s := newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					time.Sleep(took)
					fmt.Fprint(w, "done")
				}))
				go func() { _ = s.Serve(p) }()
				client := newClient(func(context.Context) (net.Conn, error) {
					ours, theirs := net.Pipe()
					p <- theirs
					return ours, nil
				})
				resp, err := client.Post("http://rdma_exporter"+AcceptPath, "", nil)
				must(t, err)
				b, err := io.ReadAll(resp.Body)
				must(t, err)
				must(t, resp.Body.Close())
				if got := fmt.Sprintf("%d %s", resp.StatusCode, strings.TrimSpace(string(b))); got != want {
					t.Errorf("%s, want %s", got, want)
				}
				client.CloseIdleConnections()
				time.Sleep(took) // the handler ends
				close(p)
				must(t, s.Close())
			})
		})
	}
}

// TestControlConnections: connections that ask nothing do not keep others from being answered, and their number is
// limited.
func TestControlConnections(t *testing.T) {
	dir := t.TempDir()
	mux := http.NewServeMux()
	Handle(mux, "/", func(*http.Request) (string, error) { return "done", nil })
	s, err := Listen(dir, mux, slog.New(slog.DiscardHandler))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	var silent []net.Conn
	for range connections {
		c, err := net.Dial("unix", filepath.Join(dir, socketName))
		must(t, err)
		defer c.Close()
		silent = append(silent, c)
	}
	if got, err := Ask[string](t.Context(), dir, http.MethodPost, AcceptPath, nil); err != nil || got != "done" {
		t.Errorf("%s, %v", got, err)
	}
	must(t, silent[0].SetReadDeadline(time.Now().Add(HeaderTime/2)))
	if _, err := silent[0].Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the oldest connection is open")
	}
}

// TestForeignAnswer: what an exporter responds, also as an error, is printed to a terminal.
func TestForeignAnswer(t *testing.T) {
	dir := t.TempDir()
	mux := http.NewServeMux()
	Handle(mux, "/ok", func(*http.Request) (Accepted, error) {
		return Accepted{Forgets: []string{"mlx5_0\x1b[2J"}, Unknown: map[string]string{"a\nb": "c\x1b[2J"}}, nil
	})
	Handle(mux, "/bad", func(*http.Request) (Accepted, error) { return Accepted{}, BadRequest(errors.New("no \x1b[2J")) })
	s, err := Listen(dir, mux, slog.New(slog.DiscardHandler))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	for path, want := range map[string]string{
		"/ok":  `{["mlx5_0□[2J"] map["a□b":"c□[2J"]} <nil>`,
		"/bad": `{[] map[]} no □[2J`,
	} {
		got, err := Ask[Accepted](t.Context(), dir, http.MethodGet, path, nil)
		if text := fmt.Sprintf("%q %v", got, err); text != want {
			t.Errorf("%s: %s, want %s", path, text, want)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
