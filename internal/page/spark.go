package page

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"rdma_exporter/internal/alerting"
)

// Size of a plot in its own pixels.
const (
	sparkWidth  = 132
	sparkHeight = 26
)

// spark is a plot without axes.
type spark struct {
	Name  string // in words, with the newest and the highest value
	Scale string // the value at the upper edge, or of both edges
	Lines []sparkLine
	Limit int // y of a limit; -1: none
}

type sparkLine struct{ Class, D string }

// curve is a line to draw.
type curve struct {
	class  string // a, b: the lines differ in dashes as well
	points []alerting.Point
}

// plot draws curves between the values low and high; nil where there is nothing to draw.
func (h *History) plot(low, high float64, curves ...curve) []sparkLine {
	var out []sparkLine
	length := h.To.Sub(h.From)
	if length <= 0 || !(high > low) {
		return nil
	}
	for _, c := range curves {
		var b strings.Builder
		var before time.Time
		n := 0
		for _, p := range c.points {
			if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
				continue
			}
			letter := " "
			if n == 0 || p.At.Sub(before) > h.Step*3/2 { // a gap is a gap
				letter = "M"
			}
			x := float64(sparkWidth-2) * float64(p.At.Sub(h.From)) / float64(length)
			fmt.Fprintf(&b, "%s%d %d", letter, 1+int(math.Round(x)), yOf(p.Value, low, high))
			before = p.At
			n++
		}
		if n > 1 {
			out = append(out, sparkLine{c.class, b.String()})
		}
	}
	return out
}

func yOf(v, low, high float64) int {
	share := max(0, min(1, (v-low)/(high-low)))
	return sparkHeight - 1 - int(math.Round(share*(sparkHeight-2)))
}

// extent is the lowest and the highest value.
func extent(curves ...curve) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, c := range curves {
		for _, p := range c.points {
			low, high = min(low, p.Value), max(high, p.Value)
		}
	}
	return low, high
}

// throughput plots what a port transmits and receives, on the scale of its kind.
func (h *History) throughput(k PortKey, s *scale, r *Recent) *spark {
	curves := []curve{{"a", h.Lines[transmit][k]}, {"b", h.Lines[receive][k]}}
	_, high := extent(curves...)
	lines := h.plot(0, s.rate, curves...)
	if lines == nil {
		return nil
	}
	name := "Throughput"
	if r.Transmit != nil {
		name += ": transmit " + bits(*r.Transmit)
	}
	if r.Receive != nil {
		name += ", receive " + bits(*r.Receive)
	}
	return &spark{
		Name: fmt.Sprintf("%s; highest %s; upper edge %s", name, bits(high), bits(s.rate)), Scale: s.throughput(),
		Lines: lines, Limit: -1,
	}
}

// pauses plots the share of time that a port pauses its switch, and is paused by it.
func (h *History) pauses(k PortKey) *spark {
	curves := []curve{{"a", h.Lines[pausesSwitch][k]}, {"b", h.Lines[pausedBySwitch][k]}}
	lines := h.plot(0, 1, curves...)
	if lines == nil {
		return nil
	}
	_, own := extent(curves[0])
	_, other := extent(curves[1])
	return &spark{
		Name: fmt.Sprintf("PFC pause: highest share of time sent %s, received %s; upper edge 100%%",
			percent(max(own, 0)), percent(max(other, 0))),
		Scale: "max 100%", Lines: lines, Limit: -1,
	}
}

// temperature is that of the transceiver with its alarm, else that of the adapter.
func (h *History) temperature(p *Port) (of string, points []alerting.Point, alarm *float64) {
	if points = h.Lines[moduleTemperature][keyOfPort(p)]; len(points) == 0 {
		return "adapter", h.Lines[adapterTemperature][PortKey{Device: p.Device}], nil
	}
	if len(p.Modules) == 1 {
		alarm = p.Modules[0].Alarm
	}
	return "transceiver", points, alarm
}

// plotTemperature plots a temperature, on the scale of the port's kind.
func (h *History) plotTemperature(p *Port, scale *scale) (s *spark, of string) {
	of, points, alarm := h.temperature(p)
	if !scale.temperature {
		return nil, of
	}
	lines := h.plot(scale.cold, scale.hot, curve{"a", points})
	if lines == nil {
		return nil, of
	}
	low, high := extent(curve{points: points})
	s = &spark{
		Name:  fmt.Sprintf("Temperature of the %s: %.0f to %.0f °C", of, low, high),
		Scale: fmt.Sprintf("%.0f to %.0f °C", scale.cold, scale.hot), Lines: lines, Limit: -1,
	}
	if alarm != nil {
		s.Name += fmt.Sprintf("; alarm (line across) %.0f °C", *alarm)
		s.Limit = yOf(*alarm, scale.cold, scale.hot)
	}
	return s, of
}

// kind is what ports have in common whose plots are compared: they share a scale.
type kind struct {
	linkLayer, role string
	rate            float64 // expected, else the present one
}

func kindOf(p *Port) kind {
	k := kind{linkLayer: p.LinkLayer, role: p.Role}
	if rate := cmp.Or(p.ExpectedRate, p.Rate); rate != nil {
		k.rate = *rate
	}
	return k
}

// scale is that of the plots of one kind of port.
type scale struct {
	rate        float64 // upper edge of the throughput
	cold, hot   float64 // edges of the temperature
	temperature bool    // one was read

	lowest, highest float64 // edges of the bit error rates, in decades
}

// scales finds the highest values of all ports of each kind.
func (h *History) scales(ports []Port) map[kind]*scale {
	out := map[kind]*scale{}
	for i := range ports {
		p := &ports[i]
		k, key := kindOf(p), keyOfPort(p)
		s := out[k]
		if s == nil {
			s = &scale{rate: max(1, k.rate), cold: math.Inf(1), hot: math.Inf(-1), lowest: math.Inf(1), highest: math.Inf(-1)}
			out[k] = s
		}
		_, high := extent(curve{"a", h.Lines[transmit][key]}, curve{"b", h.Lines[receive][key]})
		s.rate = max(s.rate, high)
		if p.Rate != nil {
			s.rate = max(s.rate, *p.Rate)
		}
		s.fit(h, key)
		_, points, alarm := h.temperature(p)
		if len(points) == 0 {
			continue
		}
		low, high := extent(curve{points: points})
		if alarm != nil {
			high = max(high, *alarm-3)
		}
		// A degree more or less is no slope.
		s.cold, s.hot, s.temperature = min(s.cold, low-5), max(s.hot, high+5), true
	}
	return out
}

func (s *scale) throughput() string { return "max " + bits(s.rate) }

// Raw bit error rates (before FEC) of a link over time, and their limit, as rules/node/link_ber.rules.yml records them.
const (
	rawBER    = "raw_ber"       // received by the port
	farRawBER = "far_raw_ber"   // received by the far end
	limitBER  = "raw_ber_limit" // of RDMALinkErrors, the lower of both ends
)

// decades are the logarithms of what is above 0: without an error in its window a rate has none.
func decades(points []alerting.Point) []alerting.Point {
	var out []alerting.Point
	for _, p := range points {
		if p.Value > 0 && !math.IsInf(p.Value, 1) {
			out = append(out, alerting.Point{At: p.At, Value: math.Log10(p.Value)})
		}
	}
	return out
}

// rates are the curves of both ends of a link, in decades.
func (h *History) rates(k PortKey) []curve {
	return []curve{{"a", decades(h.Lines[rawBER][k])}, {"b", decades(h.Lines[farRawBER][k])}}
}

// fit widens the scale to the rates of a link and their limit, to whole decades.
func (s *scale) fit(h *History, k PortKey) {
	low, high := extent(append(h.rates(k), curve{points: decades(h.Lines[limitBER][k])})...)
	if low > high {
		return
	}
	s.lowest, s.highest = min(s.lowest, math.Floor(low)), max(s.highest, math.Floor(high)+1)
}

// ber plots the raw bit error rates of a link with their limit.
func (h *History) ber(k PortKey, s *scale, r *Recent) *spark {
	lines := h.plot(s.lowest, s.highest, h.rates(k)...)
	if lines == nil {
		return nil
	}
	out := &spark{
		Name:  "Raw bit error rate (before FEC), received (solid) and by the far end (dashed): " + berText(r),
		Scale: fmt.Sprintf("1e%+03.0f to 1e%+03.0f", s.lowest, s.highest), Lines: lines, Limit: -1,
	}
	if r.RawBERLimit != nil {
		out.Limit = yOf(math.Log10(*r.RawBERLimit), s.lowest, s.highest)
	}
	return out
}

// berText is the higher rate of both ends; empty where there are no counters.
func berText(r *Recent) string {
	worst := r.RawBER
	if worst == nil || r.FarRawBER != nil && *r.FarRawBER > *worst {
		worst = r.FarRawBER
	}
	if worst == nil {
		return ""
	}
	text := "no bit error in 10m"
	if *worst > 0 {
		text = fmt.Sprintf("raw BER %.1e", *worst)
	}
	if r.RawBERLimit != nil {
		text += fmt.Sprintf(" (limit %.1e)", *r.RawBERLimit)
	}
	return text
}
