package host

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

// errStatsChange is the error of a netdev whose set of statistics changed during each of several readings.
var errStatsChange = errors.New("the set of statistics changes all the time")

// statsTries bounds the readings of a set that changes: mlx5 shows pause statistics of those priorities only that have PFC. One with
// other names than the one before is made again, since the change may have come between its names and its values.
const statsTries = 4

// netdevStats reads ETHTOOL_GSTATS with its strings (net/ethtool/ioctl.c). It keeps one pair of buffers, which have room for more
// than any driver has: older kernels write as many values as there are now, whatever the reader has room for.
type netdevStats struct {
	mu     sync.Mutex
	tool   *ethtool.Ethtool
	names  *ethtool.EthtoolGStrings
	values *ethtool.EthtoolStats
	tables map[string]*stringTable // by netdev
	// ask fills the buffers; nil: the library does.
	ask func(netdev string) error
}

// stringTable is the names of a netdev's statistics, and the kernel's text that they are made of.
type stringTable struct {
	raw   []byte
	names []string
}

// NetdevStats is `ethtool -S`.
func (c *ethtoolClient) NetdevStats(_ context.Context, netdev string) ([]Stat, error) {
	stats, err := c.stats.read(netdev)
	if err != nil {
		return nil, &Error{"ask", "ethtool/" + netdev + "/stats", err}
	}
	return stats, nil
}

func (s *netdevStats) read(netdev string) ([]Stat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, err
	}
	var seen bool
	for range statsTries {
		var err error
		onGrownStack(func() { err = s.ask(netdev) })
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
	s.tool, s.names, s.values, s.tables = tool, new(ethtool.EthtoolGStrings), new(ethtool.EthtoolStats), map[string]*stringTable{}
	if s.ask == nil {
		s.ask = func(netdev string) error {
			_, err := s.tool.StatsWithBuffer(netdev, s.names, s.values)
			return err
		}
	}
	return nil
}

func (s *netdevStats) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tool != nil {
		s.tool.Close()
		s.tool = nil
	}
}

// answer reads the buffers. The library gives a map of as many values as the driver announced before: it loses the order, and takes
// what an earlier reading left behind for an answer where the kernel gave none, since the set had another size by then. What the
// kernel wrote is told by the counts in the buffers, which it sets to 0 in that case, or to the new size where it is older.
func (s *netdevStats) answer(netdev string) ([]Stat, bool) {
	n := s.count(s.values, "n_stats")
	if n == 0 || n > ethtool.MAX_GSTRINGS || s.count(s.names, "len") != n {
		return nil, false
	}
	names := s.table(netdev, field(s.names, "data").Bytes()[:n*ethtool.ETH_GSTRING_LEN])
	values := field(s.values, "data")
	out := make([]Stat, n)
	for i := range out {
		out[i] = Stat{Name: names[i], Value: values.Index(i).Uint()}
	}
	return out, true
}

// table is the names in the kernel's text: those of the last reading where it is the same.
func (s *netdevStats) table(netdev string, raw []byte) []string {
	t := s.tables[netdev]
	if t == nil || !bytes.Equal(t.raw, raw) {
		t = &stringTable{raw: bytes.Clone(raw), names: statNames(raw)}
		s.tables[netdev] = t
	}
	return t.names
}

// statNames cuts the text into names, which end at a NUL or fill their place; cxgb4 pads them with blanks.
func statNames(raw []byte) []string {
	names := make([]string, 0, len(raw)/ethtool.ETH_GSTRING_LEN)
	for ; len(raw) >= ethtool.ETH_GSTRING_LEN; raw = raw[ethtool.ETH_GSTRING_LEN:] {
		name, _, _ := bytes.Cut(raw[:ethtool.ETH_GSTRING_LEN], []byte{0})
		names = append(names, string(bytes.TrimSpace(name)))
	}
	return names
}

// count is a count in a buffer of the library.
func (*netdevStats) count(buffer any, name string) int { return int(field(buffer, name).Uint()) }

// field is a field of a buffer of the library, which has no other way to look at what the kernel answered.
func field(buffer any, name string) reflect.Value {
	return reflect.ValueOf(buffer).Elem().FieldByName(name)
}

// Stack that is in use below a call of the library, and that is free above it.
const (
	stackBelow = 64 << 10
	stackAbove = 32 << 10
)

// onGrownStack runs f on a stack that does not move. The library (v0.7.0) passes addresses of its own frame as integers, which the
// runtime does not correct when it moves a stack: the kernel then writes into the old one, which is somebody else's by then, and the
// library's own answer is empty or wrong without an error. A new goroutine has a small stack. It grows by one large frame that stays, so that the runtime, which halves a stack of
// which less than a quarter is in use, leaves it alone; and by one that goes, which leaves room for f.
func onGrownStack(f func()) {
	done := make(chan struct{})
	var fault error
	go func() {
		defer close(done)
		fault = Guard(func() error { below(f); return nil })
	}()
	<-done
	if fault != nil {
		panic(fault) // where it is guarded
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
