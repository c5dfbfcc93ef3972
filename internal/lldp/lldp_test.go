package lldp

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

var sender = [6]byte{0x0c, 0x42, 0xa1, 0x10, 0x20, 0x30}

func withSubtype(subtype byte, value string) []byte { return append([]byte{subtype}, value...) }

// announcement returns a frame of the mandatory TLVs, and more.
func announcement(chassis, port []byte, more ...TLV) []byte {
	return Frame(sender,
		append([]TLV{{TypeChassisID, chassis}, {TypePortID, port}, {TypeTTL, []byte{0, 120}}}, more...)...)
}

var (
	leaf       = withSubtype(4, "\x0c\x42\xa1\x10\x20\x00")
	systemName = TLV{TypeSystemName, []byte("leaf-1")}
)

// switches are frames as network operating systems send them.
var switches = []struct {
	name  string
	frame []byte
	want  Neighbour
	port  string // expected name of the port
}{
	{
		"SONiC: the alias, locally assigned, and the port's own name as description",
		announcement(leaf, withSubtype(7, "etp4a"), TLV{TypePortDescription, []byte("Ethernet12")}, systemName,
			TLV{TypeSystemDescription, []byte("SONiC Software Version: SONiC.202311 - HwSku: ACS-SN5600")},
			TLV{TypeManagementAddress, []byte{5, 1, 10, 1, 2, 3, 2, 0, 0, 0, 1, 0}},
			TLV{TypeCapabilities, []byte{0, 0x14, 0, 0x14}}),
		Neighbour{
			ChassisID: "0c:42:a1:10:20:00", PortID: "etp4a", PortDescription: "Ethernet12", SystemName: "leaf-1",
			ManagementAddress: "10.1.2.3", Enabled: 0x14, TTL: 2 * time.Minute, portIsName: true,
		},
		"etp4a",
	},
	{
		"Cumulus: an interface name",
		announcement(leaf, withSubtype(5, "swp12"), TLV{TypePortDescription, []byte("to gpu-1")}, systemName, TLV{TypeCapabilities, []byte{0, 0x94, 0, 0x14}}),
		Neighbour{ChassisID: "0c:42:a1:10:20:00", PortID: "swp12", PortDescription: "to gpu-1", SystemName: "leaf-1", Enabled: 0x14, TTL: 2 * time.Minute, portIsName: true},
		"swp12",
	},
	{
		"Junos: an index",
		announcement(leaf, withSubtype(7, "516"), TLV{TypePortDescription, []byte("et-0/0/4")}, systemName),
		Neighbour{ChassisID: "0c:42:a1:10:20:00", PortID: "516", PortDescription: "et-0/0/4", SystemName: "leaf-1", TTL: 2 * time.Minute},
		"et-0/0/4",
	},
	{
		"a port with an address, and no name of the system",
		announcement(withSubtype(5, "\x02\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"), withSubtype(3, "\x0c\x42\xa1\x10\x20\x30")),
		Neighbour{ChassisID: "2001:db8::1", PortID: "0c:42:a1:10:20:30", TTL: 2 * time.Minute},
		"0c:42:a1:10:20:30",
	},
	{
		"IDs that are no text, and one that is no address",
		announcement(withSubtype(7, "\x00\x01\xff"), withSubtype(4, "\x09nonsense")),
		Neighbour{ChassisID: "0001ff", PortID: "096e6f6e73656e7365", TTL: 2 * time.Minute},
		"096e6f6e73656e7365",
	},
	{
		"hostile texts",
		announcement(withSubtype(7, "c"), withSubtype(7, "p"), TLV{TypeSystemName, []byte("a\n\x1b[31m\xff\"b\x00\x00")}, TLV{TypePortDescription, bytes.Repeat([]byte("é"), 200)}),
		Neighbour{ChassisID: "c", PortID: "p", SystemName: "a��[31m�\"b", PortDescription: strings.Repeat("é", 127), TTL: 2 * time.Minute, portIsName: true},
		"p",
	},
	{
		"optional TLVs that are garbled, and those of an organisation",
		announcement(
			withSubtype(7, "c"),
			withSubtype(7, "p"),
			TLV{TypeCapabilities, []byte{1}},
			TLV{TypeManagementAddress, []byte{9, 1}},
			TLV{TypeManagementAddress, nil},
			TLV{TypeManagementAddress, []byte{4, 1, 1, 2, 3}}, TLV{TypeManagementAddress, []byte{1, 1}},
			TLV{127, []byte{0, 0x80, 0xc2, 1, 0, 1}}),
		Neighbour{ChassisID: "c", PortID: "p", TTL: 2 * time.Minute, portIsName: true},
		"p",
	},
	{
		"farewell",
		Frame(sender, TLV{TypeChassisID, withSubtype(7, "c")}, TLV{TypePortID, withSubtype(7, "p")}, TLV{TypeTTL, []byte{0, 0}}),
		Neighbour{ChassisID: "c", PortID: "p", portIsName: true},
		"p",
	},
}

func TestParse(t *testing.T) {
	for _, c := range switches {
		t.Run(c.name, func(t *testing.T) {
			c.want.Source = "0c:42:a1:10:20:30"
			tagged := slices.Insert(slices.Clone(c.frame), 12, 0x81, 0x00, 0x00, 0x07)
			for form, frame := range map[string][]byte{
				"plain": c.frame, "padded": append(slices.Clone(c.frame), make([]byte, 40)...), "tagged": tagged,
				"twice tagged":   slices.Insert(slices.Clone(tagged), 12, 0x88, 0xa8, 0, 1),
				"without an end": c.frame[:len(c.frame)-2],
			} {
				t.Run(form, func(t *testing.T) {
					got, err := Parse(frame)
					if err != nil || !reflect.DeepEqual(got, c.want) {
						t.Errorf("%+v, %v\nwant %+v", got, err, c.want)
					}
					if got.Port() != c.port {
						t.Errorf("port %q, want %q", got.Port(), c.port)
					}
				})
			}
		})
	}
}

func TestSystem(t *testing.T) {
	for want, n := range map[string]Neighbour{"leaf-1": {SystemName: "leaf-1", ChassisID: "c"}, "c": {ChassisID: "c"}} {
		if n.System() != want {
			t.Errorf("%q, want %q", n.System(), want)
		}
	}
	for enabled, want := range map[uint16]bool{
		0: false, CapabilityStation: false, CapabilityBridge: true, CapabilityRouter | CapabilityStation: true,
		CapabilityCVLAN: true,
	} {
		if n := (Neighbour{Enabled: enabled}); n.Forwards() != want {
			t.Errorf("%#x: %v", enabled, !want)
		}
	}
}

// TestRefused: 9.2.7.7.1.
func TestRefused(t *testing.T) {
	chassis, port, ttl := TLV{TypeChassisID, leaf}, TLV{TypePortID, withSubtype(5, "swp1")}, TLV{TypeTTL, []byte{0, 120}}
	whole := Frame(sender, chassis, port, ttl, systemName)
	other := slices.Clone(whole)
	other[13] = 0xcd
	long := slices.Clone(whole)
	long[len(long)-9] = 200 // the name's length
	for what, frame := range map[string][]byte{
		"empty":                  nil,
		"half a header":          whole[:13],
		"a header":               whole[:14],
		"only tags":              append(slices.Clone(whole[:12]), 0x81, 0, 0, 1),
		"another EtherType":      other,
		"cut in a TLV":           whole[:30],
		"a TLV beyond the frame": long,
		"half a TLV's head":      whole[:len(whole)-1],
		"no TTL":                 Frame(sender, chassis, port),
		"another order":          Frame(sender, port, chassis, ttl),
		"the end too early":      Frame(sender, chassis),
		"a second chassis":       Frame(sender, chassis, port, ttl, chassis),
		"a second TTL":           Frame(sender, chassis, port, ttl, ttl),
		"an empty chassis ID":    Frame(sender, TLV{TypeChassisID, []byte{4}}, port, ttl),
		"an empty port ID":       Frame(sender, chassis, TLV{TypePortID, nil}, ttl),
		"half a TTL":             Frame(sender, chassis, port, TLV{TypeTTL, []byte{1}}),
	} {
		t.Run(what, func(t *testing.T) {
			if n, err := Parse(frame); err == nil || n != (Neighbour{}) {
				t.Errorf("%+v, %v", n, err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range switches {
		f.Add(c.frame)
	}
	wild, err := hex.DecodeString("0180c200000ea8f94b3ecd1888cc0207040a8f94b3ecd00409056769312f302f32340602007800000000")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(wild)
	// A management address of 255 bytes: with the preceding field, its length does not fit into 8 bits.
	f.Add(Frame(sender, TLV{TypeChassisID, leaf}, TLV{TypePortID, withSubtype(5, "swp1")}, TLV{TypeTTL, []byte{0, 120}},
		TLV{TypeManagementAddress, bytes.Repeat([]byte{255}, 300)}))
	f.Fuzz(func(t *testing.T, frame []byte) {
		n, err := Parse(frame)
		if err != nil {
			if n != (Neighbour{}) {
				t.Fatalf("%+v beside %v", n, err)
			}
			return
		}
		if n.System() == "" || n.Port() == "" || n.Source == "" {
			t.Fatalf("%+v", n)
		}
		for _, s := range []string{n.ChassisID, n.PortID, n.PortDescription, n.SystemName, n.ManagementAddress} {
			if len(s) > maxText || !utf8.ValidString(s) ||
				strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) && r != utf8.RuneError }) {
				t.Fatalf("%q", s)
			}
		}
	})
}
