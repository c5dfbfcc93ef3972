// Package words formats numbers, lists and texts from outside the program for people.
package words

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Count formats n with its noun, pluralised unless n is 1.
func Count(n int, one string) string {
	switch {
	case n == 1:
		return "1 " + one
	case strings.HasSuffix(one, "s"), strings.HasSuffix(one, "ch"):
		return fmt.Sprintf("%d %ses", n, one)
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Join joins the parts that are not empty with a separator.
func Join(by string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), by)
}

// Map returns the result of text for each item.
func Map[T any](list []T, text func(T) string) (out []string) {
	for _, x := range list {
		out = append(out, text(x))
	}
	return out
}

// Spaced returns name with underscores replaced by blanks.
func Spaced(name string) string { return strings.ReplaceAll(name, "_", " ") }

// Basis returns the source of an expected rate or width in words: "link modes".
func Basis(source string) string {
	if source == "high_water_mark" {
		return "highest rate seen"
	}
	return Spaced(source)
}

// Transfers formats a PCIe speed, given in transfers per second.
func Transfers(perSecond float64) string {
	return strconv.FormatFloat(perSecond/1e9, 'f', -1, 64) + " GT/s"
}

// HostName returns the host name in an instance label, without the port of the exporter.
func HostName(instance string) string {
	if host, _, err := net.SplitHostPort(instance); err == nil {
		return host
	}
	return instance
}

// Replace replaces each bad character with by, or removes it if by is negative.
func Replace(s string, bad func(rune) bool, by rune) string {
	return strings.Map(func(r rune) rune {
		if bad(r) {
			return by
		}
		return r
	}, s)
}

// Cut shortens a text to at most limit bytes without splitting a character.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "")
}

// Plain replaces control characters that a terminal would interpret: escapes, carriage returns, marks of text
// direction. Names of devices, jobs and modules are untrusted, and a report may come from another process.
func Plain(s string) string { return Replace(s, IsHidden, Unprintable) }

// IsHidden reports whether a terminal would interpret a character; line breaks and tabs are allowed.
func IsHidden(r rune) bool { return isNotGraphic(r) && r != '\n' && r != '\t' }

// OneLine returns s as plain text on one line: each run of blanks and line breaks becomes one blank.
func OneLine(s string) string { return Plain(strings.Join(strings.Fields(s), " ")) }
