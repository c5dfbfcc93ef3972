package snapshot

// Neighbours are the far ends of ports' links.
type Neighbours struct {
	Ports   []PortNeighbour
	Subnets []PortSubnet
}

// PortSubnet is what was asked for over an InfiniBand port.
type PortSubnet struct {
	Device   string
	Port     int
	Counters []Stat         // of the port at the far end, by their names in sysfs, ports/N/counters; nil where nobody tells
	Manager  *SubnetManager // the master of the subnet; nil where none answers
	Settings []LinkSetting  // of both ends; nil where nobody tells
}

// LinkSetting is what one end of a link can, may or does.
type LinkSetting struct {
	End     string  // own or neighbour
	Setting string  // supported, enabled or active
	Rate    float64 // bytes per second: the highest
	Lanes   int     // the most
}

// SubnetManager is what SMInfo tells (IBA 14.2.5.13).
type SubnetManager struct {
	GUID                      string // of its port
	State, Priority, Activity *uint64
}

// PortNeighbour is what is known of the far end of one link: of a port, or of a member of its bond.
type PortNeighbour struct {
	Device string
	Port   int
	Netdev string
	// End is from the best source that knows, Source that source; empty where none does.
	End    End
	Source string
	// Announced is how many neighbours LLDP tells of; nil where it tells of none.
	Announced *uint64
	Cabled    *End  // what the cabling of --config.file says; nil: nothing
	Miscabled *bool // whether LLDP and the cabling differ; nil where one of them does not tell
}

// End is a port of a system.
type End struct {
	System string // its name, else its chassis ID
	Port   string // empty: not told
}
