package serve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/control"
	"rdma_exporter/internal/web"
	"rdma_exporter/test/pipes"
)

// TestHeaderSize: a header of 8 KiB is accepted, a larger one is not.
func TestHeaderSize(t *testing.T) {
	s := httptest.NewUnstartedServer(nil)
	empty := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	s.Config = newServer(empty, web.NewConnections(0, 0), func() {})
	s.Start()
	defer s.Close()
	const start, end = "GET / HTTP/1.1\r\nHost: x\r\nX: ", "\r\n\r\n"
	for size, want := range map[int]string{control.HeaderBytes: "HTTP/1.1 200", control.HeaderBytes + 1: "HTTP/1.1 431"} {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		must(t, err)
		_, err = io.WriteString(c, start+strings.Repeat("a", size-len(start)-len(end))+end)
		must(t, err)
		b := make([]byte, len(want))
		_, err = io.ReadFull(c, b)
		must(t, err)
		if string(b) != want {
			t.Errorf("%d bytes: %s, want %s", size, b, want)
		}
		must(t, c.Close())
	}
}

// TestSlowClients: a client that sends or receives too slowly is disconnected; others are served meanwhile.
func TestSlowClients(t *testing.T) {
	for _, c := range []struct {
		name, sends string
		each        time.Duration // between bytes
		most        time.Duration
	}{
		{"sends no request", "", time.Second, 5 * time.Second},
		{"a head that does not end", "GET /metrics HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X-A: b\r\n", 1000), time.Second, 5 * time.Second},
		{"a body that does not end", "POST /-/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n", 0, 30 * time.Second},
		{"an answer that is not taken", "GET /large HTTP/1.1\r\nHost: x\r\n\r\n", 0, 2 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/large" {
						_, _ = w.Write(make([]byte, 8<<20))
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					fmt.Fprintln(w, "whole")
				}), web.NewConnections(0, 0), func() {})
				listener := make(pipes.Listener)
				served := make(chan error)
				go func() { served <- server.Serve(listener) }()
				dial := func() net.Conn {
					ours, theirs := net.Pipe()
					listener <- theirs
					return ours
				}
				slow := dial()
				ended := make(chan time.Duration)
				start := time.Now()
				var writing sync.WaitGroup
				writing.Go(func() {
					for i := range c.sends {
						if _, err := slow.Write([]byte{c.sends[i]}); err != nil {
							return
						}
						time.Sleep(c.each)
					}
				})
				go func() {
					if strings.Contains(c.sends, "/large") {
						time.Sleep(c.most + time.Second) // reads no answer
					}
					_, _ = io.Copy(io.Discard, slow)
					ended <- time.Since(start)
				}()
				quick := dial()
				_, err := io.WriteString(quick, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
				must(t, err)
				resp, err := http.ReadResponse(bufio.NewReader(quick), nil)
				must(t, err)
				if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "whole\n" || time.Since(start) > time.Second {
					t.Errorf("another client: %q, %v after %s", b, err, time.Since(start))
				}
				if took := <-ended; took > c.most+2*time.Second {
					t.Errorf("let go after %s", took)
				}
				close(listener)
				must(t, server.Close())
				writing.Wait()
				<-served
			})
		})
	}
}
