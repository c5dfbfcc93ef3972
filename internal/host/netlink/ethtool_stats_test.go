package netlink

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/safchain/ethtool"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
)

// deep uses the stack as a library might.
//
//go:noinline
func deep(n int) int {
	var frame [256]byte
	touch(frame[:])
	if n == 0 {
		runtime.GC() // which shrinks mostly unused stacks
		return int(frame[0])
	}
	return deep(n-1) + int(frame[0])
}

// moves reports whether the stack moves below a frame that keeps its own address as an integer.
//
//go:noinline
func moves() bool {
	var v [8]byte
	before := uintptr(unsafe.Pointer(&v))
	deep(80)
	runtime.Gosched()
	return uintptr(unsafe.Pointer(&v)) != before
}

// TestGrownStackDoesNotMove: on the stack of a new goroutine the library fails.
func TestGrownStackDoesNotMove(t *testing.T) {
	for range 20 {
		var guarded bool
		onGrownStack(func() { guarded = moves() })
		if guarded {
			t.Fatal("the stack moves")
		}
	}
	unguarded := make(chan bool)
	for range 20 {
		go func() { unguarded <- moves() }()
		if <-unguarded {
			return
		}
	}
	t.Error("the stacks of new goroutines do not move: the test does not show what it is for")
}

// TestNetdevStatsAreReadOnAStackThatDoesNotMove: each reading uses onGrownStack, in any goroutine.
func TestNetdevStatsAreReadOnAStackThatDoesNotMove(t *testing.T) {
	s := &netdevStats{}
	defer s.Close()
	var moved bool
	s.fill = func(string) error {
		moved = moved || moves()
		s.answered(padded("rx_bytes"), 1, 1, 7)
		return nil
	}
	done := make(chan error)
	for range 20 {
		go func() {
			_, err := s.read("eth0")
			done <- err
		}()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if moved {
		t.Error("the stack moves below the library's call")
	}
}

// padded returns a driver's text of names.
func padded(names ...string) []byte {
	var raw []byte
	for _, n := range names {
		raw = append(raw, n...)
		raw = append(raw, make([]byte, ethtool.ETH_GSTRING_LEN-len(n))...)
	}
	return raw
}

func TestStatNames(t *testing.T) {
	raw := padded("rx_packets", "TxFramesOK          ", "", "a_name_of_all_its_32_characters_")
	if got, want := statNames(raw),
		[]string{"rx_packets", "TxFramesOK", "", "a_name_of_all_its_32_characters_"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := statNames(raw[:40]); len(got) != 1 {
		t.Errorf("%q of a cut text", got)
	}
}

func FuzzStatNames(f *testing.F) {
	f.Add(padded("rx_packets", "tx"))
	f.Add([]byte("cut"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if n := statNames(raw); len(n) != len(raw)/ethtool.ETH_GSTRING_LEN {
			t.Fatalf("%d names of %d bytes", len(n), len(raw))
		}
	})
}

// answered fills the buffers as the kernel would.
func (s *netdevStats) answered(names []byte, counted, written uint32, values ...uint64) {
	copy(fieldOf(s.names, "data").Bytes(), names)
	set := func(buffer any, name string, to uint32) {
		*(*uint32)(fieldOf(buffer, name).Addr().UnsafePointer()) = to
	}
	set(s.names, "len", counted)
	set(s.values, "n_stats", written)
	data := fieldOf(s.values, "data")
	for i, v := range values {
		*(*uint64)(data.Index(i).Addr().UnsafePointer()) = v
	}
}

func TestAnswerOfStats(t *testing.T) {
	s := &netdevStats{
		names: new(ethtool.EthtoolGStrings), values: new(ethtool.EthtoolStats), tables: map[string]*stringTable{},
	}
	s.answered(padded("rx_prio3_pause", "rx_bytes"), 2, 2, 7, 8)
	got, whole := s.answer("eth0")
	if want := []host.Stat{{Name: "rx_prio3_pause", Value: 7}, {Name: "rx_bytes", Value: 8}}; !whole ||
		!slices.Equal(got, want) {
		t.Fatalf("%v, %v", got, whole)
	}
	table := s.tables["eth0"]
	s.answered(padded("rx_prio3_pause", "rx_bytes"), 2, 2, 9, 10)
	if got, whole = s.answer("eth0"); !whole || got[1].Value != 10 || s.tables["eth0"] != table {
		t.Errorf("%v, %v: the names are read again", got, whole)
	}
	s.answered(padded("rx_prio4_pause", "rx_bytes"), 2, 2, 1, 11)
	if got, whole = s.answer("eth0"); !whole || got[0] != (host.Stat{Name: "rx_prio4_pause", Value: 1}) ||
		s.tables["eth0"] == table {
		t.Errorf("%v, %v: other names", got, whole)
	}
	for name, counts := range map[string][2]uint32{
		"a set that has grown meanwhile: no values": {2, 0}, "and no names": {0, 0},
		"an old kernel writes the new size": {2, 3}, "more than there is room for": {1 << 20, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			s.answered(nil, counts[0], counts[1])
			if got, whole := s.answer("eth0"); whole {
				t.Error(got)
			}
		})
	}
}

// TestPanicOnGrownStack: a panic on a stack that does not move reaches the caller.
func TestPanicOnGrownStack(t *testing.T) {
	err := access.Guard(func() error { onGrownStack(func() { panic("odd names") }); return nil })
	if !errors.Is(err, access.ErrPanic) {
		t.Error(err)
	}
}
