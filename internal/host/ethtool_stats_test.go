package host

import (
	"slices"
	"testing"
)

// padded is a driver's text of names.
func padded(names ...string) []byte {
	var raw []byte
	for _, n := range names {
		raw = append(raw, n...)
		raw = append(raw, make([]byte, statNameLength-len(n))...)
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
		if n := statNames(raw); len(n) != len(raw)/statNameLength {
			t.Fatalf("%d names of %d bytes", len(n), len(raw))
		}
	})
}

// answered fills the buffers as the kernel would.
func (s *netdevStats) answered(names []byte, counted, written uint32, values ...uint64) {
	copy(s.names.text[:], names)
	s.names.count, s.values.count = counted, written
	copy(s.values.values[:], values)
}

func TestAnswerOfStats(t *testing.T) {
	s := &netdevStats{names: &statNamesBuffer{}, values: &statsBuffer{}, tables: map[string]*stringTable{}}
	s.answered(padded("rx_prio3_pause", "rx_bytes"), 2, 2, 7, 8)
	got, whole := s.answer("eth0")
	if want := []Stat{{Name: "rx_prio3_pause", Value: 7}, {Name: "rx_bytes", Value: 8}}; !whole ||
		!slices.Equal(got, want) {
		t.Fatalf("%v, %v", got, whole)
	}
	table := s.tables["eth0"]
	s.answered(padded("rx_prio3_pause", "rx_bytes"), 2, 2, 9, 10)
	if got, whole = s.answer("eth0"); !whole || got[1].Value != 10 || s.tables["eth0"] != table {
		t.Errorf("%v, %v: the names are read again", got, whole)
	}
	s.answered(padded("rx_prio4_pause", "rx_bytes"), 2, 2, 1, 11)
	if got, whole = s.answer("eth0"); !whole || got[0] != (Stat{Name: "rx_prio4_pause", Value: 1}) ||
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
