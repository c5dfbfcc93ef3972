package nodepage

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/page"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
	"rdma_exporter/internal/words"
)

// portRow is a row in the table of ports.
type portRow struct {
	ID, Device  string
	Number      int
	Netdevs     string
	Kind        string // link layer and role
	Neighbours  []string
	Health      page.Health
	Alerts      string
	State       page.Cell
	Why         string // physical state, reason of the driver
	Rate        page.Cell
	Expected    string
	Slow        bool
	Throughput  *spark
	Traffic     page.Cell
	Errors      page.Cell
	ErrorList   string
	BER         *spark
	BERText     string
	Paused      page.Cell
	Pauses      *spark
	Modules     []moduleText
	NoModule    *page.Cell // why there are none
	Temperature *spark
}

// moduleText is a transceiver in words.
type moduleText struct{ Reading, Identity string }

// Up to maxPlotted ports all have plots, of more only the few with the worst health.
const (
	maxPlotted = 32
	fewPlotted = 12
)

// portID returns the id of the row of a port.
func portID(i int) string { return "port-" + strconv.Itoa(i) }

// addPorts adds the rows of the ports, in the order of the node.
func (v *view) addPorts(in Input) {
	plotted := v.choosePlotted(in.History)
	counted := families(in.Families).portsWithCounters()
	var scales map[kind]*scale
	if in.History != nil {
		scales = in.History.findScales(v.Node.Ports)
	}
	for i := range v.Node.Ports {
		p := &v.Node.Ports[i]
		r := portRow{
			ID: portID(i), Device: p.Device, Number: p.Number, Netdevs: strings.Join(p.Netdevs, ", "), Health: p.Health,
			Kind:   words.Join(", ", describeLinkLayer(p.LinkLayer), describeRole(p.Role)),
			Alerts: page.Shorten(strings.Join(p.Alerts, ", "), page.MaxText), State: stateCell(p),
		}
		if p.PhysicalState != "LinkUp" || p.State != snapshot.PortStates[snapshot.PortActive] {
			r.Why = words.Join("; ", p.PhysicalState, p.DownReason)
		}
		if p.AgeSeconds > 0 {
			r.Why = words.Join("; ", r.Why, "as of "+page.FormatAge(time.Duration(p.AgeSeconds*float64(time.Second)))+" ago")
		}
		for _, n := range p.Neighbours {
			r.Neighbours = append(r.Neighbours, page.Shorten(n.describe(), page.MaxText))
		}
		r.setRate(p)
		r.setRecent(p, counted[portKey(p)])
		for _, m := range p.Modules {
			r.Modules = append(r.Modules, m.describe())
		}
		if plotted[i] {
			r.setPlots(in.History, p, scales[newKind(p)])
		}
		if len(r.Modules) == 0 {
			no := in.noModuleCell(p)
			r.NoModule = &no
		}
		v.Pauses, v.BER = v.Pauses || p.LinkLayer == "Ethernet", v.BER || r.BER != nil
		v.Rows = append(v.Rows, r)
	}
	v.Expected = shareExpected(v.Rows)
	if h := in.History; h != nil && h.To.After(h.From) {
		v.Plots = page.FormatAge(h.To.Sub(h.From))
		v.NoPlots = len(v.Node.Ports) - len(plotted)
	}
}

// shareExpected returns the expectations that several ports meet, with their number, and takes them from the rows.
func shareExpected(rows []portRow) string {
	meets := func(r *portRow) bool { return r.Expected != "" && !r.Slow && r.Rate.Class == "" }
	met := map[string]int{}
	for i := range rows {
		if meets(&rows[i]) {
			met[rows[i].Expected]++
		}
	}
	maps.DeleteFunc(met, func(_ string, n int) bool { return n < 2 })
	for i := range rows {
		if meets(&rows[i]) && met[rows[i].Expected] > 0 {
			rows[i].Expected = ""
		}
	}
	return strings.Join(words.Map(slices.Sorted(maps.Keys(met)), func(expected string) string {
		return fmt.Sprintf("%s for %d ports", expected, met[expected])
	}), ", ")
}

// choosePlotted returns the indices of the ports that have plots.
func (v *view) choosePlotted(h *History) map[int]bool {
	if h == nil {
		return nil
	}
	order := make([]int, len(v.Node.Ports))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return v.Node.Ports[a].Health.Compare(v.Node.Ports[b].Health)
	})
	if len(order) > maxPlotted {
		order = order[:fewPlotted]
	}
	out := map[int]bool{}
	for _, i := range order {
		out[i] = true
	}
	return out
}

// describe returns the far end in words.
func (n *Neighbour) describe() string {
	out := "at " + words.Join(" port ", n.System, n.Port)
	switch {
	case n.Miscabled != nil && *n.Miscabled:
		out += " (miscabled)"
	case n.Source == "cabling":
		out += " (configured)"
	}
	return out
}

// setRate sets the rate and the expected rate.
func (r *portRow) setRate(p *Port) {
	r.Rate = rateCell(p)
	if p.ExpectedRate != nil {
		r.Expected = fmt.Sprintf("%s (%s)", page.FormatRate(*p.ExpectedRate), words.Basis(p.ExpectedSource))
		r.Slow = p.Rate != nil && *p.Rate < *p.ExpectedRate
	}
	if p.Lanes != nil && p.ExpectedLanes != nil && *p.Lanes < *p.ExpectedLanes {
		r.Rate.Text += fmt.Sprintf(", %d of %d lanes", *p.Lanes, *p.ExpectedLanes)
		r.Slow = true
	}
}

// setRecent sets traffic, pauses and errors; counted: the port has error counters.
func (r *portRow) setRecent(p *Port, counted bool) {
	x := p.Recent
	if x == nil {
		return
	}
	r.Traffic = page.UnknownCell("no data counters in the last round")
	if x.Transmit != nil && x.Receive != nil {
		r.Traffic = page.Cell{
			Text:  page.FormatDirections(page.FormatRate(*x.Transmit), page.FormatRate(*x.Receive)),
			Class: "flat",
		}
	}
	r.Paused = pauseCell(p)
	total := 0.0
	var list []string
	for _, e := range x.Errors {
		total += e.Count
		list = append(list, page.FormatCount(e.Count)+" "+words.Spaced(e.Counter))
	}
	r.Errors, r.ErrorList = page.Cell{Text: page.FormatCount(total)}, strings.Join(list, ", ")
	r.BERText = describeBER(x)
	if !counted && total == 0 {
		r.Errors = page.UnknownCell("no error counters from this driver")
	}
}

// setPlots sets the plots of a port.
func (r *portRow) setPlots(h *History, p *Port, s *scale) {
	k := portKey(p)
	if p.Recent != nil {
		r.Throughput = h.plotThroughput(k, s, p.Recent)
		r.BER = h.plotBER(k, s, p.Recent)
	}
	r.Pauses = h.plotPauses(k)
	var of string
	r.Temperature, of = h.plotTemperature(p, s)
	if r.Temperature != nil && len(r.Modules) == 0 && (of == "adapter" || p.LinkLayer == "InfiniBand") {
		_, points, _ := h.findTemperature(p)
		r.Modules = append(r.Modules, moduleText{Reading: of + " " + formatCelsius(points[0].Value)})
	}
}

// describe returns a transceiver in words.
func (m *Module) describe() moduleText {
	reading := []string{}
	if m.Temperature != nil {
		reading = append(reading, formatCelsius(*m.Temperature))
	}
	if m.RxPower != nil {
		reading = append(reading, "rx "+formatPower(*m.RxPower))
	}
	if m.TxPower != nil {
		reading = append(reading, "tx "+formatPower(*m.TxPower))
	}
	if len(reading) == 0 || m.State != "present" && m.State != "ready" {
		reading = append([]string{words.Spaced(m.State)}, reading...)
	}
	return moduleText{strings.Join(reading, ", "), words.Join(", ", m.FormFactor, words.Join(" ", m.Vendor, m.PartNumber))}
}

// formatCelsius formats a temperature.
func formatCelsius(v float64) string { return fmt.Sprintf("%.0f °C", v) }

// formatPower formats an optical power; -40 stands for none.
func formatPower(v float64) string {
	if v <= -40 {
		return "dark"
	}
	return fmt.Sprintf("%.1f dBm", v)
}

// formatShare formats the share of a direction, which is unknown if only the other one is known.
func formatShare(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return page.FormatPercent(*v)
}

// describeLinkLayer returns the link layer in words.
func describeLinkLayer(s string) string {
	if s == "Ethernet" {
		return "RoCE"
	}
	return s
}

// describeRole returns the role of a port in words; empty if it is unknown.
func describeRole(s string) string {
	if s == "unknown" {
		return ""
	}
	return words.Spaced(s)
}

// stateCell returns the cell with the state of a port.
func stateCell(p *Port) page.Cell {
	if p.State == "" {
		return page.UnknownCell("port state could not be read")
	}
	return page.Cell{Text: p.State}
}

// rateCell returns the cell with the rate of a port, which a link that is down does not have.
func rateCell(p *Port) page.Cell {
	switch {
	case p.Rate != nil:
		return page.Cell{Text: page.FormatRate(*p.Rate)}
	case p.State != "" && p.State != snapshot.PortStates[snapshot.PortActive]:
		return page.NotApplicable
	}
	return page.UnknownCell("rate not reported by the driver")
}

// pauseCell returns the cell with the share of time that a port pauses its switch and is paused. InfiniBand has credits
// instead.
func pauseCell(p *Port) page.Cell {
	x := p.Recent
	switch {
	case x.PausesSwitch != nil || x.PausedBySwitch != nil:
		return page.Cell{Text: page.FormatDirections(formatShare(x.PausesSwitch), formatShare(x.PausedBySwitch))}
	case p.LinkLayer != "Ethernet":
		return page.NotApplicable
	}
	return page.UnknownCell("PFC pause duration not exposed by this driver")
}

// noModules are the reasons why a port has no transceiver data, by the state of its cage.
var noModules = map[wire.CageState]string{
	wire.CageUnread:      "transceiver not read yet, or permission denied",
	wire.CageUnsupported: "no transceiver data from this driver",
}

// portsWithCounters returns the ports with an error counter in the last round.
func (f families) portsWithCounters() map[PortKey]bool {
	out := map[PortKey]bool{}
	for _, c := range errorCounters {
		f.each("rdma_port_"+c+"_total", func(labels []string, _ float64) { out[PortKey{labels[0], labels[1]}] = true })
	}
	return out
}

// noModuleCell returns the cell with the reason why a port has no transceiver data.
func (in *Input) noModuleCell(p *Port) page.Cell {
	if in.Node.Optics == nil {
		return page.UnknownCell("transceivers are not read")
	}
	for _, c := range in.Node.Optics.Cages {
		if reason := noModules[c.State]; reason != "" && c.Device == p.Device && c.Port == p.Number {
			return page.UnknownCell(reason)
		}
	}
	if p.LinkLayer != "Ethernet" && !slices.ContainsFunc(p.Netdevs, func(n string) bool { return n != "" }) {
		return page.UnknownCell("no network interface to read the transceiver through")
	}
	return page.UnknownCell("no transceiver cage found for this port")
}
