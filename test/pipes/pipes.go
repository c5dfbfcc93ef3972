// Package pipes is an in-memory listener, for servers in tests with a fake clock.
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

// Close leaves the channel to the sender.
func (Listener) Close() error { return nil }

// Addr is empty.
func (Listener) Addr() net.Addr { return &net.TCPAddr{} }
