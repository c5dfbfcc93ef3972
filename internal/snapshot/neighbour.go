package snapshot

import "rdma_exporter/internal/snapshot/wire"

// Neighbours are the far ends of ports' links.
type Neighbours struct {
	Ports   []PortNeighbour
	Subnets []PortSubnet
}

// PortSubnet is the answers to queries through an InfiniBand port.
type PortSubnet struct {
	Device   string
	Port     int
	Counters []wire.Stat    // of the port at the far end, by their names in sysfs, ports/N/counters; nil: unknown
	FEC      *IBFEC         // of the far end; nil: not queried, or not supported
	Lanes    *uint64        // of the link
	Manager  *SubnetManager // master subnet manager; nil: none answers
	Settings []LinkSetting  // of both ends; nil: unknown
}

// LinkSetting is what one end of a link supports, has enabled or runs at.
type LinkSetting struct {
	End     string  // own or neighbour
	Setting string  // supported, enabled or active
	Rate    float64 // bytes per second, highest
	Lanes   int     // highest
}

// SubnetManager is the answer to SMInfo (IBA 14.2.5.13).
type SubnetManager struct {
	GUID                      string // of its port
	State, Priority, Activity *uint64
}

// PortNeighbour is the far end of one link: of a port, or of a member of its bond.
type PortNeighbour struct {
	Device string
	Port   int
	Netdev string
	// End is from the best available source (Source); empty: unknown.
	End    End
	Source string
	// Announced is the number of neighbours in LLDP; nil: none.
	Announced *uint64
	Cabled    *End  // the cabling in --config.file; nil: not configured
	Miscabled *bool // whether LLDP and the cabling differ; nil: one of them is unknown
}

// End is a port of a system.
type End struct {
	System string // name, otherwise chassis ID
	Port   string // empty: unknown
}
