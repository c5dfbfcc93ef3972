package capture

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"rdma_exporter/internal/host"
)

// Netlink answers are written as lines "name: value", so that a person reads and edits them like files.

func portPath(device string, port int) string { return fmt.Sprintf("rdma/%s/%d/port", device, port) }

func statsPath(device string, port int) string { return fmt.Sprintf("rdma/%s/%d/stats", device, port) }
func linkModesPath(netdev string) string       { return "ethtool/" + netdev + "/linkmodes" }

type field struct {
	name  string
	value **uint64
	hex   bool
}

func portFields(p *host.RDMAPort) []field {
	return []field{
		{"state", &p.State, false},
		{"physical_state", &p.PhysicalState, false},
		{"lid", &p.LID, false},
		{"sm_lid", &p.SMLID, false},
		{"lmc", &p.LMC, false},
		{"capability_flags", &p.Capabilities, true},
	}
}

func linkModesFields(m *host.LinkModes) []field {
	return []field{{"speed", &m.Speed, false}, {"lanes", &m.Lanes, false}, {"autoneg", &m.Autoneg, false}, {"duplex", &m.Duplex, false}}
}

func encodeFields(b *bytes.Buffer, fields []field) {
	for _, f := range fields {
		switch {
		case *f.value == nil:
		case f.hex:
			fmt.Fprintf(b, "%s: %#x\n", f.name, **f.value)
		default:
			fmt.Fprintf(b, "%s: %d\n", f.name, **f.value)
		}
	}
}

func encodePort(p host.RDMAPort) []byte {
	var b bytes.Buffer
	encodeFields(&b, portFields(&p))
	if p.Netdev != "" {
		fmt.Fprintf(&b, "netdev: %s\n", p.Netdev)
	}
	return b.Bytes()
}

func encodeLinkModes(m host.LinkModes) []byte {
	var b bytes.Buffer
	encodeFields(&b, linkModesFields(&m))
	return b.Bytes()
}

func encodeStats(stats []host.Stat) []byte {
	var b bytes.Buffer
	for _, s := range stats {
		fmt.Fprintf(&b, "%s: %d\n", s.Name, s.Value)
	}
	return b.Bytes()
}

// lines splits content into name and value at the last ": " of each line.
func lines(path string, data []byte, each func(name, value string) error) error {
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		i := strings.LastIndex(line, ": ")
		if i < 0 {
			return host.ErrGarbled(path, []byte(line))
		}
		if err := each(line[:i], line[i+2:]); err != nil {
			return host.ErrGarbled(path, []byte(line))
		}
	}
	return nil
}

func decodeFields(path string, data []byte, fields []field, other func(name, value string)) error {
	return lines(path, data, func(name, value string) error {
		for _, f := range fields {
			if f.name == name {
				n, err := strconv.ParseUint(value, 0, 64)
				*f.value = &n
				return err
			}
		}
		other(name, value)
		return nil
	})
}

func decodePort(path string, data []byte) (p host.RDMAPort, err error) {
	err = decodeFields(path, data, portFields(&p), func(name, value string) {
		if name == "netdev" {
			p.Netdev = value
		}
	})
	return p, err
}

func decodeLinkModes(path string, data []byte) (m host.LinkModes, err error) {
	err = decodeFields(path, data, linkModesFields(&m), func(string, string) {})
	return m.Known(), err
}

func decodeStats(path string, data []byte, stats []host.Stat) ([]host.Stat, error) {
	err := lines(path, data, func(name, value string) error {
		n, err := strconv.ParseUint(value, 10, 64)
		stats = append(stats, host.Stat{Name: name, Value: n})
		return err
	})
	return stats, err
}
