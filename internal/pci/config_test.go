package pci

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"testing"
)

// space returns the configuration space of a function: the PCIe capability after power management, ACS after AER.
func space(devctl uint16, acs int) []byte {
	b := make([]byte, 4096)
	b[firstCapability] = 0x40
	b[0x40], b[0x41] = 0x01, 0x60
	b[0x60], b[0x61] = capPCIe, 0
	binary.LittleEndian.PutUint16(b[0x68:], devctl)
	binary.LittleEndian.PutUint32(b[0x100:], 0x0001|2<<16|0x150<<20)
	if acs >= 0 {
		binary.LittleEndian.PutUint32(b[0x150:], extCapACS|1<<16)
		binary.LittleEndian.PutUint16(b[0x156:], uint16(acs))
	}
	return b
}

func TestParseConfig(t *testing.T) {
	whole := space(0x5937, 0x1d)
	circle := space(0x5937, -1)
	circle[0x61], circle[0x60] = 0x40, 0x11
	short := space(0x2910, -1)[:256]
	ats := func(control uint16) []byte { // after AER, as on a ConnectX-7
		b := space(0x5937, -1)
		binary.LittleEndian.PutUint32(b[0x150:], extCapATS|1<<16)
		binary.LittleEndian.PutUint16(b[0x156:], control)
		return b
	}
	loop := space(0x2910, -1)
	binary.LittleEndian.PutUint32(loop[0x150:], 0x0002|1<<16|0x100<<20)
	for _, c := range []struct {
		name string
		b    []byte
		want Config
		ok   bool
	}{
		{"a port with redirection", whole, Config{MaxPayload: 256, MaxReadRequest: 4096, RelaxedOrdering: true, Redirect: true}, true},
		{"a port without", space(0x2920, 0x11), Config{MaxPayload: 256, MaxReadRequest: 512}, true},
		{"egress control", space(0x2920, 0x20), Config{MaxPayload: 256, MaxReadRequest: 512, Redirect: true}, true},
		{"no ACS", space(0x2910, -1), Config{MaxPayload: 128, MaxReadRequest: 512, RelaxedOrdering: true}, true},
		{"ATS enabled", ats(0x8000), Config{MaxPayload: 256, MaxReadRequest: 4096, RelaxedOrdering: true, HasATS: true, ATS: true}, true},
		{"ATS not enabled", ats(0x001f), Config{MaxPayload: 256, MaxReadRequest: 4096, RelaxedOrdering: true, HasATS: true}, true},
		{"ATS cut off", ats(0x8000)[:0x157], Config{MaxPayload: 256, MaxReadRequest: 4096, RelaxedOrdering: true}, true},
		{"no extended space", short, Config{MaxPayload: 128, MaxReadRequest: 512, RelaxedOrdering: true}, true},
		{"without privileges", whole[:64], Config{}, false},
		{"nothing", nil, Config{}, false},
		{"a list in a circle", circle, Config{}, false},
		{"extended ones in a circle", loop, Config{MaxPayload: 128, MaxReadRequest: 512, RelaxedOrdering: true}, true},
		{"cut off", whole[:0x69], Config{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := ParseConfig(c.b)
			if got != c.want || ok != c.ok {
				t.Errorf("%+v %v, want %+v %v", got, ok, c.want, c.ok)
			}
		})
	}
	gone := make([]byte, 4096)
	for i := range gone {
		gone[i] = 0xff
	}
	if got, ok := ParseConfig(gone); ok {
		t.Errorf("off the bus: %+v", got)
	}
}

// h200 is the start of the configuration space of an NVIDIA H200: power management, MSI, then PCI Express at 0x60.
const h200 = "3hA1I0YFEAChAAIDAAAAAAwAAAJAEAAADAAAAAAQAAAMAAAAQBAAAAAAAADeEL8YAAAAAEAAAAAAAAAA/wEAAAFIEwAIAAAABWCIAwAAAAAAAAAAAAAAAAAAAAAAAAAAELACACGALBE0UQAABXlF"

func TestParseConfigOfH200(t *testing.T) {
	b, err := base64.StdEncoding.DecodeString(h200)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := ParseConfig(b); !ok || got != (Config{MaxPayload: 256, MaxReadRequest: 4096, RelaxedOrdering: true}) {
		t.Errorf("%+v %v", got, ok)
	}
}

// TestPublicConfig: what is read stays, a serial number and what a vendor has written do not.
func TestPublicConfig(t *testing.T) {
	const extCapSerial, marker = uint32(0x03), uint64(0xb83fd2030050a1c0)
	b := space(0x5937, 0x1d)
	binary.LittleEndian.PutUint32(b[0x100:], extCapSerial|1<<16|0x150<<20)
	binary.LittleEndian.PutUint64(b[0x104:], marker)
	binary.LittleEndian.PutUint64(b[0xf0:], marker)
	binary.LittleEndian.PutUint64(b[0xff8:], marker)
	out := PublicConfig(b)
	if bytes.Contains(out, binary.LittleEndian.AppendUint64(nil, marker)) {
		t.Errorf("%x is left", marker)
	}
	want, _ := ParseConfig(b)
	if c, ok := ParseConfig(out); !ok || c != want || !c.Redirect || b[0x104] == 0 {
		t.Errorf("%+v %v, want %+v, and what was given: %x", c, ok, want, b[0x104:0x10c])
	}
	if got := PublicConfig(b[:64]); len(got) != 64 || !bytes.Equal(got[:16], b[:16]) {
		t.Errorf("%x", got)
	}
	if got := PublicConfig([]byte("PASSWORD=secret")); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add(space(0x5937, 0x1d))
	f.Add(space(0x2910, -1)[:256])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		PublicConfig(b)
		c, ok := ParseConfig(b)
		if !ok && c != (Config{}) {
			t.Errorf("%+v of what cannot be read", c)
		}
	})
}
