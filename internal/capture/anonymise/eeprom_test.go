package anonymise

import (
	"fmt"
	"testing"

	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/transceiver"
	"rdma_exporter/test/archives"
)

// identity is page 00h of a CMIS module with a serial number, and a checksum that is wrong by off.
func identity(serial string, off byte) string {
	e := &answer.EEPROM{}
	e.Put(0, []byte{0x19, 0x50, 0})
	e.Put(128, make([]byte, 128))
	e.Put(129, []byte("NVIDIA          "))
	e.Put(166, []byte(fmt.Sprintf("%-16s", serial)))
	e.Put(230, []byte(serial)) // vendor-specific
	sum := off
	for _, b := range e.Get(128, 94) {
		sum += b
	}
	e.Put(222, []byte{sum})
	return string(e.Encode())
}

func TestAnonymiseModules(t *testing.T) {
	entry := func(netdev, page, content string) string {
		return "-- ethtool/" + netdev + "/eeprom/" + page + " --\n" + content
	}
	a := archives.Parse(t, archives.Header+
		entry("eth0", "50-00-0", identity("MT2238FT00123", 0))+entry("eth0", "50-02-0", "128: 4b 00\n")+
		entry("eth1", "50-00-0", identity("MT2238FT00123", 0))+entry("eth2", "50-00-0", identity("MT2238FT00456", 7))+
		entry("eth3", "50-00-0", "0: 3a 60 00\n166: 4d 54\n")+entry("eth4", "50-00-0", "0: 19 50 00\n166: 4d 54\n")+
		entry("eth5", "50-00-0", "garbled\n"))
	Archive(a)
	text := archives.Format(t, a)
	got := contentsOf(a)
	serial, fits := map[string]string{}, map[string]bool{}
	for _, netdev := range []string{"eth0", "eth1", "eth2"} {
		e, err := answer.DecodeEEPROM("x", []byte(got["0s ethtool/"+netdev+"/eeprom/50-00-0"]))
		if err != nil {
			t.Fatal(err)
		}
		p := &transceiver.Pages{}
		for at := range 256 {
			if b := e.Get(at, 1); len(b) > 0 {
				p.Put(transceiver.Ref{Address: 0x50, Offset: uint8(at), Length: 1}, b)
			}
		}
		m := transceiver.Decode(p)
		serial[netdev], fits[netdev] = m.SerialNumber, m.BadChecksums == nil
		if len(e.Get(230, 1)) > 0 || m.Vendor != "NVIDIA" {
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
	again := archives.Parse(t, text)
	Archive(again)
	archives.Differ(t, archives.Format(t, again), text)
}
