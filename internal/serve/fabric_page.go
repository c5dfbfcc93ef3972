package serve

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/prometheus/common/version"

	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/host/umad"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/web"
)

// fabricShown makes the pages of fabric mode from the last sweep. Requests for pages send nothing to the fabric.
type fabricShown struct {
	monitor  *fabric.Monitor
	host     string
	interval time.Duration
	port     atomic.Pointer[umad.MADPort] // of the sweeps; nil: none was opened

	mu   sync.Mutex // one makes it for all
	kept *page.Fabric
	of   page.FabricInput // that it was made from
}

// page is the handler of the pages of a fabric.
func (f *Fabric) page(m *fabric.Monitor) (*fabricShown, *web.Page, error) {
	p, err := page.NewPage(f.links(page.Link{Href: "", Text: "Fabric"}, page.Link{Href: "links", Text: "All links"},
		page.Link{Href: "api/v1/fabric", Text: "The fabric as JSON"}))
	if err != nil {
		return nil, nil, err
	}
	x := &fabricShown{monitor: m, host: hostname(), interval: f.interval}
	return x, &web.Page{Views: withRunbooks(p, map[string]web.View{
		"{$}": {ContentType: web.HTML, Write: func(_ *http.Request, w io.Writer) error { return p.RenderFabric(w, x.fabric(), time.Now()) }},
		"links": {ContentType: web.HTML, Of: x.moment, Queries: true, Write: func(r *http.Request, w io.Writer) error {
			return p.RenderLinks(w, x.fabric(), time.Now(), page.FilterOf(r.URL.Query()))
		}},
		"switches/{guid}": {ContentType: web.HTML, Write: func(r *http.Request, w io.Writer) error {
			return p.RenderSwitch(w, x.fabric(), time.Now(), r.PathValue("guid"))
		}},
		"api/v1/fabric": {ContentType: web.JSON, Of: x.moment, Write: func(_ *http.Request, w io.Writer) error { return json.NewEncoder(w).Encode(x.fabric()) }},
	}), Static: page.Static()}, nil
}

// fabric is made once per sweep, for all requests.
func (x *fabricShown) fabric() *page.Fabric {
	x.mu.Lock()
	defer x.mu.Unlock()
	in := x.input()
	if in != x.of {
		x.kept, x.of = page.NewFabric(in), in
	}
	return x.kept
}

// moment identifies the data of large pages without keeping it in memory.
func (x *fabricShown) moment() any {
	f := x.fabric()
	return struct {
		of    weak.Pointer[page.Fabric]
		stale string
	}{weak.Make(f), f.Stale(time.Now())}
}

// forget drops the data of an earlier sweep.
func (x *fabricShown) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of.Picture != x.monitor.Picture() {
		x.kept, x.of = nil, page.FabricInput{}
	}
}

func (x *fabricShown) input() page.FabricInput {
	in := page.FabricInput{
		Exporter: version.Version, Host: x.host, Port: "no port", Interval: x.interval, Picture: x.monitor.Picture(),
	}
	if p := x.port.Load(); p != nil {
		in.Port = p.String()
	}
	in.Host = cmp.Or(in.Host, "this host")
	return in
}
