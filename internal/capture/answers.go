package capture

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/linkmode"
)

// Netlink answers are stored as lines "name: value", to be read and edited like files.

func portPath(device string, port int) string { return fmt.Sprintf("rdma/%s/%d/port", device, port) }

func statsPath(device string, port int) string { return fmt.Sprintf("rdma/%s/%d/stats", device, port) }
func linkStatePath(netdev string) string       { return "ethtool/" + netdev + "/linkstate" }
func linkModesPath(netdev string) string       { return "ethtool/" + netdev + "/linkmodes" }
func pausePath(netdev string) string           { return "ethtool/" + netdev + "/pause" }
func fecPath(netdev string) string             { return "ethtool/" + netdev + "/fec" }
func netdevStatsPath(netdev string) string     { return "ethtool/" + netdev + "/stats" }
func standardStatsPath(netdev string) string   { return "ethtool/" + netdev + "/standard" }

const (
	systemPath = "rdma/system"
	healthPath = "devlink/health"
)

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

func systemFields(s *host.RDMASystem) []field { return []field{{"netns_mode", &s.NetnsMode, false}} }

func encodeSystem(s host.RDMASystem) []byte {
	var b bytes.Buffer
	encodeFields(&b, systemFields(&s))
	return b.Bytes()
}

func decodeSystem(path string, data []byte) (s host.RDMASystem, err error) {
	err = decodeFields(path, data, systemFields(&s), func(string, string) {})
	return s, err
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

// linkModesSets are the sets that are stored as names of modes.
func linkModesSets(m *host.LinkModes) map[string]*linkmode.Set {
	return map[string]*linkmode.Set{"supported": &m.Supported, "advertised": &m.Advertised, "peer": &m.Peer}
}

func encodeLinkModes(m host.LinkModes) []byte {
	var b bytes.Buffer
	encodeFields(&b, linkModesFields(&m))
	sets := linkModesSets(&m)
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		if s := *sets[name]; s != nil {
			fmt.Fprintf(&b, "%s: %s\n", name, s)
		}
	}
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
		name, value, ok := splitLine(line)
		if !ok {
			return host.ErrGarbled(path, []byte(line))
		}
		if err := each(name, value); err != nil {
			return host.ErrGarbled(path, []byte(line))
		}
	}
	return nil
}

// splitLine splits "NAME: VALUE". A name may contain ": ", a value does not.
func splitLine(line string) (name, value string, ok bool) {
	i := strings.LastIndex(line, ": ")
	if i < 0 {
		return "", "", false
	}
	return line[:i], line[i+2:], true
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
	sets := linkModesSets(&m)
	var bad error
	err = decodeFields(path, data, linkModesFields(&m), func(name, value string) {
		if sets[name] == nil {
			return
		}
		s, ok := linkmode.Parse(value)
		if !ok {
			bad = host.ErrGarbled(path, []byte(name+": "+value))
		}
		*sets[name] = s
	})
	return m.Known(), cmp.Or(err, bad)
}

func decodeStats(path string, data []byte, stats []host.Stat) ([]host.Stat, error) {
	err := lines(path, data, func(name, value string) error {
		n, err := strconv.ParseUint(value, 10, 64)
		stats = append(stats, host.Stat{Name: name, Value: n})
		return err
	})
	return stats, err
}

func healthFields(r *host.HealthReporter) []field {
	return []field{{"state", &r.State, false}, {"errors", &r.Errors, false}, {"recoveries", &r.Recoveries, false}}
}

// encodeHealth writes one line per reporter, named as in devlink(8): BUS/DEVICE/REPORTER or BUS/DEVICE/PORT/REPORTER.
func encodeHealth(reporters []host.HealthReporter) []byte {
	var b bytes.Buffer
	for _, r := range reporters {
		fmt.Fprintf(&b, "%s/%s/", r.Bus, r.Device)
		if r.Port != nil {
			fmt.Fprintf(&b, "%d/", *r.Port)
		}
		var values []string
		for _, f := range healthFields(&r) {
			if *f.value != nil {
				values = append(values, fmt.Sprintf("%s=%d", f.name, **f.value))
			}
		}
		fmt.Fprintf(&b, "%s: %s\n", r.Name, strings.Join(values, " "))
	}
	return b.Bytes()
}

func decodeHealth(path string, data []byte) (out []host.HealthReporter, err error) {
	err = lines(path, data, func(name, value string) error {
		r, ok := reporterNamed(name)
		if !ok {
			return host.ErrMalformed
		}
		for _, v := range strings.Fields(value) {
			key, number, _ := strings.Cut(v, "=")
			for _, f := range healthFields(&r) {
				if f.name == key {
					n, err := strconv.ParseUint(number, 10, 64)
					if err != nil {
						return err
					}
					*f.value = &n
				}
			}
		}
		out = append(out, r)
		return nil
	})
	return out, err
}

func reporterNamed(name string) (r host.HealthReporter, ok bool) {
	parts := strings.SplitN(name, "/", 3)
	if len(parts) < 3 {
		return r, false
	}
	r.Bus, r.Device, r.Name = parts[0], parts[1], parts[2]
	if port, rest, below := strings.Cut(r.Name, "/"); below {
		if n, err := strconv.ParseUint(port, 10, 32); err == nil {
			r.Port, r.Name = &n, rest
		}
	}
	return r, r.Bus != "" && r.Device != "" && r.Name != ""
}

func linkStateFields(s *host.LinkState) []field {
	return []field{
		{"link", &s.Link, false},
		{"ext_state", &s.ExtState, false},
		{"ext_substate", &s.ExtSubstate, false},
		{"ext_down_cnt", &s.ExtDownCount, false},
	}
}

func encodeLinkState(s host.LinkState) []byte {
	var b bytes.Buffer
	encodeFields(&b, linkStateFields(&s))
	return b.Bytes()
}

func decodeLinkState(path string, data []byte) (s host.LinkState, err error) {
	err = decodeFields(path, data, linkStateFields(&s), func(string, string) {})
	return s, err
}

func pauseFields(p *host.Pause) []field {
	return []field{
		{"autoneg", &p.Autoneg, false},
		{"rx", &p.RX, false},
		{"tx", &p.TX, false},
		{"tx_frames", &p.TXFrames, false},
		{"rx_frames", &p.RXFrames, false},
		{"tx_pause_storm_events", &p.TXStormEvents, false},
	}
}

func encodePause(p host.Pause) []byte {
	var b bytes.Buffer
	encodeFields(&b, pauseFields(&p))
	return b.Bytes()
}

func decodePause(path string, data []byte) (p host.Pause, err error) {
	err = decodeFields(path, data, pauseFields(&p), func(string, string) {})
	return p, err
}

func fecFields(f *host.FEC) []field {
	return []field{
		{"active", &f.Active, false},
		{"corrected", &f.Corrected, false},
		{"uncorrectable", &f.Uncorrectable, false},
		{"corrected_bits", &f.CorrectedBits, false},
	}
}

// fecLanes are the statistics by lane, stored as NAME/laneN.
func fecLanes(f *host.FEC) map[string]*[]uint64 {
	return map[string]*[]uint64{"corrected": &f.LaneCorrected, "uncorrectable": &f.LaneUncorrectable, "corrected_bits": &f.LaneCorrectedBits}
}

// encodeFEC stores a bin of the histogram as bin/LOW-HIGH, and bin/LOW-HIGH/laneN by lane.
func encodeFEC(f host.FEC) []byte {
	var b bytes.Buffer
	encodeFields(&b, fecFields(&f))
	lanes := fecLanes(&f)
	for _, name := range slices.Sorted(maps.Keys(lanes)) {
		encodeLanes(&b, name, *lanes[name])
	}
	for _, bin := range f.Histogram {
		name := fmt.Sprintf("bin/%d-%d", bin.Low, bin.High)
		fmt.Fprintf(&b, "%s: %d\n", name, bin.Blocks)
		encodeLanes(&b, name, bin.Lanes)
	}
	return b.Bytes()
}

func encodeLanes(b *bytes.Buffer, name string, lanes []uint64) {
	for i, n := range lanes {
		fmt.Fprintf(b, "%s/lane%d: %d\n", name, i, n)
	}
}

func decodeFEC(path string, data []byte) (f host.FEC, err error) {
	lanes := fecLanes(&f)
	var bad error
	err = decodeFields(path, data, fecFields(&f), func(name, value string) {
		whole, _, byLane := strings.Cut(name, "/lane")
		var low, high uint64
		_, err := fmt.Sscanf(whole, "bin/%d-%d", &low, &high)
		isBin := err == nil
		if !isBin && (!byLane || lanes[whole] == nil) {
			return
		}
		n, err := strconv.ParseUint(value, 0, 64)
		if err != nil {
			bad = host.ErrGarbled(path, []byte(name+": "+value))
			return
		}
		switch {
		case !isBin:
			*lanes[whole] = append(*lanes[whole], n)
		case !byLane:
			f.Histogram = append(f.Histogram, host.FECBin{Low: low, High: high, Blocks: n})
		case len(f.Histogram) > 0:
			last := &f.Histogram[len(f.Histogram)-1]
			last.Lanes = append(last.Lanes, n)
		}
	})
	return f, errors.Join(err, bad)
}
