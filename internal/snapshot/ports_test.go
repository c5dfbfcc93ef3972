package snapshot

import (
	"strings"
	"testing"
)

// TestUnconfirmedRates: rates that are confirmed neither by the configuration nor by the far end, of ports that may
// support more.
func TestUnconfirmedRates(t *testing.T) {
	active, down, slow, fast := uint64(4), uint64(1), 200e9, 400e9
	port := func(source string, capable *float64) Port {
		return Port{
			State: &active, Rate: &slow, Expected: Expected{ExpectedRateSource: source},
			Netdev: []Netdev{{Modes: Modes{CapableRate: capable}}},
		}
	}
	for name, c := range map[string]struct {
		kind  FunctionType
		ports []Port
		want  int
		more  float64
	}{
		"siblings":                {Physical, []Port{port("siblings", nil)}, 1, 0},
		"nothing":                 {Physical, []Port{port("", nil)}, 1, 0},
		"its own past":            {Physical, []Port{port("high_water_mark", &fast)}, 1, fast},
		"it cannot do better":     {Physical, []Port{port("siblings", &slow)}, 0, 0},
		"the configuration":       {Physical, []Port{port("pin", &fast)}, 0, 0},
		"the far end":             {Physical, []Port{port("link_modes", &fast), port("link_partner", nil)}, 0, 0},
		"a virtual function":      {Virtual, []Port{port("", nil)}, 0, 0},
		"down":                    {Physical, []Port{{State: &down, Rate: &slow}}, 0, 0},
		"a bond has its members'": {Physical, []Port{{State: &active, Rate: &slow, Netdev: []Netdev{{Member: true}}}}, 0, 0},
		"planes are parts of one": {Physical, []Port{port("", nil), port("", nil), port("", nil)}, 0, 0},
		"unknown rate":            {Physical, []Port{{State: &active}}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			n := &InfiniBand{Devices: []Device{{Name: "d", FunctionType: c.kind, Ports: c.ports}}}
			if ports, more := n.UnconfirmedRates(); ports != c.want || more != c.more {
				t.Errorf("%d %g, want %d %g", ports, more, c.want, c.more)
			}
		})
	}
	if ports, _ := (*InfiniBand)(nil).UnconfirmedRates(); ports != 0 {
		t.Error(ports)
	}
}

// TestSlowModes: 1X, SDR and DDR of InfiniBand ports whose rate nothing confirms.
func TestSlowModes(t *testing.T) {
	for name, tt := range map[string]struct {
		layer  string
		lanes  uint64
		rate   float64
		source string
		want   string
	}{
		"1X": {"InfiniBand", 1, 14e9, "", "mlx5_0/1 (1X)"}, "SDR": {"InfiniBand", 4, 10e9, "siblings", "mlx5_0/1 (SDR)"},
		"DDR": {"InfiniBand", 4, 16e9, "high_water_mark", "mlx5_0/1 (DDR)"}, "QDR": {"InfiniBand", 4, 32e9, "", ""},
		"HDR100": {"InfiniBand", 2, 100e9, "", ""}, "RoCE": {"Ethernet", 1, 10e9, "", ""},
		"confirmed": {"InfiniBand", 4, 10e9, "link_partner", ""}, "no width": {"InfiniBand", 0, 10e9, "", ""},
	} {
		p := Port{Number: 1, LinkLayer: tt.layer, State: new(uint64(PortActive)), Rate: &tt.rate, Lanes: &tt.lanes}
		p.ExpectedRateSource = tt.source
		n := &InfiniBand{Devices: []Device{{Name: "mlx5_0", FunctionType: Physical, Ports: []Port{p}}}}
		if got := strings.Join(n.SlowModes(), ", "); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	if got := (*InfiniBand)(nil).SlowModes(); got != nil {
		t.Error(got)
	}
}
