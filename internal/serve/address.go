package serve

import (
	"cmp"
	"net"
	"strings"

	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rulefiles"
)

// Address holds the settings that determine the address of a daemon.
type Address struct {
	Web      *Web
	Alerting *Alerting
	Machine  *machine.Machine
}

// Instance returns the label instance.
func (at Address) Instance() string {
	return cmp.Or(at.Alerting.instance, at.Machine.Instance(*at.Web.Toolkit.WebListenAddresses))
}

// SetRunbooks sets the base URL of the runbooks of alerts, if rules are evaluated.
func (at Address) SetRunbooks() {
	if at.Alerting.on {
		at.Alerting.Runbooks = at.runbookURL()
	}
}

// runbookURL returns the base URL of runbooks: --runbook-url, else the daemon's own pages if their address is known.
func (at Address) runbookURL() rulefiles.RunbookURL {
	switch {
	case at.Alerting.Runbooks != "":
		return at.Alerting.Runbooks
	case at.Web.metricsPath == "/" || !at.isKnown(): // no page, or its address is unknown
		return ""
	}
	return rulefiles.RunbookURL(strings.TrimSuffix(at.ownURL(), "/") + "/runbooks")
}

// ownURL returns the URL of the exporter, as far as it is known.
func (at Address) ownURL() string {
	if at.Web.externalURL != "" {
		return at.Web.externalURL
	}
	return "http://" + at.Instance() + at.Web.routePrefix
}

// isKnown reports whether ownURL is reachable from other hosts: it was configured, or this host has a name and the
// listener is not on loopback only. With --web.config.file it is not known whether the scheme is https.
func (at Address) isKnown() bool {
	m, flags := at.Machine, at.Web.Toolkit
	switch {
	case at.Web.externalURL != "":
		return true
	case *flags.WebConfigFile != "":
		return false
	case at.Alerting.instance != "":
		return true
	case m.Player != nil || m.Hostname() == "" || *flags.WebSystemdSocket || len(*flags.WebListenAddresses) == 0:
		return false
	}
	name, port, err := net.SplitHostPort((*flags.WebListenAddresses)[0])
	return err == nil && port != "0" && name != "localhost" && !net.ParseIP(name).IsLoopback()
}
