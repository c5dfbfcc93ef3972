package expect

import (
	"testing"
	"time"
)

// TestEarlierLayer: links of a board are written as letters, upper case for ACTIVE: i for InfiniBand, e for Ethernet, u
// for an unreadable link layer, - for one that is not there. The last reading is judged.
func TestEarlierLayer(t *testing.T) {
	names := map[rune]string{'i': "InfiniBand", 'e': "Ethernet"}
	read := func(links string) (out []NamedLink) {
		for i, c := range links {
			if c == '-' {
				continue
			}
			kind := Kind{Board: "b", LinkLayer: names[c|' ']}
			id := string(rune('0' + i))
			out = append(out, NamedLink{Link: Link{ID: id, Active: c < 'a', Kind: kind}, Device: "mlx5_" + id, Port: 1})
		}
		return out
	}
	for _, c := range []struct {
		name     string
		readings []string
		flipped  string // numbers of the links with an earlier link layer
	}{
		{"from the start one is another", []string{"IIIE"}, ""},
		{"one flips, ACTIVE", []string{"IIII", "IIIE"}, "3"},
		{"one flips, DOWN", []string{"IIII", "IIIe"}, "3"},
		{"the reverse", []string{"EEEE", "iEEE"}, "0"},
		{"and back", []string{"IIII", "IIIE", "IIII"}, ""},
		{"half of them", []string{"IIII", "IIEE"}, "23"},
		{"one that was never ACTIVE", []string{"IIIi", "IIIe"}, ""},
		{"all are converted, one has no link", []string{"IIII", "IEEE", "EEEe"}, ""},
		{"all have flipped, none has a link", []string{"III", "eee"}, "012"},
		{"the only one, DOWN", []string{"I", "e"}, "0"},
		{"the only one, ACTIVE", []string{"I", "E"}, ""},
		{"after a conversion one flips", []string{"III", "EEE", "EEI"}, "2"},
		{"unreadable", []string{"III", "IIu"}, ""},
		{"two convert, the third cannot be read", []string{"III", "EEu"}, "01"},
		{"gone", []string{"III", "II-"}, ""},
	} {
		m := NewMemory(Data{})
		for i, links := range c.readings {
			m.See(time.Unix(0, 0), "boot", nil)
			m.Observe(time.Unix(int64(i), 0), read(links))
		}
		told := func(m *Memory) (out string) {
			for _, id := range []string{"0", "1", "2", "3"} {
				if layer := m.EarlierLayer(id); layer != "" {
					out += id
				}
			}
			return out
		}
		if got := told(m); got != c.flipped {
			t.Errorf("%s: earlier link layer of %q, want %q", c.name, got, c.flipped)
		}
		last := read(c.readings[len(c.readings)-1])
		kept := NewMemory(m.Data())
		kept.Observe(time.Unix(100, 0), last)
		if got := told(kept); got != c.flipped {
			t.Errorf("%s: earlier link layer of %q after a restart", c.name, got)
		}
		if _, _, err := m.Accept(nil, false); err != nil {
			t.Error(err)
		}
		if got := told(m); got != "" {
			t.Errorf("%s: earlier link layer of %q once accepted", c.name, got)
		}
	}
}
