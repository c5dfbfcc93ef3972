package serve

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"
	"weak"

	"github.com/prometheus/common/version"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/page/fabricpage"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/web"
)

// fabricShown makes the pages of fabric mode from the last sweep and the last evaluation. Requests for pages send
// nothing to the fabric.
type fabricShown struct {
	swept    *machine.Fabric
	daemon   *daemon // nil: no rules are evaluated
	host     string
	interval time.Duration

	mu   sync.Mutex // one makes it for all
	kept *fabricpage.Fabric
	of   fabricMoment // that it was made from
}

// fabricMoment identifies what a page is made from.
type fabricMoment struct {
	picture *fabric.Picture
	round   *rounds.Picture // that was evaluated; nil: none
	port    string
}

// page is the handler of the pages of a fabric.
func (f *Fabric) page(swept *machine.Fabric, d *daemon) (*fabricShown, *web.Page, error) {
	links := []page.Link{
		{Href: "", Text: "Fabric"}, {Href: "links", Text: "All links"}, {Href: "api/v1/fabric", Text: "The fabric as JSON"},
	}
	if d != nil {
		links = append(links, page.Link{Href: "api/v1/findings", Text: "Findings as JSON"})
	}
	p, err := fabricpage.NewPage(f.links(links...))
	if err != nil {
		return nil, nil, err
	}
	x := &fabricShown{
		swept: swept, daemon: d, host: cmp.Or(swept.Hostname(), "this host"), interval: f.interval,
	}
	return x, &web.Page{Views: withRunbooks(p.Renderer, map[string]web.View{
		"{$}": {ContentType: web.HTML, Write: func(_ *http.Request, w io.Writer) error { return p.Render(w, x.fabric(), time.Now()) }},
		"links": {ContentType: web.HTML, Of: x.moment, Queries: true, Write: func(r *http.Request, w io.Writer) error {
			return p.RenderLinks(w, x.fabric(), time.Now(), fabricpage.ParseFilter(r.URL.Query()))
		}},
		"switches/{guid}": {ContentType: web.HTML, Write: func(r *http.Request, w io.Writer) error {
			return p.RenderSwitch(w, x.fabric(), time.Now(), r.PathValue("guid"))
		}},
		"api/v1/fabric": {ContentType: web.JSON, Of: x.moment, Write: func(_ *http.Request, w io.Writer) error { return json.NewEncoder(w).Encode(x.fabric()) }},
	}), Static: page.Static()}, nil
}

// fabric is made once per sweep and evaluation, for all requests.
func (x *fabricShown) fabric() *fabricpage.Fabric {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := fabricMoment{picture: x.swept.Monitor.Picture(), port: x.swept.PortName()}
	if x.daemon != nil {
		now.round = x.daemon.seen.last()
	}
	if now != x.of {
		x.kept, x.of = fabricpage.New(x.input(now)), now
	}
	return x.kept
}

// moment identifies the data of large pages without keeping it in memory.
func (x *fabricShown) moment() any {
	f := x.fabric()
	return struct {
		of    weak.Pointer[fabricpage.Fabric]
		stale string
	}{weak.Make(f), f.Stale(time.Now())}
}

// forget drops the data of an earlier sweep.
func (x *fabricShown) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of.picture != x.swept.Monitor.Picture() {
		x.kept, x.of = nil, fabricMoment{}
	}
}

func (x *fabricShown) input(now fabricMoment) fabricpage.Input {
	in := fabricpage.Input{
		Exporter: version.Version, Host: x.host, Port: now.port, Interval: x.interval, Picture: now.picture,
		Rules: x.daemon != nil,
	}
	if now.round == nil {
		return in
	}
	if findings, ok := x.daemon.input(); ok {
		report := check.New(findings)
		in.Report, in.Alerts, in.Evaluated = &report, findings.Alerts, now.round.Read
	}
	return in
}
