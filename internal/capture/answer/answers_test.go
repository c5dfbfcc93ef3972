package answer

import (
	"reflect"
	"slices"
	"testing"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/linkmode"
)

func num(n uint64) *uint64 { return &n }

func TestAnswersOfPorts(t *testing.T) {
	for _, c := range []struct {
		name string
		port host.RDMAPort
		text string
	}{
		{
			"InfiniBand",
			host.RDMAPort{State: num(4), PhysicalState: num(5), LID: num(17), SMLID: num(1), LMC: num(0), Capabilities: num(0x2651e848)},
			"state: 4\nphysical_state: 5\nlid: 17\nsm_lid: 1\nlmc: 0\ncapability_flags: 0x2651e848\n",
		},
		{"Ethernet", host.RDMAPort{State: num(1), PhysicalState: num(3), Netdev: "eth0"}, "state: 1\nphysical_state: 3\nnetdev: eth0\n"},
		{"all capability flags", host.RDMAPort{Capabilities: num(1<<64 - 1)}, "capability_flags: 0xffffffffffffffff\n"},
		{"nothing", host.RDMAPort{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(Encode(c.port)); got != c.text {
				t.Errorf("%q, want %q", got, c.text)
			}
			if got, err := Decode[host.RDMAPort]("x", []byte(c.text)); err != nil || !reflect.DeepEqual(got, c.port) {
				t.Errorf("%q: %+v, %v", c.text, got, err)
			}
		})
	}
}

func TestAnswersOfLinkModes(t *testing.T) {
	for _, c := range []struct {
		name  string
		modes host.LinkModes
		text  string
	}{
		{"speed and lanes", host.LinkModes{Speed: num(400_000), Lanes: num(4), Autoneg: num(1), Duplex: num(1)}, "speed: 400000\nlanes: 4\nautoneg: 1\nduplex: 1\n"},
		{"autonegotiation off", host.LinkModes{Autoneg: num(0)}, "autoneg: 0\n"},
		{
			"sets of modes",
			host.LinkModes{Speed: num(400_000), Autoneg: num(1), Supported: linkmode.SetOf(6, 66, 89), Advertised: linkmode.SetOf(6, 89), Peer: linkmode.SetOf(89, 300)},
			"speed: 400000\nautoneg: 1\nadvertised: 6 400000baseCR4\npeer: 400000baseCR4 300\nsupported: 6 200000baseCR4 400000baseCR4\n",
		},
		{"nothing", host.LinkModes{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(Encode(c.modes)); got != c.text {
				t.Errorf("%q, want %q", got, c.text)
			}
			if got, err := Decode[host.LinkModes]("x", []byte(c.text)); err != nil || !reflect.DeepEqual(got, c.modes) {
				t.Errorf("%q: %+v, %v", c.text, got, err)
			}
		})
	}
}

func TestAnswersOfLinkStates(t *testing.T) {
	for _, c := range []struct {
		name  string
		state host.LinkState
		text  string
	}{
		{"up", host.LinkState{Link: num(1), ExtDownCount: num(3)}, "link: 1\next_down_cnt: 3\n"},
		{"down with extended state", host.LinkState{Link: num(0), ExtState: num(0), ExtSubstate: num(6), ExtDownCount: num(0)}, "link: 0\next_state: 0\next_substate: 6\next_down_cnt: 0\n"},
		{"nothing", host.LinkState{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(Encode(c.state)); got != c.text {
				t.Errorf("%q, want %q", got, c.text)
			}
			if got, err := Decode[host.LinkState]("x", []byte(c.text)); err != nil || !reflect.DeepEqual(got, c.state) {
				t.Errorf("%q: %+v, %v", c.text, got, err)
			}
		})
	}
}

func TestAnswersOfPauseAndFEC(t *testing.T) {
	pause := host.Pause{Autoneg: num(0), RX: num(1), TX: num(0), TXFrames: num(7), RXFrames: num(8), TXStormEvents: num(9)}
	text := "autoneg: 0\nrx: 1\ntx: 0\ntx_frames: 7\nrx_frames: 8\ntx_pause_storm_events: 9\n"
	if got := string(Encode(pause)); got != text {
		t.Errorf("%q", got)
	}
	if got, err := Decode[host.Pause]("x", []byte(text)); err != nil || !reflect.DeepEqual(got, pause) {
		t.Errorf("%+v, %v", got, err)
	}
	fec := host.FEC{
		Active: num(50), Corrected: num(1<<64 - 2), Uncorrectable: num(0), CorrectedBits: num(5),
		LaneCorrected: []uint64{4, 6}, LaneCorrectedBits: []uint64{5},
		Histogram: []host.FECBin{{Blocks: 9, Lanes: []uint64{4, 5}}, {Low: 1, High: 3, Blocks: 2}},
	}
	text = "active: 50\ncorrected: 18446744073709551614\nuncorrectable: 0\ncorrected_bits: 5\n" +
		"corrected/lane0: 4\ncorrected/lane1: 6\ncorrected_bits/lane0: 5\n" +
		"bin/0-0: 9\nbin/0-0/lane0: 4\nbin/0-0/lane1: 5\nbin/1-3: 2\n"
	if got := string(Encode(fec)); got != text {
		t.Errorf("%q", got)
	}
	if got, err := Decode[host.FEC]("x", []byte(text)); err != nil || !reflect.DeepEqual(got, fec) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAnswersOfStats(t *testing.T) {
	stats := []host.Stat{
		{Name: "rx_write_requests", Value: 0}, {Name: "RNR sent", Value: 5}, {Name: "a: b", Value: 1<<64 - 1},
	}
	text := "rx_write_requests: 0\nRNR sent: 5\na: b: 18446744073709551615\n"
	if got := string(Encode(stats)); got != text {
		t.Errorf("%q", got)
	}
	if got, err := Decode[[]host.Stat]("x", []byte(text)); err != nil || !slices.Equal(got, stats) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestAnswersOfHealth(t *testing.T) {
	reporters := []host.HealthReporter{
		{Bus: "pci", Device: "0000:18:00.0", Name: "fw", State: num(0), Errors: num(2), Recoveries: num(0)},
		{Bus: "pci", Device: "0000:18:00.0", Port: num(65535), Name: "tx", State: num(1), Errors: num(1), Recoveries: num(1)},
		{Bus: "auxiliary", Device: "mlx5_core.sf.4", Name: "vnic"},
	}
	text := "pci/0000:18:00.0/fw: state=0 errors=2 recoveries=0\npci/0000:18:00.0/65535/tx: state=1 errors=1 recoveries=1\nauxiliary/mlx5_core.sf.4/vnic: \n"
	if got := string(Encode(reporters)); got != text {
		t.Errorf("%q", got)
	}
	if got, err := Decode[[]host.HealthReporter]("x", []byte(text)); err != nil || !reflect.DeepEqual(got, reporters) {
		t.Errorf("%+v, %v", got, err)
	}
	got, err := Decode[[]host.HealthReporter]("x", []byte("pci/0000:18:00.0/fw: later=7 state=1\n"))
	if err != nil || len(got) != 1 || *got[0].State != 1 {
		t.Errorf("a value that this program does not know: %+v, %v", got, err)
	}
	for _, text := range []string{
		"fw: state=0\n", "pci/0000:18:00.0/: state=0\n", "pci/0000:18:00.0/1/: state=0\n", "pci/a/fw: state=bad\n",
		"pci/a/fw: errors\n", "pci/a/fw\n",
	} {
		if _, err := Decode[[]host.HealthReporter]("devlink/health", []byte(text)); access.ReasonOf(err) != access.Malformed {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestGarbledAnswersAreMalformed(t *testing.T) {
	for _, text := range []string{
		"state\n", "state: up\n", "state: -1\n", "state: 4\n\n", "state: 99999999999999999999\n",
	} {
		if _, err := Decode[host.RDMAPort]("rdma/a/1/port", []byte(text)); access.ReasonOf(err) != access.Malformed {
			t.Errorf("port %q: %v", text, err)
		}
		if _, err := Decode[[]host.Stat]("rdma/a/1/stats", []byte(text)); access.ReasonOf(err) != access.Malformed {
			t.Errorf("stats %q: %v", text, err)
		}
	}
	_, err := Decode[host.LinkModes]("ethtool/a/linkmodes", []byte("speed: fast\n"))
	if access.ReasonOf(err) != access.Malformed {
		t.Errorf("link modes: %v", err)
	}
	if p, err := Decode[host.RDMAPort]("x", []byte("state: 4\nlater: 7\n")); err != nil || *p.State != 4 {
		t.Errorf("a line that this program does not know: %+v, %v", p, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("state: 4\nphysical_state: 5\nlid: 17\ncapability_flags: 0x2651e848\nnetdev: eth0\n"))
	f.Add([]byte("speed: 400000\nlanes: 4\nRNR sent: 5\n"))
	f.Add([]byte("pci/0000:18:00.0/fw: state=0 errors=2 recoveries=0\npci/0000:18:00.0/65535/tx: state=1\n"))
	f.Add([]byte("4711: contexts=2 regions=212 bytes=868220928\n"))
	f.Add([]byte("symbol_error: 12\nport_xmit_data: 4711\nwide: 1\n"))
	f.Add([]byte("state: 3\npriority: 14\nactivity: 4711\nguid: b83f:d203:00a1:c0de\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := Decode[host.IBCounters]("x", data); err == nil {
			if again, err := Decode[host.IBCounters]("x", Encode(c)); err != nil || again.Wide != c.Wide ||
				!slices.Equal(again.Stats, c.Stats) {
				t.Errorf("%+v became %+v, %v", c, again, err)
			}
		}
		if m, err := Decode[host.IBManager]("x", data); err == nil {
			if again, err := Decode[host.IBManager]("x", Encode(m)); err != nil || !reflect.DeepEqual(again, m) {
				t.Errorf("%+v became %+v, %v", m, again, err)
			}
		}
		if a, err := Decode[[]host.RDMAHolder]("x", data); err == nil {
			if again, err := Decode[[]host.RDMAHolder]("x", Encode(a)); err != nil || !reflect.DeepEqual(again, a) {
				t.Errorf("%+v became %+v, %v", a, again, err)
			}
		}
		if p, err := Decode[host.RDMAPort]("x", data); err == nil {
			if again, err := Decode[host.RDMAPort]("x", Encode(p)); err != nil || !reflect.DeepEqual(again, p) {
				t.Errorf("%+v became %+v, %v", p, again, err)
			}
		}
		if m, err := Decode[host.LinkModes]("x", data); err == nil {
			if again, err := Decode[host.LinkModes]("x", Encode(m)); err != nil || !reflect.DeepEqual(again, m) {
				t.Errorf("%+v became %+v, %v", m, again, err)
			}
		}
		if a, err := Decode[host.Pause]("x", data); err == nil {
			if again, err := Decode[host.Pause]("x", Encode(a)); err != nil || !reflect.DeepEqual(again, a) {
				t.Fatalf("%+v became %+v, %v", a, again, err)
			}
		}
		if a, err := Decode[host.FEC]("x", data); err == nil {
			if again, err := Decode[host.FEC]("x", Encode(a)); err != nil || !reflect.DeepEqual(again, a) {
				t.Fatalf("%+v became %+v, %v", a, again, err)
			}
		}
		if a, err := Decode[host.IBFEC]("x", data); err == nil {
			if again, err := Decode[host.IBFEC]("x", Encode(a)); err != nil || !reflect.DeepEqual(again, a) {
				t.Fatalf("%+v became %+v, %v", a, again, err)
			}
		}
		if s, err := Decode[host.IBPortSettings]("x", data); err == nil {
			if again, err := Decode[host.IBPortSettings]("x", Encode(s)); err != nil || !reflect.DeepEqual(again, s) {
				t.Errorf("%+v became %+v, %v", s, again, err)
			}
		}
		if l, err := Decode[host.LinkState]("x", data); err == nil {
			if again, err := Decode[host.LinkState]("x", Encode(l)); err != nil || !reflect.DeepEqual(again, l) {
				t.Errorf("%+v became %+v, %v", l, again, err)
			}
		}
		if h, err := Decode[[]host.HealthReporter]("x", data); err == nil {
			if again, err := Decode[[]host.HealthReporter]("x", Encode(h)); err != nil || !reflect.DeepEqual(again, h) {
				t.Errorf("%+v became %+v, %v", h, again, err)
			}
		}
		if s, err := Decode[[]host.Stat]("x", data); err == nil {
			if again, err := Decode[[]host.Stat]("x", Encode(s)); err != nil || !slices.Equal(again, s) {
				t.Errorf("%+v became %+v, %v", s, again, err)
			}
		}
	})
}
