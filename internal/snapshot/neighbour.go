package snapshot

// Neighbours are the far ends of ports' links.
type Neighbours struct {
	Ports []PortNeighbour
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
