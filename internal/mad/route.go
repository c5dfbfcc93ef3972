package mad

import (
	"fmt"
	"strings"
)

// maxHops limits a directed route (IBA 14.2.1.2).
const maxHops = 63

// Route is the way to the port that is queried. It is immutable.
type Route struct {
	lid  uint16 // 0: directed
	path []byte // exit ports, the local one first
}

// Local returns the directed route to the local port.
func Local() Route { return Route{} }

// ToLID returns the route to a LID through the forwarding tables.
func ToLID(lid uint16) Route { return Route{lid: lid} }

// Hop extends a directed route through a port of the switch at its end, or of the local node. ok is false if the route
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

// String formats a route as the diagnostic tools accept it: "lid 17", "direct 0,1,18".
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

// subnetClass returns the class of subnet management requests on the route.
func (r Route) subnetClass() uint8 {
	if r.lid != 0 {
		return ClassSubnetLID
	}
	return ClassSubnetDirected
}
