package transceiver

const (
	sff8636Flat     = 1 << 2 // 00h:2 (SFF-8636, Status Indicators)
	sff8636NotReady = 1 << 0
	sff8636Average  = 1 << 3 // 00h:220 (Diagnostic Monitoring Type)
	sff8636TxPower  = 1 << 2
	sff8636Lanes    = 4
)

var sff8636Sums = []sum{
	sumOf(upper(0, 0, 128), 190, 191, "00h:191"),
	sumOf(upper(0, 0, 192), 222, 223, "00h:223"),
}

// decodeSFF8636 decodes QSFP modules (SFF-8636 Rev 2.11; SFF-8436 has the same layout).
func decodeSFF8636(p *Pages, m *Module) {
	sff8636Identity(p, m)
	m.BadChecksums = p.badSums(sff8636Sums)
	connector, _ := p.byteAt(upper(0, 0, 130))
	m.Connector = connectors[connector]
	compliance, _ := p.byteAt(upper(0, 0, 192))
	m.Compliance = specifications[compliance].name
	m.Media = sff8636MediaOf(p, compliance, connector)
	m.FormFactor = sff8636FormFactor(p, m, compliance)
	m.FlatMemory = p.bit(lower(2), sff8636Flat)
	sff8636Lengths(p, m)
	sff8636Power(p, m)
	if m.Media != PassiveCopper && m.Media != MediaUnknown {
		sff8636Monitors(p, m)
	}
}

func sff8636Identity(p *Pages, m *Module) {
	at := upper(0, 0, 148)
	m.Vendor, m.OUI = p.text(at.run(16)), oui(p.read(at.at(165).run(3)))
	m.PartNumber, m.VendorRevision = p.text(at.at(168).run(16)), p.text(at.at(184).run(2))
	m.SerialNumber, m.DateCode = p.text(at.at(196).run(16)), p.text(at.at(212).run(8))
}

// sff8636FormFactor distinguishes QSFP56 and QSFP112 from QSFP28, whose identifier they may have, by compliance code
// and nominal rate per lane: 00h:140 in 100 MBd, or if that is at its maximum 00h:222 in 250 MBd.
func sff8636FormFactor(p *Pages, m *Module, compliance uint8) string {
	if m.Identifier != 0x11 {
		return formFactors[m.Identifier]
	}
	switch mbd := p.nominalRate(upper(0, 0, 140), upper(0, 0, 222)); {
	case compliance == 0x3F || mbd > 50000:
		return "QSFP112"
	case compliance >= 0x30 && compliance <= 0x33 || compliance >= 0x40 && compliance <= 0x46 ||
		mbd > 26000 && mbd < 30000:
		return "QSFP56"
	}
	return "QSFP28"
}

// sff8636Media decodes the Device Technology, 00h:147 bits 7–4.
func sff8636Media(tech uint8) Media {
	switch tech >> 4 {
	case 0xA, 0xB:
		return PassiveCopper
	case 0xC, 0xD, 0xE, 0xF:
		return ActiveCopper
	}
	return MediaUnknown
}

func sff8636MediaOf(p *Pages, compliance, connector uint8) Media {
	tech, ok := p.byteAt(upper(0, 0, 147))
	if !ok {
		return MediaUnknown
	}
	if m := sff8636Media(tech); m != MediaUnknown {
		return m
	}
	if m := specifications[compliance].media; m == MultiMode || m == SingleMode || m == ActiveOptical {
		return m
	}
	if connector == noConnector {
		return ActiveOptical
	}
	// 10/40G/100G Ethernet Compliance (00h:131): bits 6 LRM, 5 LR, 4 SR, 2 40GBASE-SR4, 1 40GBASE-LR4, 0 40G active cable.
	ethernet, _ := p.byteAt(upper(0, 0, 131))
	lengths, _ := p.read(upper(0, 0, 142).run(5))
	switch {
	case ethernet&0x22 != 0:
		return SingleMode
	case ethernet&0x54 != 0:
		return MultiMode
	case lengths != nil && lengths[0] != 0:
		return SingleMode
	case tech>>4 == 0: // 850 nm VCSEL
		return MultiMode
	}
	return SingleMode // other lasers
}

// sff8636Lengths decodes 00h:142–146: single-mode in km, OM3 in 2 m, OM2 and OM1 in m, then a cable in m or OM4 in 2 m.
func sff8636Lengths(p *Pages, m *Module) {
	b, ok := p.read(upper(0, 0, 142).run(5))
	if !ok {
		return
	}
	switch m.Media {
	case PassiveCopper, ActiveCopper, ActiveOptical:
		m.CableLength = positive(float64(b[4]))
	case SingleMode:
		m.Reach = positive(float64(b[0]) * 1000)
	case MultiMode:
		m.Reach = positive(max(2*float64(b[1]), float64(b[2]), float64(b[3]), 2*float64(b[4])))
	}
}

// sff8636Classes are the power classes in watts (Extended Identifier): 00h:129 bits 7–6 are classes 1 to 4, bits 1–0
// are 5 to 7.
var sff8636Classes = []float64{1.5, 2, 2.5, 3.5, 4, 4.5, 5}

func sff8636Power(p *Pages, m *Module) {
	b, ok := p.byteAt(upper(0, 0, 129))
	if !ok {
		return
	}
	class := uint64(b>>6) + 1
	if high := uint64(b & 3); high != 0 {
		class = high + 4
	}
	m.MaxPower = new(sff8636Classes[class-1])
	if b&(1<<5) != 0 { // class 8: 00h:107 in 0.1 W
		class, m.MaxPower = 8, nil
		if w, ok := p.byteAt(lower(107)); ok {
			m.MaxPower = positive(float64(w) / 10)
		}
	}
	m.PowerClass = &class
	// 00h:93: with the software override, software decides instead of the pin, which is not readable.
	if c, ok := p.byteAt(lower(93)); ok && c&1 != 0 {
		m.LowPower = new(c&2 != 0)
	}
}

// sff8636Monitors decodes the lower memory. No bit announces monitors: without temperature and voltage there are none.
func sff8636Monitors(p *Pages, m *Module) {
	general, ok := p.words(lower(22), 3) // temperature, reserved, voltage
	if ok {
		m.DOM = !allSame([]uint16{general[0], general[2]})
	}
	if !m.DOM {
		return
	}
	kind, _ := p.byteAt(upper(0, 0, 220))
	m.RxPowerKind = powerKind(kind&sff8636Average != 0)
	at := upper(0, 3, 128) // Free Side Device and Channel Thresholds
	m.Thresholds = internalCalibration(1).thresholds(p, at, at.at(144), at.at(184), at.at(192), at.at(176))
	if wait := p.bit(lower(2), sff8636NotReady); wait != nil && *wait {
		m.NotReady = true
		return
	}
	m.Temperature, m.Voltage = inCelsius(rawCelsius(general[0])), rawVolts(general[2])
	m.Lanes = sff8636LaneReadings(p, m, kind)
}

func sff8636LaneReadings(p *Pages, m *Module, kind uint8) (lanes []Lane) {
	rx, ok1 := p.words(lower(34), sff8636Lanes)
	bias, ok2 := p.words(lower(42), sff8636Lanes)
	tx, ok3 := p.words(lower(50), sff8636Lanes)
	if !ok1 || !ok2 || !ok3 {
		return nil
	}
	missing, _ := p.byteAt(lower(113)) // bits 3–0: lanes not implemented at the near end
	if missing &= 0x0F; missing == 0x0F {
		missing = 0
	}
	// A cleared bit for the transmitted power is ignored if there are readings: some vendors do not set it.
	hasTx := kind&sff8636TxPower != 0 || !allSame(tx)
	canDisable, _ := p.byteAt(upper(0, 0, 195)) // bit 4
	for i := range sff8636Lanes {
		if missing&(1<<i) != 0 {
			continue
		}
		l := Lane{Number: i + 1, RxPower: m.light(rawPower, rx[i], rxPower, i+1), Bias: rawBias(bias[i], 1)}
		if canDisable&(1<<4) != 0 {
			l.TxDisabled = p.bit(lower(86), 1<<i)
		}
		if hasTx {
			l.TxPower = m.light(rawPower, tx[i], txPower, i+1)
		}
		lanes = append(lanes, l)
	}
	return lanes
}
