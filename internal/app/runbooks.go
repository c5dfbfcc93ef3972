package app

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/docs/runbooks"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/web"
)

// runbookURL is the base URL of runbooks. The name of an alert replaces %s, or is appended to the path. Empty: unknown, no links to runbooks.
type runbookURL string

// flag adds the flag, which several commands have.
func (u *runbookURL) flag(a *kingpin.CmdClause, help string) {
	a.Flag("runbook-url", help+" The name of the alert is appended, or replaces %s: http://NODE:10879/runbooks, https://git.example/docs/runbooks/%s.md.").PlaceHolder("URL").StringVar((*string)(u))
}

func (u runbookURL) check() error {
	if u == "" {
		return nil
	}
	at, err := url.Parse(strings.Replace(string(u), "%s", "NAME", 1))
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || strings.ContainsAny(string(u), " \t\n#\"'\\{}") {
		return fmt.Errorf("--runbook-url=%s: must be http://HOST/… or https://HOST/…", string(u))
	}
	return nil
}

// of is the URL of a runbook.
func (u runbookURL) of(name string) string {
	if before, after, ok := strings.Cut(string(u), "%s"); ok {
		return before + name + after
	}
	return strings.TrimSuffix(string(u), "/") + "/" + name
}

// inSources is the annotation in the repository, where it is a path.
var inSources = regexp.MustCompile(`(?m)^( +runbook_url: )docs/runbooks/(\w+)\.md\n`)

// inRules replaces the paths in a rule file by URLs. Without a base URL it removes the annotation: a path is of no use in a notification.
func (u runbookURL) inRules(text []byte) []byte {
	return inSources.ReplaceAllFunc(text, func(line []byte) []byte {
		if u == "" {
			return nil
		}
		m := inSources.FindSubmatch(line)
		return fmt.Appendf(nil, "%s%s\n", m[1], u.of(string(m[2])))
	})
}

// ofExporter is the address of a runbook in a dashboard: the page of the exporter that the alert is of.
var ofExporter = regexp.MustCompile(`"http://[^"]*/runbooks/\$\{__value\.raw\}"`)

// inDashboard replaces the addresses of runbooks in a dashboard by URLs.
func (u runbookURL) inDashboard(text []byte) []byte {
	if u == "" {
		return text
	}
	url := []byte(`"` + u.of("${__value.raw}") + `"`) // check permits nothing that JSON escapes
	return ofExporter.ReplaceAllFunc(text, func([]byte) []byte { return url })
}

type runbookConfig struct{ name string }

func (r *runbookConfig) flags(a *kingpin.CmdClause) {
	a.Arg("NAME", "Name of the alert. Default: list all with their meanings.").StringVar(&r.name)
}

// runRunbook prints the runbook of an alert, or lists all alerts that have one with their meanings.
func runRunbook(r *runbookConfig, stdout io.Writer) (int, error) {
	text, err := r.text()
	if err != nil {
		return usage(err)
	}
	if _, err := stdout.Write(text); err != nil {
		return exitUsage, fmt.Errorf("cannot print the runbook: %w", err)
	}
	return exitOK, nil
}

func (r *runbookConfig) text() ([]byte, error) {
	all := runbooks.Names()
	if r.name == "" {
		return listing(all), nil
	}
	if text, ok := runbooks.Text(r.name); ok {
		return text, nil
	}
	hint := "names: rdma_exporter runbook"
	if near := closest(r.name, all); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return nil, fmt.Errorf("unknown alert %s: %s", r.name, hint)
}

// listing is a line for each alert: name and meaning, in columns.
func listing(names []string) (out []byte) {
	width := 0
	for _, name := range names {
		width = max(width, len(name))
	}
	for _, name := range names {
		meaning, _ := runbooks.Meaning(name) // each has one: docs/runbooks/runbooks_test.go
		out = fmt.Appendf(out, "%-*s  %s\n", width, name, meaning)
	}
	return out
}

// books is the base URL of runbooks of the daemon: --runbook-url, else its own pages if their address is known.
func (s *serveConfig) books(m *machine) runbookURL {
	switch {
	case s.alerting.runbooks != "":
		return s.alerting.runbooks
	case s.metricsPath == "/" || !s.addressKnown(m): // no page, or its address is unknown
		return ""
	}
	return runbookURL(strings.TrimSuffix(s.own(m), "/") + "/runbooks")
}

// own is the URL of the exporter, as far as it is known.
func (s *serveConfig) own(m *machine) string {
	if s.externalURL != "" {
		return s.externalURL
	}
	return "http://" + s.alerting.instanceOf(m, *s.toolkit.WebListenAddresses) + s.routePrefix
}

// addressKnown reports whether own is reachable from other hosts: it was configured, or this host has a name and the listener is not on loopback
// only. With --web.config.file it is not known whether the scheme is https.
func (s *serveConfig) addressKnown(m *machine) bool {
	switch {
	case s.externalURL != "":
		return true
	case *s.toolkit.WebConfigFile != "":
		return false
	case s.alerting.instance != "":
		return true
	case m.player != nil || m.hostname() == "" || *s.toolkit.WebSystemdSocket || len(*s.toolkit.WebListenAddresses) == 0:
		return false
	}
	name, port, err := net.SplitHostPort((*s.toolkit.WebListenAddresses)[0])
	return err == nil && port != "0" && name != "localhost" && !net.ParseIP(name).IsLoopback()
}

// withRunbooks adds the pages of runbooks to others.
func withRunbooks(p *page.Page, views map[string]web.View) map[string]web.View {
	views["runbooks/{$}"] = web.View{ContentType: web.HTML, Write: func(_ *http.Request, w io.Writer) error { return p.RenderRunbooks(w) }}
	views["runbooks/{name}"] = web.View{ContentType: web.HTML, Write: func(r *http.Request, w io.Writer) error { return p.RenderRunbook(w, r.PathValue("name")) }}
	return views
}
