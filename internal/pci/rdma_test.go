package pci

import (
	"testing"
)

func TestRDMAKindOf(t *testing.T) {
	for name, c := range map[string]struct {
		vendor, device, class string
		want                  RDMAKind
	}{
		"ConnectX-7 as InfiniBand":   {"0x15b3", "0x1021", "0x020700", RDMAOnly},
		"ConnectX-7 as Ethernet":     {"0x15b3", "0x1021", "0x020000", RDMAEthernet},
		"ConnectX-3 VPI":             {"0x15b3", "0x1003", "0x028000", RDMAEthernet},
		"BlueField's DMA controller": {"0x15b3", "0xc2d5", "0x080100", ""},
		"EFA":                        {"0x1d0f", "0xefa2", "0x020000", RDMAOnly},
		"ENA":                        {"0x1d0f", "0xec20", "0x020000", ""},
		"Omni-Path":                  {"0x8086", "0x24f0", "0x020800", RDMAOnly},
		"E810":                       {"0x8086", "0x1592", "0x020000", RDMAEthernet},
		"X710":                       {"0x8086", "0x1572", "0x020000", ""},
		"Thor":                       {"0x14e4", "0x1750", "0x020000", RDMAEthernet},
		"a GPU":                      {"0x10de", "0x2330", "0x030200", ""},
		"nothing":                    {"", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RDMAKindOf(c.vendor, c.device, c.class); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
