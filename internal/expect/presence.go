package expect

// Presence is the state of a function whose RDMA device is missing.
type Presence struct {
	OnBus   bool   // its PCI function is present
	Driver  string // bound driver; empty: none
	RDMA    bool   // the function has an RDMA device, under any name
	Netdev  bool   // the function has a network interface in this network namespace
	Unknown bool   // could not be read
	// Shared: RDMA devices are visible in all network namespaces; nil: unknown.
	Shared *bool
}

// Reason is the reason why a device is missing; empty if it is not missing, or may have been moved on purpose.
type Reason string

// The reasons.
const (
	NotOnBus     Reason = "not_on_pci"     // the PCI function is missing
	NoDriver     Reason = "no_driver"      // no driver is bound
	NoRDMADevice Reason = "no_rdma_device" // a driver is bound and has not created an RDMA device
)

// MissingPinned returns the reason why a pinned device is missing.
func MissingPinned(p Presence) Reason {
	switch {
	case p.Unknown || p.RDMA:
		return ""
	case !p.OnBus:
		return NotOnBus
	case p.Driver == "":
		return NoDriver
	}
	return NoRDMADevice
}

// Missing returns the reason why a device is missing.
func Missing(f FunctionRecord, p Presence) Reason {
	switch reason := MissingPinned(p); {
	case reason != NoRDMADevice:
		return reason
	case p.Driver != f.Driver: // vfio-pci or similar: assigned to a virtual machine
		return ""
	case p.Shared == nil || !*p.Shared: // possibly in the network namespace of a container
		return ""
	case f.Netdev && !p.Netdev:
		return ""
	}
	return NoRDMADevice
}
