package account

import (
	"fmt"
	"slices"
	"testing"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/snapshot/wire"
)

// portsIn returns a host with one device for each letter, which is the state of its port: A ACTIVE, D DOWN, I INIT, ?
// not read.
func portsIn(states string, change func(i int, d *snapshot.Device, p *snapshot.Port)) *snapshot.Node {
	n := &snapshot.Node{InfiniBand: &snapshot.InfiniBand{}}
	number := map[rune]*uint64{'A': new(uint64(4)), 'D': new(uint64(1)), 'I': new(uint64(2)), '?': nil}
	for i, s := range states {
		d := snapshot.Device{
			Name: "mlx5_" + string(rune('0'+i)), BoardID: "MT_0000000838", FunctionType: snapshot.Physical,
			PCIAddress: "0000:" + string(rune('1'+i)) + "b:00.0",
			Ports:      []snapshot.Port{{Number: 1, LinkLayer: "InfiniBand", State: number[s], Role: "compute"}},
		}
		if change != nil {
			change(i, &d, &d.Ports[0])
		}
		n.InfiniBand.Devices = append(n.InfiniBand.Devices, d)
	}
	return n
}

func TestObjects(t *testing.T) {
	for name, c := range map[string]struct {
		node     *snapshot.Node
		failures []Failure
		faults   []Fault
		line     string
		unknown  []string
	}{
		"nothing was read": {&snapshot.Node{}, nil, nil, "", nil},
		"healthy":          {portsIn("AA", nil), nil, nil, "2 NICs, 2 compute ports healthy", nil},
		"a compute port that was never ACTIVE": {
			portsIn("AD", nil), nil, nil,
			"1 compute port unknown (DOWN, never ACTIVE); 2 NICs, 1 compute port healthy",
			[]string{"mlx5_1/1"},
		},
		"in INIT": {
			portsIn("AI", nil), nil, nil,
			"1 compute port unknown (INIT, never ACTIVE); 2 NICs, 1 compute port healthy",
			[]string{"mlx5_1/1"},
		},
		"with an alert": {
			portsIn("AD", nil), nil,
			[]Fault{{"RDMAPortDown", map[string]string{"device": "mlx5_1", "port": "1"}}},
			"1 compute port faulty; 2 NICs, 1 compute port healthy", nil,
		},
		"an alert on the device is one on its port": {
			portsIn("AA", nil), nil,
			[]Fault{{"RDMADeviceFailed", map[string]string{"device": "mlx5_1"}}},
			"1 NIC, 1 compute port faulty; 1 NIC, 1 compute port healthy", nil,
		},
		"an alert on the host explains what is unknown": {
			portsIn("AD", nil), nil,
			[]Fault{{"RDMAPortDown", map[string]string{"role": "compute"}}},
			"1 compute port faulty; 2 NICs, 1 compute port healthy", nil,
		},
		"another alert on the host explains nothing": {
			portsIn("AD", nil), nil,
			[]Fault{{"RDMATrafficOnLossyPriority", nil}},
			"1 compute port unknown (DOWN, never ACTIVE); 2 NICs, 1 compute port healthy",
			[]string{"mlx5_1/1"},
		},
		"slower than another of its board": {
			portsIn("AA", func(i int, d *snapshot.Device, p *snapshot.Port) {
				d.BoardID, p.Rate = "MT_0838", new(float64(1+i)*200e9)
			}), nil, nil,
			"1 compute port unknown (slower than others of its board, and nothing says which rate is right); 2 NICs, 1 compute port healthy",
			[]string{"mlx5_0/1"},
		},
		"slower than another, as both ends say": {
			portsIn("AA", func(i int, d *snapshot.Device, p *snapshot.Port) {
				d.BoardID, p.Rate, p.ExpectedRateSource = "MT_0838", new(float64(1+i)*200e9), "link_modes"
			}), nil, nil,
			"2 NICs, 2 compute ports healthy", nil,
		},
		"slower than one of another board": {
			portsIn("AA", func(i int, d *snapshot.Device, p *snapshot.Port) {
				d.BoardID, p.Rate = fmt.Sprint("MT_083", i), new(float64(1+i)*200e9)
			}), nil, nil,
			"2 NICs, 2 compute ports healthy", nil,
		},
		"state not readable": {
			portsIn("A?", nil),
			[]Failure{{Device: "mlx5_1", Text: "mlx5_1: EIO"}},
			nil,
			"1 compute port unknown (state could not be read: mlx5_1: EIO); 2 NICs, 1 compute port healthy",
			[]string{"mlx5_1/1"},
		},
		"pinned as ACTIVE": {
			portsIn("AD", func(_ int, _ *snapshot.Device, p *snapshot.Port) { p.PinnedActive = true }), nil, nil,
			"1 compute port faulty; 2 NICs, 1 compute port healthy", nil,
		},
		"was ACTIVE": {
			portsIn("ADI", func(_ int, _ *snapshot.Device, p *snapshot.Port) { p.WasActive = true }), nil, nil,
			"2 compute ports faulty; 3 NICs, 1 compute port healthy", nil,
		},
		"ports like it are ACTIVE": {
			portsIn("AD", func(_ int, _ *snapshot.Device, p *snapshot.Port) { p.PeersActive = true }), nil, nil,
			"1 compute port faulty; 2 NICs, 1 compute port healthy", nil,
		},
		"was ACTIVE, for storage": {
			portsIn("AD", func(_ int, _ *snapshot.Device, p *snapshot.Port) { p.WasActive, p.Role = true, "other" }), nil, nil,
			"1 port faulty; 2 NICs, 1 port healthy", nil,
		},
		"was ACTIVE, interface administratively down": {
			portsIn("AD", func(_ int, _ *snapshot.Device, p *snapshot.Port) {
				p.WasActive, p.PeersActive = true, true
				p.LinkLayer, p.Netdev = "Ethernet", []snapshot.Netdev{{Name: "eth0", Admin: new(false)}}
			}), nil, nil,
			"2 NICs, 1 compute port healthy; 1 compute port not expected (interface administratively down)", nil,
		},
		"an alert on the host explains no port for storage": {
			portsIn("A??", func(i int, _ *snapshot.Device, p *snapshot.Port) {
				if i == 1 {
					p.Role = "other"
				}
			}), nil,
			[]Fault{{"RDMAPortDown", map[string]string{"role": "compute"}}},
			"1 port unknown (state could not be read); 1 compute port faulty; 3 NICs, 1 compute port healthy", nil,
		},
		"an alert on the host explains no device": {
			func() *snapshot.Node {
				n := portsIn("AD", nil)
				n.Devices = []snapshot.DeviceRead{{Device: "mlx5_0", Stuck: true}}
				return n
			}(), nil,
			[]Fault{{"RDMAPortDown", map[string]string{"role": "compute"}}},
			"1 NIC unknown (a read has not returned); 1 compute port faulty; 1 NIC, 1 compute port healthy",
			[]string{"mlx5_0"},
		},
		"accepted": {
			portsIn("AD", func(_ int, _ *snapshot.Device, p *snapshot.Port) { p.Idle = snapshot.IdleAccepted }), nil, nil,
			"2 NICs, 1 compute port healthy; 1 compute port not expected (accepted as not in use)", nil,
		},
		"ignored": {
			func() *snapshot.Node {
				n := portsIn("AD", nil)
				n.InfiniBand.Ignored = []snapshot.PortID{{Device: "mlx5_1"}}
				return n
			}(), nil, nil,
			"1 NIC, 1 compute port healthy; 1 NIC, 1 compute port not expected (ignored by the configuration)", nil,
		},
		"for storage": {
			portsIn("AD", func(i int, _ *snapshot.Device, p *snapshot.Port) {
				if i == 1 {
					p.Role = "other"
				}
			}), nil, nil,
			"2 NICs, 1 compute port healthy; 1 port not expected (not a compute port, never ACTIVE)", nil,
		},
		"second port of a card": {
			portsIn("AD", func(i int, d *snapshot.Device, _ *snapshot.Port) {
				d.PCIAddress = "0000:1b:00." + string(rune('0'+i))
			}), nil, nil,
			"2 NICs, 1 compute port healthy; 1 compute port not expected (second port, none of its kind has a link)", nil,
		},
		"second port, of which others have a link": {
			portsIn("AADA", func(i int, d *snapshot.Device, _ *snapshot.Port) {
				d.PCIAddress = "0000:" + string(rune('1'+i%2)) + "b:00." + string(rune('0'+i/2))
			}), nil, nil,
			"1 compute port unknown (DOWN, never ACTIVE); 4 NICs, 3 compute ports healthy",
			[]string{"mlx5_2/1"},
		},
		"interface administratively down": {
			portsIn("AD", func(_ int, _ *snapshot.Device, p *snapshot.Port) {
				p.LinkLayer, p.Netdev = "Ethernet", []snapshot.Netdev{{Name: "eth0", Admin: new(false)}}
			}), nil, nil,
			"2 NICs, 1 compute port healthy; 1 compute port not expected (interface administratively down)", nil,
		},
		"virtual function": {
			portsIn("AD", func(i int, d *snapshot.Device, _ *snapshot.Port) {
				if i == 1 {
					d.FunctionType, d.PhysicalFunction = snapshot.Virtual, "0000:1b:00.0"
				}
			}), nil, nil,
			"2 NICs, 1 compute port healthy; 1 port not expected (virtual function or subfunction, DOWN)", nil,
		},
		"a read that has not returned": {
			func() *snapshot.Node {
				n := portsIn("AA", nil)
				n.Devices = []snapshot.DeviceRead{{Device: "mlx5_1", Stuck: true}}
				return n
			}(), nil, nil,
			"1 NIC unknown (a read has not returned); 1 NIC, 2 compute ports healthy",
			[]string{"mlx5_1"},
		},
		"a function without its device": {
			func() *snapshot.Node {
				n := portsIn("A", nil)
				const address = "0000:2b:00.0"
				n.InfiniBand.Missing = []snapshot.MissingDevice{{Name: address, PCIAddress: address, Reason: "no_driver"}}
				return n
			}(), nil, nil,
			"1 PCI function faulty; 1 NIC, 1 compute port healthy", nil,
		},
		"GPUs: lost, hidden, in a virtual machine": {
			&snapshot.Node{GPUs: &accel.GPUs{
				NVML: accel.NVML{GPUs: []accel.GPU{{PCIAddress: "0000:1b:00.0", UUID: "GPU-a"}}},
				Lost: []accel.LostGPU{{PCIAddress: "0000:2b:00.0", Reason: accel.GPUNoDriver}},
				Functions: []accel.GPUFunction{
					{PCIAddress: "0000:1b:00.0", Driver: "nvidia", Visible: true},
					{PCIAddress: "0000:2b:00.0"},
					{PCIAddress: "0000:3b:00.0", Driver: "nvidia"},
					{PCIAddress: "0000:4b:00.0", Driver: "vfio-pci"},
				},
			}}, nil, nil,
			"1 GPU unknown (not listed by NVML); 1 GPU faulty; 1 GPU healthy; 1 GPU not expected (bound to driver vfio-pci)",
			[]string{"0000:3b:00.0"},
		},
		"a bond with one member that lost its link, one unread, one set down": {
			func() *snapshot.Node {
				n := portsIn("A", nil)
				yes, no := true, false
				n.InfiniBand.Devices[0].Ports[0].Netdev = []snapshot.Netdev{
					{Name: "eth0", Member: true, Up: &yes},
					{Name: "eth1", Member: true, Up: &no},
					{Name: "eth2", Member: true},
					{Name: "eth3", Member: true, Up: &no, Admin: &no},
				}
				return n
			}(), nil, nil,
			"1 bond member unknown (its state in the bond could not be read); 1 bond member faulty; 1 NIC, 1 compute port, " +
				"1 bond member healthy; 1 bond member not expected (administratively down)",
			[]string{"eth2"},
		},
		"cages: a fault of a module, none of a port; what the driver does not read has no object": {
			func() *snapshot.Node {
				n := portsIn("A", nil)
				cage := func(netdev string, state wire.CageState) wire.Cage {
					return wire.Cage{Device: "mlx5_0", Port: 1, Netdev: netdev, State: state}
				}
				n.Optics = &wire.Optics{Cages: []wire.Cage{
					cage("eth0", wire.CagePresent), cage("eth1", wire.CageEmpty), cage("eth2", wire.CageUnreadable),
					cage("eth3", wire.CageUnsupported), cage("eth4", wire.CagePresent),
				}}
				return n
			}(), nil,
			[]Fault{
				{Alert: "RDMATransceiverFault", Labels: map[string]string{"device": "mlx5_0", "port": "1", "netdev": "eth4"}},
			},
			"1 cage unknown (its module could not be read); 1 compute port, 1 cage faulty; 1 NIC healthy", nil,
		},
		"functions that support RDMA, without a device and unlike others": {
			func() *snapshot.Node {
				n := portsIn("A", nil)
				n.InfiniBand.Bare = []hostdata.BareFunction{
					{PCIAddress: "0000:2b:00.0"},
					{PCIAddress: "0000:3b:00.0", Driver: "mlx5_core"},
					{PCIAddress: "0000:4b:00.0", Like: true}, // the collector reports it as missing, or has a reason not to
				}
				return n
			}(), nil, nil,
			"2 PCI functions unknown (supports RDMA, no RDMA device of driver mlx5_core; supports RDMA, no driver bound); 1 NIC, 1 compute port healthy",
			[]string{"0000:2b:00.0", "0000:3b:00.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := Judge(Objects(c.node, c.failures), c.faults)
			if got := Line(objects); got != c.line {
				t.Errorf("got  %s\nwant %s", got, c.line)
			}
			var unknown []string
			for _, o := range Unknowns(objects) {
				unknown = append(unknown, o.Name)
			}
			if !slices.Equal(unknown, c.unknown) {
				t.Errorf("unknown %q, want %q", unknown, c.unknown)
			}
		})
	}
}

// TestPlanes: the other planes of a device with a complete set are not expected; those of an incomplete set are
// unknown.
func TestPlanes(t *testing.T) {
	for active, want := range map[int]string{
		2: "10 planes unknown (DOWN, never ACTIVE); 1 NIC, 2 planes healthy",
		3: "1 NIC, 3 planes healthy; 9 planes not expected (plane not in use, DOWN)",
		4: "1 NIC, 4 planes healthy; 8 planes not expected (plane not in use, DOWN)",
		0: "12 planes unknown (DOWN, never ACTIVE); 1 NIC healthy",
	} {
		n := portsIn("A", func(_ int, d *snapshot.Device, _ *snapshot.Port) {
			d.Ports = nil
			for i := range 12 {
				state := uint64(snapshot.PortDown)
				if i < active {
					state = 4
				}
				d.Ports = append(d.Ports, snapshot.Port{Number: i + 1, State: &state, Role: "compute"})
			}
		})
		if got := Line(Objects(n, nil)); got != want {
			t.Errorf("%d ACTIVE: %s, want %s", active, got, want)
		}
	}
}

func TestGroups(t *testing.T) {
	objects := []Object{
		{Kind: Device, Name: "mlx5_0", Class: Healthy},
		{Kind: Port, Name: "mlx5_0/1", Class: Healthy},
		{Kind: Port, Name: "mlx5_1/1", Class: Unknown, Reason: "DOWN"},
		{Kind: Port, Name: "mlx5_2/1", Class: Unknown, Reason: "DOWN"},
		{Kind: Port, Name: "mlx5_3/1", Class: NotExpected, Reason: "accepted"},
	}
	const want = "[{port DOWN unknown [mlx5_1/1 mlx5_2/1]} {port accepted not_expected [mlx5_3/1]} {NIC  healthy [mlx5_0]} " +
		"{port  healthy [mlx5_0/1]}]"
	if got := fmt.Sprint(Groups(objects)); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestWithoutNIC: eight GPUs, some of them without a NIC at their switch.
func TestWithoutNIC(t *testing.T) {
	for _, c := range []struct {
		distances string // of each GPU to its nearest NIC: P PIX, N NODE, U unknown
		want      int
	}{
		{"PPPPPPPP", 0}, {"PPPPPPPN", 1}, {"PPPPPPNN", 0}, {"PPPN", 1}, {"PPN", 0}, {"NNNN", 0}, {"PPPU", 0},
	} {
		d := &accel.GDR{NICs: []accel.GDRNIC{{Device: "mlx5_0"}}}
		for i, kind := range c.distances {
			d.GPUs = append(d.GPUs, accel.GDRGPU{PCIAddress: fmt.Sprint(i)})
			d.Pairs = append(d.Pairs, accel.GDRPair{GPU: i, Distance: map[rune]string{'P': "PIX", 'N': "NODE"}[kind]})
		}
		if got := findWithoutNIC(d); len(got) != c.want {
			t.Errorf("%s: %v, want %d", c.distances, got, c.want)
		}
	}
}
