package collector

import (
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/snapshot"
)

// allOnes is the value read from a device that is gone: no 64-bit counter reaches its maximum within the life of a
// machine.
const allOnes = 1<<64 - 1

// wordBytes: PortXmitData and PortRcvData count in units of 4 octets.
const wordBytes = 4

// hasTraffic reports whether counters/ has the port's traffic and hw_counters is not needed for it.
func hasTraffic(names []string) bool { return slices.Contains(names, "port_rcv_data") }

func statOf(stats []snapshot.Stat, name string) (uint64, bool) {
	i := slices.IndexFunc(stats, func(s snapshot.Stat) bool { return s.Name == name })
	if i < 0 {
		return 0, false
	}
	return stats[i].Value, true
}

// entry is the value of a key, a new one if there is none.
func entry[K comparable, V any](m map[K]*V, key K) *V {
	v := m[key]
	if v == nil {
		v = new(V)
		m[key] = v
	}
	return v
}

// valueOf is a value that may be absent; the zero value if it is.
func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func byNumber(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if errX != nil || errY != nil {
		return strings.Compare(a, b)
	}
	return x - y
}

const absentWhenZero = " Absent while 0."
