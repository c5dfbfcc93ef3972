package app

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"rdma_exporter/internal/web"
)

// TestHeaderSize: a header of 8 KiB is accepted, a larger one is not.
func TestHeaderSize(t *testing.T) {
	s := httptest.NewUnstartedServer(nil)
	s.Config = newServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), web.NewConnections(0, 0))
	s.Start()
	defer s.Close()
	const start, end = "GET / HTTP/1.1\r\nHost: x\r\nX: ", "\r\n\r\n"
	for size, want := range map[int]string{headerBytes: "HTTP/1.1 200", headerBytes + 1: "HTTP/1.1 431"} {
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
