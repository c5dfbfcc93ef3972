package serve

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
	"rdma_exporter/internal/web"
	"rdma_exporter/internal/words"
)

const (
	// pageYoung is the maximum age of a collection on the page without alerting.
	pageYoung = 5 * time.Second
	// pageKept is how long a page is cached for all clients.
	pageKept = 2 * time.Second
)

// shown makes the pages. With alerting it reads nothing from the machine: it shows the last round that was evaluated.
type shown struct {
	daemon  *daemon // nil: no alerting
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

// page registers the pages of the node.
func (s *Config) page(c *machine.Config, at address, sched *rounds.Scheduler, d *daemon) (*web.Page, error) {
	views := []page.Link{
		{Href: "api/v1/node", Text: "This page as JSON"}, {Href: "api/v1/topology", Text: "Topology as JSON"},
	}
	if d != nil {
		views = append(views, page.Link{Href: "api/v1/findings", Text: "Findings as JSON"})
	}
	p, err := nodepage.NewPage(s.links(views...))
	if err != nil {
		return nil, err
	}
	host := words.HostName(at.instance())
	x := &shown{
		daemon: d, sched: sched, young: max(s.minInterval, pageYoung), machine: at.machine.Describe(c), host: host, page: p,
	}
	return &web.Page{Views: withRunbooks(p.Renderer, map[string]web.View{
		"{$}":             {ContentType: web.HTML, Write: x.shared("html", x.html)},
		"api/v1/node":     {ContentType: web.JSON, Write: x.shared("node", node)},
		"api/v1/topology": {ContentType: web.JSON, Write: x.shared("topology", topology)},
	}), Static: page.Static()}, nil
}

// picture is the round to show; nil before the first evaluation has finished.
func (x *shown) picture(ctx context.Context) (*rounds.Picture, error) {
	if x.daemon != nil {
		return x.daemon.seen.last(), nil
	}
	return x.sched.CollectWithin(ctx, nil, x.young)
}

// shared renders a view once for all clients.
func (x *shown) shared(
	name string, render func(w io.Writer, in nodepage.Input) error,
) func(*http.Request, io.Writer) error {
	return func(r *http.Request, w io.Writer) error {
		p, err := x.picture(r.Context())
		if err != nil {
			return err
		}
		text, err := x.text(r.Context(), p, name, render)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
}

func (x *shown) text(
	ctx context.Context, p *rounds.Picture, name string, render func(w io.Writer, in nodepage.Input) error,
) ([]byte, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p == nil || p != x.of || time.Since(x.at) > pageKept {
		in, err := x.read(ctx, p)
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

func (x *shown) read(ctx context.Context, p *rounds.Picture) (nodepage.Input, error) {
	in := nodepage.Input{Exporter: version.Version, Machine: x.machine, Host: x.host, Now: time.Now()}
	if p == nil {
		return in, nil
	}
	in.Read, in.Node, in.Families, in.Needs = p.Read, p.Node(), p.Families, p.Needs
	in.Maintenance = p.Maintenance
	if x.daemon == nil {
		return in, nil
	}
	findings, _ := x.daemon.input()
	report := check.New(findings)
	in.Incidents = x.daemon.flight.incidents()
	in.Report, in.Alerts, in.Interval = &report, findings.Alerts, findings.Interval
	in.History, in.NoHistory = nodepage.ReadHistory(ctx, x.daemon.engine)
	return in, ctx.Err()
}

func (x *shown) html(w io.Writer, in nodepage.Input) error {
	n := nodepage.New(in)
	return x.page.Render(w, in, &n, nodepage.Topology(in))
}

func node(w io.Writer, in nodepage.Input) error { return command.PrintJSON(w, nodepage.New(in)) }

func topology(w io.Writer, in nodepage.Input) error {
	return command.PrintJSON(w, nodepage.Topology(in))
}
