package serve

import (
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

// books is the base URL of runbooks of the daemon: --runbook-url, else its own pages if their address is known.
func (s *Config) books(m *machine.Machine) rulefiles.RunbookURL {
	switch {
	case s.alerting.runbooks != "":
		return s.alerting.runbooks
	case s.metricsPath == "/" || !s.addressKnown(m): // no page, or its address is unknown
		return ""
	}
	return rulefiles.RunbookURL(strings.TrimSuffix(s.own(m), "/") + "/runbooks")
}

// own is the URL of the exporter, as far as it is known.
func (s *Config) own(m *machine.Machine) string {
	if s.externalURL != "" {
		return s.externalURL
	}
	return "http://" + s.alerting.instanceOf(m, *s.toolkit.WebListenAddresses) + s.routePrefix
}

// addressKnown reports whether own is reachable from other hosts: it was configured, or this host has a name and the
// listener is not on loopback only. With --web.config.file it is not known whether the scheme is https.
func (s *Config) addressKnown(m *machine.Machine) bool {
	switch {
	case s.externalURL != "":
		return true
	case *s.toolkit.WebConfigFile != "":
		return false
	case s.alerting.instance != "":
		return true
	case m.Player != nil || m.Hostname() == "" || *s.toolkit.WebSystemdSocket || len(*s.toolkit.WebListenAddresses) == 0:
		return false
	}
	name, port, err := net.SplitHostPort((*s.toolkit.WebListenAddresses)[0])
	return err == nil && port != "0" && name != "localhost" && !net.ParseIP(name).IsLoopback()
}

// withRunbooks adds the pages of runbooks to others. A former name of an alert leads to the current one.
func withRunbooks(p *page.Page, views map[string]web.View) map[string]web.View {
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
