package nodepage

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
	"rdma_exporter/internal/transceiver"
	"rdma_exporter/internal/words"
)

// Port is a port of an RDMA device. Unknown fields are left out.
type Port struct {
	Device         string      `json:"device"`
	Number         int         `json:"port"`
	LinkLayer      string      `json:"link_layer,omitempty"`
	Role           string      `json:"role,omitempty"`
	Netdevs        []string    `json:"netdevs,omitempty"` // the members of a bond
	Health         page.Health `json:"health"`
	Alerts         []string    `json:"alerts,omitempty"` // that fire on it
	State          string      `json:"state,omitempty"`
	PhysicalState  string      `json:"physical_state,omitempty"`
	DownReason     string      `json:"down_reason,omitempty"` // from the driver
	AgeSeconds     float64     `json:"age_seconds,omitempty"` // of the state, if it was not read in this round
	Rate           *float64    `json:"rate_bits_per_second,omitempty"`
	ExpectedRate   *float64    `json:"expected_rate_bits_per_second,omitempty"`
	ExpectedSource string      `json:"expected_rate_source,omitempty"`
	Lanes          *uint64     `json:"lanes,omitempty"`
	ExpectedLanes  *uint64     `json:"expected_lanes,omitempty"`
	Modules        []Module    `json:"modules,omitempty"`
	// Neighbours are the far ends of the port's links, as far as they are known.
	Neighbours []Neighbour `json:"neighbours,omitempty"`
	Recent     *Recent     `json:"recent,omitempty"` // where there is a history
}

// Module is the transceiver or cable in a cage.
type Module struct {
	Netdev      string   `json:"netdev,omitempty"`
	State       string   `json:"state"`
	FormFactor  string   `json:"form_factor,omitempty"`
	Vendor      string   `json:"vendor,omitempty"`
	PartNumber  string   `json:"part_number,omitempty"`
	Serial      string   `json:"serial_number,omitempty"`
	Temperature *float64 `json:"temperature_celsius,omitempty"`
	Alarm       *float64 `json:"temperature_high_alarm_celsius,omitempty"`
	RxPower     *float64 `json:"lowest_receive_power_dbm,omitempty"`  // of its lanes
	TxPower     *float64 `json:"lowest_transmit_power_dbm,omitempty"` // of its lanes
}

// Neighbour is the far end of a link.
type Neighbour struct {
	Netdev    string `json:"netdev,omitempty"`
	System    string `json:"system"`
	Port      string `json:"port_id,omitempty"`
	Source    string `json:"source"`              // lldp, subnet, cabling
	Miscabled *bool  `json:"miscabled,omitempty"` // null unless both the configuration and the network name a far end
}

// listPorts returns the ports of all devices.
func listPorts(in Input) []Port {
	out := []Port{}
	if in.Node.InfiniBand == nil {
		return out
	}
	for d, p := range snapshot.PortsOf(in.Node.InfiniBand.Devices) {
		out = append(out, newPort(in, d.Name, p))
	}
	slices.SortStableFunc(out,
		func(a, b Port) int {
			return cmp.Or(page.CompareNames(a.Device, b.Device), cmp.Compare(a.Number, b.Number))
		})
	return out
}

// newPort returns a port as the page shows it.
func newPort(in Input, device string, p *snapshot.Port) Port {
	out := Port{
		Device: exposition.ValidLabel(device), Number: p.Number, LinkLayer: exposition.ValidLabel(p.LinkLayer),
		Role:          exposition.ValidLabel(p.Role),
		State:         snapshot.NameOf(snapshot.PortStates, p.State),
		PhysicalState: snapshot.NameOf(snapshot.PhysicalStates, p.PhysicalState),
		AgeSeconds:    p.Age.Truncate(time.Second).Seconds(),
		Rate:          p.Rate, ExpectedRate: p.ExpectedRate, ExpectedSource: p.ExpectedRateSource, Lanes: p.Lanes,
		ExpectedLanes: p.ExpectedLanes,
	}
	out.Health, out.Alerts = findPortHealth(in, device, p)
	for _, n := range p.Netdev {
		out.Netdevs = append(out.Netdevs, exposition.ValidLabel(n.Name))
		if out.DownReason == "" && (p.State == nil || *p.State != snapshot.PortActive) {
			out.DownReason = words.Join(": ", exposition.ValidLabel(n.DownReason), exposition.ValidLabel(n.DownDetail))
		}
	}
	if in.Node.Optics != nil {
		for _, c := range in.Node.Optics.Cages {
			if c.Device == device && c.Port == p.Number && c.State != wire.CageUnread &&
				c.State != wire.CageUnsupported {
				out.Modules = append(out.Modules, newModule(&c))
			}
		}
	}
	if in.Node.Neighbours != nil {
		for _, n := range in.Node.Neighbours.Ports {
			if n.Device == device && n.Port == p.Number && n.Source != "" {
				out.Neighbours = append(out.Neighbours, Neighbour{
					exposition.ValidLabel(n.Netdev), exposition.ValidLabel(n.End.System), exposition.ValidLabel(n.End.Port),
					n.Source, n.Miscabled,
				})
			}
		}
	}
	out.Recent = in.History.findRecent(out.Device, out.Number)
	return out
}

// newModule returns the transceiver in a cage as the page shows it.
func newModule(c *wire.Cage) Module {
	out := Module{Netdev: exposition.ValidLabel(c.Netdev), State: string(c.State)}
	m := c.Module
	if m == nil {
		return out
	}
	if states := c.States(); len(states) > 1 {
		out.State = exposition.ValidLabel(states[1])
	}
	out.FormFactor, out.Vendor = exposition.ValidLabel(m.FormFactor), exposition.ValidLabel(m.Vendor)
	out.PartNumber, out.Serial = exposition.ValidLabel(m.PartNumber), exposition.ValidLabel(m.SerialNumber)
	out.Temperature, out.Alarm = m.Temperature, m.Thresholds.Temperature.HighAlarm
	out.RxPower = lowest(m.Lanes, func(l *transceiver.Lane) *float64 { return l.RxPower })
	out.TxPower = lowest(m.Lanes, func(l *transceiver.Lane) *float64 { return l.TxPower })
	return out
}

// lowest returns the lowest value of some lanes; nil if none has one.
func lowest(lanes []transceiver.Lane, of func(*transceiver.Lane) *float64) (out *float64) {
	for i := range lanes {
		if v := of(&lanes[i]); v != nil && (out == nil || *v < *out) {
			out = v
		}
	}
	return out
}

// isUnknown reports whether a port is a compute object whose state is unknown.
func isUnknown(r *check.Report, device, port string) bool {
	return r != nil && slices.ContainsFunc(account.Unknowns(r.Objects), func(o account.Object) bool {
		return o.Name == device || o.Name == device+"/"+port
	})
}

// findPortHealth returns the health of a port, and the names of its alerts.
func findPortHealth(in Input, device string, p *snapshot.Port) (page.Health, []string) {
	number := strconv.Itoa(p.Number)
	h, alerts := page.FindHealth(in.Report, "device", device, "port", number)
	ofDevice, more := page.FindHealth(in.Report, "device", device, "port", "")
	h, alerts = page.Worst(h, ofDevice), append(alerts, more...)
	switch {
	case h != page.OK:
		return h, alerts
	case in.Node.InfiniBand.IsIgnored(device, p.Number):
		return page.Ignored, nil
	case p.State == nil,
		isUnknown(in.Report, device, number),
		!page.IsEvaluated(in.Report) && *p.State == snapshot.PortActive:
		return page.NotEvaluated, nil
	case *p.State != snapshot.PortActive:
		return page.Inactive, nil
	case p.Rate != nil && p.ExpectedRate != nil && *p.Rate < *p.ExpectedRate:
		return page.Info, nil
	}
	return page.OK, nil
}
