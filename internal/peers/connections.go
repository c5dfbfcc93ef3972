package peers

import (
	"maps"
	"slices"

	"rdma_exporter/internal/snapshot/qp"
)

// OfConnections returns the sums of a device by port from its connected IDs of rdma_cm and its listed queue pairs; nil:
// not listed. Ports without either have none. It is what is known without eBPF programs.
func OfConnections(device string, connected []qp.Connection, listed []qp.QueuePair) []qp.PeersOfPort {
	type sum struct {
		known, unknown int
		peers          map[string]bool
	}
	sums := map[int]*sum{}
	of := func(port int) *sum {
		if sums[port] == nil {
			sums[port] = &sum{peers: map[string]bool{}}
		}
		return sums[port]
	}
	unknown := map[uint64]int{} // ports of listed queue pairs that are not those of IDs
	for _, q := range listed {
		unknown[q.QPN] = q.Port
	}
	for _, c := range connected {
		if _, is := unknown[c.QPN]; !is && listed != nil {
			continue // connecting still, or ended since
		}
		delete(unknown, c.QPN)
		s := of(c.Port)
		s.known++
		s.peers[c.Peer] = true
	}
	for _, port := range unknown {
		of(port).unknown++
	}
	var out []qp.PeersOfPort
	for _, port := range slices.Sorted(maps.Keys(sums)) {
		s := sums[port]
		one := qp.PeersOfPort{Device: device, Port: port, Known: s.known, Peers: len(s.peers)}
		if listed != nil {
			all := s.known + s.unknown
			one.Connected = &all
		}
		if port > 0 {
			out = append(out, one)
		}
	}
	return out
}
