// Package port says what faults of ports are whose links are up: pauses, discards, retransmissions, and settings in
// which a port differs from its siblings.
package port

import "rdma_exporter/internal/evidence/fault"

// Faults are the kinds of faults that have texts here; each file has those of its subject.
var Faults = fault.Merge(roceFaults, transportFaults, siblingFaults)
