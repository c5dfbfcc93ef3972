package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/docs/runbooks"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/web"
)

// runbookURL is where runbooks are read. The name of an alert takes the place of %s, or is appended as the last element of the path. Empty: no
// address is known, and nothing links to a runbook.
type runbookURL string

// flag adds the flag, the same of all commands that have it.
func (u *runbookURL) flag(a *kingpin.CmdClause, help string) {
	a.Flag("runbook-url", help+": URL/NAME of each alert, or URL with %s in the place of NAME, such as https://git.example/docs/runbooks/%s.md or http://NODE:10879/runbooks.").PlaceHolder("URL").StringVar((*string)(u))
}

func (u runbookURL) check() error {
	if u == "" {
		return nil
	}
	at, err := url.Parse(strings.Replace(string(u), "%s", "NAME", 1))
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || strings.ContainsAny(string(u), " \t\n#\"'\\{}") {
		return fmt.Errorf("--runbook-url=%s: has to be http://HOST/… or https://HOST/…", string(u))
	}
	return nil
}

// of is the address of a runbook.
func (u runbookURL) of(name string) string {
	if before, after, ok := strings.Cut(string(u), "%s"); ok {
		return before + name + after
	}
	return strings.TrimSuffix(string(u), "/") + "/" + name
}

// inSources is the annotation as it is in the repository, where it is the path of a file.
var inSources = regexp.MustCompile(`(?m)^( +runbook_url: )docs/runbooks/(\w+)\.md\n`)

// inRules makes addresses of the paths in a rule file. Where none is known the annotation is left out: a path leads nowhere from a notification.
func (u runbookURL) inRules(text []byte) []byte {
	return inSources.ReplaceAllFunc(text, func(line []byte) []byte {
		if u == "" {
			return nil
		}
		m := inSources.FindSubmatch(line)
		return fmt.Appendf(nil, "%s%s\n", m[1], u.of(string(m[2])))
	})
}

// alertColumn is where the properties of the column that names alerts begin, in a table of a dashboard.
var alertColumn = regexp.MustCompile(`("options": "Alert"\s+},\s+"properties": \[)`)

// inDashboard makes the names in tables of alerts links to their runbooks.
func (u runbookURL) inDashboard(text []byte) ([]byte, error) {
	if u == "" {
		return text, nil
	}
	const name = "${__value.raw}" // of the cell
	link, err := json.Marshal(map[string]any{"id": "links", "value": []map[string]any{{"title": "Runbook of " + name, "url": u.of(name), "targetBlank": true}}})
	if err != nil {
		return nil, fmt.Errorf("link to runbooks: %w", err)
	}
	return alertColumn.ReplaceAllFunc(text, func(begin []byte) []byte { return slices.Concat(begin, link, []byte{','}) }), nil
}

type runbookConfig struct{ name string }

func (r *runbookConfig) flags(a *kingpin.CmdClause) {
	a.Arg("NAME", "Name of the alert. Without one: lists all, with their meanings.").StringVar(&r.name)
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
	hint := "rdma_exporter runbook lists all"
	if near := closest(r.name, all); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return nil, fmt.Errorf("runbook %s: there is no such alert: %s", r.name, hint)
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

// books is where the alerts of a daemon link to: where the operator says, else the exporter's own pages, if it knows how others reach them.
func (s *serveConfig) books(m *machine) runbookURL {
	switch {
	case s.alerting.runbooks != "":
		return s.alerting.runbooks
	case s.metricsPath == "/" || !s.addressKnown(m): // no page, or nobody knows where
		return ""
	}
	return runbookURL(strings.TrimSuffix(s.own(m), "/") + "/runbooks")
}

// own is the URL of the exporter, as far as it knows it.
func (s *serveConfig) own(m *machine) string {
	if s.externalURL != "" {
		return s.externalURL
	}
	return "http://" + s.alerting.instanceOf(m, *s.toolkit.WebListenAddresses) + s.routePrefix
}

// addressKnown reports whether others reach the exporter at own: the operator says so, or this host has a name and a port that is not on the
// loopback interface only. Whether a file of TLS and authentication asks for https is not known here.
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
