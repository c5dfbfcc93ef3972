package fabricdaemon

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
	"rdma_exporter/internal/serve"
	"rdma_exporter/internal/web"
)

// pageCache makes the pages of fabric mode from the last sweep and the last evaluation. Requests for pages send nothing
// to the fabric.
type pageCache struct {
	swept    *machine.Fabric
	daemon   *serve.Daemon // nil: no rules are evaluated
	host     string
	interval time.Duration

	mu   sync.Mutex // the first request makes it for all
	kept *fabricpage.Fabric
	of   moment // of the data that it was made from
}

// moment identifies the data of a page.
type moment struct {
	picture *fabric.Picture
	round   *rounds.Picture // that was evaluated; nil: none
	port    string
}

// newPages returns the pages of a fabric with their cache.
func (f *Command) newPages(swept *machine.Fabric, d *serve.Daemon) (*pageCache, *web.Page, error) {
	links := []page.Link{
		{Href: "", Text: "Fabric"}, {Href: "links", Text: "All links"}, {Href: "api/v1/fabric", Text: "The fabric as JSON"},
	}
	if d != nil {
		links = append(links, page.Link{Href: "api/v1/findings", Text: "Findings as JSON"})
	}
	p, err := fabricpage.NewPage(f.FooterLinks(links...))
	if err != nil {
		return nil, nil, err
	}
	x := &pageCache{
		swept: swept, daemon: d, host: cmp.Or(swept.Hostname(), "this host"), interval: f.interval,
	}
	return x, &web.Page{Views: serve.AddRunbooks(p.Renderer, map[string]web.View{
		"{$}": {ContentType: web.HTML, Write: func(_ *http.Request, w io.Writer) error { return p.Render(w, x.makeFabric(), time.Now()) }},
		"links": {ContentType: web.HTML, Of: x.identify, Queries: true, Write: func(r *http.Request, w io.Writer) error {
			return p.RenderLinks(w, x.makeFabric(), time.Now(), fabricpage.ParseFilter(r.URL.Query()))
		}},
		"switches/{guid}": {ContentType: web.HTML, Write: func(r *http.Request, w io.Writer) error {
			return p.RenderSwitch(w, x.makeFabric(), time.Now(), r.PathValue("guid"))
		}},
		"api/v1/fabric": {ContentType: web.JSON, Of: x.identify, Write: func(_ *http.Request, w io.Writer) error { return json.NewEncoder(w).Encode(x.makeFabric()) }},
	}), Static: page.Static()}, nil
}

// makeFabric returns the data of the pages, which is made once per sweep and evaluation for all requests.
func (x *pageCache) makeFabric() *fabricpage.Fabric {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := moment{picture: x.swept.Monitor.Picture(), port: x.swept.PortName()}
	if x.daemon != nil {
		now.round = x.daemon.LastRound()
	}
	if now != x.of {
		x.kept, x.of = fabricpage.New(x.newInput(now)), now
	}
	return x.kept
}

// identify returns a value that identifies the data of large pages, without keeping the data in memory.
func (x *pageCache) identify() any {
	f := x.makeFabric()
	return struct {
		of    weak.Pointer[fabricpage.Fabric]
		stale string
	}{weak.Make(f), f.Stale(time.Now())}
}

// forget drops the data of an earlier sweep.
func (x *pageCache) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of.picture != x.swept.Monitor.Picture() {
		x.kept, x.of = nil, moment{}
	}
}

// newInput returns the input of the pages.
func (x *pageCache) newInput(now moment) fabricpage.Input {
	in := fabricpage.Input{
		Exporter: version.Version, Host: x.host, Port: now.port, Interval: x.interval, Picture: now.picture,
		Rules: x.daemon != nil,
	}
	if now.round == nil {
		return in
	}
	if findings, ok := x.daemon.Input(); ok {
		report := check.New(findings)
		in.Report, in.Alerts, in.Evaluated = &report, findings.Alerts, now.round.Read
		in.Parts = findings.Symptoms.Faulty
	}
	return in
}
