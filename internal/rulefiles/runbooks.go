package rulefiles

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// RunbookURL is the base URL of runbooks. The name of an alert replaces %s, or is appended to the path. Empty: unknown,
// no links to runbooks.
type RunbookURL string

// RunbookURLHelp follows the purpose in the help of --runbook-url.
const RunbookURLHelp = " The name of the alert is appended, or replaces %s: http://NODE:10879/runbooks, https://git.example/docs/runbooks/%s.md."

// Check validates the URL.
func (u RunbookURL) Check() error {
	if u == "" {
		return nil
	}
	at, err := url.Parse(strings.Replace(string(u), "%s", "NAME", 1))
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" ||
		strings.ContainsAny(string(u), " \t\n#\"'\\{}") {
		return fmt.Errorf("--runbook-url=%s: must be http://HOST/… or https://HOST/…", string(u))
	}
	return nil
}

// of returns the URL of a runbook.
func (u RunbookURL) of(name string) string {
	if before, after, ok := strings.Cut(string(u), "%s"); ok {
		return before + name + after
	}
	return strings.TrimSuffix(string(u), "/") + "/" + name
}

// inSources is the line of the annotation in the repository, where it is a path.
var inSources = regexp.MustCompile(`^( +runbook_url: )docs/runbooks/(\w+)\.md\n`)

// InRules replaces the paths in a rule file by URLs. Without a base URL it removes the annotation: a path is of no use
// in a notification.
func (u RunbookURL) InRules(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for line := range bytes.Lines(text) {
		if !bytes.Contains(line, []byte("docs/runbooks/")) { // most lines; the expression is slow
			out = append(out, line...)
		} else if m := inSources.FindSubmatch(line); m == nil {
			out = append(out, line...)
		} else if u != "" {
			out = fmt.Appendf(out, "%s%s\n", m[1], u.of(string(m[2])))
		}
	}
	return out
}

// ofExporter is the address of a runbook in a dashboard: the page of the exporter that the alert is of.
var ofExporter = regexp.MustCompile(`"http://[^"]*/runbooks/\$\{__value\.raw\}"`)

// InDashboard replaces the addresses of runbooks in a dashboard by URLs.
func (u RunbookURL) InDashboard(text []byte) []byte {
	if u == "" {
		return text
	}
	address := []byte(`"` + u.of("${__value.raw}") + `"`) // check permits nothing that JSON escapes
	return ofExporter.ReplaceAllFunc(text, func([]byte) []byte { return address })
}
