package hostdata

// Modules is the software of the devices.
type Modules struct {
	Modules   []Module
	DriverPin *DriverPin // nil: nothing pinned
	Nodes     []NodeClass
}

// Module is a kernel module that RDMA requires.
type Module struct {
	Name    string
	Loaded  bool   // live as a module, or built in
	Known   bool   // Loaded is certain
	BuiltIn bool   // in the kernel image
	Version string // /sys/module/NAME/version: out-of-tree modules have it
	Taint   string // /sys/module/NAME/taint: P proprietary, O out-of-tree, E unsigned
	Flavour string // in-tree, ofed, out-of-tree; empty when not loaded
	Driver  bool   // drives hardware, as opposed to the RDMA core
}

// DriverPin is the configured version of a loaded driver.
type DriverPin struct {
	Module, Pin string // the glob of versions
	Met         bool
}

// NodeClass is a kind of node in /dev/infiniband.
type NodeClass struct {
	Class    string // uverbs, umad, rdma_cm
	Present  uint64
	Readable uint64 // by this process
	Mode     string // permission bits, 0666; several differing ones joined by commas; empty: unknown
	// Groups own the nodes that others may not read and write, each once; nil: unknown, or there are no such nodes.
	Groups []uint32
}
