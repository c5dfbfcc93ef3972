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
