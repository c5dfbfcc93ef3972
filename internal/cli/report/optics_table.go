package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/snapshot/wire"
	"rdma_exporter/internal/terminal"
	"rdma_exporter/internal/transceiver"
	"rdma_exporter/internal/words"
)

// printOptics writes a block for each module, then the ports without one.
func printOptics(w io.Writer, rows []opticsRow, style terminal.Style) error {
	var text strings.Builder
	none := command.Table{}
	for i := range rows {
		r := &rows[i]
		if r.Module == nil {
			if r.AdapterSensor != nil {
				r.Why += fmt.Sprintf(" (adapter sensor: %.1f °C", *r.AdapterSensor)
				if r.SensorLimit != nil {
					r.Why += fmt.Sprintf(", limit %.1f °C", *r.SensorLimit)
				}
				r.Why += ")"
			}
			none.Row(portName(r), r.Netdev, r.State, r.Why)
			continue
		}
		if text.Len() > 0 {
			text.WriteByte('\n')
		}
		if err := printModule(&text, r, style); err != nil {
			return err
		}
	}
	if len(none.Rows) > 0 {
		if text.Len() > 0 {
			text.WriteByte('\n')
		}
		none.Rows = slices.Insert(none.Rows, 0, []string{"PORT", "NETDEV", "TRANSCEIVER", "REASON"})
		if err := none.Print(&text); err != nil {
			return err
		}
	}
	if len(rows) == 0 {
		text.WriteString("No RDMA port of a physical function on this host.\n")
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

func portName(r *opticsRow) string { return r.Device + "/" + strconv.Itoa(r.Port) }

func printModule(w io.Writer, r *opticsRow, style terminal.Style) error {
	m := r.Module
	fmt.Fprintln(w, words.Join(" ", portName(r), r.Netdev)+": "+words.Join(", ",
		m.FormFactor, words.Join(" ", m.Vendor, m.PartNumber), prefixed("serial ", m.SerialNumber),
		mediaText(m), moduleState(r)))
	if r.First != "" {
		fmt.Fprintf(w, "  same transceiver as %s\n", r.First)
	}
	if r.State != string(wire.CagePresent) {
		fmt.Fprintf(w, "  %s\n", r.Why)
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	t := &m.Thresholds
	if m.Temperature != nil {
		fmt.Fprintf(columns, "  temperature\t%5.1f °C\t%s\t%s\n", *m.Temperature, bar(m.Temperature, &t.Temperature),
			words.Join(", ", r.flag("temperature", 0), margin(*m.Temperature, t.Temperature.HighAlarm)))
	}
	if m.Voltage != nil {
		fmt.Fprintf(columns, "  voltage\t%5.3f V\t%s\t%s\n", *m.Voltage, bar(m.Voltage, &t.Voltage), r.flag("voltage", 0))
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	return printLanes(w, r, style)
}

// barredLane is the width of the table of lanes with bars.
const barredLane = 110

// printLanes writes the lanes, without bars where they do not fit.
func printLanes(w io.Writer, r *opticsRow, style terminal.Style) error {
	m := r.Module
	if len(m.Lanes) == 0 {
		return nil
	}
	t, bars := &m.Thresholds, style.Fits(strings.Repeat(" ", barredLane), 0)
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "  LANE\tDATA PATH\tRX POWER dBm\t\tTX POWER dBm\t\tBIAS mA\t")
	for i := range m.Lanes {
		l := &m.Lanes[i]
		var bias string
		if l.Bias != nil {
			bias = fmt.Sprintf("%.1f", *l.Bias*1000)
		}
		fmt.Fprintf(columns, "  %d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Number, dataPath(m, l),
			powerText(l.RxPower, &t.RxPower, bars), r.flag("receive_power", l.Number),
			powerText(l.TxPower, &t.TxPower, bars), r.flag("transmit_power", l.Number),
			cmp.Or(bias, "-"), r.flag("bias", l.Number))
	}
	return columns.Flush()
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func mediaText(m *transceiver.Module) string {
	media := words.Spaced(string(m.Media))
	switch {
	case m.CableLength != nil:
		return words.Join(" ", media, fmt.Sprintf("%g m", *m.CableLength))
	case m.Reach != nil:
		return words.Join(" ", media, fmt.Sprintf("up to %g m", *m.Reach))
	}
	return media
}

// moduleState returns the state of the module, with its fault.
func moduleState(r *opticsRow) string {
	c := wire.Cage{State: wire.CageState(r.State), Module: r.Module}
	states := c.States()
	if len(states) > 1 {
		return words.Join(": ", words.Spaced(states[1]), r.Module.Fault)
	}
	return ""
}

// dataPath returns the state of the data path that a media lane belongs to; SFF modules have none.
func dataPath(m *transceiver.Module, l *transceiver.Lane) string {
	for _, d := range m.DataPaths {
		if !slices.Contains(d.MediaLanes, l.Number) {
			continue
		}
		for _, h := range m.HostLanes {
			if slices.Contains(d.HostLanes, h.Number) {
				return cmp.Or(words.Spaced(h.State), "-")
			}
		}
	}
	if l.TxDisabled != nil && *l.TxDisabled {
		return "disabled"
	}
	return "-"
}

// flag returns the threshold that a reading exceeds: HIGH ALARM.
func (r *opticsRow) flag(reading string, lane int) string {
	for _, p := range r.Passed {
		if p.Reading == reading && p.Lane == lane {
			return strings.ToUpper(words.Spaced(string(p.Level)))
		}
	}
	return ""
}

func margin(v float64, alarm *float64) string {
	switch {
	case alarm == nil:
		return "no high alarm threshold"
	case v > *alarm:
		return fmt.Sprintf("%.1f above high alarm", v-*alarm)
	}
	return fmt.Sprintf("%.1f below high alarm", *alarm-v)
}

func powerText(v *float64, l *transceiver.Levels, bars bool) string {
	if v == nil {
		return "-"
	}
	text := fmt.Sprintf("%6.1f", *v)
	if bars {
		text += " " + bar(v, l)
	}
	if *v <= noLight {
		text += " dark"
	}
	return text
}

// barCells is the length of a bar. The range between the alarms takes all cells but the first and the last.
const barCells = 16

// bar draws a reading (o) between the thresholds of the module: ! is beyond an alarm, ~ beyond a warning. It is empty
// without both alarms.
func bar(v *float64, l *transceiver.Levels) string {
	if v == nil || l.LowAlarm == nil || l.HighAlarm == nil {
		return ""
	}
	low, high := *l.LowAlarm, *l.HighAlarm
	step := (high - low) / (barCells - 2)
	at := func(x float64) int { return int(max(0, min(barCells-1, 1+math.Floor((x-low)/step)))) }
	cells := []byte(strings.Repeat("-", barCells))
	for i := range cells {
		middle := low + (float64(i)-0.5)*step
		switch {
		case i == 0 || i == barCells-1:
			cells[i] = '!'
		case l.LowWarning != nil && middle < *l.LowWarning, l.HighWarning != nil && middle > *l.HighWarning:
			cells[i] = '~'
		}
	}
	cells[at(*v)] = 'o'
	return "[" + string(cells) + "]"
}
