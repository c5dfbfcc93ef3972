package app

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/version"

	"rdma_exporter/docs/runbooks"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/web"
)

// fabricShown makes what a person looks at in fabric mode: the last sweep. Looking at it asks the fabric for nothing.
type fabricShown struct {
	monitor  *fabric.Monitor
	page     *page.Page
	host     string
	interval time.Duration
	port     atomic.Pointer[host.MADPort] // that is looked from; nil: none was opened
}

// page wires the pages of a fabric.
func (f *fabricConfig) page(m *fabric.Monitor) (*fabricShown, *web.Page, error) {
	p, err := page.NewPage(f.links(page.Link{Href: "", Text: "Fabric"}, page.Link{Href: "links", Text: "All links"}, page.Link{Href: "api/v1/fabric", Text: "The fabric as JSON"}))
	if err != nil {
		return nil, nil, err
	}
	x := &fabricShown{monitor: m, page: p, host: hostname(), interval: f.interval}
	return x, &web.Page{Views: map[string]web.View{
		"{$}":             {ContentType: web.HTML, Write: func(_ *http.Request, w io.Writer) error { return p.RenderFabric(w, x.input()) }},
		"links":           {ContentType: web.HTML, Write: func(_ *http.Request, w io.Writer) error { return p.RenderLinks(w, x.input()) }},
		"switches/{guid}": {ContentType: web.HTML, Write: func(r *http.Request, w io.Writer) error { return p.RenderSwitch(w, x.input(), r.PathValue("guid")) }},
		"api/v1/fabric":   {ContentType: web.JSON, Write: func(_ *http.Request, w io.Writer) error { return json.NewEncoder(w).Encode(page.NewFabric(x.input())) }},
	}, Static: page.Static(), Runbooks: runbooks.Files}, nil
}

func (x *fabricShown) input() page.FabricInput {
	in := page.FabricInput{Exporter: version.Version, Host: x.host, Port: "no port", Now: time.Now(), Interval: x.interval, Picture: x.monitor.Picture()}
	if p := x.port.Load(); p != nil {
		in.Port = fmt.Sprintf("%s/%d", p.Device, p.Port)
	}
	in.Host = cmp.Or(in.Host, "this host")
	return in
}
