package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/words"
)

// portRow is a row of the table of ports.
type portRow struct {
	ID, Device  string
	Number      int
	Netdevs     string
	Kind        string // link layer and role
	Neighbours  []string
	Health      Health
	Alerts      string
	State       value
	Why         string // physical state, reason of the driver
	Rate        value
	Expected    string
	Slow        bool
	Throughput  *spark
	Traffic     value
	Errors      value
	ErrorList   string
	BER         *spark
	BERText     string
	Paused      value
	Pauses      *spark
	Modules     []moduleText
	NoModule    *value // why there are none
	Temperature *spark
}

type moduleText struct{ Reading, Identity string }

// Of up to maxPlotted ports all have plots, of more those few that are in most trouble.
const (
	maxPlotted = 32
	fewPlotted = 12
)

func portID(i int) string { return "port-" + strconv.Itoa(i) }

// ports makes the rows, in the order of the node's ports.
func (v *view) ports(in Input) {
	plotted := v.plotted(in.History)
	counted := families(in.Families).counted()
	var scales map[kind]*scale
	if in.History != nil {
		scales = in.History.scales(v.Node.Ports)
	}
	for i := range v.Node.Ports {
		p := &v.Node.Ports[i]
		r := portRow{
			ID: portID(i), Device: p.Device, Number: p.Number, Netdevs: strings.Join(p.Netdevs, ", "), Health: p.Health,
			Kind:   words.Join(", ", linkLayer(p.LinkLayer), role(p.Role)),
			Alerts: short(strings.Join(p.Alerts, ", "), maxText), State: stateText(p),
		}
		if p.PhysicalState != "LinkUp" || p.State != snapshot.PortStates[snapshot.PortActive] {
			r.Why = words.Join("; ", p.PhysicalState, p.DownReason)
		}
		if p.AgeSeconds > 0 {
			r.Why = words.Join("; ", r.Why, "as of "+ago(time.Duration(p.AgeSeconds*float64(time.Second)))+" ago")
		}
		for _, n := range p.Neighbours {
			r.Neighbours = append(r.Neighbours, short(n.text(), maxText))
		}
		r.rate(p)
		r.recent(p, counted[keyOfPort(p)])
		for _, m := range p.Modules {
			r.Modules = append(r.Modules, m.text())
		}
		if plotted[i] {
			r.plots(in.History, p, scales[kindOf(p)])
		}
		if len(r.Modules) == 0 {
			no := in.noModule(p)
			r.NoModule = &no
		}
		v.Pauses, v.BER = v.Pauses || p.LinkLayer == "Ethernet", v.BER || r.BER != nil
		v.Rows = append(v.Rows, r)
	}
	if h := in.History; h != nil && h.To.After(h.From) {
		v.Plots = ago(h.To.Sub(h.From))
		v.NoPlots = len(v.Node.Ports) - len(plotted)
	}
}

// plotted chooses the ports that have plots.
func (v *view) plotted(h *History) map[int]bool {
	if h == nil {
		return nil
	}
	order := make([]int, len(v.Node.Ports))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(slices.Index(healths, v.Node.Ports[a].Health), slices.Index(healths, v.Node.Ports[b].Health))
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

// text is the far end in words.
func (n *Neighbour) text() string {
	out := "at " + words.Join(" port ", n.System, n.Port)
	switch {
	case n.Miscabled != nil && *n.Miscabled:
		out += " (miscabled)"
	case n.Source == "cabling":
		out += " (configured)"
	}
	return out
}

func (r *portRow) rate(p *Port) {
	r.Rate = rateText(p)
	if p.ExpectedRate != nil {
		r.Expected = fmt.Sprintf("%s by %s", bits(*p.ExpectedRate), words.Spaced(p.ExpectedSource))
		r.Slow = p.Rate != nil && *p.Rate < *p.ExpectedRate
	}
	if p.Lanes != nil && p.ExpectedLanes != nil && *p.Lanes < *p.ExpectedLanes {
		r.Rate.Text += fmt.Sprintf(", %d of %d lanes", *p.Lanes, *p.ExpectedLanes)
		r.Slow = true
	}
}

func (r *portRow) recent(p *Port, counted bool) {
	x := p.Recent
	if x == nil {
		return
	}
	r.Traffic = unknown("no data counters in the last round")
	if x.Transmit != nil && x.Receive != nil {
		r.Traffic = value{Text: both(bits(*x.Transmit), bits(*x.Receive)), Class: "flat"}
	}
	r.Paused = pauseText(p)
	total := 0.0
	var list []string
	for _, e := range x.Errors {
		total += e.Count
		list = append(list, large(e.Count)+" "+words.Spaced(e.Counter))
	}
	r.Errors, r.ErrorList = value{Text: large(total)}, strings.Join(list, ", ")
	r.BERText = berText(x)
	if !counted && total == 0 {
		r.Errors = unknown("no error counters from this driver")
	}
}

func (r *portRow) plots(h *History, p *Port, s *scale) {
	k := keyOfPort(p)
	if p.Recent != nil {
		r.Throughput = h.throughput(k, s, p.Recent)
		r.BER = h.ber(k, s, p.Recent)
	}
	r.Pauses = h.pauses(k)
	var of string
	r.Temperature, of = h.plotTemperature(p, s)
	if r.Temperature != nil && of == "adapter" && len(r.Modules) == 0 {
		r.Modules = append(r.Modules,
			moduleText{Reading: "adapter " + celsius(h.Lines[adapterTemperature][PortKey{Device: p.Device}][0].Value)})
	}
}

func (m *Module) text() moduleText {
	reading := []string{}
	if m.Temperature != nil {
		reading = append(reading, celsius(*m.Temperature))
	}
	if m.RxPower != nil {
		reading = append(reading, "rx "+dBm(*m.RxPower))
	}
	if m.TxPower != nil {
		reading = append(reading, "tx "+dBm(*m.TxPower))
	}
	if len(reading) == 0 || m.State != "present" && m.State != "ready" {
		reading = append([]string{words.Spaced(m.State)}, reading...)
	}
	return moduleText{strings.Join(reading, ", "), words.Join(", ", m.FormFactor, words.Join(" ", m.Vendor, m.PartNumber))}
}

func celsius(v float64) string { return fmt.Sprintf("%.0f °C", v) }

// dBm writes an optical power; -40 stands for none.
func dBm(v float64) string {
	if v <= -40 {
		return "dark"
	}
	return fmt.Sprintf("%.1f dBm", v)
}

// both writes what is sent and received, the unit once where it is the same.
func both(sent, received string) string {
	number, unit, _ := strings.Cut(sent, " ")
	if unit != "" && strings.HasSuffix(received, " "+unit) {
		sent = number
	}
	return fmt.Sprintf("↑ %s ↓ %s", sent, received)
}

// share is that of one direction where the other one is known.
func share(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return percent(*v)
}

func linkLayer(s string) string {
	if s == "Ethernet" {
		return "RoCE"
	}
	return s
}

func role(s string) string {
	if s == "unknown" {
		return ""
	}
	return words.Spaced(s)
}

func stateText(p *Port) value {
	if p.State == "" {
		return unknown("port state could not be read")
	}
	return value{Text: p.State}
}

// rateText is the rate of a link; one that is down has none.
func rateText(p *Port) value {
	switch {
	case p.Rate != nil:
		return value{Text: bits(*p.Rate)}
	case p.State != "" && p.State != snapshot.PortStates[snapshot.PortActive]:
		return notApplicable
	}
	return unknown("rate not reported by the driver")
}

// pauseText is the share of time that a port pauses its switch and is paused. InfiniBand has credits instead.
func pauseText(p *Port) value {
	x := p.Recent
	switch {
	case x.PausesSwitch != nil || x.PausedBySwitch != nil:
		return value{Text: both(share(x.PausesSwitch), share(x.PausedBySwitch))}
	case p.LinkLayer != "Ethernet":
		return notApplicable
	}
	return unknown("PFC pause duration not exposed by this driver")
}

// noModules are the reasons why a port has no transceiver data, by what came of reading its cage.
var noModules = map[snapshot.CageState]string{
	snapshot.CageUnread:      "transceiver not read yet, or permission denied",
	snapshot.CageUnsupported: "no transceiver data from this driver",
}

// counted are the ports with a counter of errors in the last round.
func (f families) counted() map[PortKey]bool {
	out := map[PortKey]bool{}
	for _, c := range errorCounters {
		f.each("rdma_port_"+c+"_total", func(labels []string, _ float64) { out[PortKey{labels[0], labels[1]}] = true })
	}
	return out
}

func (in *Input) noModule(p *Port) value {
	if in.Node.Optics == nil {
		return unknown("transceivers are not read")
	}
	for _, c := range in.Node.Optics.Cages {
		if reason := noModules[c.State]; reason != "" && c.Device == p.Device && c.Port == p.Number {
			return unknown(reason)
		}
	}
	if p.LinkLayer != "Ethernet" && !slices.ContainsFunc(p.Netdevs, func(n string) bool { return n != "" }) {
		return unknown("no network interface to read the transceiver through")
	}
	return unknown("no transceiver cage found for this port")
}
