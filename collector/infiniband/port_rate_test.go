package infiniband

import (
	"fmt"
	"math"
	"regexp"
	"testing"
)

func TestParseRateOfEverySpeedAndWidth(t *testing.T) {
	speeds := map[string]float64{
		"SDR": 2.5, "DDR": 5, "QDR": 10, "FDR10": 10, "FDR": 14, "EDR": 25, "HDR": 50, "NDR": 100, "XDR": 200,
	}
	for name, lane := range speeds {
		t.Run(name, func(t *testing.T) {
			for _, lanes := range []uint64{1, 2, 4, 8, 12} {
				gb := lane * float64(lanes)
				text := fmt.Sprintf("%d", int(gb))
				if gb != math.Trunc(gb) {
					text += ".5"
				}
				text += fmt.Sprintf(" Gb/sec (%dX %s)\n", lanes, name)
				if got, ok := parseRate(text); !ok || got != (linkRate{gb * 1e9, lanes, name}) {
					t.Errorf("%q: %+v, %v", text, got, ok)
				}
			}
		})
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]linkRate{
		"2.5 Gb/sec (1X SDR)\n":  {2.5e9, 1, "SDR"},
		"2.5 Gb/sec (1X)\n":      {2.5e9, 1, ""}, // kernels that have no name for SDR
		"10 Gb/sec (4X)":         {10e9, 4, ""},
		"30 Gb/sec (12X SDR)":    {30e9, 12, "SDR"},
		"40 Gb/sec (4X FDR10)":   {40e9, 4, "FDR10"},
		"100 Gb/sec (2X HDR)":    {100e9, 2, "HDR"},
		"120 Gb/sec (12X FDR10)": {120e9, 12, "FDR10"}, // EFA
		"400 Gb/sec (8X HDR)":    {400e9, 8, "HDR"},
		"1600 Gb/sec (8X XDR)":   {1600e9, 8, "XDR"},
		"3200 Gb/sec (8X GDR)":   {3200e9, 8, "GDR"}, // a name to come
	} {
		if got, ok := parseRate(text); !ok || got != want {
			t.Errorf("%q: %+v, %v", text, got, ok)
		}
	}
	for _, text := range []string{
		"", "\n", "100", "100 Gb/sec", "100 Gb/sec ()", "100 Gb/sec (4X EDR", "100 Gb/sec 4X EDR)", "100 Gb/sec (X EDR)",
		"100 Gb/sec (4 EDR)", "Gb/sec (4X EDR)", " Gb/sec (4X EDR)", "-100 Gb/sec (4X EDR)", "+100 Gb/sec (4X EDR)",
		"0 Gb/sec (4X EDR)", "0.0 Gb/sec (4X EDR)", "NaN Gb/sec (4X EDR)", "Inf Gb/sec (4X EDR)", "1e3 Gb/sec (4X EDR)",
		"0x10 Gb/sec (4X EDR)", "1_0 Gb/sec (4X EDR)", "1.2.3 Gb/sec (4X EDR)", ". Gb/sec (4X EDR)",
		"99999999 Gb/sec (4X EDR)", "100 Gb/sec (0X EDR)", "100 Gb/sec (-4X EDR)", "100 Gb/sec (256X EDR)",
		"100 Gb/sec (4.5X EDR)", "100 Mb/sec (4X EDR)", "100 Gb/sec (4X EDR) (4X EDR)", "100 Gb/sec (4X E DR)",
		"100 Gb/sec (4X (EDR))", "100 Gb/sec (4X E\nDR)", "100 Gb/sec (4X edr)", "100 Gb/sec (4X \xff)",
		"N/A (no PMA)", "unknown",
	} {
		if got, ok := parseRate(text); ok {
			t.Errorf("%q was taken for %+v", text, got)
		}
	}
}

var speedName = regexp.MustCompile(`^[A-Z0-9]*$`)

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{
		"2.5 Gb/sec (1X)", "400 Gb/sec (4X NDR)\n", "10 Gb/sec (4X SDR)", "0x1 Gb/sec (4XX)", "",
		".5 Gb/sec (1X)", "1 Gb/sec (1X0\n0)",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, ok := parseRate(s)
		if !ok {
			if r != (linkRate{}) {
				t.Fatalf("%q: %+v", s, r)
			}
			return
		}
		if !(r.bits > 0 && r.bits < 1e15) || r.lanes == 0 || r.lanes > 255 || !speedName.MatchString(r.speed) {
			t.Fatalf("%q: %+v", s, r)
		}
	})
}

func TestPrintsUnknown(t *testing.T) {
	for _, c := range []struct {
		hca, layer, rate string
		want             bool
		why              string
	}{
		{"MT4131", "InfiniBand", "10 Gb/sec (4X SDR)", true, "XDR on Linux 6.1"},
		{"MT4131", "InfiniBand", "2.5 Gb/sec (1X SDR)", true, "one lane of it"},
		{"MT4131", "InfiniBand", "800 Gb/sec (4X XDR)", false, "XDR by its name"},
		{"MT4131", "InfiniBand", "40 Gb/sec (4X QDR)", false, "InfiniBand has QDR"},
		{"MT4131", "Ethernet", "40 Gb/sec (4X QDR)", true, "800G on Linux 6.1"},
		{"MT4131", "Ethernet", "10 Gb/sec (1X QDR)", false, "10G"},
		{"MT4131", "Ethernet", "400 Gb/sec (4X NDR)", false, "400G"},
		{"MT41695", "InfiniBand", "10 Gb/sec (4X SDR)", true, "BlueField-4"},
		{"MT4129", "InfiniBand", "10 Gb/sec (4X SDR)", false, "ConnectX-7 has no XDR: it is SDR"},
		{"MT4115", "Ethernet", "40 Gb/sec (4X QDR)", false, "ConnectX-4 on a 40 Gb/s switch"},
		{"", "InfiniBand", "10 Gb/sec (4X SDR)", false, "another driver"},
	} {
		t.Run(c.why, func(t *testing.T) {
			r, ok := parseRate(c.rate)
			if got := printsUnknown(c.hca, c.layer, r); !ok || got != c.want {
				t.Error(got)
			}
		})
	}
}

// The drivers whose rate comes from ib_get_eth_speed, by the name of their PCI driver or their own.
func TestIsGeneric(t *testing.T) {
	for _, d := range []string{
		"bnxt_en", "ice", "i40e", "irdma", "idpf", "hns3", "hns_roce", "ionic", "mana", "cxgb4", "erdma", "rxe", "siw",
	} {
		if !isGeneric(d) {
			t.Errorf("%s is generic", d)
		}
	}
	for _, d := range []string{"mlx5_core", "mlx4_core", "efa", "hfi1", ""} {
		if isGeneric(d) {
			t.Errorf("%q tells its own rate", d)
		}
	}
}
