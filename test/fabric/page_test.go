//go:build e2e

package fabric

import (
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/test/browser"
)

// TestPage: a fabric with faults in a browser, with and without JavaScript, on a wide screen and on a phone.
func TestPage(t *testing.T) {
	install := exec.Command("../page/packages.sh")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("packages.sh: %v\n%s", err, out)
	}
	s := simulate(t, tree{spines: 2, leaves: 4, hosts: 4})
	s.manage(t)
	e := s.export(t, "--fabric.interval=1s", "--alerting.interval=1s")
	url := "http://" + e.address + "/"
	s.do(t, "Unlink %q[2]", leafName(0))
	s.active(t, 2*s.links()-2)
	s.set(t, "leaf001", "5", "width", "1") // opensm stays stopped: RDMANoSubnetManager is right
	s.do(t, "PerformanceSet %q[1] PortCounters.SymbolErrorCounter=77", leafName(2))
	s.do(t, "PerformanceSet %q[2] PortCounters.PortXmitDiscards=4321", leafName(3))
	eventually(t, "the faults", func() string {
		body := get(t, url)
		for _, want := range []string{
			"RDMANoSubnetManager", "leaf000/2 to node0001 mlx5_0/1: missing", "Lower settings at one end of 1 link",
			"<strong>RDMAFabricLinkErrors</strong>", "77 symbol errors (", "4\u202f321 transmit discards (",
		} {
			if !strings.Contains(body, want) {
				return "without " + want
			}
		}
		return ""
	})
	leaf := regexp.MustCompile(`<a href="(switches/[0-9a-f:]+)">leaf001</a>`).FindStringSubmatch(get(t, url))
	if leaf == nil {
		t.Fatal("the first page does not lead to the switch")
	}
	for _, script := range []bool{true, false} {
		b := browser.Start(t)
		b.Ask("Emulation.setScriptExecutionDisabled", map[string]any{"value": !script})
		for _, page := range []struct {
			path, word string
			has        []string
			counts     map[string]string // selector: elements
		}{
			{
				"", "Critical",
				[]string{"no master subnet manager answers", "leaf000/2", "node0001 mlx5_0/1", "leaf001/5", "6 switches, 15 adapters", "77 symbol errors", "4\u202f321 transmit discards", "smpquery portinfo \"$lid\" "},
				map[string]string{".findings > li.watching": "3", ".findings > li.info": "0", ".findings > li pre": "3", ".holds > li": "1", "tr.warning": "5", "tr.info": "0", "tr.watching": "2", "table": "5", ".map": "2", ".map.wide a": "6", ".map.wide path.info": "0"},
			},
			{"links", "Warning", []string{"24 links, 2 of them with a problem.", "4\u202f321 transmit discards"}, map[string]string{"tbody tr": "24", "tr.warning": "2", "tr.info": "0", "tr.watching": "1"}},
			{"links?faulty=1&node=LEAF001", "Warning", []string{"The filter matches 1."}, map[string]string{"tbody tr": "1", "tr.warning": "1"}},
			{leaf[1], "Warning", []string{"spine000/2"}, map[string]string{"tbody tr": "6", "tr.warning": "1"}},
		} {
			b.Size(1280, 900, false)
			b.Open(url + page.path)
			if got := b.Eval("document.querySelector('.word').textContent"); got != page.word {
				t.Errorf("%s: verdict %q, want %q", page.path, got, page.word)
			}
			text := b.Eval("document.body.textContent")
			for _, want := range page.has {
				if !strings.Contains(text, want) {
					t.Errorf("%s: without %q", page.path, want)
				}
			}
			for selector, want := range page.counts {
				if got := b.Eval("document.querySelectorAll(%q).length", selector); got != want {
					t.Errorf("%s: %s: %s, want %s", page.path, selector, got, want)
				}
			}
			b.WellMade(url)
			if got := b.Eval("[...document.querySelectorAll('a:not(.skip), button, summary')].filter(e => e.getClientRects().length && e.getBoundingClientRect().height < 24).map(e => e.outerHTML.slice(0, 80)).join()"); got != "" {
				t.Errorf("%s: too low to tap: %s", page.path, got)
			}
			if got := b.Eval("[...document.querySelectorAll('.scroll, pre')].filter(e => e.scrollWidth > e.clientWidth).length"); got != "0" {
				t.Errorf("%s: %s parts scroll sideways on a phone", page.path, got)
			}
			b.Size(704, 1000, false) // A4 less margins of 12 mm
			b.Ask("Emulation.setEmulatedMedia", map[string]any{"media": "print"})
			if got := b.Eval("[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > 705).map(e => e.outerHTML.slice(0, 80)).join()"); got != "" {
				t.Errorf("%s: cut off in print: %s", page.path, got)
			}
			b.Ask("Emulation.setEmulatedMedia", map[string]any{"media": ""})
			for _, href := range strings.Fields(b.Eval("[...document.querySelectorAll('main a')].map(a => new URL(a.getAttribute('href'), document.baseURI).href).join(' ')")) {
				if status := get(t, href); status == "" {
					t.Errorf("%s leads to nothing", href)
				}
			}
		}
	}
	// The form works without JavaScript, and the policy of the page permits it.
	b := browser.Start(t)
	b.Ask("Emulation.setScriptExecutionDisabled", map[string]any{"value": true})
	b.Open(url)
	b.Eval("document.getElementById('f-node').focus()")
	b.Ask("Input.insertText", map[string]any{"text": "node0013"})
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.Ask("Input.dispatchKeyEvent",
			map[string]any{"type": kind, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"})
	}
	if !b.Await(browser.Timeout, "location.search.includes('node=node0013') && document.querySelectorAll('tbody tr').length === 1") {
		t.Errorf("the filter leads to %s", b.Eval("location.href + document.querySelectorAll('tbody tr').length"))
	}
	if got := b.Eval("document.getElementById('f-node').value"); got != "node0013" {
		t.Errorf("the field has %q", got)
	}
	if f := b.Faults(); len(f) > 0 {
		t.Errorf("faults: %s", f)
	}
	must(t, s.sm.Process.Signal(syscall.SIGCONT))
}

// get returns the body of a response; empty on an error.
func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	must(t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	must(t, err)
	if r.StatusCode != http.StatusOK {
		return ""
	}
	return string(b)
}
