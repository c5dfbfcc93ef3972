package snapshot

import (
	"fmt"
	"testing"
)

func TestNotExpected(t *testing.T) {
	down, active, waits := uint64(1), uint64(4), uint64(2)
	device := func(name string, change func(*Device), ports ...Port) Device {
		d := Device{Name: name, FunctionType: Physical, Ports: ports}
		for i := range d.Ports {
			d.Ports[i].Number = i + 1
		}
		if change != nil {
			change(&d)
		}
		return d
	}
	n := &InfiniBand{
		Devices: []Device{
			device("spare", nil, Port{State: &down}, Port{State: &down}),
			device("up", nil, Port{State: &active}),
			device("waits", nil, Port{State: &waits}),
			device("unknown", nil, Port{}),
			device("was", nil, Port{State: &down, WasActive: true}),
			device("peers", nil, Port{State: &down, PeersActive: true}),
			device("pinned", nil, Port{State: &down, PinnedActive: true}),
			device("planes", nil, Port{State: &down}, Port{State: &active}, Port{State: &active}),
			device("part", func(d *Device) { d.PhysicalFunction = "0000:17:00.0" }, Port{State: &down}),
			device("nvlink", func(d *Device) { d.ManagesNVLink = true }, Port{State: &down}),
			device("ignored", nil, Port{State: &down}, Port{State: &down}),
			device("half", nil, Port{State: &down}, Port{State: &down}),
		},
		Ignored: []PortID{{Device: "ignored"}, {Device: "half", Number: 1}},
	}
	if got := fmt.Sprint(n.NotExpected()); got != "[{spare 1} {spare 2} {half 2}]" {
		t.Error(got)
	}
	if got := (*InfiniBand)(nil).NotExpected(); got != nil {
		t.Error(got)
	}
}

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
