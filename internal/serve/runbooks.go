package serve

import (
	"io"
	"net/http"

	"rdma_exporter/docs/runbooks"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/web"
)

// AddRunbooks adds the runbook pages to views. A former name of an alert redirects to the current one.
func AddRunbooks(p *page.Renderer, views map[string]web.View) map[string]web.View {
	views["runbooks/{$}"] = web.View{
		ContentType: web.HTML, Write: func(_ *http.Request, w io.Writer) error { return p.RenderRunbooks(w) },
	}
	views["runbooks/{name}"] = web.View{
		ContentType: web.HTML,
		Write: func(r *http.Request, w io.Writer) error {
			name := r.PathValue("name")
			if now, ok := runbooks.Former(name); ok {
				return web.MovedError(now.Alert + now.Anchor())
			}
			return p.RenderRunbook(w, name)
		},
	}
	return views
}
