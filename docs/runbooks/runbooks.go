// Package runbooks holds what to do about each alert, so that the exporter can show it where there is no network.
package runbooks

import (
	"bytes"
	"embed"
	"io/fs"
	"strings"
)

//go:embed *.md
var files embed.FS

const extension = ".md"

// Names returns the alerts that have a runbook, sorted.
func Names() (out []string) {
	names, _ := fs.Glob(files, "*"+extension) // the pattern is a constant
	for _, name := range names {
		out = append(out, strings.TrimSuffix(name, extension))
	}
	return out
}

// Text returns the runbook of an alert in Markdown; false if there is none.
func Text(alert string) ([]byte, bool) {
	text, err := files.ReadFile(alert + extension)
	return text, err == nil
}

// Meaning returns the meaning of an alert in one sentence: the first paragraph of its runbook, below the title. It
// names neither host nor port, and has no Markdown and no limit (limits can be tuned). False where runbook or paragraph
// is missing.
func Meaning(name string) (string, bool) {
	text, ok := Text(name)
	if !ok {
		return "", false
	}
	_, rest, _ := bytes.Cut(text, []byte("\n\n"))
	paragraph, _, _ := bytes.Cut(rest, []byte("\n\n"))
	if len(paragraph) == 0 || paragraph[0] == '#' {
		return "", false
	}
	return string(paragraph), true
}
