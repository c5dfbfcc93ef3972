// Package counters has the counters that several collectors serve: those of the performance management agent, of
// netdevs and of FEC, with their metrics and the names that drivers give them.
package counters

import (
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/snapshot/wire"
)

// AllOnes is the value read from a device that is gone: no 64-bit counter reaches its maximum within the life of a
// machine.
const AllOnes = 1<<64 - 1

// WordBytes: PortXmitData and PortRcvData count in units of 4 octets.
const WordBytes = 4

// HasTraffic reports whether counters/ has the port's traffic and hw_counters is not needed for it.
func HasTraffic(names []string) bool { return slices.Contains(names, "port_rcv_data") }

// StatOf returns the value of a counter by name.
func StatOf(stats []wire.Stat, name string) (uint64, bool) {
	i := slices.IndexFunc(stats, func(s wire.Stat) bool { return s.Name == name })
	if i < 0 {
		return 0, false
	}
	return stats[i].Value, true
}

// Entry returns the value of a key, and adds a zero value if the key is missing.
func Entry[K comparable, V any](m map[K]*V, key K) *V {
	v := m[key]
	if v == nil {
		v = new(V)
		m[key] = v
	}
	return v
}

// ValueOf returns a value that may be absent; the zero value if it is.
func ValueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// ByNumber compares names as numbers, or as texts if one is no number.
func ByNumber(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if errX != nil || errY != nil {
		return strings.Compare(a, b)
	}
	return x - y
}

// AbsentWhenZero ends the help of a metric that is left out while it is 0.
const AbsentWhenZero = " Absent while 0."
