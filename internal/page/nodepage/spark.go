package nodepage

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/page"
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

// sparkLine is a line of a plot.
type sparkLine struct{ Class, D string }

// curve is a line to draw.
type curve struct {
	class  string // a, b: the lines differ in dashes as well
	points []alerting.Point
}

// drawLines draws curves between the values low and high; nil if there is nothing to draw.
func (h *History) drawLines(low, high float64, curves ...curve) []sparkLine {
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
			fmt.Fprintf(&b, "%s%d %d", letter, 1+int(math.Round(x)), yPosition(p.Value, low, high))
			before = p.At
			n++
		}
		if n > 1 {
			out = append(out, sparkLine{c.class, b.String()})
		}
	}
	return out
}

// yPosition returns the vertical position of a value in a plot between low and high.
func yPosition(v, low, high float64) int {
	share := max(0, min(1, (v-low)/(high-low)))
	return sparkHeight - 1 - int(math.Round(share*(sparkHeight-2)))
}

// findExtent returns the lowest and the highest value of some curves.
func findExtent(curves ...curve) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, c := range curves {
		for _, p := range c.points {
			low, high = min(low, p.Value), max(high, p.Value)
		}
	}
	return low, high
}

// plotThroughput plots what a port transmits and receives, on the scale of its kind.
func (h *History) plotThroughput(k PortKey, s *scale, r *Recent) *spark {
	curves := []curve{{"a", h.Lines[transmit][k]}, {"b", h.Lines[receive][k]}}
	_, high := findExtent(curves...)
	lines := h.drawLines(0, s.rate, curves...)
	if lines == nil {
		return nil
	}
	name := "Throughput"
	if r.Transmit != nil {
		name += ": transmit " + page.FormatRate(*r.Transmit)
	}
	if r.Receive != nil {
		name += ", receive " + page.FormatRate(*r.Receive)
	}
	return &spark{
		Name: fmt.Sprintf(
			"%s; highest %s; upper edge %s",
			name,
			page.FormatRate(high),
			page.FormatRate(s.rate),
		), Scale: s.describeRate(),
		Lines: lines, Limit: -1,
	}
}

// plotPauses plots the share of time that a port pauses its switch, and is paused by it.
func (h *History) plotPauses(k PortKey) *spark {
	curves := []curve{{"a", h.Lines[pausesSwitch][k]}, {"b", h.Lines[pausedBySwitch][k]}}
	lines := h.drawLines(0, 1, curves...)
	if lines == nil {
		return nil
	}
	_, own := findExtent(curves[0])
	_, other := findExtent(curves[1])
	return &spark{
		Name: fmt.Sprintf("PFC pause: highest share of time sent %s, received %s; upper edge 100%%",
			page.FormatPercent(max(own, 0)), page.FormatPercent(max(other, 0))),
		Scale: "max 100%", Lines: lines, Limit: -1,
	}
}

// findTemperature returns the temperature of the transceiver with its alarm, else that of the adapter.
func (h *History) findTemperature(p *Port) (of string, points []alerting.Point, alarm *float64) {
	if points = h.Lines[moduleTemperature][portKey(p)]; len(points) == 0 {
		return "adapter", h.Lines[adapterTemperature][PortKey{Device: p.Device}], nil
	}
	if len(p.Modules) == 1 {
		alarm = p.Modules[0].Alarm
	}
	return "transceiver", points, alarm
}

// plotTemperature plots a temperature, on the scale of the port's kind.
func (h *History) plotTemperature(p *Port, s *scale) (plot *spark, of string) {
	of, points, alarm := h.findTemperature(p)
	if !s.temperature {
		return nil, of
	}
	lines := h.drawLines(s.cold, s.hot, curve{"a", points})
	if lines == nil {
		return nil, of
	}
	low, high := findExtent(curve{points: points})
	plot = &spark{
		Name:  fmt.Sprintf("Temperature of the %s: %.0f to %.0f °C", of, low, high),
		Scale: fmt.Sprintf("%.0f to %.0f °C", s.cold, s.hot), Lines: lines, Limit: -1,
	}
	if alarm != nil {
		plot.Name += fmt.Sprintf("; alarm (line across) %.0f °C", *alarm)
		plot.Limit = yPosition(*alarm, s.cold, s.hot)
	}
	return plot, of
}

// kind holds the properties of ports that share a scale, so that their plots can be compared.
type kind struct {
	linkLayer, role string
	rate            float64 // expected, else the present one
}

// newKind returns the kind of a port.
func newKind(p *Port) kind {
	k := kind{linkLayer: p.LinkLayer, role: p.Role}
	if rate := cmp.Or(p.ExpectedRate, p.Rate); rate != nil {
		k.rate = *rate
	}
	return k
}

// scale is the scale of the plots of one kind of port.
type scale struct {
	rate        float64 // upper edge of the throughput
	cold, hot   float64 // edges of the temperature
	temperature bool    // one was read

	lowest, highest float64 // edges of the bit error rates, in decades
}

// findScales returns the scale of each kind, from the highest values of its ports.
func (h *History) findScales(ports []Port) map[kind]*scale {
	out := map[kind]*scale{}
	for i := range ports {
		p := &ports[i]
		k, key := newKind(p), portKey(p)
		s := out[k]
		if s == nil {
			s = &scale{rate: max(1, k.rate), cold: math.Inf(1), hot: math.Inf(-1), lowest: math.Inf(1), highest: math.Inf(-1)}
			out[k] = s
		}
		_, high := findExtent(curve{"a", h.Lines[transmit][key]}, curve{"b", h.Lines[receive][key]})
		s.rate = max(s.rate, high)
		if p.Rate != nil {
			s.rate = max(s.rate, *p.Rate)
		}
		s.widen(h, key)
		_, points, alarm := h.findTemperature(p)
		if len(points) == 0 {
			continue
		}
		low, high := findExtent(curve{points: points})
		if alarm != nil {
			high = max(high, *alarm-3)
		}
		// The margin keeps small changes of temperature flat.
		s.cold, s.hot, s.temperature = min(s.cold, low-5), max(s.hot, high+5), true
	}
	return out
}

// describeRate returns the upper edge of the throughput in words.
func (s *scale) describeRate() string { return "max " + page.FormatRate(s.rate) }

// Raw bit error rates (before FEC) of a link over time, and their limit, as rules/node/link_ber.rules.yml records them.
const (
	rawBER    = "raw_ber"       // received by the port
	farRawBER = "far_raw_ber"   // received by the far end
	limitBER  = "raw_ber_limit" // of RDMALinkErrors, the lower of both ends
)

// toDecades returns the logarithms of the values above 0. A rate without an error in its window has no logarithm.
func toDecades(points []alerting.Point) []alerting.Point {
	var out []alerting.Point
	for _, p := range points {
		if p.Value > 0 && !math.IsInf(p.Value, 1) {
			out = append(out, alerting.Point{At: p.At, Value: math.Log10(p.Value)})
		}
	}
	return out
}

// berCurves returns the curves of both ends of a link, in decades.
func (h *History) berCurves(k PortKey) []curve {
	return []curve{{"a", toDecades(h.Lines[rawBER][k])}, {"b", toDecades(h.Lines[farRawBER][k])}}
}

// widen widens the scale to the rates of a link and their limit, in whole decades.
func (s *scale) widen(h *History, k PortKey) {
	low, high := findExtent(append(h.berCurves(k), curve{points: toDecades(h.Lines[limitBER][k])})...)
	if low > high {
		return
	}
	s.lowest, s.highest = min(s.lowest, math.Floor(low)), max(s.highest, math.Floor(high)+1)
}

// plotBER plots the raw bit error rates of a link with their limit.
func (h *History) plotBER(k PortKey, s *scale, r *Recent) *spark {
	lines := h.drawLines(s.lowest, s.highest, h.berCurves(k)...)
	if lines == nil {
		return nil
	}
	out := &spark{
		Name:  "Raw bit error rate (before FEC), received (solid) and by the far end (dashed): " + describeBER(r),
		Scale: fmt.Sprintf("1e%+03.0f to 1e%+03.0f", s.lowest, s.highest), Lines: lines, Limit: -1,
	}
	if r.RawBERLimit != nil {
		out.Limit = yPosition(math.Log10(*r.RawBERLimit), s.lowest, s.highest)
	}
	return out
}

// describeBER returns the higher rate of both ends in words; empty if there are no counters.
func describeBER(r *Recent) string {
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
