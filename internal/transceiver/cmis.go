package transceiver

import (
	"cmp"
	"fmt"
	"math/bits"
)

const (
	cmisFlat         = 1 << 7 // 00h:2 (CMIS 5.2, table 8-5)
	cmisLaneMonitors = 0x07   // 01h:160 (Supported Monitors Advertisement): bias, transmitted, received power
	cmisBankLanes    = 8
	maxApplications  = 15
)

var cmisSums = []sum{
	sumOf(upper(0, 0, 128), 221, 222, "00h:222"),
	sumOf(upper(0, 1, 130), 254, 255, "01h:255"),
	sumOf(upper(0, 2, 128), 254, 255, "02h:255"),
}

// cmisBanks returns the number of banks of eight lanes: 01h:142, bits 1–0 (CMIS 5.2, table 8-41).
func cmisBanks(p *Pages) int {
	b, ok := p.byteAt(upper(0, 1, 142))
	if !ok {
		return 0
	}
	return [4]int{1, 2, 4, 1}[b&3]
}

// decodeCMIS decodes modules of the Common Management Interface Specification, 3.0 to 5.3.
func decodeCMIS(p *Pages, m *Module) {
	cmisIdentity(p, m)
	m.BadChecksums = p.badSums(cmisSums)
	if b, ok := p.byteAt(lower(1)); ok {
		m.Revision = fmt.Sprintf("%d.%d", b>>4, b&15)
	}
	if b, ok := p.read(lower(39).run(2)); ok && b[0]|b[1] != 0 && b[0]&b[1] != 0xFF {
		m.Firmware = fmt.Sprintf("%d.%d", b[0], b[1])
	}
	connector, _ := p.byteAt(upper(0, 0, 203))
	m.Connector = connectors[connector]
	m.FlatMemory = p.bit(lower(2), cmisFlat)
	mediaType, _ := p.byteAt(lower(85))
	m.Media = cmisMedia(p, mediaType)
	m.Applications = cmisApplications(p, mediaType)
	m.FormFactor = cmisFormFactor(m)
	cmisLength(p, m)
	cmisPower(p, m)
	if m.FlatMemory != nil && !*m.FlatMemory {
		cmisState(p, m)
		cmisHostLanes(p, m)
		m.DataPaths = cmisDataPaths(m)
		cmisMonitors(p, m)
	}
}

// cmisIdentity decodes page 00h (CMIS 5.2, table 8-23).
func cmisIdentity(p *Pages, m *Module) {
	at := upper(0, 0, 129)
	m.Vendor, m.OUI = p.text(at.run(16)), oui(p.read(at.at(145).run(3)))
	m.PartNumber, m.VendorRevision = p.text(at.at(148).run(16)), p.text(at.at(164).run(2))
	m.SerialNumber, m.DateCode = p.text(at.at(166).run(16)), p.text(at.at(182).run(8))
}

// qsfpByRate are the form factors of identifier 1Eh, "QSFP+ or later with CMIS", by the fastest host lane in Gb/s.
var qsfpByRate = map[int]string{200: "QSFP224", 100: "QSFP112", 50: "QSFP56", 25: "QSFP28"}

func cmisFormFactor(m *Module) string {
	fastest := 0
	for _, a := range m.Applications {
		fastest = max(fastest, hostInterfaces[a.HostID].rate)
	}
	if m.Identifier != 0x1E {
		return formFactors[m.Identifier]
	}
	return cmp.Or(qsfpByRate[fastest], formFactors[m.Identifier])
}

// cmisMedia decodes the kind of media (00h:85; CMIS 5.2, table 8-18) and the technology (00h:212, Media Interface
// Technology): 0Ah and 0Bh are passive copper, 0Ch to 0Fh active copper.
func cmisMedia(p *Pages, mediaType uint8) Media {
	tech, _ := p.byteAt(upper(0, 0, 212))
	copper := tech >= 0x0A && tech <= 0x0F
	switch {
	case mediaType == mediaTypeMMF:
		return MultiMode
	case mediaType == mediaTypeSMF:
		return SingleMode
	case mediaType == mediaTypeBaseT:
		return TwistedPair
	case copper && tech >= 0x0C, mediaType == mediaTypeActive && copper:
		return ActiveCopper
	case copper, mediaType == mediaTypeCopper:
		return PassiveCopper
	case mediaType == mediaTypeActive:
		return ActiveOptical
	}
	return MediaUnknown
}

// cmisApplications decodes the descriptors in 00h:86–117 and 01h:223–250 (CMIS 5.2, tables 8-20 and 8-53), and their
// possible first media lanes in 01h:176–190 (table 8-52). The first host interface FFh ends the list.
func cmisApplications(p *Pages, mediaType uint8) (out []Application) {
	for n := 1; n <= maxApplications; n++ {
		at := lower(uint8(86 + 4*(n-1)))
		if n > 8 {
			at = upper(0, 1, uint8(223+4*(n-9)))
		}
		d, ok := p.read(at.run(4))
		if !ok || d[0] == 0xFF {
			break
		}
		if d[0] == 0 && d[1] == 0 { // an empty entry, not the end
			continue
		}
		a := Application{
			Number: n, HostID: d[0], MediaID: d[1], HostLanes: int(d[2] >> 4), MediaLanes: int(d[2] & 15), HostOptions: d[3],
			Host: named(hostInterfaces[d[0]].name, d[0]), Media: named(mediaInterfaces[mediaType][d[1]], d[1]),
		}
		a.MediaOptions, _ = p.byteAt(upper(0, 1, uint8(176+n-1)))
		out = append(out, a)
	}
	return out
}

// tens are the multipliers of lengths, by the two highest bits; the last is reserved for single-mode fibre.
var tens = [4]float64{0.1, 1, 10, 100}

// cmisLength decodes the length of a cable (00h:202, Cable Assembly Link Length) in m, or the longest link
// (01h:132–136, Supported Fiber Link Length): single-mode in km, OM5, OM4 and OM3 in 2 m, OM2 in m.
func cmisLength(p *Pages, m *Module) {
	b, _ := p.byteAt(upper(0, 0, 202))
	switch m.Media {
	case PassiveCopper, ActiveCopper, ActiveOptical:
		m.CableLength = positive(float64(b&0x3F) * tens[b>>6])
	case SingleMode:
		if b, ok := p.byteAt(upper(0, 1, 132)); ok && b>>6 < 3 {
			m.Reach = positive(float64(b&0x3F) * tens[b>>6] * 1000)
		}
	case MultiMode:
		if b, ok := p.read(upper(0, 1, 133).run(4)); ok {
			m.Reach = positive(max(2*float64(max(b[0], b[1], b[2])), float64(b[3])))
		}
	}
}

// cmisPower decodes 00h:200 and 201 (Module Power Characteristics). The meaning of a class depends on the form factor,
// so the watts are used.
func cmisPower(p *Pages, m *Module) {
	b, ok := p.read(upper(0, 0, 200).run(2))
	if !ok {
		return
	}
	m.PowerClass = new(uint64(b[0]>>5) + 1)
	m.MaxPower = positive(float64(b[1]) / 4)
}

// cmisState decodes 00h:3 (Global Status Information) and 00h:41 (CMIS 5.2, table 8-16).
func cmisState(p *Pages, m *Module) {
	b, ok := p.byteAt(lower(3))
	if !ok {
		return
	}
	state := b >> 1 & 7
	m.State = moduleStates[state]
	if m.State == "" {
		return
	}
	m.LowPower = new(state == moduleLowPower)
	if cause, ok := p.byteAt(lower(41)); ok && m.State == "fault" && cause != 0 {
		m.Fault = named(faults[cause], cause)
	}
}

// cmisHostLanes decodes, for each bank, the states of the data paths (11h:128–131: four bits per lane, the lower for
// the odd one; CMIS 5.2, table 8-76) and the active control set (11h:206–213: bits 7–4 AppSel, 3–1 data path; table
// 8-86).
func cmisHostLanes(p *Pages, m *Module) {
	for bank := range cmisBanks(p) {
		states, ok := p.read(upper(uint8(bank), 0x11, 128).run(4))
		if !ok {
			continue
		}
		selected, _ := p.read(upper(uint8(bank), 0x11, 206).run(8))
		for i := range cmisBankLanes {
			l := HostLane{Number: bank*cmisBankLanes + i + 1, State: dataPathStates[states[i/2]>>(4*(i%2))&15]}
			if selected != nil {
				l.Application = int(selected[i] >> 4)
				l.path = bank*cmisBankLanes + int(selected[i]>>1&7)
			}
			m.HostLanes = append(m.HostLanes, l)
		}
	}
}

// cmisDataPaths groups host lanes by application and data path. The number of a data path is that of its first lane
// less one.
func cmisDataPaths(m *Module) (out []DataPath) {
	for _, l := range m.HostLanes {
		if l.Application == 0 {
			continue
		}
		if n := len(out); n == 0 || out[n-1].Application != l.Application || out[n-1].path != l.path {
			out = append(out, DataPath{Application: l.Application, path: l.path, Activated: true})
		}
		d := &out[len(out)-1]
		d.HostLanes = append(d.HostLanes, l.Number)
		d.Activated = d.Activated && l.State == dataPathStates[dataPathActivated]
	}
	for i := range out {
		out[i].MediaLanes = m.mediaLanes(out[i])
	}
	return out
}

// mediaLanes returns the media lanes of a data path: if it begins at the k-th possible host lane of its application,
// its media lanes begin at the k-th possible media lane.
func (m *Module) mediaLanes(d DataPath) (out []int) {
	bank, first := d.path/cmisBankLanes, d.path%cmisBankLanes
	for _, a := range m.Applications {
		if a.Number != d.Application || a.HostOptions&(1<<first) == 0 {
			continue
		}
		k := bits.OnesCount8(a.HostOptions & (1<<first - 1))
		start, ok := place(a.MediaOptions, k)
		if a.MediaOptions == 0 && k == 0 { // unknown, as in modules before CMIS 4.0: from the first lane
			start, ok = 0, true
		}
		for i := range a.MediaLanes {
			if n := start + i; ok && n < cmisBankLanes {
				out = append(out, bank*cmisBankLanes+n+1)
			}
		}
	}
	return out
}

// place returns the k-th set bit, from 0.
func place(mask uint8, k int) (int, bool) {
	for i := range 8 {
		if mask&(1<<i) != 0 {
			if k == 0 {
				return i, true
			}
			k--
		}
	}
	return 0, false
}

// cmisMonitors decodes 00h:14–17, page 11h, and page 02h.
func cmisMonitors(p *Pages, m *Module) {
	general, ok := p.words(lower(14), 2)
	if ok && !allSame(general) {
		m.DOM = true
		m.Temperature, m.Voltage = inCelsius(rawCelsius(general[0])), rawVolts(general[1])
	}
	has, _ := p.byteAt(upper(0, 1, 160))
	multiplier := float64(int(1) << min(has>>3&3, 2)) // bits 4–3: 1, 2, 4; 3 is reserved
	at := upper(0, 2, 128)                            // bias thresholds have the multiplier of the readings
	m.Thresholds = internalCalibration(multiplier).thresholds(p, at, at.at(136), at.at(184), at.at(176), at.at(192))
	if has&cmisLaneMonitors == 0 || m.Media == PassiveCopper { // some passive copper advertises monitors
		return
	}
	average, _ := p.byteAt(upper(0, 1, 151))
	m.DOM, m.RxPowerKind = true, powerKind(average&(1<<4) != 0)
	for bank := range cmisBanks(p) {
		m.Lanes = append(m.Lanes, cmisBank(p, m, uint8(bank), has, multiplier)...)
	}
}

// cmisBank decodes the lanes of one bank (11h:154–201, Media Lane-Specific Monitors): transmitted power, bias, received
// power.
func cmisBank(p *Pages, m *Module, bank, has uint8, multiplier float64) (lanes []Lane) {
	readings, ok := p.words(upper(bank, 0x11, 154), 3*cmisBankLanes)
	if !ok {
		return nil
	}
	usable := cmisUsable(p, m, bank)
	for i := range cmisBankLanes {
		if usable&(1<<i) == 0 {
			continue
		}
		l := Lane{Number: int(bank)*cmisBankLanes + i + 1}
		l.Active = m.active(l.Number)
		if has&1 != 0 {
			l.Bias = rawBias(readings[8+i], multiplier)
		}
		if has&2 != 0 {
			l.TxPower = m.light(rawPower, readings[i], txPower, l.Number)
		}
		if has&4 != 0 {
			l.RxPower = m.light(rawPower, readings[16+i], rxPower, l.Number)
		}
		lanes = append(lanes, l)
	}
	return lanes
}

// cmisUsable returns the existing media lanes of a bank: the lanes that an application can use, without lanes marked as
// missing (00h:210, first bank).
func cmisUsable(p *Pages, m *Module, bank uint8) (usable uint8) {
	for _, a := range m.Applications {
		for start := range cmisBankLanes {
			if a.MediaOptions&(1<<start) != 0 {
				usable |= uint8((1<<a.MediaLanes - 1) << start)
			}
		}
	}
	if usable == 0 {
		usable = 0xFF
	}
	if b, ok := p.byteAt(upper(0, 0, 210)); ok && bank == 0 && usable&^b != 0 {
		usable &^= b
	}
	return usable
}

// active reports whether a media lane belongs to an activated data path; nil: unknown.
func (m *Module) active(lane int) *bool {
	if len(m.HostLanes) == 0 {
		return nil
	}
	active := false
	for _, d := range m.DataPaths {
		if d.MediaLanes == nil { // its media lanes are unknown
			return nil
		}
		for _, n := range d.MediaLanes {
			active = active || n == lane && d.Activated
		}
	}
	return &active
}
