// Package pagetest has helpers for tests of the pages.
package pagetest

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// Now returns the time at which pages are rendered.
func Now() time.Time { return time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC) }

// Hostile returns hostile texts, as a module, a device or an alert may contain them.
func Hostile() []string {
	return []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'/><svg onload=alert(1)>`,
		`</title></table></svg><script>x</script>`,
		"a\x00\x1b[31m\r\n\u202eb", strings.Repeat("long ", 4000), `{{.}}`, `javascript:alert(1)`, "\xff\xfe", `--><!--`,
	}
}

var (
	tag    = regexp.MustCompile(`<[a-zA-Z!/](?:[^>"]|"[^"]*")*>`)
	quoted = regexp.MustCompile(`"[^"]*"`)
	run    = regexp.MustCompile(`(?i)\s(on[a-z]+|style)\s*=`)
)

// ForeignTags returns the tags of a page that are not from its template.
func ForeignTags(html string) (out []string) {
	scripts := 0
	for _, x := range tag.FindAllString(html, -1) {
		bare := quoted.ReplaceAllString(x, `""`)
		name := strings.ToLower(strings.TrimLeft(strings.Fields(strings.Trim(bare, "<>"))[0], "/"))
		if name == "script" && !strings.HasPrefix(x, "</") {
			scripts++ // page.js and copy.js
		}
		if name == "img" || name == "iframe" || name == "style" || scripts > 2 || run.MatchString(bare) ||
			strings.Contains(x, "javascript:") && strings.Contains(x, "href") {
			out = append(out, x)
		}
	}
	return out
}

// Holds checks that a page contains all texts.
func Holds(t *testing.T, page, html string, want []string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(html, w) {
			t.Errorf("%s page: without %q", page, w)
		}
	}
}
