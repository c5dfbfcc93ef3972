// Package host says what faults inside a host are: devices, PCIe, GPUs, the RDMA stack, subnet managers, and the
// exporter.
package host

import "rdma_exporter/internal/evidence/fault"

// Faults are the kinds of faults that have texts here; each file has those of its subject.
var Faults = fault.Merge(
	deviceFaults, stackFaults, pcieFaults, gpuFaults, gpuDirectFaults,
	subnetManagerFaults, exporterFaults, jobFaults,
)
