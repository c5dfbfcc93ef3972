package accel

// PCIe is the positions of devices and GPUs in the PCI tree, and the state of their links.
type PCIe struct {
	Devices []PCIePath
	GPUs    []GPUPath
}

// PCIePath is the path from a root port to the PCI function of an RDMA device, both included.
type PCIePath struct {
	Device string
	Hops   []PCIeHop
}

// GPUPath is the path from a root port to a GPU, both included.
type GPUPath struct {
	Index string // of NVML, otherwise by order of addresses
	UUID  string // empty: unknown
	Hops  []PCIeHop
}

// PCIeHop is a function on a path; 0: unknown link value.
type PCIeHop struct {
	Address         string
	Speed, MaxSpeed float64 // transfers per second and lane: current_link_speed, max_link_speed
	Width, MaxWidth uint64  // lanes: current_link_width, max_link_width
	AER             AER
}

// AER counts errors of a function since it was enumerated: TOTAL_ERR_* of aer_dev_correctable, aer_dev_nonfatal and
// aer_dev_fatal. nil: no AER, or firmware-first handling.
type AER struct {
	Correctable, NonFatal, Fatal *uint64
}
