package nodedaemon

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/common/version"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/page/nodepage"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/serve"
	"rdma_exporter/internal/web"
	"rdma_exporter/internal/words"
)

const (
	// pageYoung is the maximum age of a collection on the page without alerting.
	pageYoung = 5 * time.Second
	// pageKept is how long a page is cached for all clients.
	pageKept = 2 * time.Second
)

// pageCache makes the pages. With alerting it reads nothing from the machine: it shows the last round that was
// evaluated.
type pageCache struct {
	daemon  *serve.Daemon // nil: no alerting
	flight  *flightRecorder
	last    func() *rounds.Picture // the last round that was evaluated; nil: no alerting
	sched   *rounds.Scheduler
	young   time.Duration
	machine string
	host    string
	page    *nodepage.Page

	mu       sync.Mutex     // one request at a time reads the history and renders
	kept     nodepage.Input // the last one
	rendered map[string][]byte
	of       *rounds.Picture
	at       time.Time
}

// newPages returns the pages of a node.
func (s *Command) newPages(
	c *machine.Config, at serve.Address, sched *rounds.Scheduler, d *serve.Daemon, flight *flightRecorder,
) (*web.Page, error) {
	views := []page.Link{
		{Href: "api/v1/node", Text: "This page as JSON"}, {Href: "api/v1/topology", Text: "Topology as JSON"},
	}
	if d != nil {
		views = append(views, page.Link{Href: "api/v1/findings", Text: "Findings as JSON"})
	}
	p, err := nodepage.NewPage(s.FooterLinks(views...))
	if err != nil {
		return nil, err
	}
	host := words.HostName(at.Instance())
	x := &pageCache{
		daemon: d, flight: flight, sched: sched, young: max(s.minInterval, pageYoung), machine: at.Machine.Describe(c),
		host: host, page: p,
	}
	if d != nil {
		x.last = d.LastRound
	}
	return &web.Page{Views: serve.AddRunbooks(p.Renderer, map[string]web.View{
		"{$}":             {ContentType: web.HTML, Write: x.shareView("html", x.renderHTML)},
		"api/v1/node":     {ContentType: web.JSON, Write: x.shareView("node", renderNode)},
		"api/v1/topology": {ContentType: web.JSON, Write: x.shareView("topology", renderTopology)},
	}), Static: page.Static()}, nil
}

// readPicture returns the round to show; nil before the first evaluation has finished.
func (x *pageCache) readPicture(ctx context.Context) (*rounds.Picture, error) {
	if x.last != nil {
		return x.last(), nil
	}
	return x.sched.CollectWithin(ctx, nil, x.young)
}

// shareView returns the function that writes a view, rendered once for all clients.
func (x *pageCache) shareView(
	name string, render func(w io.Writer, in nodepage.Input) error,
) func(*http.Request, io.Writer) error {
	return func(r *http.Request, w io.Writer) error {
		p, err := x.readPicture(r.Context())
		if err != nil {
			return err
		}
		text, err := x.renderShared(r.Context(), p, name, render)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
}

// renderShared returns a view of a round, rendered once while the cache is valid.
func (x *pageCache) renderShared(
	ctx context.Context, p *rounds.Picture, name string, render func(w io.Writer, in nodepage.Input) error,
) ([]byte, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p == nil || p != x.of || time.Since(x.at) > pageKept {
		in, err := x.readInput(ctx, p)
		if err != nil {
			return nil, err
		}
		x.kept, x.rendered, x.of, x.at = in, map[string][]byte{}, p, time.Now()
	}
	if x.rendered[name] == nil {
		var b bytes.Buffer
		if err := render(&b, x.kept); err != nil {
			return nil, err
		}
		x.rendered[name] = b.Bytes()
	}
	return x.rendered[name], nil
}

// readInput returns the input of the page of a round.
func (x *pageCache) readInput(ctx context.Context, p *rounds.Picture) (nodepage.Input, error) {
	in := nodepage.Input{Exporter: version.Version, Machine: x.machine, Host: x.host, Now: time.Now()}
	if p == nil {
		return in, nil
	}
	in.Read, in.Node, in.Families, in.Needs = p.Read, p.Node(), p.Families, p.Needs
	in.Maintenance = p.Maintenance
	if x.daemon == nil {
		return in, nil
	}
	findings, _ := x.daemon.Input()
	report := check.New(findings)
	in.Incidents = x.flight.listIncidents()
	in.Report, in.Alerts, in.Interval = &report, findings.Alerts, findings.Interval
	in.History, in.NoHistory = nodepage.ReadHistory(ctx, x.daemon.Engine)
	return in, ctx.Err()
}

// renderHTML writes the page.
func (x *pageCache) renderHTML(w io.Writer, in nodepage.Input) error {
	n := nodepage.New(in)
	return x.page.Render(w, in, &n, nodepage.Topology(in))
}

// renderNode writes the page as JSON.
func renderNode(w io.Writer, in nodepage.Input) error { return command.PrintJSON(w, nodepage.New(in)) }

// renderTopology writes the topology as JSON.
func renderTopology(w io.Writer, in nodepage.Input) error {
	return command.PrintJSON(w, nodepage.Topology(in))
}
