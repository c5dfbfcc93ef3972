// Package runbooks holds what to do about each alert, so that the exporter can show it where there is no network.
package runbooks

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed *.md
var files embed.FS

const extension = ".md"

// Names are the alerts that have a runbook, sorted.
func Names() (out []string) {
	names, _ := fs.Glob(files, "*"+extension) // the pattern is a constant
	for _, name := range names {
		out = append(out, strings.TrimSuffix(name, extension))
	}
	return out
}

// Text is the runbook of an alert, Markdown; false where there is none.
func Text(alert string) ([]byte, bool) {
	text, err := files.ReadFile(alert + extension)
	return text, err == nil
}
