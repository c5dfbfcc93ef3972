package main

import (
	"bytes"
	"fmt"
	"strings"
)

// document is Markdown in the making.
type document struct{ bytes.Buffer }

func (d *document) line(format string, args ...any) {
	fmt.Fprintf(d, format, args...)
	d.WriteByte('\n')
}

// table writes a table; cells are Markdown already.
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

// block writes preformatted text.
func (d *document) block(language, text string) {
	d.line("```%s\n%s\n```\n", language, strings.TrimSpace(text))
}

var special = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "<", `\<`, "[", `\[`, "`", "\\`")

// plain makes text mean itself, in a table too.
func plain(s string) string { return special.Replace(s) }

// code marks a word that has no backtick; a table splits at a bar even there.
func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(s, "|", `\|`) + "`"
}

// codes marks the words of a list.
func codes(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = code(w)
	}
	return strings.Join(out, ", ")
}
