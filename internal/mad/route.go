package mad

import (
	"fmt"
	"strings"
)

// maxHops bounds a directed route (IBA 14.2.1.2).
const maxHops = 63

// Route says which port is asked. It does not change.
type Route struct {
	lid  uint16 // 0 where the route is directed
	path []byte // ports to leave by, the own one first
}

// Local is the directed route to the own port.
func Local() Route { return Route{} }

// ToLID is the route that the subnet manager has laid to a port.
func ToLID(lid uint16) Route { return Route{lid: lid} }

// Hop goes on from the end of a directed route through a port of the switch there, or of the own node. It is false where the route
// would be too long.
func (r Route) Hop(port uint8) (Route, bool) {
	if r.lid != 0 || len(r.path) == maxHops {
		return Route{}, false
	}
	path := make([]byte, len(r.path)+1)
	copy(path, r.path)
	path[len(r.path)] = port
	return Route{path: path}, true
}

// String writes a route as the diagnostic tools take it: "lid 17", "direct 0,1,18".
func (r Route) String() string {
	if r.lid != 0 {
		return fmt.Sprintf("lid %d", r.lid)
	}
	var b strings.Builder
	b.WriteString("direct 0")
	for _, p := range r.path {
		fmt.Fprintf(&b, ",%d", p)
	}
	return b.String()
}

// subnetClass is the class in which the route's end is asked for attributes of subnet management.
func (r Route) subnetClass() uint8 {
	if r.lid != 0 {
		return ClassSubnetLID
	}
	return ClassSubnetDirected
}
