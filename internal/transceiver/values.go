package transceiver

import (
	"fmt"
	"math"
	"strings"

	"rdma_exporter/internal/words"
)

// Raw numbers per unit, the same in all three standards.
const (
	bitsPerCelsius = 256
	bitsPerVolt    = 10_000  // 100 µV
	bitsPerAmpere  = 500_000 // 2 µA, times the multiplier of CMIS
	bitsPerMW      = 10_000  // 0.1 µW
)

// Plausible case temperatures: others are errors of the sensor or the bus.
const (
	minCelsius = -40.0
	maxCelsius = 150.0
)

// dark is the reported value for no optical power, in dBm: that of the smallest number, 0.1 µW.
const dark = -40.0

// text cleans a string: printable ASCII without surrounding blanks.
func text(b []byte, ok bool) string {
	if !ok {
		return ""
	}
	return strings.TrimSpace(words.Replace(string(b), func(r rune) bool { return r < ' ' || r > '~' }, -1))
}

func (p *Pages) text(r Ref) string { return text(p.read(r)) }

// oui formats a vendor's OUI; empty for 0 or all ones.
func oui(b []byte, ok bool) string {
	if !ok || string(b) == "\x00\x00\x00" || string(b) == "\xff\xff\xff" {
		return ""
	}
	return fmt.Sprintf("%02x:%02x:%02x", b[0], b[1], b[2])
}

// inCelsius returns a temperature; nil if out of range.
func inCelsius(v float64) *float64 {
	if v < minCelsius || v > maxCelsius || math.IsNaN(v) {
		return nil
	}
	return &v
}

// positive returns a reading that has to be above 0, such as a supply voltage; nil otherwise.
func positive(v float64) *float64 {
	if v <= 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// dBm converts mW; powers below the smallest number are dark.
func dBm(mW float64) *float64 {
	switch {
	case math.IsNaN(mW) || math.IsInf(mW, 0):
		return nil
	case mW <= 0:
		return new(dark)
	}
	return new(max(dark, 10*math.Log10(mW)))
}

// Readings in Module.Garbled.
const (
	rxPower = "rx_power"
	txPower = "tx_power"
)

// All ones is the reading of a missing value.
const notThere = math.MaxUint16

func rawVolts(raw uint16) *float64 {
	if raw == notThere {
		return nil
	}
	return positive(float64(raw) / bitsPerVolt)
}

func rawPower(raw uint16) *float64 {
	if raw == notThere {
		return nil
	}
	return dBm(float64(raw) / bitsPerMW)
}

// light returns the optical power of a lane. Electrical media have none. All ones, and values out of range after
// calibration, are invalid.
func (m *Module) light(of scale, raw uint16, what string, lane int) *float64 {
	if m.Media.electrical() {
		return nil
	}
	v := of(raw)
	if v == nil && (m.State == "" || m.State == moduleStates[moduleReady]) {
		m.Garbled = append(m.Garbled, fmt.Sprintf("%s of lane %d", what, lane))
	}
	return v
}

func rawBias(raw uint16, multiplier float64) *float64 {
	if raw == notThere {
		return nil
	}
	return new(float64(raw) * multiplier / bitsPerAmpere)
}

func rawCelsius(raw uint16) float64 { return float64(int16(raw)) / bitsPerCelsius }

// scale converts a raw number to a value.
type scale func(raw uint16) *float64

// calibration converts raw numbers to values.
type calibration struct {
	celsius                          func(uint16) float64
	volts, amperes, txPower, rxPower scale
}

// internalCalibration returns the calibration of numbers that are in the units of the standards. CMIS has a multiplier
// for the bias.
func internalCalibration(multiplier float64) calibration {
	return calibration{
		celsius: rawCelsius, volts: rawVolts, amperes: func(raw uint16) *float64 { return rawBias(raw, multiplier) },
		txPower: rawPower, rxPower: rawPower,
	}
}

// thresholds decodes the thresholds of each reading.
func (c calibration) thresholds(p *Pages, celsius, volts, amperes, tx, rx Ref) Thresholds {
	return Thresholds{
		Temperature: p.thresholds(celsius, func(raw uint16) *float64 { return new(c.celsius(raw)) }, false),
		Voltage:     p.thresholds(volts, c.volts, false), Bias: p.thresholds(amperes, c.amperes, false),
		TxPower: p.thresholds(tx, c.txPower, true), RxPower: p.thresholds(rx, c.rxPower, true),
	}
}

func powerKind(average bool) PowerKind {
	if average {
		return AveragePower
	}
	return OMA
}

// thresholds decodes four numbers: high alarm, low alarm, high warning, low warning. Invalid ones are left out: all of
// them 0 or all ones, a high one not above its low one, a high one of 0 (also 0 °C) or less, a low power of 0, which
// nothing is below. Low temperatures below any reading are harmless.
func (p *Pages) thresholds(at Ref, of scale, power bool) (l Levels) {
	raw, ok := p.words(at, 4)
	if !ok {
		return l
	}
	l.HighAlarm, l.LowAlarm = pairOf(raw[0], raw[1], of, power)
	l.HighWarning, l.LowWarning = pairOf(raw[2], raw[3], of, power)
	return l
}

func pairOf(rawHigh, rawLow uint16, of scale, power bool) (high, low *float64) {
	if rawHigh == rawLow {
		return nil, nil
	}
	high, low = of(rawHigh), of(rawLow)
	if high != nil && low != nil && *high <= *low {
		return nil, nil
	}
	if high != nil && (rawHigh == 0 || !power && *high <= 0 || *high > maxCelsius) {
		high = nil
	}
	if power && rawLow == 0 {
		low = nil
	}
	return high, low
}

// Level is a threshold that a reading may exceed.
type Level string

const (
	HighAlarm   Level = "high_alarm"
	LowAlarm    Level = "low_alarm"
	HighWarning Level = "high_warning"
	LowWarning  Level = "low_warning"
)

// Passed returns the most severe threshold that a reading exceeds; empty if none, or without a reading.
func (l *Levels) Passed(v *float64) Level {
	switch {
	case v == nil:
	case l.HighAlarm != nil && *v > *l.HighAlarm:
		return HighAlarm
	case l.LowAlarm != nil && *v < *l.LowAlarm:
		return LowAlarm
	case l.HighWarning != nil && *v > *l.HighWarning:
		return HighWarning
	case l.LowWarning != nil && *v < *l.LowWarning:
		return LowWarning
	}
	return ""
}
