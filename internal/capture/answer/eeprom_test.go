package answer

import (
	"bytes"
	"fmt"
	"testing"

	"rdma_exporter/internal/host/access"
)

func TestAnswersOfEEPROMs(t *testing.T) {
	e := &EEPROM{}
	e.Put(0, []byte{0x19, 0x50, 0x00})
	e.Put(14, []byte{0x3C, 0, 0x7F, 0x8C, 1, 2})
	e.Put(254, []byte{0xAB, 0xCD, 0xEF})
	text := "0: 19 50 00\n14: 3c 00\n16: 7f 8c 01 02\n254: ab cd\n"
	if got := string(e.Encode()); got != text {
		t.Errorf("%q", got)
	}
	got, err := DecodeEEPROM("x", []byte(text))
	if err != nil || *got != *e {
		t.Errorf("%v", err)
	}
	for _, c := range []struct {
		at, n int
		want  []byte
	}{
		{0, 3, []byte{0x19, 0x50, 0}},
		{14, 6, []byte{0x3C, 0, 0x7F, 0x8C, 1, 2}},
		{2, 4, []byte{0}},
		{3, 4, nil},
		{254, 4, []byte{0xAB, 0xCD}},
	} {
		t.Run(fmt.Sprintf("%d bytes from %d", c.n, c.at), func(t *testing.T) {
			if got := e.Get(c.at, c.n); !bytes.Equal(got, c.want) {
				t.Errorf("% x", got)
			}
		})
	}
	for _, bad := range []string{"0\n", "256: 00\n", "255: 00 00\n", "0: 0\n", "0: xy\n", "-1: 00\n", "a: 00\n"} {
		if _, err := DecodeEEPROM("ethtool/eth0/eeprom/50-00-0", []byte(bad)); access.ReasonOf(err) != access.Malformed {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzDecodeEEPROM(f *testing.F) {
	f.Add([]byte("0: 19 50 00\n14: 3c 00\n16: 7f 8c 01 02\n254: ab cd\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := DecodeEEPROM("x", data)
		if err != nil {
			return
		}
		again, err := DecodeEEPROM("x", e.Encode())
		if err != nil || again.known != e.known {
			t.Fatalf("%q: %v", data, err)
		}
	})
}
