package transceiver

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"testing"
)

// changed returns a dump with changed bytes in one of its halves.
func (d module) changed(b block, offset int, bytes ...byte) module {
	out := module{halves: map[block]*[half]byte{}}
	for k, h := range d.halves {
		c := *h
		out.halves[k] = &c
	}
	if out.halves[b] == nil {
		out.halves[b] = &[half]byte{}
	}
	copy(out.halves[b][offset%half:], bytes)
	return out
}

func (d module) without(b block) module {
	out := d.changed(b, 0)
	delete(out.halves, b)
	return out
}

var (
	a0     = block{address: AddressA0}
	a2half = block{address: AddressA2}
	page0  = block{address: AddressA0, upper: true}
	page1  = block{address: AddressA0, upper: true, page: 1}
	page2  = block{address: AddressA0, upper: true, page: 2}
	page3  = block{address: AddressA0, upper: true, page: 3}
	page11 = block{address: AddressA0, upper: true, page: 0x11}
)

func decodeModule(t *testing.T, d module) Module {
	t.Helper()
	p, _ := d.read(t)
	return Decode(p)
}

func TestWhatIsNotToBeHad(t *testing.T) {
	osfp, qsfp, sfp := load(t, "osfp-2xdr4"), load(t, "qsfp28-sr4"), load(t, "sfp28-sr")
	for _, c := range []struct {
		name string
		d    module
		want func(m Module) bool
	}{
		{"nothing", module{}, func(m Module) bool { return m.Unknown && m.FormFactor == "" }},
		{"no page 00h", osfp.without(page0), func(m Module) bool { return m.Vendor == "" && m.FormFactor == "OSFP" && m.Temperature != nil }},
		{"no page 01h", osfp.without(page1), func(m Module) bool { return m.Temperature != nil && m.Lanes == nil && m.HostLanes == nil }},
		{"no page 02h", osfp.without(page2), func(m Module) bool { return m.Thresholds == Thresholds{} && len(m.Lanes) == 8 }},
		{"no page 11h", osfp.without(page11), func(m Module) bool { return m.Temperature != nil && m.Lanes == nil && m.DOM }},
		{"no page 03h", qsfp.without(page3), func(m Module) bool { return m.Thresholds == Thresholds{} && len(m.Lanes) == 4 }},
		{"no A2h", sfp.without(a2half), func(m Module) bool { return m.DOM && m.Temperature == nil && m.Lanes == nil && m.Vendor == "Mellanox" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if m := decodeModule(t, c.d); !c.want(m) {
				t.Errorf("%s", written(m))
			}
		})
	}
}

func TestReadingsWithoutMeaning(t *testing.T) {
	osfp, qsfp, sfp := load(t, "osfp-2xdr4"), load(t, "qsfp28-sr4"), load(t, "sfp28-sr")
	for _, c := range []struct {
		name string
		d    module
		want func(m Module) bool
	}{
		{"-60 °C", osfp.changed(a0, 14, 0xC4, 0), func(m Module) bool { return m.Temperature == nil && m.Voltage != nil && m.DOM }},
		{"0 °C", osfp.changed(a0, 14, 0, 0), func(m Module) bool { return m.Temperature != nil && *m.Temperature == 0 }},
		{"0 V", osfp.changed(a0, 16, 0, 0), func(m Module) bool { return m.Temperature != nil && m.Voltage == nil }},
		{"no monitors of lanes", osfp.changed(page1, 160, 0), func(m Module) bool { return m.Lanes == nil && m.DOM && len(m.DataPaths) == 2 }},
		{"bias only", osfp.changed(page1, 160, 1), func(m Module) bool { return m.Lanes[0].RxPower == nil && *m.Lanes[0].Bias == 0.025 }},
		{"a QSFP without monitors", qsfp.changed(a0, 22, 0, 0, 0, 0, 0, 0), func(m Module) bool { return !m.DOM && m.Lanes == nil && m.Vendor == "Mellanox" }},
		{"a QSFP that starts", qsfp.changed(a0, 2, 1), func(m Module) bool { return m.DOM && m.NotReady && m.Temperature == nil && m.Lanes == nil }},
		{"a QSFP of two lanes", qsfp.changed(a0, 113, 0x0A), func(m Module) bool { return len(m.Lanes) == 2 && m.Lanes[1].Number == 3 }},
		{"a bit for the transmitted power was forgotten", qsfp.changed(page0, 220, 0x08), func(m Module) bool { return m.Lanes[0].TxPower != nil }},
		{
			"no transmitted power", qsfp.changed(page0, 220, 0).changed(a0, 50, make([]byte, 8)...),
			func(m Module) bool { return m.Lanes[0].TxPower == nil && m.RxPowerKind == OMA },
		},
		{"an SFP that starts", sfp.changed(a2half, 110, 1), func(m Module) bool { return m.NotReady && m.Lanes == nil && m.Temperature == nil }},
		{"an SFP that does not tell of its pins", sfp.changed(a0, 93, 0), func(m Module) bool {
			return m.Lanes[0].TxFault == nil && m.Lanes[0].RxLOS == nil && m.Lanes[0].TxDisabled == nil
		}},
		{"a QSFP whose lanes cannot be switched off", qsfp.changed(page0, 195, 0), func(m Module) bool { return m.Lanes[2].TxDisabled == nil }},
		{"nothing at A2h", sfp.changed(a2half, 96, slices.Repeat([]byte{0xFF}, 14)...), func(m Module) bool { return !m.DOM && m.Lanes == nil }},
		{"an SFP that wants a command first", sfp.changed(a0, 92, 0x6C), func(m Module) bool { return !m.DOM }},
		{
			"constants of no meaning", sfp.changed(a0, 92, 0x50).changed(a2half, 56, 0x7F, 0xC0, 0, 0), // NaN
			func(m Module) bool { return m.ExternalCal && m.Lanes[0].RxPower == nil && m.Voltage == nil },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if m := decodeModule(t, c.d); !c.want(m) {
				t.Errorf("%s", written(m))
			}
		})
	}
}

func TestThresholds(t *testing.T) {
	levels := func(v ...float64) (l Levels) { // NaN is none
		for i, to := range []**float64{&l.HighAlarm, &l.LowAlarm, &l.HighWarning, &l.LowWarning} {
			if !math.IsNaN(v[i]) {
				*to = &v[i]
			}
		}
		return l
	}
	none := math.NaN()
	thresholdCelsius := func(raw uint16) *float64 { return new(rawCelsius(raw)) }
	for _, c := range []struct {
		name  string
		raw   [4]uint16
		of    scale
		power bool
		want  Levels
	}{
		{"temperatures", [4]uint16{0x5000, 0xF600, 0x4B00, 0xFB00}, thresholdCelsius, false, levels(80, -10, 75, -5)},
		{"all 0", [4]uint16{}, thresholdCelsius, false, Levels{}},
		{"all ones", [4]uint16{0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF}, rawPower, true, Levels{}},
		{"0 °C high alarm", [4]uint16{0, 0xF600, 0x4B00, 0xFB00}, thresholdCelsius, false, levels(none, -10, 75, -5)},
		{"negative high alarm", [4]uint16{0xFF00, 0xF600, 0x4B00, 0xFB00}, thresholdCelsius, false, levels(none, -10, 75, -5)},
		{"high below low", [4]uint16{0x0A00, 0x4B00, 0x4600, 0}, thresholdCelsius, false, levels(none, none, 70, 0)},
		{"low at -45 °C, as of industrial modules", [4]uint16{0x5F00, 0xD300, 0x5A00, 0xD800}, thresholdCelsius, false, levels(95, -45, 90, -40)},
		{"volts", [4]uint16{36300, 29700, 34650, 31350}, rawVolts, false, levels(3.63, 2.97, 3.465, 3.135)},
		{"high of no reach", [4]uint16{0xFFFF, 29700, 0xFFFF, 0}, rawVolts, false, levels(none, 2.97, none, none)},
		{"powers", [4]uint16{10000, 1000, 10000, 100}, rawPower, true, levels(0, -10, 0, -20)},
		{"low power of 0", [4]uint16{10000, 0, 10000, 0}, rawPower, true, levels(0, none, 0, none)},
		{"high power of 0", [4]uint16{0, 1000, 10000, 1000}, rawPower, true, levels(none, none, 0, -10)},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, data := &Pages{}, []byte{}
			for _, r := range c.raw {
				data = binary.BigEndian.AppendUint16(data, r)
			}
			at := upper(0, 2, 128)
			p.Put(at.run(8), data)
			got := p.thresholds(at, c.of, c.power)
			for i, pair := range [][2]*float64{
				{got.HighAlarm, c.want.HighAlarm},
				{got.LowAlarm, c.want.LowAlarm},
				{got.HighWarning, c.want.HighWarning},
				{got.LowWarning, c.want.LowWarning},
			} {
				if (pair[0] == nil) != (pair[1] == nil) || pair[0] != nil && math.Abs(*pair[0]-*pair[1]) > 1e-9 {
					t.Errorf("level %d: %v", i, written(Module{Thresholds: Thresholds{Voltage: got}}))
				}
			}
		})
	}
}

func TestApplicationsOfManyPorts(t *testing.T) {
	four := load(t, "qsfpdd-dr4").changed(page11, 206, 0x20, 0x20, 0x24, 0x24, 0x28, 0x28, 0, 0).
		changed(page11, 128, 0x44, 0x44, 0x14, 0x11)
	m := decodeModule(t, four)
	want := []DataPath{
		{Application: 2, HostLanes: []int{1, 2}, MediaLanes: []int{1}, Activated: true},
		{Application: 2, HostLanes: []int{3, 4}, MediaLanes: []int{2}, Activated: true, path: 2},
		{Application: 2, HostLanes: []int{5, 6}, MediaLanes: []int{3}, path: 4},
	}
	if !reflect.DeepEqual(m.DataPaths, want) {
		t.Errorf("%+v", m.DataPaths)
	}
	var active []bool
	for _, l := range m.Lanes {
		active = append(active, *l.Active)
	}
	if !slices.Equal(active, []bool{true, true, false, false}) {
		t.Errorf("active: %v", active)
	}
}

func TestMediaLanesNotReported(t *testing.T) {
	old := load(t, "qsfpdd-dr4").changed(page1, 176, 0, 0)
	if m := decodeModule(t, old); len(m.DataPaths) != 1 || !slices.Equal(m.DataPaths[0].MediaLanes, []int{1, 2, 3, 4}) {
		t.Errorf("from the first: %+v", m.DataPaths)
	}
	// An application that is not advertised.
	odd := load(t, "qsfpdd-dr4").changed(page11, 206, slices.Repeat([]byte{0x70}, 8)...)
	m := decodeModule(t, odd)
	if len(m.DataPaths) != 1 || m.DataPaths[0].MediaLanes != nil || m.Lanes[0].Active != nil {
		t.Errorf("an application without a descriptor: %+v, %v", m.DataPaths, m.Lanes[0].Active)
	}
}

func TestBanks(t *testing.T) {
	wide := load(t, "osfp-2xdr4").changed(a0, 0, 0x21).changed(page1, 142, 1)
	second := block{address: AddressA0, upper: true, page: 0x11, bank: 1}
	wide.halves[second] = wide.halves[page11]
	m := decodeModule(t, wide)
	if len(m.Lanes) != 16 || m.Lanes[15].Number != 16 || !*m.Lanes[8].Active || *m.Lanes[12].Active ||
		len(m.DataPaths) != 4 {
		t.Errorf("%s", written(m))
	}
	if want := []int{13, 14, 15, 16}; !slices.Equal(m.DataPaths[3].HostLanes, want) ||
		!slices.Equal(m.DataPaths[3].MediaLanes, want) {
		t.Errorf("%+v", m.DataPaths)
	}
	if m := decodeModule(t, wide.without(second)); len(m.Lanes) != 8 { // a driver that ignores the bank
		t.Errorf("%d lanes without the second bank", len(m.Lanes))
	}
}

func TestStates(t *testing.T) {
	d := load(t, "osfp-2xdr4")
	for _, c := range []struct {
		name         string
		state, cause byte
		want, fault  string
		low          bool
	}{
		{"low power", 1 << 1, 0, "low_power", "", true},
		{"power up", 2 << 1, 0, "power_up", "", false},
		{"ready, fault cause left over", 3<<1 | 1, 2, "ready", "", false}, // a stale cause
		{"fault with cause", 5 << 1, 1, "fault", "tec_runaway", false},
		{"fault with unknown cause", 5 << 1, 9, "fault", "0x09", false},
		{"fault without cause", 5 << 1, 0, "fault", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := decodeModule(t, d.changed(a0, 3, c.state).changed(a0, 41, c.cause))
			if m.State != c.want || m.Fault != c.fault || *m.LowPower != c.low {
				t.Errorf("%#x, %d: %q, %q, %v", c.state, c.cause, m.State, m.Fault, *m.LowPower)
			}
		})
	}
	if m := decodeModule(t, d.changed(a0, 3, 0)); m.State != "" || m.LowPower != nil {
		t.Errorf("a state that is reserved: %q, %v", m.State, m.LowPower)
	}
	if m := decodeModule(t, load(t, "qsfp28-sr4").changed(a0, 93, 3)); m.LowPower == nil || !*m.LowPower {
		t.Error("a QSFP in software-controlled low power mode")
	}
}

func TestMedia(t *testing.T) {
	qsfp, osfp, sfp := load(t, "qsfp28-sr4"), load(t, "osfp-2xdr4"), load(t, "sfp28-sr")
	for _, c := range []struct {
		name string
		d    module
		want Media
	}{
		{"AOC by its specification", qsfp.changed(page0, 192, 0x18), ActiveOptical},
		{"AOC by its connector", qsfp.changed(page0, 192, 0).changed(page0, 130, 0x23), ActiveOptical},
		{"40GBASE-LR4", qsfp.changed(page0, 192, 0).changed(page0, 131, 0x02), SingleMode},
		{"40GBASE-SR4", qsfp.changed(page0, 192, 0).changed(page0, 131, 0x04), MultiMode},
		{"a reach in km", qsfp.changed(page0, 192, 0).changed(page0, 142, 10), SingleMode},
		{"active copper", qsfp.changed(page0, 147, 0xC0), ActiveCopper},
		{"AEC", osfp.changed(a0, 85, 4).changed(page0, 212, 0x0D), ActiveCopper},
		{"AOC", osfp.changed(a0, 85, 4).changed(page0, 212, 0), ActiveOptical},
		{"linear active copper", osfp.changed(a0, 85, 3).changed(page0, 212, 0x0F), ActiveCopper},
		{"passive copper", osfp.changed(a0, 85, 3).changed(page0, 212, 0x0B), PassiveCopper},
		{"unknown media", osfp.changed(a0, 85, 0), MediaUnknown},
		{"SFP DAC", sfp.changed(a0, 8, 0x04), PassiveCopper},
		{"SFP ACC", sfp.changed(a0, 8, 0x08), ActiveCopper},
		{"SFP AOC", sfp.changed(a0, 8, 0x08).changed(a0, 36, 0x01), ActiveOptical},
		{"1000BASE-T", sfp.changed(a0, 6, 0x08).changed(a0, 36, 0), TwistedPair},
		{"10GBASE-SR", sfp.changed(a0, 3, 0x10).changed(a0, 36, 0), MultiMode},
		{"by its reach", sfp.changed(a0, 14, 10).changed(a0, 36, 0), SingleMode},
	} {
		t.Run(c.name, func(t *testing.T) {
			if m := decodeModule(t, c.d); m.Media != c.want {
				t.Errorf("%q", m.Media)
			}
		})
	}
}

// Electrical media report no power, and passive copper has no lane readings.
func TestCopperHasNoLight(t *testing.T) {
	osfp, sfp, qsfp := load(t, "osfp-2xdr4"), load(t, "sfp28-sr"), load(t, "qsfp28-sr4")
	for _, c := range []struct {
		name  string
		d     module
		lanes int
	}{
		{"passive copper that advertises lane monitors", osfp.changed(a0, 85, 3).changed(page0, 212, 0x0B), 0},
		{"an AEC", osfp.changed(a0, 85, 4).changed(page0, 212, 0x0D), 8},
		{"an SFP ACC", sfp.changed(a0, 8, 0x08), 1},
		{"a QSFP ACC", qsfp.changed(page0, 147, 0xC0), 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := decodeModule(t, c.d)
			if len(m.Lanes) != c.lanes || m.Temperature == nil || m.Thresholds.RxPower != (Levels{}) || m.Garbled != nil {
				t.Errorf("%+v", m)
			}
			for _, l := range m.Lanes {
				if l.RxPower != nil || l.TxPower != nil {
					t.Errorf("%+v", l)
				}
			}
		})
	}
}

// All ones is not a power reading, and the lane is reported.
func TestGarbledLight(t *testing.T) {
	osfp, sfp, qsfp := load(t, "osfp-2xdr4"), load(t, "sfp28-sr"), load(t, "qsfp28-sr4")
	for _, c := range []struct {
		name string
		d    module
		want []string
	}{
		{"OSFP", osfp.changed(page11, 154, 0xFF, 0xFF).changed(page11, 190, 0xFF, 0xFF), []string{"tx_power of lane 1", "rx_power of lane 3"}},
		{"OSFP that is starting", osfp.changed(a0, 3, 4).changed(page11, 190, 0xFF, 0xFF), nil},
		{"QSFP28", qsfp.changed(a0, 40, 0xFF, 0xFF), []string{"rx_power of lane 4"}},
		{"SFP28", sfp.changed(a2half, 104, 0xFF, 0xFF), []string{"rx_power of lane 1"}},
		{"nothing is wrong", osfp, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if m := decodeModule(t, c.d); !slices.Equal(m.Garbled, c.want) {
				t.Errorf("%q", m.Garbled)
			}
		})
	}
}

func TestFormFactors(t *testing.T) {
	qsfp, sfp, cmis := load(t, "qsfp28-sr4"), load(t, "sfp28-sr"), load(t, "qsfp112-dr4")
	for want, d := range map[string]module{
		"SFP":     sfp.changed(a0, 12, 13),
		"SFP+":    sfp.changed(a0, 12, 103),
		"SFP56":   sfp.changed(a0, 66, 106),
		"SFP112":  sfp.changed(a0, 66, 212),
		"QSFP":    qsfp.changed(a0, 0, 0x0C),
		"QSFP+":   qsfp.changed(a0, 0, 0x0D),
		"QSFP56":  qsfp.changed(page0, 192, 0x40),
		"QSFP112": qsfp.changed(page0, 222, 212),
		"DSFP":    cmis.changed(a0, 0, 0x1B),
		"SFP-DD":  cmis.changed(a0, 0, 0x1A),
		"unknown": cmis.changed(a0, 0, 0xEE),
	} {
		t.Run(want, func(t *testing.T) {
			if m := decodeModule(t, d); m.FormFactor != want || m.Unknown != (want == "unknown" || want == "SFP-DD") {
				t.Errorf("%q, want %q", m.FormFactor, want)
			}
		})
	}
	if m := decodeModule(t, load(t, "unknown").changed(page0, 222, 1)); m.Vendor != "" {
		t.Errorf("an identity that its checksum does not vouch for: %q", m.Vendor)
	}
}

func TestStrings(t *testing.T) {
	for in, want := range map[string]string{
		"Mellanox        ": "Mellanox", "\x00\x00": "", "\xff\xff": "", " A\x00B\x7f\n ": "AB", "a b": "a b",
	} {
		if got := text([]byte(in), true); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestPages(t *testing.T) {
	p := &Pages{}
	whole := upper(0, 1, 128).run(128)
	p.Put(whole, make([]byte, 48)) // what a driver returns at once
	rest, ok := p.open(whole)
	if want := upper(0, 1, 176).run(80); p.Has(whole) || !p.Has(whole.run(48)) || !ok || rest != want {
		t.Errorf("a short answer leaves %+v", rest)
	}
	p.Put(whole, make([]byte, 128))
	if !p.Has(whole) {
		t.Error("the rest did not come")
	}
	p.Refuse(whole)
	if _, ok := p.open(whole); p.Has(whole.run(1)) || ok {
		t.Error("what was refused is still there")
	}
	for _, r := range []Ref{
		{},
		{Address: AddressA0},
		{Address: 0x52, Length: 1},
		{Address: AddressA0, Offset: 127, Length: 2},
		{Address: AddressA0, Offset: 255, Length: 2},
		{Address: AddressA0, Page: 1, Length: 1},
		{Address: AddressA0, Bank: 1, Length: 1},
		{Address: AddressA0, Offset: 128, Length: 129},
	} {
		p.Put(r, make([]byte, 256))
		if r.Valid() || p.Has(r) {
			t.Errorf("%+v is taken", r)
		}
	}
}

func TestADriverThatGivesLittleAtATime(t *testing.T) {
	d := load(t, "osfp-2xdr4")
	p := &Pages{}
	for n := 0; ; n++ {
		static, _ := Plan(p)
		if len(static) == 0 {
			break
		}
		if n > 100 {
			t.Fatal("the plan does not end")
		}
		b := d.answer(static[0])
		p.Put(static[0], b[:min(len(b), 32)])
	}
	if m := Decode(p); m.SerialNumber != "MT2238FT00123" || m.BadChecksums != nil ||
		m.Thresholds.RxPower.LowWarning == nil {
		t.Errorf("%s", written(m))
	}
}

// FuzzDecode stores arbitrary bytes in all places of a plan.
func FuzzDecode(f *testing.F) {
	for _, name := range names(f) {
		var seed []byte
		d := load(f, name)
		for _, b := range []block{a0, page0, page1, page2, page3, page11, a2half} {
			h := d.halves[b]
			if h == nil {
				h = &[half]byte{}
			}
			seed = append(seed, h[:]...)
		}
		f.Add(seed)
	}
	f.Add([]byte{0x18, 0xFF})
	f.Fuzz(func(t *testing.T, data []byte) {
		d := module{halves: map[block]*[half]byte{}}
		order := []block{a0, page0, page1, page2, page3, page11, a2half}
		for bank := range uint8(4) {
			order = append(order, block{address: AddressA0, bank: bank, page: 0x11, upper: true})
		}
		for _, b := range order {
			if len(data) == 0 {
				break
			}
			h := &[half]byte{}
			data = data[copy(h[:], data):]
			d.halves[b] = h
		}
		p, each := d.read(t)
		if each > 500 {
			t.Fatalf("%d bytes each time", each)
		}
		check(t, Decode(p))
	})
}

// check checks the invariants of any module.
func check(t *testing.T, m Module) {
	t.Helper()
	if m.Temperature != nil && !(*m.Temperature >= minCelsius && *m.Temperature <= maxCelsius) ||
		m.Voltage != nil && !(*m.Voltage > 0 && *m.Voltage < 6.56) {
		t.Fatalf("%s", written(m))
	}
	if len(m.Lanes) > 32 || len(m.HostLanes) > 32 || len(m.DataPaths) > 32 || len(m.Applications) > maxApplications {
		t.Fatalf("%s", written(m))
	}
	for _, l := range m.Lanes {
		for _, v := range []*float64{l.RxPower, l.TxPower} {
			if v != nil && (!(*v >= dark) || math.IsInf(*v, 0)) {
				t.Fatalf("%s", written(m))
			}
		}
		if l.Bias != nil && (!(*l.Bias >= 0) || math.IsInf(*l.Bias, 0)) {
			t.Fatalf("%s", written(m))
		}
	}
	for _, l := range []Levels{
		m.Thresholds.Temperature, m.Thresholds.Voltage, m.Thresholds.RxPower, m.Thresholds.TxPower, m.Thresholds.Bias,
	} {
		if l.HighAlarm != nil && l.LowAlarm != nil && *l.HighAlarm <= *l.LowAlarm ||
			l.HighWarning != nil && l.LowWarning != nil && *l.HighWarning <= *l.LowWarning {
			t.Fatalf("%s", written(m))
		}
	}
	for _, s := range []string{m.Vendor, m.PartNumber, m.SerialNumber, m.DateCode, m.VendorRevision} {
		if s != text([]byte(s), true) {
			t.Fatalf("%q", s)
		}
	}
}

func TestPassed(t *testing.T) {
	all := Levels{HighAlarm: new(75.0), LowAlarm: new(-5.0), HighWarning: new(70.0), LowWarning: new(0.0)}
	for _, c := range []struct {
		name    string
		levels  Levels
		reading *float64
		want    Level
	}{
		{"above high alarm", all, new(75.1), HighAlarm},
		{"at high alarm", all, new(75.0), HighWarning},
		{"at high warning", all, new(70.0), ""},
		{"at low warning", all, new(0.0), ""},
		{"below low warning", all, new(-0.1), LowWarning},
		{"below low alarm", all, new(-5.1), LowAlarm},
		{"no reading", all, nil, ""},
		{"high warning only", Levels{HighWarning: new(70.0)}, new(80.0), HighWarning},
		{"no levels", Levels{}, new(-40.0), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.levels.Passed(c.reading); got != c.want {
				t.Errorf("%+v: %q, want %q", c, got, c.want)
			}
		})
	}
}
