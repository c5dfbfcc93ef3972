package web

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/test/pipes"
)

// TestLimit: of clients that ask and do not read, the first has to go when another wants its place; one that was
// answered a moment ago has not.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := strings.Repeat("x", 64<<10)
		server := &http.Server{WriteTimeout: time.Hour, Handler: newLimit(2, "scrapes").handle(
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, large) })}
		listener := make(pipes.Listener)
		served := make(chan error)
		go func() { served <- server.Serve(listener) }()
		ask := func() net.Conn {
			ours, theirs := net.Pipe()
			listener <- theirs
			if _, err := io.WriteString(ours, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			return ours
		}
		read := func(c net.Conn) (int, string) {
			defer c.Close()
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				return 0, err.Error()
			}
			b, err := io.ReadAll(resp.Body)
			if err != nil {
				return resp.StatusCode, err.Error()
			}
			return resp.StatusCode, string(b)
		}
		first := ask()
		time.Sleep(slow / 2)
		second := ask()
		if code, body := read(ask()); code != http.StatusServiceUnavailable ||
			body != "limit of 2 concurrent scrapes reached, try again later\n" {
			t.Errorf("while both are on their way: %d %s", code, body)
		}
		time.Sleep(slow)
		if code, body := read(ask()); code != http.StatusOK || body != large {
			t.Errorf("after both were slow: %d %.100s", code, body)
		}
		if code, body := read(first); code != 0 && body == large {
			t.Errorf("the first: %d", code)
		}
		if code, body := read(second); code != http.StatusOK || body != large {
			t.Errorf("the second: %d %.100s", code, body)
		}
		close(listener)
		<-served
		_ = server.Close()
	})
}
