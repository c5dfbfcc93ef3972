package nodepage

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/alerting"
)

const (
	// span is the time range of the plots: the retention of the store.
	span = 2 * time.Hour
	// steps is the maximum number of values of a plot.
	steps = 80
	// minStep is the usual time between rounds.
	minStep = 15 * time.Second
	// minWindow is the minimum window of a rate: several rounds, two if they are a minute apart.
	minWindow = 2 * time.Minute
)

// Quantities of ports over time.
const (
	transmit           = "transmit"         // bits per second
	receive            = "receive"          // bits per second
	pausesSwitch       = "pauses_switch"    // share of time that the port pauses its switch, on the priority with the most
	pausedBySwitch     = "paused_by_switch" // share of time that the port is paused
	moduleTemperature  = "module"           // degrees Celsius
	adapterTemperature = "adapter"          // degrees Celsius, of the whole device
)

// quantities are the queries to the store by quantity; $w is the window of rates.
var quantities = []struct{ name, expr string }{
	{transmit, "8 * sum by (device, port) (rate(rdma_port_transmit_bytes_total[$w]))"},
	{receive, "8 * sum by (device, port) (rate(rdma_port_receive_bytes_total[$w]))"},
	{pausesSwitch, `clamp_max(max by (device, port) (rate(rdma_port_pfc_pause_seconds_total{direction="transmit"}[$w])), 1)`},
	{pausedBySwitch, `clamp_max(max by (device, port) (rate(rdma_port_pfc_pause_seconds_total{direction="receive"}[$w])), 1)`},
	{moduleTemperature, "max by (device, port) (port:rdma_transceiver_temperature:celsius)"},
	{adapterTemperature, "max by (device) (rdma_device_temperature_celsius)"},
	{rawBER, `max by (device, port) (port:rdma_link_raw_ber:ratio10m{end="own"})`},
	{farRawBER, `max by (device, port) (port:rdma_link_raw_ber:ratio10m{end="neighbour"})`},
	{limitBER, "min by (device, port) (port:rdma_link_raw_ber:warning_limit)"},
}

// errorCounters are the counters of faults, without rdma_port_ and _total.
var errorCounters = []string{
	"symbol_errors", "link_error_recoveries", "link_downed", "receive_errors", "receive_remote_physical_errors",
	"local_link_integrity_errors", "excessive_buffer_overrun_errors", "pcs_symbol_errors", "crc_errors", "frame_errors",
	"fec_uncorrectable_blocks", "transmit_discards", "discards", "receive_buffer_exhausted", "out_of_buffer",
	"packet_sequence_errors", "ack_timeouts", "implied_nak_errors", "transport_retries_exceeded", "rnr_retries_exceeded",
}

// Source is the store that has the history: alerting.Engine.
type Source interface {
	Observed() (from, to time.Time)
	Range(ctx context.Context, query string, from, to time.Time, step time.Duration) ([]alerting.Series, error)
	Query(ctx context.Context, query string, ts time.Time) ([]alerting.Sample, error)
}

// History is the history of the ports in the store.
type History struct {
	From, To time.Time
	Step     time.Duration
	Lines    map[string]map[PortKey][]alerting.Point // by quantity
	Errors   map[PortKey][]ErrorCount
}

// PortKey identifies a port; Number is empty for a whole device.
type PortKey struct{ Device, Number string }

// Recent holds the values of a port in the last round, and its errors in the observed time.
type Recent struct {
	Transmit       *float64     `json:"transmit_bits_per_second,omitempty"`
	Receive        *float64     `json:"receive_bits_per_second,omitempty"`
	PausesSwitch   *float64     `json:"pauses_switch_ratio,omitempty"`
	PausedBySwitch *float64     `json:"paused_by_switch_ratio,omitempty"`
	RawBER         *float64     `json:"raw_bit_error_ratio,omitempty"`           // before FEC, over 10m
	FarRawBER      *float64     `json:"neighbour_raw_bit_error_ratio,omitempty"` // received by the far end
	RawBERLimit    *float64     `json:"raw_bit_error_ratio_limit,omitempty"`     // of RDMALinkErrors
	ErrorSeconds   float64      `json:"errors_observed_seconds"`
	Errors         []ErrorCount `json:"errors"` // those that grew, the most first
}

// ErrorCount is the increase of an error counter.
type ErrorCount struct {
	Counter string  `json:"counter"`
	Count   float64 `json:"count"`
}

// ReadHistory reads the history from the store; nil before the first round.
func ReadHistory(ctx context.Context, s Source) (*History, error) {
	from, to := s.Observed()
	if to.IsZero() {
		return nil, nil
	}
	from = laterOf(from, to.Add(-span))
	step := max(minStep, (to.Sub(from) / steps).Round(time.Second))
	h := &History{
		From: from, To: to, Step: step, Lines: map[string]map[PortKey][]alerting.Point{}, Errors: map[PortKey][]ErrorCount{},
	}
	window := max(minWindow, 2*step)
	from = to.Add(-to.Sub(from).Truncate(step)) // so that the last value is that of the last round
	for _, q := range quantities {
		series, err := s.Range(ctx, strings.ReplaceAll(q.expr, "$w", formatPromDuration(window)), from, to, step)
		if err != nil {
			return nil, err
		}
		lines := map[PortKey][]alerting.Point{}
		for _, x := range series {
			lines[labelsKey(x.Labels)] = x.Points
		}
		h.Lines[q.name] = lines
	}
	if to.Sub(from) < minStep { // one round: nothing can have grown
		return h, nil
	}
	grown, err := s.Query(ctx, errorQuery(to.Sub(from)), to)
	if err != nil {
		return nil, err
	}
	for _, x := range grown {
		// increase() extrapolates to the ends of the window; counts are shown as integers.
		if n := math.Round(x.Value); n > 0 {
			k := labelsKey(x.Labels)
			h.Errors[k] = append(h.Errors[k], ErrorCount{x.Labels["error"], n})
		}
	}
	for _, list := range h.Errors {
		slices.SortStableFunc(list, func(a, b ErrorCount) int { return cmp.Compare(b.Count, a.Count) })
	}
	return h, nil
}

// errorQuery returns the query for the increase of each error counter.
func errorQuery(over time.Duration) string {
	parts := make([]string, len(errorCounters))
	for i, c := range errorCounters {
		parts[i] = fmt.Sprintf(`label_replace(sum by (device, port) (increase(rdma_port_%s_total[%s])), "error", "%s", "", "")`,
			c, formatPromDuration(over), c)
	}
	return strings.Join(parts, " or ")
}

// portKey returns the key of a port.
func portKey(p *Port) PortKey { return PortKey{p.Device, strconv.Itoa(p.Number)} }

// labelsKey returns the key of the port in the labels of a series.
func labelsKey(labels map[string]string) PortKey { return PortKey{labels["device"], labels["port"]} }

// findRecent returns the recent values of a port; nil if no history is kept.
func (h *History) findRecent(device string, number int) *Recent {
	if h == nil {
		return nil
	}
	k := PortKey{device, strconv.Itoa(number)}
	r := &Recent{
		Transmit: h.lastValue(transmit, k), Receive: h.lastValue(receive, k), PausesSwitch: h.lastValue(pausesSwitch, k),
		PausedBySwitch: h.lastValue(pausedBySwitch, k),
		RawBER:         h.lastValue(rawBER, k), FarRawBER: h.lastValue(farRawBER, k), RawBERLimit: h.lastValue(limitBER, k),
		ErrorSeconds: h.To.Sub(h.From).Seconds(), Errors: []ErrorCount{},
	}
	r.Errors = append(r.Errors, h.Errors[k]...)
	return r
}

// lastValue returns the value of the last round; nil if there is none.
func (h *History) lastValue(quantity string, k PortKey) *float64 {
	points := h.Lines[quantity][k]
	if len(points) == 0 || points[len(points)-1].At.Before(h.To.Add(-h.Step/2)) {
		return nil
	}
	v := points[len(points)-1].Value
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// laterOf returns the later of two times.
func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// formatPromDuration formats a duration for PromQL.
func formatPromDuration(d time.Duration) string {
	return strconv.FormatInt(max(1, int64(d/time.Second)), 10) + "s"
}
