package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errStatsChange is the error of a netdev whose set of statistics changed during several consecutive readings.
var errStatsChange = errors.New("the set of statistics keeps changing")

// statsTries limits the readings of a changing set: mlx5 has pause statistics only for priorities with PFC. A reading
// whose names differ from the previous one is repeated, since the set may have changed between names and values.
const statsTries = 4

const (
	// statsMost is more than any driver has. The buffers have room for as many: older kernels write all current values,
	// whatever the size of the buffer.
	statsMost = 32768

	statNameLength = 32 // ETH_GSTRING_LEN
	statStrings    = 1  // ETH_SS_STATS
)

// statNamesBuffer is struct ethtool_gstrings, statsBuffer struct ethtool_stats.
type (
	statNamesBuffer struct {
		cmd, set, count uint32
		text            [statsMost * statNameLength]byte
	}
	statsBuffer struct {
		cmd, count uint32
		values     [statsMost]uint64
	}
)

// netdevStats reads ETHTOOL_GSTATS with its strings (net/ethtool/ioctl.c). Netlink does not have them.
type netdevStats struct {
	mu     sync.Mutex
	fd     int              // of a socket, if there are buffers
	names  *statNamesBuffer // nil: not open
	values *statsBuffer
	tables map[string]*stringTable // by netdev
}

// stringTable is the names of a netdev's statistics, and the kernel's text that they were parsed from.
type stringTable struct {
	raw   []byte
	names []string
}

// NetdevStats is `ethtool -S`.
func (c *ethtoolClient) NetdevStats(_ context.Context, netdev string) ([]Stat, error) {
	return query(c.here, "ethtool/"+netdev, "/stats", func() ([]Stat, error) { return c.stats.read(netdev) })
}

func (s *netdevStats) read(netdev string) ([]Stat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, err
	}
	var seen bool
	for range statsTries {
		if err := s.fill(netdev); err != nil {
			delete(s.tables, netdev)
			return nil, err
		}
		before := s.tables[netdev]
		stats, whole := s.answer(netdev)
		if whole && (before == nil || before == s.tables[netdev]) {
			return stats, nil
		}
		seen = seen || s.names.count+s.values.count != 0
	}
	delete(s.tables, netdev)
	if !seen {
		return nil, unix.EOPNOTSUPP
	}
	return nil, errStatsChange
}

func (s *netdevStats) open() (err error) {
	if s.names != nil {
		return nil
	}
	if s.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	s.names, s.values, s.tables = &statNamesBuffer{}, &statsBuffer{}, map[string]*stringTable{}
	return nil
}

func (s *netdevStats) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names != nil {
		unix.Close(s.fd)
		s.names = nil
	}
}

// fill reads names and values, as many as the driver announces.
func (s *netdevStats) fill(netdev string) error {
	driver, err := unix.IoctlGetEthtoolDrvinfo(s.fd, netdev)
	if err != nil {
		return err
	}
	if driver.N_stats > statsMost {
		return fmt.Errorf("%d statistics, at most %d are supported", driver.N_stats, statsMost)
	}
	s.names.cmd, s.names.set, s.names.count = unix.ETHTOOL_GSTRINGS, statStrings, driver.N_stats
	if err := ethtoolIoctl(s.fd, netdev, unsafe.Pointer(s.names)); err != nil {
		return err
	}
	s.values.cmd, s.values.count = unix.ETHTOOL_GSTATS, driver.N_stats
	return ethtoolIoctl(s.fd, netdev, unsafe.Pointer(s.values))
}

// answer reads the buffers. If the set has changed size between names and values, the kernel writes no values and sets
// the count to 0, or on older kernels to the new size.
func (s *netdevStats) answer(netdev string) ([]Stat, bool) {
	n := s.values.count
	if n == 0 || n > statsMost || s.names.count != n {
		return nil, false
	}
	names := s.table(netdev, s.names.text[:n*statNameLength])
	out := make([]Stat, n)
	for i := range out {
		out[i] = Stat{Name: names[i], Value: s.values.values[i]}
	}
	return out, true
}

// table is the names in the kernel's text, cached while the text is the same.
func (s *netdevStats) table(netdev string, raw []byte) []string {
	t := s.tables[netdev]
	if t == nil || !bytes.Equal(t.raw, raw) {
		t = &stringTable{raw: bytes.Clone(raw), names: statNames(raw)}
		s.tables[netdev] = t
	}
	return t.names
}

// statNames splits the text into names of fixed size, padded with NUL or on cxgb4 with blanks.
func statNames(raw []byte) []string {
	names := make([]string, 0, len(raw)/statNameLength)
	for ; len(raw) >= statNameLength; raw = raw[statNameLength:] {
		name, _, _ := bytes.Cut(raw[:statNameLength], []byte{0})
		names = append(names, string(bytes.TrimSpace(name)))
	}
	return names
}
