package report

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/words"
)

// linkRow is a line of "expect list".
type linkRow struct {
	Device        string     `json:"device"`
	Port          int        `json:"port"`
	Netdev        string     `json:"netdev,omitempty"`
	Role          string     `json:"role"`
	Active        bool       `json:"active"`
	Rate          float64    `json:"rate_bits_per_second,omitempty"`
	Lanes         uint64     `json:"lanes,omitempty"`
	Expected      float64    `json:"expected_rate_bits_per_second,omitempty"`
	ExpectedLanes uint64     `json:"expected_lanes,omitempty"`
	Source        string     `json:"source,omitempty"`
	Highest       float64    `json:"high_water_mark_bits_per_second,omitempty"`
	HighestAt     *time.Time `json:"high_water_mark_since,omitempty"`
	member        string     // netdev of a bond's member
}

type listFlags struct{ json bool }

// Flags adds the flags.
func (l *listFlags) Flags(a *kingpin.CmdClause) {
	a.Flag("json", "Print JSON instead of a table.").BoolVar(&l.json)
}

// Links is the command expect list, with its flags.
type Links struct{ listFlags }

// Run prints the expected rate and width of each link.
func (l *Links) Run(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	p, memory, err := c.Observe(ctx, std.Log, "infiniband")
	if err != nil {
		return command.Usage(err)
	}
	var rows []linkRow
	for i := range p.Node().InfiniBand.Devices {
		rows = append(rows, linkRows(&p.Node().InfiniBand.Devices[i], words.AllForeign(memory.Data()).Links)...)
	}
	t := command.Table{}
	t.Row("DEVICE", "PORT", "NETDEV", "ROLE", "LINK", "EXPECTED", "SOURCE", "HIGHEST", "SINCE")
	for _, r := range rows {
		link, since := "down", ""
		if r.Active {
			link = cmp.Or(command.RateText(r.Rate, r.Lanes), "unknown")
		}
		if r.HighestAt != nil {
			since = r.HighestAt.UTC().Format(time.DateOnly)
		}
		t.Row(r.Device, strconv.Itoa(r.Port), r.Netdev, r.Role, link, command.RateText(r.Expected, r.ExpectedLanes), r.Source,
			command.RateText(r.Highest, 0), since)
	}
	return command.OK, command.Print(std, l.json, rows, nil, t.Print)
}

// linkRows returns the links of a device: ports, and members of bonds.
func linkRows(d *snapshot.Device, known map[string]expect.LinkRecord) (out []linkRow) {
	for i := range d.Ports {
		p := &d.Ports[i]
		r := linkRow{Device: d.Name, Port: p.Number, Role: p.Role, Active: p.State != nil && *p.State == 4}
		r.fill(p.Rate, p.Lanes, &p.Expected)
		var members []linkRow
		for j := range p.Netdev {
			nd := &p.Netdev[j]
			if !nd.Member {
				r.Netdev = nd.Name
				continue
			}
			m := linkRow{
				Device: d.Name, Port: p.Number, Netdev: nd.Name, Role: p.Role, Active: nd.Up != nil && *nd.Up, member: nd.Name,
			}
			m.fill(nd.Rate, nd.Lanes, &nd.Expected)
			members = append(members, m)
		}
		if members == nil {
			members = []linkRow{r}
		}
		out = append(out, members...)
	}
	for i := range out {
		k, marked := known[expect.LinkID(d.NodeGUID, d.PCIAddress, out[i].Port, out[i].member)]
		if marked && k.Rate > 0 {
			out[i].Highest, out[i].HighestAt = k.Rate, &k.MarkedAt
		}
	}
	return out
}

func (r *linkRow) fill(rate *float64, lanes *uint64, e *snapshot.Expected) {
	r.Rate, r.Lanes = command.Value(rate), command.Value(lanes)
	r.Expected, r.ExpectedLanes, r.Source = command.Value(e.ExpectedRate), command.Value(e.ExpectedLanes),
		e.ExpectedRateSource
}
