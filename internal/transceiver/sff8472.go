package transceiver

import "math"

// a2 identifies a byte of A2h.
func a2(offset uint8) Ref { return Ref{Address: AddressA2, Offset: offset, Length: 1} }

// Bits of the diagnostic monitoring type (SFF-8472, table 8-5, A0h:92).
const (
	sff8472DOM           = 1 << 6
	sff8472External      = 1 << 4
	sff8472Average       = 1 << 3
	sff8472AddressChange = 1 << 2
)

// Bits of the cable technology (SFF-8472, table 5-3, A0h:8).
const (
	sff8472ActiveCable  = 1 << 3
	sff8472PassiveCable = 1 << 2
)

var sff8472Sums = []sum{
	sumOf(lower(0), 62, 63, "A0h:63"),
	sumOf(lower(64), 94, 95, "A0h:95"),
	sumOf(a2(0), 94, 95, "A2h:95"),
}

// sff8472HasDOM reports whether A2h exists and is readable.
func sff8472HasDOM(p *Pages) bool {
	b, ok := p.byteAt(lower(92))
	return ok && b&sff8472DOM != 0 && b&sff8472AddressChange == 0
}

// decodeSFF8472 decodes SFP modules (SFF-8472 Rev 12.4).
func decodeSFF8472(p *Pages, m *Module) {
	m.Vendor, m.OUI = p.text(lower(20).run(16)), oui(p.read(lower(37).run(3)))
	m.PartNumber, m.VendorRevision = p.text(lower(40).run(16)), p.text(lower(56).run(4))
	m.SerialNumber, m.DateCode = p.text(lower(68).run(16)), p.text(lower(84).run(8))
	m.BadChecksums = p.badSums(sff8472Sums)
	connector, _ := p.byteAt(lower(2))
	m.Connector = connectors[connector]
	compliance, _ := p.byteAt(lower(36))
	m.Compliance = specifications[compliance].name
	m.Media = sff8472Media(p, compliance, connector)
	m.FormFactor = sff8472FormFactor(p)
	sff8472Lengths(p, m)
	sff8472Power(p, m)
	if sff8472HasDOM(p) && m.Media != PassiveCopper {
		sff8472Monitors(p, m)
	}
}

// nominalRate returns the rate of a lane in MBd: a byte in 100 MBd, or if that is at its maximum another one in 250
// MBd.
func (p *Pages) nominalRate(at, more Ref) int {
	if rate, _ := p.byteAt(at); rate != math.MaxUint8 {
		return int(rate) * 100
	}
	rate, _ := p.byteAt(more)
	return int(rate) * 250
}

// sff8472FormFactor distinguishes the generations of SFP by nominal rate: A0h:12 in 100 MBd, or if that is at its
// maximum A0h:66 in 250 MBd.
func sff8472FormFactor(p *Pages) string {
	switch mbd := p.nominalRate(lower(12), lower(66)); {
	case mbd > 50000:
		return "SFP112"
	case mbd > 26000:
		return "SFP56"
	case mbd >= 24000:
		return "SFP28"
	case mbd >= 8000:
		return "SFP+"
	}
	return "SFP"
}

func sff8472Media(p *Pages, compliance, connector uint8) Media {
	cable, _ := p.byteAt(lower(8))
	switch {
	case cable&sff8472PassiveCable != 0:
		return PassiveCopper
	case cable&sff8472ActiveCable != 0:
		if specifications[compliance].media == ActiveOptical { // A0h:8 marks any active cable
			return ActiveOptical
		}
		return ActiveCopper
	}
	if m := specifications[compliance].media; m != MediaUnknown {
		return m
	}
	ten, _ := p.byteAt(lower(3)) // 10GBASE-ER, LRM, LR, SR: bits 7 to 4
	one, _ := p.byteAt(lower(6)) // 1000BASE-T, CX, LX, SX: bits 3 to 0
	lengths, _ := p.read(lower(14).run(6))
	has := func(i ...int) bool {
		for _, i := range i {
			if lengths != nil && lengths[i] != 0 {
				return true
			}
		}
		return false
	}
	switch {
	case ten&0xA0 != 0 || one&0x02 != 0:
		return SingleMode
	case ten&0x50 != 0 || one&0x01 != 0:
		return MultiMode
	case one&0x08 != 0 || connector == 0x22:
		return TwistedPair
	case has(0, 1):
		return SingleMode
	case has(2, 3, 5):
		return MultiMode
	}
	return MediaUnknown
}

// sff8472Lengths decodes A0h:14–19: single-mode in km and in 100 m, OM2, OM1, then copper in m or OM4, and OM3, in 10
// m.
func sff8472Lengths(p *Pages, m *Module) {
	b, ok := p.read(lower(14).run(6))
	if !ok {
		return
	}
	switch m.Media {
	case PassiveCopper, ActiveCopper, ActiveOptical:
		m.CableLength = positive(float64(b[4]))
	case SingleMode:
		m.Reach = positive(max(float64(b[0])*1000, float64(b[1])*100))
	case MultiMode:
		m.Reach = positive(float64(max(b[2], b[3], b[4], b[5])) * 10)
	}
}

// sff8472Power decodes the power level (SFF-8472, table 8-3, A0h:64): bits 6, 5 and 1, and A0h:66 in 0.1 W for the
// highest.
func sff8472Power(p *Pages, m *Module) {
	b, ok := p.byteAt(lower(64))
	if !ok {
		return
	}
	switch {
	case b&(1<<6) != 0:
		m.PowerClass = new(uint64(4))
		if w, ok := p.byteAt(lower(66)); ok {
			m.MaxPower = positive(float64(w) / 10)
		}
	case b&(1<<5) != 0:
		m.PowerClass, m.MaxPower = new(uint64(3)), new(2.0)
	case b&(1<<1) != 0:
		m.PowerClass, m.MaxPower = new(uint64(2)), new(1.5)
	default:
		m.PowerClass, m.MaxPower = new(uint64(1)), new(1.0)
	}
}

// sff8472Monitors decodes A2h.
func sff8472Monitors(p *Pages, m *Module) {
	kind, _ := p.byteAt(lower(92))
	raw, ok := p.words(a2(96), 5)
	if ok && allSame(raw) { // A2h does not answer although A0h announces it
		return
	}
	m.DOM, m.ExternalCal = true, kind&sff8472External != 0
	c := internalCalibration(1)
	if m.ExternalCal {
		var known bool
		if c, known = externalCalibration(p); !known {
			return // raw numbers are meaningless without the calibration constants
		}
	}
	m.RxPowerKind = powerKind(kind&sff8472Average != 0)
	m.Thresholds = c.thresholds(p, a2(0), a2(8), a2(16), a2(24), a2(32)) // table 9-5
	lane := Lane{
		Number: 1, TxDisabled: sff8472Pin(p, 1<<6, 1<<7), TxFault: sff8472Pin(p, 1<<5, 1<<2),
		RxLOS: sff8472Pin(p, 1<<4, 1<<1),
	}
	wait := p.bit(a2(110), 1) // Data_Ready_Bar
	if m.NotReady = wait != nil && *wait; ok && !m.NotReady {
		m.Temperature, m.Voltage = inCelsius(c.celsius(raw[0])), c.volts(raw[1])
		lane.Bias = c.amperes(raw[2])
		lane.TxPower, lane.RxPower = m.light(c.txPower, raw[3], txPower, lane.Number),
			m.light(c.rxPower, raw[4], rxPower, lane.Number)
		m.Lanes = []Lane{lane}
	}
}

// sff8472Pin returns the state of a pin in A2h:110, if supported according to A0h:93 (SFF-8472, table 8-6).
func sff8472Pin(p *Pages, supported, pin byte) *bool {
	if b, ok := p.byteAt(lower(93)); !ok || b&supported == 0 {
		return nil
	}
	return p.bit(a2(110), pin)
}

// allSame reports whether all are 0, or all are all ones.
func allSame(raw []uint16) bool {
	for _, r := range raw {
		if r != raw[0] || r != 0 && r != notThere {
			return false
		}
	}
	return true
}

// externalCalibration decodes A2h:56–91 (SFF-8472, table 9-6): value = slope × raw + offset in the units of the raw
// number, and for the received power a polynomial. Thresholds are calibrated like readings, as in the kernel
// (drivers/net/phy/sfp.c).
func externalCalibration(p *Pages) (c calibration, ok bool) {
	if !p.Has(a2(56).run(36)) {
		return c, false
	}
	var poly [5]float64 // from Rx_PWR(4) to Rx_PWR(0)
	for i := range poly {
		high, low := p.word(a2(uint8(56+4*i))), p.word(a2(uint8(58+4*i)))
		poly[i] = float64(math.Float32frombits(uint32(high)<<16 | uint32(low)))
	}
	linear := func(at uint8) func(float64) float64 {
		slope, offset := p.word(a2(at)), p.word(a2(at+2))
		return func(raw float64) float64 { return raw*float64(slope)/256 + float64(int16(offset)) }
	}
	bias, tx, temperature, voltage := linear(76), linear(80), linear(84), linear(88)
	return calibration{
		celsius: func(raw uint16) float64 { return temperature(float64(int16(raw))) / bitsPerCelsius },
		volts:   calibrated(voltage, func(v float64) *float64 { return positive(v / bitsPerVolt) }),
		amperes: calibrated(bias, func(v float64) *float64 { return new(max(0, v/bitsPerAmpere)) }),
		txPower: calibrated(tx, func(v float64) *float64 { return dBm(v / bitsPerMW) }),
		rxPower: calibrated(func(raw float64) (v float64) {
			for _, k := range poly {
				v = v*raw + k
			}
			return v
		}, func(v float64) *float64 { return dBm(v / bitsPerMW) }),
	}, true
}

// calibrated rejects missing values, and results beyond the 16-bit range of the unit (SFF-8472, 9.6: 6.55 V, 131 mA,
// 6.5535 mW): these are invalid.
func calibrated(with func(float64) float64, value func(float64) *float64) scale {
	return func(raw uint16) *float64 {
		v := with(float64(raw))
		if raw == notThere || !(v <= math.MaxUint16) {
			return nil
		}
		return value(v)
	}
}
