package netlink

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
)

// errStatsChange is the error of a netdev whose set of statistics changed during several consecutive readings.
var errStatsChange = errors.New("the set of statistics keeps changing")

// statsTries limits the readings of a changing set: mlx5 has pause statistics only for priorities with PFC. A reading
// whose names differ from the previous one is repeated, since the set may have changed between names and values.
const statsTries = 4

// netdevStats reads ETHTOOL_GSTATS with its strings (net/ethtool/ioctl.c). It keeps one pair of buffers with room for
// more than any driver has: older kernels write all current values, whatever the size of the buffer.
type netdevStats struct {
	mu     sync.Mutex
	tool   *ethtool.Ethtool
	names  *ethtool.EthtoolGStrings
	values *ethtool.EthtoolStats
	tables map[string]*stringTable // by netdev
	// fill fills the buffers; nil: by the library.
	fill func(netdev string) error
}

// stringTable is the names of a netdev's statistics, and the kernel's text that they were parsed from.
type stringTable struct {
	raw   []byte
	names []string
}

// NetdevStats is `ethtool -S`.
func (c *EthtoolClient) NetdevStats(_ context.Context, netdev string) ([]host.Stat, error) {
	return query(c.Here, "ethtool/"+netdev, "/stats", func() ([]host.Stat, error) { return c.Stats.read(netdev) })
}

func (s *netdevStats) read(netdev string) ([]host.Stat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, err
	}
	var seen bool
	for range statsTries {
		var err error
		onGrownStack(func() { err = s.fill(netdev) })
		if err != nil {
			delete(s.tables, netdev)
			return nil, err
		}
		before := s.tables[netdev]
		stats, whole := s.answer(netdev)
		if whole && (before == nil || before == s.tables[netdev]) {
			return stats, nil
		}
		seen = seen || s.count(s.names, "len")+s.count(s.values, "n_stats") != 0
	}
	delete(s.tables, netdev)
	if !seen {
		return nil, unix.EOPNOTSUPP
	}
	return nil, errStatsChange
}

func (s *netdevStats) open() error {
	if s.tool != nil {
		return nil
	}
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	s.tool, s.names, s.values, s.tables = tool, new(ethtool.EthtoolGStrings), new(ethtool.EthtoolStats),
		map[string]*stringTable{}
	if s.fill == nil {
		s.fill = func(netdev string) error {
			_, err := s.tool.StatsWithBuffer(netdev, s.names, s.values)
			return err
		}
	}
	return nil
}

func (s *netdevStats) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tool != nil {
		s.tool.Close()
		s.tool = nil
	}
}

// answer reads the buffers. The library returns a map of as many values as the driver announced before. It loses the
// order. If the set has changed size in between, the kernel writes no values, and the library returns those of an
// earlier reading. The counts in the buffers are reliable: in that case the kernel sets them to 0, or on older kernels
// to the new size.
func (s *netdevStats) answer(netdev string) ([]host.Stat, bool) {
	n := s.count(s.values, "n_stats")
	if n == 0 || n > ethtool.MAX_GSTRINGS || s.count(s.names, "len") != n {
		return nil, false
	}
	names := s.table(netdev, fieldOf(s.names, "data").Bytes()[:n*ethtool.ETH_GSTRING_LEN])
	values := fieldOf(s.values, "data")
	out := make([]host.Stat, n)
	for i := range out {
		out[i] = host.Stat{Name: names[i], Value: values.Index(i).Uint()}
	}
	return out, true
}

// table returns the names in the kernel's text, cached while the text is the same.
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
	names := make([]string, 0, len(raw)/ethtool.ETH_GSTRING_LEN)
	for ; len(raw) >= ethtool.ETH_GSTRING_LEN; raw = raw[ethtool.ETH_GSTRING_LEN:] {
		name, _, _ := bytes.Cut(raw[:ethtool.ETH_GSTRING_LEN], []byte{0})
		names = append(names, string(bytes.TrimSpace(name)))
	}
	return names
}

// count returns a count in a buffer of the library.
func (*netdevStats) count(buffer any, name string) int { return int(fieldOf(buffer, name).Uint()) }

// fieldOf returns a field of a buffer of the library, which has no other access to the kernel's answer.
func fieldOf(buffer any, name string) reflect.Value {
	return reflect.ValueOf(buffer).Elem().FieldByName(name)
}

// Stack used below a call of the library, and free above it.
const (
	stackBelow = 64 << 10
	stackAbove = 32 << 10
)

// onGrownStack runs f on a stack that does not move. The library (v0.7.0) passes addresses of its own frame as
// integers, which the runtime does not update when it moves a stack: the kernel then writes into freed memory, and the
// library's result is empty or wrong without an error. A new goroutine has a small stack. It grows by one large frame
// that stays, because the runtime shrinks a stack of which less than a quarter is in use, and by one that is released,
// which leaves room for f.
func onGrownStack(f func()) {
	done := make(chan struct{})
	var fault error
	go func() {
		defer close(done)
		fault = access.Guard(func() error { below(f); return nil })
	}()
	<-done
	if fault != nil {
		panic(fault) // recovered by the caller's Guard
	}
}

//go:noinline
func below(f func()) {
	var frame [stackBelow]byte
	touch(frame[:])
	above()
	f()
	touch(frame[:])
}

//go:noinline
func above() {
	var frame [stackAbove]byte
	touch(frame[:])
}

//go:noinline
func touch(frame []byte) {
	for i := 0; i < len(frame); i += 4096 {
		frame[i]++
	}
}
