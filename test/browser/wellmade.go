//go:build e2e

package browser

import "strings"

// WellMade checks the invariants of all pages.
func (b *Tab) WellMade(url string) {
	b.t.Helper()
	for name, expression := range map[string]string{
		"a language":             "document.documentElement.lang === 'en'",
		"one main heading":       "document.querySelectorAll('h1').length === 1",
		"landmarks":              "['header', 'main', 'footer nav'].every(s => document.querySelectorAll(s).length === 1)",
		"named sections":         "[...document.querySelectorAll('section')].every(s => document.getElementById(s.getAttribute('aria-labelledby')))",
		"captions":               "[...document.querySelectorAll('table')].every(t => t.caption && t.querySelector('th[scope=col]'))",
		"names of plots":         "[...document.querySelectorAll('svg[role=img], svg[role=group]')].every(s => s.getAttribute('aria-label'))",
		"unique ids":             "(ids => new Set(ids).size === ids.length)([...document.querySelectorAll('[id]')].map(e => e.id))",
		"the style":              "getComputedStyle(document.querySelector('.verdict')).display === 'flex'",
		"no style in the page":   "document.querySelectorAll('style, [style]').length === 0",
		"no overflow":            "document.documentElement.scrollWidth <= innerWidth",
		"texts within their box": "[...document.querySelectorAll('.switch > text, .gpu > text, .nic > text')].every(t => { const r = t.parentNode.querySelector('rect').getBoundingClientRect(), b = t.getBoundingClientRect(); return b.right <= r.right + 1 && b.left >= r.left - 1; })",
		"lines in one row apart": "[...document.querySelectorAll('.piece .gpu, .piece .nic')].every(g => !g.querySelector('.side').textContent || g.querySelector('.name').getBoundingClientRect().right < g.querySelector('.side').getBoundingClientRect().left)",
	} {
		if got := b.Eval("%s", expression); got != "true" {
			b.t.Errorf("%s: %s", name, got)
		}
	}
	b.Size(360, 740, true)
	if got := b.Eval("document.documentElement.scrollWidth <= 360"); got != "true" {
		b.t.Errorf("wider than a phone: %s", b.Eval("document.documentElement.scrollWidth"))
	}
	for _, r := range b.Requests() {
		if r != "about:blank" && !strings.HasPrefix(r, url) {
			b.t.Errorf("asks %s", r)
		}
	}
	if f := b.Faults(); len(f) > 0 {
		b.t.Errorf("faults: %s", f)
	}
}
