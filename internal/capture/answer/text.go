package answer

import (
	"fmt"
	"net/url"
	"strings"
)

// SplitLine splits "NAME: VALUE". A name may contain ": ", a value does not.
func SplitLine(line string) (name, value string, ok bool) {
	i := strings.LastIndex(line, ": ")
	if i < 0 {
		return "", "", false
	}
	return line[:i], line[i+2:], true
}

// Escape writes a path so that framing and modes stay unambiguous: %XX for bytes outside printable ASCII, for '%', for
// a leading '+', and for blanks at an end or before a possible mode.
func Escape(p string) string {
	var b strings.Builder
	for i := range len(p) {
		c := p[i]
		blank := c == ' ' && (i == 0 || i == len(p)-1 || strings.IndexByte("!@- ", p[i+1]) >= 0)
		if c < ' ' || c > '~' || c == '%' || blank || c == '+' && i == 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// Unescape returns the reverse of Escape.
func Unescape(p string) (string, error) {
	plain, err := url.PathUnescape(p)
	if err != nil {
		return "", fmt.Errorf("%q: a %% has to be followed by two hexadecimal digits", p)
	}
	return plain, nil
}
