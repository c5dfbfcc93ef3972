package netlink

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/vishvananda/netlink/nl"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
)

// eachAttribute yields the attributes of a netlink message body: type without its flag bits, and payload. It stops at
// the first attribute that does not fit, so that a truncated message yields its complete attributes.
func eachAttribute(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= 4 {
			n := int(binary.NativeEndian.Uint16(b))
			if n < 4 || n > len(b) {
				return
			}
			if !yield(binary.NativeEndian.Uint16(b[2:])&0x3fff, b[4:n]) {
				return
			}
			b = b[min((n+3)&^3, len(b)):]
		}
	}
}

// parseNumber parses an integer attribute of 1, 2, 4 or 8 bytes in host byte order.
func parseNumber(b []byte) (uint64, bool) {
	switch len(b) {
	case 1:
		return uint64(b[0]), true
	case 2:
		return uint64(binary.NativeEndian.Uint16(b)), true
	case 4:
		return uint64(binary.NativeEndian.Uint32(b)), true
	case 8:
		return binary.NativeEndian.Uint64(b), true
	}
	return 0, false
}

// attributeList are the places of attributes by type: **uint64 of an integer, *string of a text, attributes of a nest,
// and func([]byte) takes any other payload.
type attributeList map[uint16]any

// decode stores the attributes of a message in their places. Integers of an odd size are left out.
func (to attributeList) decode(msg []byte) {
	for t, v := range eachAttribute(msg) {
		switch to := to[t].(type) {
		case **uint64:
			if n, ok := parseNumber(v); ok {
				*to = &n
			}
		case *string:
			*to = rooted.Text(v)
		case attributeList:
			to.decode(v)
		case func([]byte):
			to(v)
		}
	}
}

func parseDevice(msg []byte) (name string, index uint32, err error) {
	var number *uint64
	attributeList{nl.RDMA_NLDEV_ATTR_DEV_INDEX: &number, nl.RDMA_NLDEV_ATTR_DEV_NAME: &name}.decode(msg)
	if number == nil || name == "" {
		return "", 0, fmt.Errorf("%w: device without index or name", access.ErrMalformed)
	}
	return name, uint32(*number), nil
}

func parsePort(msg []byte) (p host.RDMAPort, device string, err error) {
	attributeList{
		nl.RDMA_NLDEV_ATTR_PORT_STATE: &p.State, nl.RDMA_NLDEV_ATTR_PORT_PHYS_STATE: &p.PhysicalState,
		nl.RDMA_NLDEV_ATTR_LID:       &p.LID,
		nl.RDMA_NLDEV_ATTR_SM_LID:    &p.SMLID,
		nl.RDMA_NLDEV_ATTR_LMC:       &p.LMC,
		nl.RDMA_NLDEV_ATTR_CAP_FLAGS: &p.Capabilities,
		nl.RDMA_NLDEV_ATTR_DEV_NAME:  &device, nl.RDMA_NLDEV_ATTR_NDEV_NAME: &p.Netdev,
	}.decode(msg)
	if device == "" {
		return host.RDMAPort{}, "", fmt.Errorf("%w: port without device", access.ErrMalformed)
	}
	return p, device, nil
}

func parseStats(msg []byte, buf []host.Stat) (stats []host.Stat, device string, err error) {
	stats = buf
	for t, v := range eachAttribute(msg) {
		switch t {
		case nl.RDMA_NLDEV_ATTR_DEV_NAME:
			device = rooted.Text(v)
		case nl.RDMA_NLDEV_ATTR_STAT_HWCOUNTERS:
			for t, v := range eachAttribute(v) {
				if t != nl.RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY {
					continue
				}
				if s, ok := parseStat(v); ok {
					stats = append(stats, s)
				}
			}
		}
	}
	if device == "" {
		return nil, "", fmt.Errorf("%w: statistics without device", access.ErrMalformed)
	}
	return stats, device, nil
}

func parseStat(b []byte) (s host.Stat, ok bool) {
	for t, v := range eachAttribute(b) {
		switch t {
		case nl.RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME:
			s.Name = rooted.Text(v)
		case nl.RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE:
			s.Value, ok = parseNumber(v)
		}
	}
	return s, ok && s.Name != ""
}
