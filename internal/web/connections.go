package web

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"rdma_exporter/internal/exposition"
)

const (
	// stalled is how long a client may leave a response unread before its connection may be closed for another one.
	stalled = 100 * time.Millisecond
	// receiveBuffer and sendBuffer are socket buffers; the kernel doubles them. A control group is charged for what a
	// client sends without being answered, and for what it does not read: by default up to 32 MiB and 4 MiB per connection
	// (tcp_rmem, tcp_wmem).
	receiveBuffer = 16 << 10
	sendBuffer    = 64 << 10
)

// Connections limits the open connections of a server. At a limit, a connection that waits for its client is closed for
// the new one: it is idle, its header is incomplete, or its response is not read. It is the oldest of the address with
// the most connections, so that many from one address do not displace the only one from another. If there is none, the
// new one is closed.
type Connections struct {
	most map[string]int // by limit; 0: none

	mu      sync.Mutex
	open    map[net.Conn]*conn
	from    map[netip.Addr]int // number of open connections
	refused map[string]float64 // new connections, by limit
	evicted map[string]float64 // connections closed for a new one, by limit
	sink    *exposition.Sink
}

// The limits, as values of the label.
const (
	byTotal   = "total"
	byAddress = "address"
)

// conn is an open connection. Its times are guarded by Connections.mu.
type conn struct {
	net.Conn
	all     *Connections
	from    netip.Addr // invalid: not an IP address
	waiting time.Time  // for a request since; zero: in a request
	sending time.Time  // a part of a response since; zero: none
}

// NewConnections limits the connections in total, and those from one IP address. 0: no limit.
func NewConnections(total, address int) *Connections {
	return &Connections{
		most: map[string]int{byTotal: total, byAddress: address}, open: map[net.Conn]*conn{}, from: map[netip.Addr]int{},
		refused: map[string]float64{}, evicted: map[string]float64{}, sink: exposition.NewSink(Descs),
	}
}

// Limit applies the limits to a server that has not started. A connection has one request at a time: with HTTP/2 it
// would have hundreds.
func (c *Connections) Limit(s *http.Server) {
	s.Protocols = new(http.Protocols)
	s.Protocols.SetHTTP1(true)
	s.ConnContext = func(ctx context.Context, n net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, c.accept(n))
	}
	s.ConnState = func(n net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			c.closed(n)
		}
	}
	s.Handler = marked(s.Handler)
}

type connKey struct{}

// accept adds a new connection or closes it.
func (c *Connections) accept(n net.Conn) *conn {
	x := &conn{Conn: n, all: c, from: addressOf(n), waiting: time.Now()}
	x.limitBuffers()
	if other, ok := c.admit(x); !ok {
		x.reset()
	} else if other != nil {
		other.reset()
	}
	return x
}

// admit adds a connection, if necessary in place of another one.
func (c *Connections) admit(x *conn) (other *conn, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit := c.reached(x.from); limit != "" {
		if other = c.oldest(limit, x); other == nil {
			c.refused[limit]++
			return nil, false
		}
		c.evicted[limit]++
		c.remove(other)
	}
	c.open[x.Conn] = x
	c.from[x.from]++
	return other, true
}

// reached returns the limit that a connection from an address would exceed.
func (c *Connections) reached(from netip.Addr) string {
	switch {
	case from.IsValid() && c.most[byAddress] > 0 && c.from[from] >= c.most[byAddress]:
		return byAddress
	case c.most[byTotal] > 0 && len(c.open) >= c.most[byTotal]:
		return byTotal
	}
	return ""
}

// oldest returns the connection to close for a new one: the oldest of all, or of those from the same address.
func (c *Connections) oldest(limit string, x *conn) (oldest *conn) {
	now, first, most := time.Now(), time.Time{}, 0
	for other := range maps.Values(c.open) {
		since, n := other.idle(now), c.from[other.from]
		if since.IsZero() || limit == byAddress && other.from != x.from {
			continue
		}
		if n > most || n == most && since.Before(first) {
			oldest, first, most = other, since, n
		}
	}
	return oldest
}

func (c *Connections) closed(n net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.open[n]; x != nil {
		c.remove(x)
	}
}

func (c *Connections) remove(x *conn) {
	delete(c.open, x.Conn)
	if c.from[x.from]--; c.from[x.from] == 0 {
		delete(c.from, x.from)
	}
}

// idle returns since when the client has been waited for; zero: it is not.
func (x *conn) idle(now time.Time) time.Time {
	if x.waiting.IsZero() && now.Sub(x.sending) < stalled {
		return time.Time{}
	}
	if x.waiting.IsZero() {
		return x.sending
	}
	return x.waiting
}

func (x *conn) mark(waiting, sending time.Time) {
	x.all.mu.Lock()
	defer x.all.mu.Unlock()
	x.waiting, x.sending = waiting, sending
}

// below returns the connection without TLS, which would wait to send an alert.
func (x *conn) below() net.Conn {
	if t, ok := x.Conn.(*tls.Conn); ok {
		return t.NetConn()
	}
	return x.Conn
}

func (x *conn) limitBuffers() {
	if s, ok := x.below().(interface {
		SetReadBuffer(bytes int) error
		SetWriteBuffer(bytes int) error
	}); ok {
		_, _ = s.SetReadBuffer(receiveBuffer), s.SetWriteBuffer(sendBuffer) // a connection that has ended fails later
	}
}

// discard makes the kernel drop what the client does not read, instead of keeping it for minutes after the connection
// is closed.
func (x *conn) discard() {
	if t, ok := x.below().(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
}

func (x *conn) reset() {
	x.discard()
	_ = x.below().Close()
}

// addressOf is invalid for sockets without an IP address (Unix, vsock), which have no limit per address.
func addressOf(n net.Conn) netip.Addr {
	if a, ok := n.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// marked marks the connections that are in a request.
func marked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x, ok := r.Context().Value(connKey{}).(*conn)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		x.mark(time.Time{}, time.Time{})
		defer func() { x.mark(time.Now(), time.Time{}) }()
		next.ServeHTTP(&response{ResponseWriter: w, conn: x}, r)
	})
}

// response marks its connection while a part of it is being sent.
type response struct {
	http.ResponseWriter
	conn *conn
}

func (p *response) Write(b []byte) (int, error) {
	p.conn.mark(time.Time{}, time.Now())
	defer p.conn.mark(time.Time{}, time.Time{})
	n, err := p.ResponseWriter.Write(b)
	if err != nil {
		p.conn.discard()
	}
	return n, err
}

// Unwrap is for http.ResponseController.
func (p *response) Unwrap() http.ResponseWriter { return p.ResponseWriter }
