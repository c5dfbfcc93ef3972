package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/collector"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/snapshot"
)

// listConfig is of "expect list" and "inventory list".
type listConfig struct {
	json bool
}

func (l *listConfig) flags(a *kingpin.CmdClause) {
	a.Flag("json", "Print JSON instead of a table.").BoolVar(&l.json)
}

// seen is the state of a machine.
type seen struct {
	*rounds.Picture
	Host   string // its name; empty: unknown
	Replay string // the recording; empty: a live host
}

// observe collects with some collectors, infiniband among them: one round of a live host, all rounds of a replay. It starts from the known links
// and devices.
func (c *config) observe(ctx context.Context, log *slog.Logger, collectors ...string) (*seen, *expect.Memory, error) {
	m, err := c.open(time.Now())
	if err != nil {
		return nil, nil, err
	}
	defer func() { discard(log, "cannot release the host files", m.close()) }()
	known, err := c.remembered(m)
	if err != nil {
		return nil, nil, err
	}
	memory := expect.NewMemory(known)
	on, err := c.collectors(m, memory)
	if err != nil {
		return nil, nil, err
	}
	sched := rounds.New(ctx, rounds.Options{Host: m.Host, Collectors: on, Timeout: c.timeout, Limits: c.limits, Now: m.Now, Logger: log})
	var p *rounds.Picture
	neighbours := slices.ContainsFunc(on, func(x *collector.Collector) bool { return x.Name == "neighbour" })
	for _, t := range m.times() {
		if err := m.seek(t); err != nil {
			return nil, nil, err
		}
		if neighbours { // the settings of both ends are evidence for the expected rate
			if _, err := sched.Collect(ctx, []string{"neighbour"}); err != nil {
				return nil, nil, err
			}
		}
		if p, err = sched.Collect(ctx, collectors); err != nil {
			return nil, nil, err
		}
	}
	if p.Node.InfiniBand == nil {
		return nil, nil, errors.New("timed out reading the RDMA devices: try --collect.timeout=30s")
	}
	return &seen{p, m.hostname(), m.recording(c)}, memory, nil
}

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

func runExpectList(ctx context.Context, c *config, l *listConfig, stdout io.Writer, log *slog.Logger) (int, error) {
	p, memory, err := c.observe(ctx, log, "infiniband")
	if err != nil {
		return usage(err)
	}
	var rows []linkRow
	for i := range p.Node.InfiniBand.Devices {
		rows = append(rows, linkRows(&p.Node.InfiniBand.Devices[i], memory.Data().Links)...)
	}
	if l.json {
		return exitOK, printJSON(stdout, rows)
	}
	t := table{}
	t.row("DEVICE", "PORT", "NETDEV", "ROLE", "LINK", "EXPECTED", "SOURCE", "HIGHEST", "SINCE")
	for _, r := range rows {
		link, since := "down", ""
		if r.Active {
			link = cmp.Or(rateText(r.Rate, r.Lanes), "unknown")
		}
		if r.HighestAt != nil {
			since = r.HighestAt.UTC().Format(time.DateOnly)
		}
		t.row(r.Device, strconv.Itoa(r.Port), r.Netdev, r.Role, link, rateText(r.Expected, r.ExpectedLanes), r.Source, rateText(r.Highest, 0), since)
	}
	return exitOK, onTerminal(stdout, t.print)
}

// linkRows are the links of a device: ports, and members of bonds.
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
			m := linkRow{Device: d.Name, Port: p.Number, Netdev: nd.Name, Role: p.Role, Active: nd.Up != nil && *nd.Up, member: nd.Name}
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
	r.Rate, r.Lanes = value(rate), value(lanes)
	r.Expected, r.ExpectedLanes, r.Source = value(e.ExpectedRate), value(e.ExpectedLanes), e.ExpectedRateSource
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// rateText is "400 Gb/s 4X"; empty: no rate.
func rateText(bits float64, lanes uint64) string {
	if bits == 0 {
		return ""
	}
	s := strconv.FormatFloat(bits/1e9, 'g', 4, 64) + " Gb/s"
	if lanes != 0 {
		s += fmt.Sprintf(" %dX", lanes)
	}
	return s
}

func linkName(l expect.LinkRecord) string {
	s := fmt.Sprintf("%s/%d", l.Device, l.Port)
	if l.Netdev != "" {
		s += " " + l.Netdev
	}
	return check.Plain(s)
}

// table is a text table with a header row.
type table struct {
	rows [][]string
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range t.rows {
		for i := range r {
			r[i] = cmp.Or(r[i], "-")
		}
		if _, err := fmt.Fprintln(tw, strings.Join(r, "\t")); err != nil {
			return err
		}
	}
	return tw.Flush()
}

// onTerminal writes a text that has names from hardware and from other users.
func onTerminal(to io.Writer, print func(io.Writer) error) error {
	var text strings.Builder
	if err := print(&text); err != nil {
		return err
	}
	_, err := io.WriteString(to, check.Plain(text.String()))
	return err
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
