package report

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
	"rdma_exporter/internal/transceiver"
)

// opticsRow is a port, or a member of its bond, in "optics".
type opticsRow struct {
	Device    string  `json:"device"`
	Port      int     `json:"port"`
	Netdev    string  `json:"netdev,omitempty"`
	LinkLayer string  `json:"link_layer"`
	Active    bool    `json:"active"`
	State     string  `json:"state"` // snapshot.CageState, or not_read
	Why       string  `json:"why,omitempty"`
	First     string  `json:"same_module_as,omitempty"` // netdev
	Age       float64 `json:"age_seconds,omitempty"`
	// AdapterSensor is the module temperature in hwmon of the adapter.
	AdapterSensor *float64            `json:"adapter_sensor_celsius,omitempty"`
	SensorLimit   *float64            `json:"adapter_sensor_limit_celsius,omitempty"`
	Module        *transceiver.Module `json:"module,omitempty"`
	Passed        []passed            `json:"passed,omitempty"`
}

// passed is a threshold of the module that a reading exceeds.
type passed struct {
	Reading string            `json:"reading"`
	Lane    int               `json:"lane,omitempty"`
	Level   transceiver.Level `json:"level"`
}

// Optics is the command optics, with its flags.
type Optics struct{ json, lanes bool }

// Flags adds the flags.
func (l *Optics) Flags(a *kingpin.CmdClause) {
	a.Flag("json", "Print JSON instead of a table.").BoolVar(&l.json)
	a.Flag("lanes", "Print each lane of each module, with voltage, bias and the serial number.").BoolVar(&l.lanes)
}

// Run prints the transceivers.
func (l *Optics) Run(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	p, _, err := c.Observe(ctx, std.Log, "infiniband", "sensors", "transceiver")
	if err != nil {
		return command.Usage(err)
	}
	rows := opticsRows(p.Node())
	return command.OK, command.Print(std, l.json, rows, opticsMarks, func(w io.Writer) error {
		if l.lanes {
			return printOptics(w, worstFirst(rows), std.Style)
		}
		return printSummary(w, rows, std.Style)
	})
}

// opticsRows returns the ports of physical functions. Virtual functions have no cage.
func opticsRows(n *snapshot.Node) []opticsRow {
	rows := []opticsRow{}
	for i := range n.InfiniBand.Devices {
		d := &n.InfiniBand.Devices[i]
		if d.FunctionType != snapshot.Physical {
			continue
		}
		for j := range d.Ports {
			p := &d.Ports[j]
			netdevs := p.Netdev
			if len(netdevs) == 0 {
				netdevs = []snapshot.Netdev{{}}
			}
			for k := range netdevs {
				rows = append(rows, opticsOf(n, d, p, &netdevs[k]))
			}
		}
	}
	return rows
}

func opticsOf(n *snapshot.Node, d *snapshot.Device, p *snapshot.Port, nd *snapshot.Netdev) opticsRow {
	r := opticsRow{
		Device: d.Name, Port: p.Number, Netdev: nd.Name, LinkLayer: p.LinkLayer, State: "not_read",
	}
	r.AdapterSensor, r.SensorLimit = moduleSensor(n, d.Name)
	r.Active = p.State != nil && *p.State == 4
	if nd.Member && nd.Up != nil {
		r.Active = *nd.Up
	}
	var cage *wire.Cage
	if n.Optics != nil {
		if i := slices.IndexFunc(n.Optics.Cages, func(c wire.Cage) bool {
			return c.Device == d.Name && c.Port == p.Number && c.Netdev == nd.Name
		}); i >= 0 {
			cage = &n.Optics.Cages[i]
		}
	}
	if cage == nil {
		r.Why = whyNoCage(n, d, p, nd)
		return r
	}
	r.State, r.First, r.Module = cmp.Or(string(cage.State), r.State), cage.First, cage.Module
	if cage.Age != nil {
		r.Age = cage.Age.Seconds()
	}
	if cage.State != wire.CagePresent {
		r.Why = whyNoModule[cage.State].with(cage.Err)
	}
	if r.Module != nil {
		r.Passed = passedBy(r.Module, r.Active)
	}
	return r
}

// moduleSensor returns the sensor of the module that was plugged in when mlx5 was loaded, and its critical limit.
func moduleSensor(n *snapshot.Node, device string) (celsius, limit *float64) {
	if n.Sensors == nil {
		return nil, nil
	}
	for i := range n.Sensors.Devices {
		for _, s := range n.Sensors.Devices[i].Sensors {
			if n.Sensors.Devices[i].Device == device && s.OfModule() {
				return s.Value, s.Critical
			}
		}
	}
	return nil, nil
}

func whyNoCage(n *snapshot.Node, d *snapshot.Device, p *snapshot.Port, nd *snapshot.Netdev) string {
	switch {
	case d.ManagesNVLink:
		return "function manages NVLink switches, it has no transceiver"
	case p.LinkLayer == "InfiniBand":
		return "kernel exposes only the temperature of InfiniBand transceivers (hwmon, if any); use mlxlink -m"
	case nd.Name == "":
		return "no netdev in this network namespace"
	case n.Optics == nil:
		return "timed out, try --collect.timeout=30s"
	}
	return "not read"
}

// moduleReason is why a module is not shown, and whether to add the error.
type moduleReason struct {
	text    string
	withErr bool
}

var whyNoModule = map[wire.CageState]moduleReason{
	wire.CageUnread:      {"cannot be read", true},
	wire.CageEmpty:       {"cage is empty", false},
	wire.CageBusy:        {"transceiver busy: firmware update in progress, or its bus is in use", false},
	wire.CageUnreadable:  {"transceiver present, read failed", true},
	wire.CageNoAnswer:    {"no response, driver does not report whether a transceiver is present", true},
	wire.CageUnknown:     {"unknown memory map", true},
	wire.CageUnsupported: {"not supported by this driver", true},
}

func (r moduleReason) with(err string) string {
	if r.withErr && err != "" {
		return r.text + ": " + err
	}
	return r.text
}

// passedBy compares readings with the thresholds of the module. Lanes count if their data path is activated. SFF
// modules do not report that: their lanes count while the port is active.
func passedBy(m *transceiver.Module, portActive bool) (out []passed) {
	note := func(reading string, lane int, l *transceiver.Levels, v *float64) {
		if level := l.Passed(v); level != "" {
			out = append(out, passed{reading, lane, level})
		}
	}
	t := &m.Thresholds
	note("temperature", 0, &t.Temperature, m.Temperature)
	note("voltage", 0, &t.Voltage, m.Voltage)
	for i := range m.Lanes {
		l := &m.Lanes[i]
		if !inUse(l, portActive) {
			continue
		}
		note("receive_power", l.Number, &t.RxPower, l.RxPower)
		note("transmit_power", l.Number, &t.TxPower, l.TxPower)
		note("bias", l.Number, &t.Bias, l.Bias)
	}
	return out
}

func inUse(l *transceiver.Lane, portActive bool) bool {
	if l.Active != nil {
		return *l.Active
	}
	return portActive && (l.TxDisabled == nil || !*l.TxDisabled)
}
