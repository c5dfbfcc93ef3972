package main

import (
	"bytes"
	"fmt"
	"strings"
)

// document builds a Markdown page.
type document struct{ bytes.Buffer }

func (d *document) line(format string, args ...any) {
	fmt.Fprintf(d, format, args...)
	d.WriteByte('\n')
}

// table writes a table of Markdown cells.
func (d *document) table(head []string, rows [][]string) {
	d.row(head)
	rule := make([]string, len(head))
	for i := range rule {
		rule[i] = "---"
	}
	d.row(rule)
	for _, r := range rows {
		d.row(r)
	}
	d.line("")
}

func (d *document) row(cells []string) { d.line("| %s |", strings.Join(cells, " | ")) }

var special = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "<", `\<`, "[", `\[`, "`", "\\`")

// plain escapes text, also for tables.
func plain(s string) string { return special.Replace(s) }

// code formats a word without backticks as code; tables need bars escaped even there.
func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(s, "|", `\|`) + "`"
}

// codes formats a list of words as code.
func codes(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = code(w)
	}
	return strings.Join(out, ", ")
}
