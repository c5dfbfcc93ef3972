package serve

import (
	"cmp"
	"io"
	"net"
	"net/http"
	"strings"

	"rdma_exporter/docs/runbooks"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/rulefiles"
	"rdma_exporter/internal/web"
)

// address is where a daemon is reached.
type address struct {
	web      *Web
	alerting *alertingConfig
	machine  *machine.Machine
}

// instance is the label instance.
func (at address) instance() string {
	return cmp.Or(at.alerting.instance, at.machine.Instance(*at.web.toolkit.WebListenAddresses))
}

// books is the base URL of runbooks of the daemon: --runbook-url, else its own pages if their address is known.
func (at address) books() rulefiles.RunbookURL {
	switch {
	case at.alerting.runbooks != "":
		return at.alerting.runbooks
	case at.web.metricsPath == "/" || !at.known(): // no page, or its address is unknown
		return ""
	}
	return rulefiles.RunbookURL(strings.TrimSuffix(at.own(), "/") + "/runbooks")
}

// own is the URL of the exporter, as far as it is known.
func (at address) own() string {
	if at.web.externalURL != "" {
		return at.web.externalURL
	}
	return "http://" + at.instance() + at.web.routePrefix
}

// known reports whether own is reachable from other hosts: it was configured, or this host has a name and the listener
// is not on loopback only. With --web.config.file it is not known whether the scheme is https.
func (at address) known() bool {
	m, flags := at.machine, at.web.toolkit
	switch {
	case at.web.externalURL != "":
		return true
	case *flags.WebConfigFile != "":
		return false
	case at.alerting.instance != "":
		return true
	case m.Player != nil || m.Hostname() == "" || *flags.WebSystemdSocket || len(*flags.WebListenAddresses) == 0:
		return false
	}
	name, port, err := net.SplitHostPort((*flags.WebListenAddresses)[0])
	return err == nil && port != "0" && name != "localhost" && !net.ParseIP(name).IsLoopback()
}

// withRunbooks adds the pages of runbooks to others. A former name of an alert leads to the current one.
func withRunbooks(p *page.Renderer, views map[string]web.View) map[string]web.View {
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
