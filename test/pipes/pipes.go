// Package pipes is a listener in memory, for servers in a test whose time is its own.
package pipes

import "net"

// Listener accepts the connections that are sent to it, until it is closed as a channel.
type Listener chan net.Conn

// Accept waits for the next connection.
func (l Listener) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close leaves the channel to whoever sends.
func (Listener) Close() error { return nil }

// Addr is none.
func (Listener) Addr() net.Addr { return &net.TCPAddr{} }
