package page

import (
	"fmt"
	"strings"

	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/mad"
)

// aggregation is in the name of the adapter that a switch has of its own, for in-network reduction (SHARP): it is no
// host.
const aggregation = "Aggregation Node"

// tiers are the hops of each switch from the nearest host, over all links that are known: one that is gone moves no
// switch.
func (f *Fabric) tiers() map[fabric.GUID]int {
	next := map[fabric.GUID][]fabric.GUID{}
	for _, l := range f.picture.Known.Links {
		next[l.A.GUID] = append(next[l.A.GUID], l.B.GUID)
		next[l.B.GUID] = append(next[l.B.GUID], l.A.GUID)
	}
	isSwitch := map[fabric.GUID]bool{}
	var level []fabric.GUID
	for _, n := range f.picture.Known.Nodes {
		isSwitch[n.GUID] = n.Type == mad.Switch
		if n.Type != mad.Switch && !strings.Contains(n.Description, aggregation) {
			level = append(level, n.GUID)
		}
	}
	out := map[fabric.GUID]int{}
	for hops := 1; len(level) > 0; hops++ {
		var found []fabric.GUID
		for _, guid := range level {
			for _, to := range next[guid] {
				if isSwitch[to] && out[to] == 0 {
					out[to] = hops
					found = append(found, to)
				}
			}
		}
		level = found
	}
	return out
}

// tierNames are those of a fat tree.
var tierNames = []string{"unconnected", "leaf", "spine", "core"}

func tierName(tier int) string {
	if tier < len(tierNames) {
		return tierNames[tier]
	}
	return fmt.Sprintf("tier %d", tier)
}
