package page

import (
	"fmt"
	"math"

	"rdma_exporter/internal/alerting"
)

// Raw bit error rates (before FEC) of a link over time, and their limit, as rules/node/link_ber.rules.yml records them.
const (
	rawBER    = "raw_ber"       // received by the port
	farRawBER = "far_raw_ber"   // received by the far end
	limitBER  = "raw_ber_limit" // of RDMALinkBERHigh, the lower of both ends
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
