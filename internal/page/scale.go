package page

import (
	"cmp"
	"math"
)

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
