package port

import (
	"cmp"
	"fmt"

	"rdma_exporter/internal/evidence/fault"
)

// lostAt selects the peers that the port has begun to lose within the last hour; the value is the time.
const lostAt = `max by (peer, certainty) (rdma_port_peer_lost_start_time_seconds{$port} > time() - 3600)`

// certainties are values of the label certainty in words, the most certain first.
var certainties = []struct{ name, counted, words string }{
	{"exact", "attempts", "exact: the connection failed"},
	{"nearly_exact", "queue pairs", "nearly exact: they are in ERR"},
	{"candidate", "queue pairs", "candidate: they ended within seconds"},
}

// mostLost limits the lines of lost peers.
const mostLost = 8

// addLostPeers adds the peers that the port has lost, with the port of the fleet that has the address.
func addLostPeers(f *fault.Fault, e *fault.Lines) {
	n := 0
	for _, c := range certainties {
		for _, r := range f.Rows(lostAt, "peer") {
			if r.Labels["certainty"] != c.name {
				continue
			}
			if n++; n > mostLost {
				continue
			}
			peer := r.Labels["peer"]
			lost := f.Text(fmt.Sprintf(`max(rdma_port_peer_lost_total{$port,peer=%q,certainty=%q})`, peer, c.name),
				"%.0f", "?")
			e.Add("Lost", peerOf(f, peer)+", "+lost+" "+c.counted+", first "+fault.UTC(r.Value)+", "+c.words+".")
		}
	}
	if n > mostLost {
		e.Add("Lost", fmt.Sprintf("%d more peers.", n-mostLost))
	}
	known := f.Text(`sum(rdma_port_peer_queue_pairs{$port,peer="known"})`, "%.0f", "")
	all := f.Text(`sum(rdma_port_peer_queue_pairs{$port}) and sum(rdma_port_peer_queue_pairs{$port,peer="unknown"})`,
		"%.0f", "")
	if all != "" {
		known += " of " + all
	}
	byCM := n == 0 && !f.Has(`rdma_port_gid_info{$device}`)
	e.AddKnown("Peers", fault.When(all != "" || byCM, known), " connected queue pairs known"+
		fault.When(byCM, ", by rdma_cm: losses are not seen without eBPF programs")+".")
}

// peerOf returns the name of an address, with the address, and the rail where the fleet has it: "gpu-17 mlx5_3 (rail
// 3, 10.0.0.17)". The name is that of the configuration file or of /etc/hosts, then that of the only exporter of the
// fleet that reports the address; without one only the address.
func peerOf(f *fault.Fault, address string) string {
	name := f.LabelOf(fmt.Sprintf(`max by (name) (rdma_port_peer_name_info{$port,peer=%q})`, address), "name")
	rail := ""
	at := f.Rows(fmt.Sprintf(`max by (cluster, instance, job, device) (rdma_port_gid_info{cluster=%q,gid=%q})`,
		f.Labels["cluster"], address))
	if len(at) == 1 { // else the address is used twice
		peer := f.With(at[0].Labels, 0)
		name = cmp.Or(name, peer.HostDevice())
		rail = peer.LabelOf(`max by (rail) (rdma_place_info{$device,rail!=""})`, "rail")
	}
	if name == "" {
		return address
	}
	return name + " (" + fault.When(rail != "", "rail "+rail+", ") + address + ")"
}

// refusals are values of the label error in words.
var refusals = map[string]string{
	"timed_out": "no neighbour answers", "no_route": "no route", "host_unreachable": "host unreachable",
	"host_down": "host down",
}

// peersUnreachable tells of moves to RTR that fail.
func peersUnreachable(f *fault.Fault) fault.Text {
	attempts := fault.Whole(f.Value)
	var e fault.Lines
	addLostPeers(f, &e)
	const info = `max by (peer, error, command) (rdma_port_peer_unreachable_info{$port})`
	for i, r := range f.Rows(info, "peer") {
		if i < mostLost {
			e.Add("Last attempt", r.Labels["peer"]+": "+refusals[r.Labels["error"]]+", by "+r.Labels["command"]+".")
		}
	}
	e.Add("Not evaluated", "the peers themselves.")
	peer := f.LabelOf(`max by (peer) (rdma_port_peer_lost_total{$port,certainty="exact"})`, "peer")
	return fault.Text{
		Summary: f.Where() + ": cannot connect to " + peer + ", " + attempts + " attempts in 2m failed",
		Description: "Queue pairs of the port could not be connected in " + attempts + " attempts in 2m: the kernel finds " +
			"no route or no neighbour for the address of the peer. The job does not start, or ends.",
		Evidence: e,
		Measured: attempts,
		Limit:    "0",
		Diagnose: "ip neighbour show " + fault.Pasted(peer) + " ; ip route get " + fault.Pasted(peer) + " ; " +
			showStatistics(f),
		Action: "Check that the peer is up and that its interface has this address, then the VLAN and routes of both " +
			"ports. If several hosts report the same peer, repair that peer.",
		DrainReason: "The peer or the path is at fault: other peers can be reached.",
	}
}
