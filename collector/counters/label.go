package counters

import (
	"strconv"

	"rdma_exporter/internal/snapshot/wire"
)

// LabelOf returns the value of a label other than the netdev.
func LabelOf(c *wire.NetdevCount, name string) string {
	switch name {
	case "priority", "lane", "queue":
		return Index(c.Index)
	}
	return c.Label
}

// Index returns the label of a priority, a lane or a queue; empty for a total.
func Index(i int) string {
	if i < 0 {
		return ""
	}
	return strconv.Itoa(i)
}
