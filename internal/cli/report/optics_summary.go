package report

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"rdma_exporter/internal/snapshot/wire"
	"rdma_exporter/internal/terminal"
	"rdma_exporter/internal/transceiver"
	"rdma_exporter/internal/words"
)

// Conditions of a module, the worst first.
const (
	opticsFault   = "fault" // the module reports one, or does not answer any more
	opticsDark    = "dark"  // a lane in use receives or sends no light
	opticsAlarm   = "alarm"
	opticsWarning = "warning"
	opticsUnread  = "not read"
	opticsOK      = "ok"
	opticsNone    = "empty"
)

var conditions = []string{
	opticsFault, opticsDark, opticsAlarm, opticsWarning, opticsUnread, opticsOK, opticsNone,
}

// opticsMarks colour what is wrong.
var opticsMarks = terminal.Marks{
	{regexp.MustCompile(`^(?:fault|dark|alarm)\b`), terminal.Red},
	{regexp.MustCompile(`^warning\b`), terminal.Yellow},
	{regexp.MustCompile(`^ok\b`), terminal.Green},
	{regexp.MustCompile(`^not read\b.*`), terminal.Grey},
	{regexp.MustCompile(`^(?:\[!|STATE ).*`), terminal.Grey},
	{regexp.MustCompile(`(?:HIGH|LOW) ALARM`), terminal.Red},
	{regexp.MustCompile(`(?:HIGH|LOW) WARNING`), terminal.Yellow},
}

// condition returns the condition of the module of a port, and what is wrong with it.
func (r *opticsRow) condition() (state string, faults []string) {
	switch wire.CageState(r.State) {
	case wire.CageUnreadable, wire.CageNoAnswer:
		return opticsFault, []string{r.Why}
	case wire.CageEmpty:
		return opticsNone, nil
	}
	if r.Module == nil {
		return opticsUnread, nil
	}
	state = opticsOK
	add := func(as, format string, args ...any) {
		faults = append(faults, fmt.Sprintf(format, args...))
		if slices.Index(conditions, as) < slices.Index(conditions, state) {
			state = as
		}
	}
	if r.Module.Fault != "" {
		add(opticsFault, "%s", moduleState(r))
	}
	dark := map[passed]bool{} // of which a low alarm says nothing else
	for i := range r.Module.Lanes {
		l := &r.Module.Lanes[i]
		if l.RxPower != nil && *l.RxPower <= noLight && inUse(l, r.Active) {
			add(opticsDark, "lane %d receives no light", l.Number)
			dark[passed{"receive_power", l.Number, ""}] = true
		}
		if l.TxPower != nil && *l.TxPower <= noLight && inUse(l, r.Active) {
			add(opticsDark, "lane %d sends no light", l.Number)
			dark[passed{"transmit_power", l.Number, ""}] = true
		}
	}
	for _, p := range r.Passed {
		if dark[passed{p.Reading, p.Lane, ""}] {
			continue
		}
		as := opticsWarning
		if strings.HasSuffix(string(p.Level), "alarm") {
			as = opticsAlarm
		}
		what := words.Spaced(p.Reading)
		if p.Lane > 0 {
			what = fmt.Sprintf("lane %d %s", p.Lane, what)
		}
		add(as, "%s: %s", what, strings.ToUpper(words.Spaced(string(p.Level))))
	}
	if r.Why != "" { // the readings are old
		add(opticsFault, "%s", r.Why)
	}
	return state, faults
}

// noLight is the power of a lane without light in dBm.
const noLight = -40

// printSummary writes a line for each module, the worst first, with what is wrong below it. Columns that do not fit the
// width are left out, the last first.
func printSummary(w io.Writer, rows []opticsRow, style terminal.Style) error {
	table := [][]string{{"STATE", "PORT", "TEMPERATURE", "RX dBm", "TX dBm", "PART", "NETDEV", "FORM", "SERIAL", "VENDOR"}}
	var below [][]string
	reasons := map[string][]string{}
	hasBar := false
	for _, r := range worstFirst(rows) {
		state, faults := r.condition()
		if r.Module == nil && len(faults) == 0 && r.AdapterSensor == nil {
			why := unnamed(&r)
			reasons[why] = append(reasons[why], portName(&r))
			continue
		}
		row := []string{state, portName(&r), "-", "-", "-", "-", cmp.Or(r.Netdev, "-"), "-", "-", "-"}
		celsius, levels := r.AdapterSensor, transceiver.Levels{HighAlarm: r.SensorLimit}
		if m := r.Module; m != nil {
			celsius, levels = m.Temperature, m.Thresholds.Temperature
			row[3], row[4] = r.lowest(func(l *transceiver.Lane) *float64 { return l.RxPower }),
				r.lowest(func(l *transceiver.Lane) *float64 { return l.TxPower })
			row[5], row[7] = cmp.Or(m.PartNumber, "-"), cmp.Or(m.FormFactor, "-")
			row[8], row[9] = cmp.Or(m.SerialNumber, "-"), cmp.Or(m.Vendor, "-")
		}
		if celsius != nil {
			scale := bar(celsius, &levels)
			row[2] = strings.TrimSpace(fmt.Sprintf("%5.1f °C %s", *celsius, scale))
			hasBar = hasBar || scale != ""
		}
		if r.Module == nil && len(faults) == 0 {
			reasons[unnamed(&r)] = append(reasons[unnamed(&r)], portName(&r))
		}
		table, below = append(table, row), append(below, faults)
	}
	var text strings.Builder
	if len(table) > 1 {
		i := -1
		for line := range strings.Lines(terminal.Align(fitColumns(table, style), "")) {
			text.WriteString(line)
			if i >= 0 && len(below[i]) > 0 {
				text.WriteString("  " + style.Wrap(words.OneLine(strings.Join(below[i], "; ")), 2) + "\n")
			}
			i++
		}
		if hasBar {
			text.WriteString("[!~--o--~!] o: reading, !: beyond an alarm limit, ~: beyond a warning limit\n")
		}
		text.WriteString("Power: lowest of the lanes in use. Each lane: rdma_exporter optics --lanes.\n")
	}
	for i, why := range sortedKeys(reasons) {
		if i == 0 && text.Len() > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(style.Wrap(words.OneLine(strings.Join(reasons[why], ", ")+": "+why), 2) + "\n")
	}
	if len(rows) == 0 {
		text.WriteString("No RDMA port of a physical function on this host.\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func sortedKeys(m map[string][]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return strings.Compare(m[a][0], m[b][0]) })
	return keys
}

// worstFirst sorts rows by the condition of the module; the order of equal ones stays.
func worstFirst(rows []opticsRow) []opticsRow {
	rank := func(r opticsRow) int {
		state, _ := r.condition()
		return slices.Index(conditions, state)
	}
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b opticsRow) int { return rank(a) - rank(b) })
	return sorted
}

// unnamed returns why a module is not shown, without the name of its netdev, so that ports with one reason are one row.
func unnamed(r *opticsRow) string {
	if r.Netdev == "" {
		return r.Why
	}
	return strings.ReplaceAll(r.Why, "/"+r.Netdev+"/", "/NETDEV/")
}

// lowest returns the lowest power of the lanes in use.
func (r *opticsRow) lowest(of func(*transceiver.Lane) *float64) string {
	var least *float64
	for i := range r.Module.Lanes {
		l := &r.Module.Lanes[i]
		if v := of(l); v != nil && inUse(l, r.Active) && (least == nil || *v < *least) {
			least = v
		}
	}
	if least == nil {
		return "-"
	}
	return fmt.Sprintf("%6.1f", *least)
}

// fitColumns leaves out the columns from the right that do not fit, at most down to the temperature, and those without
// a value.
func fitColumns(rows [][]string, style terminal.Style) [][]string {
	const least = 3
	var keep []int
	total := -2
	for i := range rows[0] {
		width, empty := 0, true
		for j, row := range rows {
			width = max(width, terminal.Width(row[i]))
			empty = empty && (j == 0 || row[i] == "-")
		}
		if empty {
			continue
		}
		if total += width + 2; i >= least && style.Width > 0 && total > style.Width {
			break
		}
		keep = append(keep, i)
	}
	out := make([][]string, len(rows))
	for j, row := range rows {
		for _, i := range keep {
			out[j] = append(out[j], row[i])
		}
	}
	return out
}
