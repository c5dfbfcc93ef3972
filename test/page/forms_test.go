//go:build e2e

package page

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/browser"
)

// TestPhone: on a phone nothing scrolls sideways, not even a table, and what is tapped is high enough (WCAG 2.2,
// 2.5.8).
func TestPhone(t *testing.T) {
	t.Parallel()
	url := serve(t, "demo")
	b := browser.Start(t)
	b.Size(390, 844, true)
	for _, path := range []string{"", "runbooks/", "runbooks/RDMAPFCStormSource"} {
		b.Open(url + path)
		b.Eval("document.querySelectorAll('details').forEach(d => d.open = true)")
		for name, expression := range map[string]string{
			"too low":          "[...document.querySelectorAll('a:not(.skip), button, summary')].filter(e => e.getBoundingClientRect().height < 24).map(e => e.outerHTML.slice(0, 80)).join()",
			"scrolls sideways": "[document.documentElement, ...document.querySelectorAll('.scroll, pre')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.outerHTML.slice(0, 80)).join()",
			"beyond the edge":  "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > 390).map(e => e.outerHTML.slice(0, 80)).join()",
			"without a label":  "[...document.querySelectorAll('td')].filter(e => !e.dataset.label && !e.closest('.runbook')).map(e => e.outerHTML.slice(0, 80)).join()",
		} {
			if got := b.Eval("%s", expression); got != "" {
				t.Errorf("/%s: %s: %s", path, name, got)
			}
		}
	}
	b.Open(url)
	if got := b.Eval("getComputedStyle(document.querySelector('table.ports tr')).display + getComputedStyle(document.querySelector('table.ports td'), '::before').content"); got != `block"State"` {
		t.Errorf("ports are no cards: %s", got)
	}
}

// TestPrint: a print on A4 cuts nothing off.
func TestPrint(t *testing.T) {
	t.Parallel()
	url := serve(t, "hgx-h200-roce-storm")
	b := browser.Start(t)
	b.Size(794-2*45, 1000, false) // A4 at 96 to the inch, less margins of 12 mm
	b.Ask("Emulation.setEmulatedMedia", map[string]any{"media": "print"})
	for _, path := range []string{"", "runbooks/RDMAPFCStormSource"} {
		b.Open(url + path)
		b.Eval("document.querySelectorAll('details').forEach(d => d.open = true)")
		if got := b.Eval("[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 || e.scrollWidth > e.clientWidth + 1 && e.matches('td, th, pre, .scroll')).map(e => e.outerHTML.slice(0, 80)).join()"); got != "" {
			t.Errorf("/%s: cut off: %s", path, got)
		}
	}
	if !strings.HasPrefix(string(b.Print()), "%PDF") {
		t.Error("no PDF")
	}
}

// TestReloadWithoutScript: a browser without JavaScript loads the page again by itself.
func TestReloadWithoutScript(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	b.Ask("Emulation.setScriptExecutionDisabled", map[string]any{"value": true})
	url := serve(t, "no-rdma")
	b.Open(url)
	pages := func() (n int) {
		for _, r := range b.Requests() {
			if r == url {
				n++
			}
		}
		return n
	}
	for end := time.Now().Add(40 * time.Second); pages() < 2; time.Sleep(time.Second) {
		if time.Now().After(end) {
			t.Fatal("is not loaded again")
		}
	}
}

// TestCopy: each block of commands has a button that copies it, after a refresh too.
func TestCopy(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	url := serve(t, "downshift-one")
	b.Open(url)
	b.Eval("document.getElementById('live').dataset.old = 'yes'")
	if !b.Await(25*time.Second, "!document.getElementById('live').dataset.old") {
		t.Fatal("is not refreshed")
	}
	for _, path := range []string{"", "runbooks/RDMALinkDegraded"} {
		if path != "" {
			b.Open(url + path)
		}
		if got := b.Eval("document.querySelectorAll('pre').length > 0 && [...document.querySelectorAll('pre')].every(p => p.querySelectorAll('button.copy').length === 1)"); got != "true" {
			t.Errorf("/%s: blocks without a button", path)
		}
		b.Eval("document.querySelector('pre button').click()")
		if !b.Await(5*time.Second, "document.querySelector('pre button').textContent !== 'Copy'") {
			t.Errorf("/%s: nothing happens", path)
		}
	}
	var faults []json.RawMessage
	for _, f := range b.Faults() {
		faults = append(faults, json.RawMessage(f))
	}
	if len(faults) > 0 {
		t.Errorf("faults: %s", faults)
	}
}
