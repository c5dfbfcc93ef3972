// Package qp is the data of connected queue pairs and their peers.
package qp

import (
	"net/netip"
	"time"
)

// ShortAddress returns the short form of a GID as sysfs writes it, and an IPv4 address for a mapped one. Another text
// is unchanged.
func ShortAddress(gid string) string {
	a, err := netip.ParseAddr(gid)
	if err != nil {
		return gid
	}
	return a.Unmap().String()
}

// Pairs is what eBPF programs have seen of connected queue pairs (RC, UC, XRC) since they were attached.
type Pairs struct {
	Since  time.Time   // from which no event is missing: of the attachment, or of the last loss
	Lost   uint64      // events of the programs, so far
	Events []PairEvent // after those already read, the oldest first
}

// PairEvent is an event of a queue pair.
type PairEvent struct {
	Seq     uint64 // counts from 1; a gap: the events between were dropped
	At      time.Time
	Kind    string // PairConnected and others
	Device  string
	Port    int // 0: unknown
	QPN     uint64
	PID     int    // of the process that created it, in the initial PID namespace; 0: the kernel, or unknown
	Command string // of the caller, or Kernel; only of PairConnected and PairRefused, as the following
	PeerQPN uint64
	Peer    string // its GID as sysfs writes it, or lid:N
	RoCE    bool
	Errno   int    // of PairRefused
	Event   string // of PairEvented: as accel.AsyncEvent.Kind
}

// Kernel is the command of the queue pairs of the kernel, as those of NVMe over RDMA. Its own are worker threads.
const Kernel = "kernel"

// Kinds of PairEvent.
const (
	PairConnected = "connected" // moved to RTR
	PairRefused   = "refused"   // the move to RTR has failed
	PairError     = "error"     // moved to ERR by its process, or by the kernel's user
	PairEvented   = "event"     // an asynchronous event
	PairEnded     = "ended"     // destroyed; PID is the caller
)

// Unreachable are the errors of a move to RTR that are about the peer: no route to its address, or no neighbour that
// answers (rdma_addr_find_l2_eth_by_grh, core/addr.c). By PairEvent.Errno, a number of Linux.
var Unreachable = map[int]string{101: "no_route", 110: "timed_out", 112: "host_down", 113: "host_unreachable"}

// QueuePair is a connected queue pair as listed by RDMA netlink.
type QueuePair struct {
	QPN     uint64
	PeerQPN uint64
	Port    int // 0: unknown
	PID     int // of the process that created it; 0: the kernel, or not visible
	// State is enum ib_qp_state: 2 RTR, 3 RTS, 6 ERR.
	State int
}

// Connection is a connected ID of rdma_cm with a queue pair (RC, UC, XRC), as listed by RDMA netlink.
type Connection struct {
	QPN  uint64
	Port int    // 0: unknown
	PID  int    // as QueuePair.PID
	Peer string // address as a GID in the form of sysfs: that of the interface, which is the GID for RoCE
}

// Peers sums up the connected queue pairs of a machine by port and peer.
type Peers struct {
	Ports   []PeersOfPort // sorted
	Lost    []LostPeer    // sorted, at most 64
	Dropped uint64        // queue pairs beyond the limit, so far
	ByCM    bool          // no eBPF programs observe: the peers are those of rdma_cm, losses are not seen
	// Addresses are GIDs of this machine's ports.
	Addresses []Address
}

// Address is a GID of a port, in its short form; IPv4 if it is mapped.
type Address struct {
	Device string
	Port   int
	GID    string
}

// PeersOfPort is the connected queue pairs of a port.
type PeersOfPort struct {
	Device string
	Port   int
	Known  int // queue pairs whose peer is known
	// Connected is the number of queue pairs; nil: RDMA netlink has not listed them yet, or cannot.
	Connected *int
	Peers     int // different addresses
}

// LostPeer is a peer that queue pairs of a port have lost.
type LostPeer struct {
	Device      string
	Port        int
	Peer        string    // its GID as sysfs writes it, or lid:N
	Name        string    // of that address; empty: unknown
	NamedBy     string    // NamedBySite, NamedByHosts
	Certainty   string    // LostExactly, LostProbably, LostCandidate
	Pairs       uint64    // queue pairs, so far; of LostExactly attempts to connect
	First, Last time.Time // of the losses without a pause of an hour
	Errno       int       // of the last attempt, of LostExactly
	PID         int       // of the process; 0: the kernel, or unknown
	Command     string
}

// Sources of the name of a peer.
const (
	NamedBySite  = "site"  // the configuration file
	NamedByHosts = "hosts" // /etc/hosts
)

// Certainty of a lost peer.
const (
	LostExactly   = "exact"        // a move to RTR failed for want of a route or neighbour
	LostProbably  = "nearly_exact" // retries exceeded, and the hardware put the queue pair into ERR
	LostCandidate = "candidate"    // retries exceeded, and the queue pair ended within seconds
)
