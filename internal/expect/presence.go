package expect

// Presence is what the machine shows of a function whose RDMA device is not there.
type Presence struct {
	OnBus   bool   // its PCI function is there
	Driver  string // that the function is bound to; empty for none
	RDMA    bool   // the function has an RDMA device, under whatever name
	Netdev  bool   // the function has a network interface in this network namespace
	Unknown bool   // it could not be looked at
	// Shared says that RDMA devices are seen in all network namespaces; nil where the kernel does not tell.
	Shared *bool
}

// Reason is why a device is missing; empty where it is not, or where it cannot be told from one that was moved on purpose.
type Reason string

// The reasons.
const (
	NotOnBus     Reason = "not_on_pci"     // the PCI function is gone
	NoDriver     Reason = "no_driver"      // no driver is bound to it
	NoRDMADevice Reason = "no_rdma_device" // its driver is bound and has made no RDMA device
)

// MissingPinned tells why a device is not there that has to be, wherever it may be.
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

// Missing judges the absence of a device.
func Missing(f FunctionRecord, p Presence) Reason {
	switch {
	case p.Unknown || p.RDMA:
		return ""
	case !p.OnBus:
		return NotOnBus
	case p.Driver == "":
		return NoDriver
	case p.Driver != f.Driver: // vfio-pci and the like: given to a virtual machine
		return ""
	case p.Shared == nil || !*p.Shared: // in another network namespace: a container's
		return ""
	case f.Netdev && !p.Netdev:
		return ""
	}
	return NoRDMADevice
}
