package web

import (
	"rdma_exporter/internal/exposition"
)

var (
	connections = &exposition.Desc{
		Name: "rdma_exporter_connections", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "Open HTTP connections.", Source: "the exporter",
	}
	connectionsRefused = &exposition.Desc{
		Name: "rdma_exporter_connections_refused_total", Type: exposition.Counter, Scope: exposition.ScopeExporter,
		Help:   "New HTTP connections closed at a limit, because all others were in a request. limit: total (--web.max-connections), address (--web.max-connections-per-address).",
		Labels: []string{"limit"}, Source: "the exporter",
	}
	connectionsEvicted = &exposition.Desc{
		Name: "rdma_exporter_connections_evicted_total", Type: exposition.Counter, Scope: exposition.ScopeExporter,
		Help:   "HTTP connections closed for a new one at a limit: idle, with an incomplete header, or with a response that is not read. limit: total (--web.max-connections), address (--web.max-connections-per-address).",
		Labels: []string{"limit"}, Source: "the exporter",
	}
)

// Descs are the metrics of the server.
var Descs = []*exposition.Desc{connections, connectionsRefused, connectionsEvicted}

// families returns the metrics of the server; none without limits.
func (c *Connections) families() []exposition.Family {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sink.Begin()
	c.sink.Emit(connections, float64(len(c.open)))
	for _, limit := range []string{byTotal, byAddress} {
		c.sink.Emit(connectionsRefused, c.refused[limit], limit)
		c.sink.Emit(connectionsEvicted, c.evicted[limit], limit)
	}
	return c.sink.End()
}
