package app

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/common/version"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/web"
)

const (
	// pageYoung is how old a collection may be that is shown where no rules are judged, whose rounds would be there anyway.
	pageYoung = 5 * time.Second
	// pageKept is how long a page serves all who look.
	pageKept = 2 * time.Second
)

// shown makes what a person looks at. It reads nothing of the machine while rules are judged: it shows the round that they saw.
type shown struct {
	daemon  *daemon // nil: no rules are judged
	sched   *rounds.Scheduler
	young   time.Duration
	machine string
	host    string
	page    *page.Page

	mu   sync.Mutex // the history is read by one at a time
	kept page.Input // the last one
	of   *rounds.Picture
	at   time.Time
}

// page wires the node's page.
func (s *serveConfig) page(c *config, m *machine, sched *rounds.Scheduler, d *daemon) (*web.Page, error) {
	views := []page.Link{{Href: "api/v1/node", Text: "This page as JSON"}, {Href: "api/v1/topology", Text: "Topology as JSON"}}
	if d != nil {
		views = append(views, page.Link{Href: "api/v1/findings", Text: "Findings as JSON"})
	}
	p, err := page.NewPage(s.links(views...))
	if err != nil {
		return nil, err
	}
	host := alerting.HostName(s.alerting.instanceOf(m, *s.toolkit.WebListenAddresses))
	x := &shown{daemon: d, sched: sched, young: max(s.minInterval, pageYoung), machine: m.describe(c), host: host, page: p}
	return &web.Page{Views: withRunbooks(p, map[string]web.View{
		"{$}":             {ContentType: web.HTML, Write: x.html},
		"api/v1/node":     {ContentType: web.JSON, Write: x.node},
		"api/v1/topology": {ContentType: web.JSON, Write: x.topology},
	}), Static: page.Static()}, nil
}

// picture is what is shown; nil before the first round of the rules has ended.
func (x *shown) picture(ctx context.Context) (*rounds.Picture, error) {
	if x.daemon != nil {
		return x.daemon.seen.last(), nil
	}
	return x.sched.CollectWithin(ctx, nil, x.young)
}

// input is what is known of the node. One reading of the history serves all who look.
func (x *shown) input(ctx context.Context) (page.Input, error) {
	p, err := x.picture(ctx)
	if err != nil {
		return page.Input{}, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if p == nil || p != x.of || time.Since(x.at) > pageKept {
		in, err := x.read(ctx, p)
		if err != nil {
			return in, err
		}
		x.kept, x.of, x.at = in, p, time.Now()
	}
	return x.kept, nil
}

func (x *shown) read(ctx context.Context, p *rounds.Picture) (page.Input, error) {
	in := page.Input{Exporter: version.Version, Machine: x.machine, Host: x.host, Now: time.Now()}
	if p == nil {
		return in, nil
	}
	in.Read, in.Node, in.Families, in.Needs = p.Read, &p.Node, p.Families, p.Needs
	in.Maintenance = p.Maintenance
	if x.daemon == nil {
		return in, nil
	}
	judged, _ := x.daemon.input()
	report := check.New(judged)
	in.Incidents = x.daemon.flight.incidents()
	in.Report, in.Alerts, in.Interval = &report, judged.Alerts, judged.Interval
	in.History, in.NoHistory = page.ReadHistory(ctx, x.daemon.engine)
	return in, ctx.Err()
}

func (x *shown) html(r *http.Request, w io.Writer) error {
	in, err := x.input(r.Context())
	if err != nil {
		return err
	}
	n := page.New(in)
	return x.page.Render(w, in, &n, page.Topology(in))
}

func (x *shown) node(r *http.Request, w io.Writer) error {
	in, err := x.input(r.Context())
	if err != nil {
		return err
	}
	return printJSON(w, page.New(in))
}

func (x *shown) topology(r *http.Request, w io.Writer) error {
	in, err := x.input(r.Context())
	if err != nil {
		return err
	}
	return printJSON(w, page.Topology(in))
}
