package web

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// limited returns a server with limits, on the loopback interface.
func limited(t *testing.T, total, address int, h http.HandlerFunc) (*httptest.Server, *Connections) {
	t.Helper()
	c := NewConnections(total, address)
	s := httptest.NewUnstartedServer(h)
	c.Limit(s.Config)
	t.Cleanup(s.Close)
	return s, c
}

// connect connects from an address, and waits until the server has accepted; nil if the connection was refused at once.
func connect(t *testing.T, s *httptest.Server, c *Connections, from byte) net.Conn {
	t.Helper()
	before := c.accepted()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, from)}}
	n, err := d.DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if errors.Is(err, syscall.ECONNRESET) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	for c.accepted() == before {
		time.Sleep(time.Millisecond)
	}
	return n
}

// accepted returns the number of connections that were open, refused or gave way.
func (c *Connections) accepted() (n float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n = float64(len(c.open))
	for _, by := range []map[string]float64{c.refused, c.evicted} {
		n += by[byTotal] + by[byAddress]
	}
	return n
}

func (c *Connections) count(by map[string]float64, limit string) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return by[limit]
}

// isOpen reports whether the server has not closed a connection, on which it sends nothing.
func isOpen(t *testing.T, n net.Conn) bool {
	t.Helper()
	if n == nil {
		return false
	}
	if err := n.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, err := n.Read(make([]byte, 1))
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

// TestConnections: which connection is closed for the last one, by the addresses that they come from in turn.
func TestConnections(t *testing.T) {
	for _, tt := range []struct {
		name           string
		total, address int
		from           []byte
		closed         int // index; -1: none
		want           string
	}{
		{"below the limits", 3, 2, []byte{2, 2, 3}, -1, "evicted 0 0"},
		{"total: the oldest", 2, 0, []byte{2, 3, 4}, 0, "evicted 1 0"},
		{"total: the oldest of the address with most", 3, 0, []byte{2, 3, 3, 4}, 1, "evicted 1 0"},
		{"address: the oldest of the same address", 3, 2, []byte{2, 3, 3, 3}, 1, "evicted 0 1"},
		{"no limits", 0, 0, []byte{2, 2, 2, 2}, -1, "evicted 0 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, c := limited(t, tt.total, tt.address, func(http.ResponseWriter, *http.Request) {})
			s.Start()
			var all []net.Conn
			for _, from := range tt.from {
				all = append(all, connect(t, s, c, from))
			}
			for i, n := range all {
				if isOpen(t, n) != (i != tt.closed) {
					t.Errorf("connection %d: open %v", i, i == tt.closed)
				}
			}
			if got := fmt.Sprintf("evicted %v %v", c.count(c.evicted, byTotal), c.count(c.evicted, byAddress)); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// TestConnectionInRequest: a connection in a request is kept, and the new one refused, unless the response is not read.
func TestConnectionInRequest(t *testing.T) {
	for _, secure := range []bool{false, true} {
		for path, left := range map[string]bool{"/long": true, "/unread": false} {
			t.Run(fmt.Sprint(path, " TLS ", secure), func(t *testing.T) {
				end, in := make(chan struct{}), make(chan struct{})
				s, c := limited(t, 1, 1, func(w http.ResponseWriter, r *http.Request) {
					close(in)
					if r.URL.Path == "/long" {
						<-end
					}
					for range 64 {
						_, _ = w.Write(make([]byte, 1<<20))
					}
				})
				defer close(end)
				first := dial(t, s, c, secure)
				if _, err := io.WriteString(first, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				<-in
				time.Sleep(3 * stalled)
				second := connect(t, s, c, 2)
				if isOpen(t, second) == left {
					t.Errorf("the second: open %v", !left)
				}
				if got, want := c.count(c.refused, byTotal)+c.count(c.refused, byAddress),
					map[bool]float64{true: 1}[left]; got != want {
					t.Errorf("%v refused, want %v", got, want)
				}
				if err := first.Close(); err != nil {
					t.Log(err)
				}
			})
		}
	}
}

// dial starts the server and connects.
func dial(t *testing.T, s *httptest.Server, c *Connections, secure bool) net.Conn {
	t.Helper()
	if !secure {
		s.Start()
		return connect(t, s, c, 2)
	}
	s.StartTLS()
	n := tls.Client(connect(t, s, c, 2), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	if err := n.Handshake(); err != nil {
		t.Fatal(err)
	}
	if p := n.ConnectionState().NegotiatedProtocol; p != "http/1.1" {
		t.Errorf("protocol %q: one connection would have many requests", p)
	}
	return n
}

// TestConnectionsAreCounted: what has ended is not counted, and the metrics have what was closed.
func TestConnectionsAreCounted(t *testing.T) {
	s, c := limited(t, 2, 0, func(http.ResponseWriter, *http.Request) {})
	s.Start()
	for range 3 {
		connect(t, s, c, 2)
	}
	_ = connect(t, s, c, 3).Close()
	for len(c.snapshot()) > 1 {
		time.Sleep(time.Millisecond)
	}
	for _, f := range c.families() {
		for labels, v := range f.Samples() {
			name := fmt.Sprint(f.Head.Desc.Name, labels)
			want := map[string]float64{
				"rdma_exporter_connections[]": 1, "rdma_exporter_connections_evicted_total[total]": 2,
			}[name]
			if v != want {
				t.Errorf("%s %v, want %v", name, v, want)
			}
		}
	}
}

func (c *Connections) snapshot() (all []*conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.open {
		all = append(all, x)
	}
	return all
}

// addressed returns a request of a client at an address.
func addressed(ctx context.Context, address string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	r.RemoteAddr = address + ":1"
	return r
}

// TestLimitByAddress: at the limit, one response of an address with several gives way to the first request from another
// one.
func TestLimitByAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimit(2, "scrapes")
		h := l.handle(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") })
		for range 2 {
			go h(&neverRead{until: make(chan struct{}), ResponseRecorder: httptest.NewRecorder()},
				addressed(t.Context(), "10.0.0.1"))
		}
		synctest.Wait()
		for _, tt := range []struct {
			from string
			code int
		}{{"10.0.0.1", http.StatusServiceUnavailable}, {"10.0.0.2", http.StatusOK}} {
			w := httptest.NewRecorder()
			began := time.Now()
			h(w, addressed(t.Context(), tt.from))
			if took := time.Since(began); w.Code != tt.code || took > 2*stalled {
				t.Errorf("%s: %d after %s, want %d", tt.from, w.Code, took, tt.code)
			}
		}
		time.Sleep(slow)
		h(httptest.NewRecorder(), addressed(t.Context(), "10.0.0.3"))
		l.endOldestOf(t)
	})
}

// endOldestOf ends what is left.
func (l *requestLimit) endOldestOf(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	left := append([]*reply(nil), l.leaving...)
	l.mu.Unlock()
	for _, p := range left {
		if err := http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Unix(1, 0)); err != nil {
			t.Error(err)
		}
	}
}

// neverRead is a response that the client does not read.
type neverRead struct {
	*httptest.ResponseRecorder
	until chan struct{}
}

func (u *neverRead) Write([]byte) (int, error) {
	<-u.until
	return 0, context.DeadlineExceeded
}

func (u *neverRead) SetWriteDeadline(time.Time) error {
	close(u.until)
	return nil
}

// TestHeaderTooLarge: the connection of an error that net/http answers itself is not in a request.
func TestHeaderTooLarge(t *testing.T) {
	s, c := limited(t, 1, 1, func(http.ResponseWriter, *http.Request) {})
	s.Config.MaxHeaderBytes = 4096
	s.Start()
	first := connect(t, s, c, 2)
	if _, err := io.WriteString(first, "GET / HTTP/1.1\r\nX: "+strings.Repeat("a", 60000)); err != nil {
		t.Log(err)
	}
	line, err := bufio.NewReader(first).ReadString('\n')
	if err != nil || !strings.Contains(line, "431") {
		t.Errorf("%q, %v", line, err)
	}
	if !isOpen(t, connect(t, s, c, 2)) {
		t.Error("the next one is refused")
	}
}
