// Package link says what faults of links are: ports that are down, rates, bit errors, transceivers.
package link

import "rdma_exporter/internal/evidence/fault"

// Faults are the kinds of faults that have texts here; each file has those of its subject.
var Faults = fault.Merge(linkFaults, downFaults, berFaults, errorFaults, opticsFaults, laneFaults)
