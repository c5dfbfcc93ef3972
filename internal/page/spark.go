package page

import (
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
