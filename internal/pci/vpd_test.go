package pci

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

// resource returns a large resource.
func resource(tag byte, data string) string {
	return string([]byte{tag, byte(len(data)), byte(len(data) >> 8)}) + data
}

func field(key, text string) string { return key + string([]byte{byte(len(text))}) + text }

func TestParseVPD(t *testing.T) {
	name := resource(0x82, "NVIDIA ConnectX-7\x00")
	readOnly := resource(0x90,
		field("PN", "MCX75310AAS-NEAT")+field("SN", "MT2333X00001 ")+field("V3", "SMDL=SW_MNG")+field("RV", "\x9c\x00"))
	for _, c := range []struct {
		what, data string
		name       string
		keys       string
		manages    bool
		bad        bool
	}{
		{"whole", name + readOnly + resource(0x91, field("V9", "x")+field("RW", strings.Repeat("\x00", 200))) + "\x78", "NVIDIA ConnectX-7", "PN SN V3 V9", true, false},
		{"a NIC", name + resource(0x90, field("PN", "MCX75310AAS-NEAT")+field("V2", "MCX75310AAS-NEAT")) + "\x78", "NVIDIA ConnectX-7", "PN V2", false, false},
		{"the name says it", resource(0x82, "ConnectX-7 SW_MNG") + "\x78", "ConnectX-7 SW_MNG", "", true, false},
		{"a small resource before", "\x0aab" + name + "\x78", "NVIDIA ConnectX-7", "", false, false},
		{"no end", name + readOnly, "NVIDIA ConnectX-7", "PN SN V3", true, true},
		{"cut off in a field", (name + readOnly)[:len(name)+30], "NVIDIA ConnectX-7", "PN SN", false, true},
		{"cut off in a tag", name + "\x90\x01", "NVIDIA ConnectX-7", "", false, true},
		{"a field longer than its resource", resource(0x90, "PN\x50ab") + "\x78", "", "PN", false, false},
		{"half a field", resource(0x90, "PN") + "\x78", "", "", false, false},
		{"zeroes", strings.Repeat("\x00", 64), "", "", false, true},
		{"ones", strings.Repeat("\xff", 64), "", "", false, true},
		{"nothing", "", "", "", false, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			v, err := ParseVPD([]byte(c.data))
			keys := strings.Join(slices.Sorted(maps.Keys(v.Fields)), " ")
			if v.Identifier != c.name || keys != c.keys || v.ManagesNVLink() != c.manages || (err != nil) != c.bad {
				t.Errorf("%q, fields %q, manages %v, %v", v.Identifier, keys, v.ManagesNVLink(), err)
			}
			if err != nil && !errors.Is(err, ErrVPD) {
				t.Error(err)
			}
		})
	}
}

// TestPublicVPD: the result identifies the product, and not the single card.
func TestPublicVPD(t *testing.T) {
	v := VPD{Identifier: "ConnectX-7", Fields: map[string]string{
		"PN": "MCX7", "SN": "MT2333X00001", "V3": "66b1e7e4 SMDL=SW_MNG", "V2": "00000000-66b1",
	}}
	got, err := ParseVPD(v.Public().Bytes())
	want := map[string]string{"PN": "MCX7", "V3": "SW_MNG"}
	if err != nil || got.Identifier != v.Identifier || !maps.Equal(got.Fields, want) || !got.ManagesNVLink() {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestInfiniBandLimit: only the product name limits the rate of a card.
func TestInfiniBandLimit(t *testing.T) {
	for name, want := range map[string]float64{
		"ConnectX-6 VPI adapter card, 100Gb/s (HDR100, EDR IB and 100GbE), dual-port QSFP56":                     100,
		"ConnectX-6 VPI adapter card, H100Gb/s (HDR100, EDR IB and 100GbE), single-port QSFP56, PCIe3.0/4.0 x16": 100,
		"HPE InfiniBand HDR100/Ethernet 100Gb 2-port QSFP56 MCX653106A-ECAT Adapter":                             100,
		"BlueField-2 P-Series DPU 100GbE/EDR/HDR100 VPI Dual-Port QSFP56":                                        100,
		"NVIDIA ConnectX-7 HHHL adapter Card, 200GbE / NDR200 IB, Dual-port QSFP112":                             200,
		"card, HDR/NDR200": 200,
		"card, ndr200/hdr": 200,
		"ConnectX-6 VPI adapter card, HDR IB (200Gb/s) and 200GbE, single-port QSFP56":                        0,
		"HPE InfiniBand HDR/Ethernet 200Gb 1-port QSFP56 MCX653105A-HDAT Adapter":                             0,
		"NVIDIA ConnectX-7 HHHL Adapter card, 400GbE / NDR IB (default mode), Single-port OSFP, PCIe 5.0 x16": 0,
		"ConnectX-7 adapter card, 400Gb/s NDR IB":                                                             0,
		"card, HDR/HDR100/EDR":                                     0,
		"card, NDR200, NDR":                                        0,
		"SuperNIC XDR/NDR/HDR/HDR100/EDR/SDR":                      0,
		"ConnectX-5 VPI adapter card, EDR IB (100Gb/s) and 100GbE": 0,
		"NVIDIA ConnectX-7 HGX baseboard":                          0,
		"MCX-HDR1000":                                              0,
		"":                                                         0,
	} {
		if got := (VPD{Identifier: name, Fields: map[string]string{"V2": "HDR100"}}).InfiniBandLimit(); got != want*1e9 {
			t.Errorf("%q: %v, want %v Gb/s", name, got, want)
		}
	}
}

func FuzzParseVPD(f *testing.F) {
	f.Add([]byte(resource(0x82, "name") + resource(0x90, field("PN", "x")+field("V3", "SW_MNG")) + "\x78"))
	f.Add([]byte("\x82\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := ParseVPD(b)
		if err != nil && !errors.Is(err, ErrVPD) {
			t.Error(err)
		}
		size := len(v.Identifier)
		for key, text := range v.Fields {
			if len(key) != 2 {
				t.Errorf("keyword %q", key)
			}
			size += len(key) + len(text)
		}
		if again, err := ParseVPD(v.Bytes()); err != nil || again.Identifier != v.Identifier ||
			!maps.Equal(again.Fields, v.Fields) {
			t.Errorf("%+v written and read is %+v, %v", v, again, err)
		}
		if size > len(b) {
			t.Errorf("%d bytes of text in %d bytes", size, len(b))
		}
	})
}
