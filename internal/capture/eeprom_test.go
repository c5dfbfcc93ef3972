package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/netlink"
	"rdma_exporter/internal/transceiver"
)

func TestAnswersOfEEPROMs(t *testing.T) {
	e := &eeprom{}
	e.put(0, []byte{0x19, 0x50, 0x00})
	e.put(14, []byte{0x3C, 0, 0x7F, 0x8C, 1, 2})
	e.put(254, []byte{0xAB, 0xCD, 0xEF})
	text := "0: 19 50 00\n14: 3c 00\n16: 7f 8c 01 02\n254: ab cd\n"
	if got := string(e.encode()); got != text {
		t.Errorf("%q", got)
	}
	got, err := decodeEEPROM("x", []byte(text))
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
			if got := e.get(c.at, c.n); !bytes.Equal(got, c.want) {
				t.Errorf("% x", got)
			}
		})
	}
	for _, bad := range []string{"0\n", "256: 00\n", "255: 00 00\n", "0: 0\n", "0: xy\n", "-1: 00\n", "a: 00\n"} {
		if _, err := decodeEEPROM("ethtool/eth0/eeprom/50-00-0", []byte(bad)); access.ReasonOf(err) != access.Malformed {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzDecodeEEPROM(f *testing.F) {
	f.Add([]byte("0: 19 50 00\n14: 3c 00\n16: 7f 8c 01 02\n254: ab cd\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := decodeEEPROM("x", data)
		if err != nil {
			return
		}
		again, err := decodeEEPROM("x", e.encode())
		if err != nil || again.known != e.known {
			t.Fatalf("%q: %v", data, err)
		}
		p := &pseudonyms{serials: map[string]string{}}
		_ = p.module("ethtool/eth0/eeprom/50-00-0", data)
	})
}

// modules answers from pages, and with a bus error for all others.
type modules struct {
	host.Ethtool
	pages map[string]*eeprom
}

func (m modules) ModuleEEPROM(_ context.Context, netdev string, ref transceiver.Ref) ([]byte, error) {
	name := netlink.EEPROMName(netdev, ref)
	if e := m.pages[name]; e != nil {
		return e.get(int(ref.Offset), int(ref.Length)), nil
	}
	return nil, &access.Error{Op: "query", Path: name, Err: syscall.EIO}
}

func TestModulesAreRecordedPageByPage(t *testing.T) {
	page := &eeprom{}
	for i := range 256 {
		page.put(i, []byte{byte(i)})
	}
	m := modules{pages: map[string]*eeprom{"ethtool/eth0/eeprom/50-00-0": page}}
	rec := NewRecorder(&host.Host{Ethtool: m})
	ask := func(h *host.Host, ref transceiver.Ref) string {
		b, err := h.Ethtool.ModuleEEPROM(t.Context(), "eth0", ref)
		if err != nil {
			var errno syscall.Errno
			errors.As(err, &errno)
			return fmt.Sprint(int(errno))
		}
		return fmt.Sprintf("%x", b)
	}
	id, serial := transceiver.Ref{Address: 0x50, Length: 3}, transceiver.Ref{Address: 0x50, Offset: 166, Length: 2}
	monitors, second := transceiver.Ref{Address: 0x50, Offset: 14, Length: 4},
		transceiver.Ref{Address: 0x50, Page: 2, Offset: 128, Length: 8}
	for _, ref := range []transceiver.Ref{id, serial, monitors, second} {
		ask(rec.Host(), ref)
	}
	rec.EndRound(0)
	page.put(14, []byte{0x40})
	ask(rec.Host(), monitors)
	rec.EndRound(15e9)
	a := rec.Archive(Meta{Hostname: "gpu-1", Kernel: "6.12.0", Time: base})
	want := `-- ethtool/eth0/eeprom/50-00-0 --
0: 00 01 02
14: 0e 0f
16: 10 11
166: a6 a7
-- ethtool/eth0/eeprom/50-02-0 !EIO --
-- +15s/ethtool/eth0/eeprom/50-00-0 @lines --
14: 40 0f
`
	text := format(t, a)
	if i := strings.Index(text, "-- ethtool"); i < 0 || text[i:] != want {
		t.Errorf("%s", text)
	}
	p := play(t, parse(t, text))
	seek(t, p, 15e9)
	for ref, want := range map[transceiver.Ref]string{
		id: "000102", serial: "a6a7", monitors: "400f1011", second: fmt.Sprint(int(syscall.EIO)),
		{Address: 0x50, Offset: 200, Length: 4}: fmt.Sprint(int(syscall.EIO)),
		{Address: 0x51, Length: 4}:              fmt.Sprint(int(syscall.ENOENT)),
	} {
		if got := ask(p.Host(), ref); got != want {
			t.Errorf("%+v: %s, want %s", ref, got, want)
		}
	}
}

// identity is page 00h of a CMIS module with a serial number, and a checksum that is wrong by off.
func identity(serial string, off byte) string {
	e := &eeprom{}
	e.put(0, []byte{0x19, 0x50, 0})
	e.put(128, make([]byte, 128))
	e.put(129, []byte("NVIDIA          "))
	e.put(166, []byte(fmt.Sprintf("%-16s", serial)))
	e.put(230, []byte(serial)) // vendor-specific
	sum := off
	for _, b := range e.data[128:222] {
		sum += b
	}
	e.put(222, []byte{sum})
	return string(e.encode())
}

func TestAnonymiseModules(t *testing.T) {
	entry := func(netdev, page, content string) string {
		return "-- ethtool/" + netdev + "/eeprom/" + page + " --\n" + content
	}
	a := parse(t, header+entry("eth0", "50-00-0", identity("MT2238FT00123", 0))+entry("eth0", "50-02-0", "128: 4b 00\n")+
		entry("eth1", "50-00-0", identity("MT2238FT00123", 0))+entry("eth2", "50-00-0", identity("MT2238FT00456", 7))+
		entry("eth3", "50-00-0", "0: 3a 60 00\n166: 4d 54\n")+entry("eth4", "50-00-0", "0: 19 50 00\n166: 4d 54\n")+
		entry("eth5", "50-00-0", "garbled\n"))
	Anonymise(a)
	text := format(t, a)
	got := contents(a)
	serial, fits := map[string]string{}, map[string]bool{}
	for _, netdev := range []string{"eth0", "eth1", "eth2"} {
		e, err := decodeEEPROM("x", []byte(got["0s ethtool/"+netdev+"/eeprom/50-00-0"]))
		if err != nil {
			t.Fatal(err)
		}
		p := &transceiver.Pages{}
		for at := range 256 {
			if e.known[at] {
				p.Put(transceiver.Ref{Address: 0x50, Offset: uint8(at), Length: 1}, e.data[at:at+1])
			}
		}
		m := transceiver.Decode(p)
		serial[netdev], fits[netdev] = m.SerialNumber, m.BadChecksums == nil
		if e.known[230] || m.Vendor != "NVIDIA" {
			t.Errorf("%s: %+v", netdev, m)
		}
	}
	if serial["eth0"] != "SERIAL0001" || serial["eth1"] != "SERIAL0001" || serial["eth2"] != "SERIAL0002" {
		t.Errorf("%v", serial)
	}
	if !fits["eth0"] || fits["eth2"] {
		t.Errorf("the checksums fit: %v", fits)
	}
	for name, want := range map[string]string{
		"eth0/eeprom/50-02-0": "128: 4b 00\n", "eth3/eeprom/50-00-0": "0: 3a 60 00\n", "eth4/eeprom/50-00-0": "0: 19 50 00\n",
		"eth5/eeprom/50-00-0": "",
	} {
		if got := got["0s ethtool/"+name]; got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	again := parse(t, text)
	Anonymise(again)
	differ(t, format(t, again), text)
}
