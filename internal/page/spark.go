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
	Top   string // what the upper edge stands for
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

// throughput plots what a port sends and receives, up to its rate.
func (h *History) throughput(k PortKey, rate *float64, r *Recent) *spark {
	curves := []curve{{"a", h.Lines[transmit][k]}, {"b", h.Lines[receive][k]}}
	_, high := extent(curves...)
	top := high
	if rate != nil && *rate > 0 {
		top = max(high, *rate)
	}
	lines := h.plot(0, max(top, 1), curves...)
	if lines == nil {
		return nil
	}
	name := "Throughput"
	if r.Transmit != nil {
		name += ": sends " + bits(*r.Transmit)
	}
	if r.Receive != nil {
		name += ", receives " + bits(*r.Receive)
	}
	return &spark{Name: fmt.Sprintf("%s; highest %s; the upper edge is %s", name, bits(high), bits(max(top, 1))), Lines: lines, Limit: -1}
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
		Name:  fmt.Sprintf("Pauses: at most %s of the time the switch by the port, %s the port by the switch; the upper edge is 100%%", percent(max(own, 0)), percent(max(other, 0))),
		Lines: lines, Limit: -1,
	}
}

// heat plots the temperature of the module, else of the adapter.
func (h *History) heat(k PortKey, alarm *float64) (s *spark, of string) {
	of, points := "module", h.Lines[moduleHeat][k]
	if len(points) == 0 {
		of, points, alarm = "adapter", h.Lines[adapterHeat][PortKey{Device: k.Device}], nil
	}
	low, high := extent(curve{points: points})
	// A degree more or less is no slope.
	bottom, top := low-5, high+5
	if alarm != nil {
		top = max(top, *alarm+2)
	}
	lines := h.plot(bottom, top, curve{"a", points})
	if lines == nil {
		return nil, of
	}
	s = &spark{Name: fmt.Sprintf("Temperature of the %s: from %.0f to %.0f °C", of, low, high), Lines: lines, Limit: -1}
	if alarm != nil {
		s.Name += fmt.Sprintf("; the line across is its alarm at %.0f °C", *alarm)
		s.Limit = yOf(*alarm, bottom, top)
	}
	return s, of
}
