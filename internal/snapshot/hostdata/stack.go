package hostdata

import "time"

// BareFunction is a PCI function without an RDMA device, like others that have one, or that supports RDMA.
type BareFunction struct {
	PCIAddress string
	Driver     string   // empty: none is bound
	Root       string   // host bridge
	Path       []string // functions from the root port to itself
	NUMA       int      // numa_node; -1: unknown
	Like       bool     // functions like it have a device
}

// NoDevice is a host without RDMA devices.
type NoDevice struct {
	// Functions are the RDMA-capable PCI functions used by this kernel: without those passed through to virtual machines.
	Functions int `json:"functions"`
	// Namespaced means that RDMA devices belong to network namespaces: another one may have them.
	Namespaced bool `json:"namespaced,omitempty"`
}

// Stack is the kernel's RDMA stack on an RDMA-capable host.
type Stack struct {
	State    StackState
	Expected StackExpected // why it is expected to be loaded, if it is not
	// Functions are the RDMA-capable PCI functions, at most StackFunctions, if none of them has a device.
	Functions []StackFunction
	Settled   time.Duration // since the boot, or since the modules changed; 0: unknown
	Nodes     []VerbsNode   // of devices; nil if /dev is not the host's
}

// StackFunctions is the maximum number of listed functions without a device.
const StackFunctions = 64

// StackState is which part of the stack is loaded.
type StackState string

const (
	StackLoaded   StackState = "loaded"
	StackNoDevice StackState = "no_device" // RDMA-capable functions, but no RDMA device
	StackNoVerbs  StackState = "no_uverbs" // RDMA devices, but no ib_uverbs, which applications require
)

// StackExpected is the evidence that the stack should be loaded.
type StackExpected string

// The evidence, strongest first.
const (
	ExpectedConfiguration StackExpected = "configuration" // the site configuration names devices of this host
	ExpectedInventory     StackExpected = "inventory"     // it had RDMA devices before
	ExpectedCompute       StackExpected = "compute"       // it has a port of role compute
	ExpectedFunction      StackExpected = "rdma_function" // it has a dedicated RDMA function
	ExpectedDevice        StackExpected = "device"        // it has an RDMA device
	ExpectedUnknown       StackExpected = "unknown"       // its Ethernet controllers are RDMA-capable
)

// StackFunction is an RDMA-capable PCI function without an RDMA device.
type StackFunction struct {
	PCIAddress string
	Kind       string // pci.RDMAKind
	Driver     string // empty: none is bound
}

// VerbsNode is the node in /dev/infiniband of a device.
type VerbsNode struct {
	Device  string
	Name    string // uverbsN
	Present bool
}

// Boot is the current boot of the kernel.
type Boot struct {
	Uptime *float64 // seconds: the first number of /proc/uptime
	ID     string   // /proc/sys/kernel/random/boot_id
}
