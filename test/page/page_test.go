//go:build e2e

// Package page tests the node's page in a browser: `make e2e`, or go test -tags e2e ./test/page with Chromium installed
// and RDMA_EXPORTER set to the binary.
package page

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/browser"
	"rdma_exporter/test/machine"
	"rdma_exporter/test/port"
	"rdma_exporter/test/program"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serve starts the exporter on a recorded machine and waits for its first rounds; it returns the page's URL.
func serve(t *testing.T, replay string, args ...string) string {
	t.Helper()
	if replay != "demo" && !filepath.IsAbs(replay) {
		replay = filepath.Join("../../fixtures/sysfs", replay+".txtar")
	}
	cmd := exec.Command(program.Exporter(t),
		append([]string{"--replay=" + replay, "--web.listen-address=" + port.Any, "--state.dir=" + t.TempDir()}, args...)...)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	t.Cleanup(func() {
		must(t, cmd.Process.Signal(os.Interrupt))
		must(t, cmd.Wait())
	})
	url := "http://" + port.Of(t, cmd.Process.Pid) + "/"
	for end := time.Now().Add(browser.Timeout); ; time.Sleep(100 * time.Millisecond) {
		resp, err := http.Get(url + "api/v1/findings")
		if err == nil {
			must(t, resp.Body.Close())
			if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNotFound { // not found: no rules are evaluated
				return url
			}
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not answer: %v", url, err)
		}
	}
}

// TestPages: the pages of some machines, with and without JavaScript, on a wide screen and on a phone; the page loads
// nothing from other hosts, violates no policy and logs no error.
func TestPages(t *testing.T) {
	for _, c := range []struct {
		machine string
		args    []string
		verdict string
		has     []string // text
		lacks   []string
		counts  map[string]string // selector: elements
	}{
		{
			machine: "hgx-h200-roce", verdict: "OK",
			has: []string{
				"Nothing is wrong: 8 NICs, 8 compute ports, 8 GPUs healthy", "None.", "max 400 Gb/s",
				"direct to mlx5_0 (PIX, dmabuf)", "400 Gb/s",
			},
			lacks: []string{"staging to"},
			counts: map[string]string{
				".gpu": "8", ".nic.ok": "8", ".way.direct": "9", "table.ports tbody tr.ok": "8", "table.ports .spark": "24",
			},
		},
		{
			machine: "demo", verdict: "Critical",
			has: []string{"RDMAPFCStormSource", "RDMAPortDown", "staging to mlx5_6 (NODE)", "Runbook"},
			counts: map[string]string{
				".findings > li": "3", ".findings > li.critical": "2", "tr.critical": "2", ".nic.critical": "2",
			},
		},
		{
			machine: "no-peermem-no-dmabuf", verdict: "Warning",
			has:    []string{"RDMAGPUDirectUnavailable", "staging to mlx5_1 (PIX)", "install the open GPU kernel modules"},
			counts: map[string]string{".gpu.staging": "3", ".piece .way.staging": "3"},
		},
		{
			machine: "gdr-staging-live", verdict: "Warning", has: []string{"job: staging", "RDMAGPUDirectStaging"},
		},
		{
			machine: "command-timeouts", verdict: "Warning",
			has: []string{"RDMADeviceFailed", "Kernel log", "mlx5_core command timeout, DESTROY_MKEY"},
		},
		{
			machine: "nccl-ib-disabled", verdict: "Pending warning", has: []string{"job: tcp", "1 pending warning"},
			counts: map[string]string{".verdict.watching": "1", ".holds li.watching": "1"},
		},
		{
			machine: "downshift-one", verdict: "Critical",
			has: []string{
				"RDMALinkDegraded", "▼ 200 Gb/s", "expected 400 Gb/s (siblings)",
				"Expected rate: 400 Gb/s (siblings) for 7 ports.",
			},
			counts: map[string]string{"td.slow": "1", ".nic.critical": "1"},
		},
		{
			machine: "no-rdma", verdict: "Unknown", has: []string{"No RDMA device", "No RDMA port."},
		},
		{
			machine: "half-down-first-start", verdict: "Unknown", has: []string{"4 compute ports unknown (DOWN, never ACTIVE)"},
			counts: map[string]string{
				"[aria-labelledby=h-ports] tr.not_evaluated": "4", "[aria-labelledby=h-objects] tr.not_evaluated": "1",
			},
		},
		{
			machine: "hgx-h200-roce", args: []string{"--no-alerting"}, verdict: "Not evaluated",
			has:    []string{"--no-alerting", "without a history"},
			counts: map[string]string{".spark": "0", "tr.not_evaluated": "8"},
		},
	} {
		t.Run(strings.Join(append([]string{c.machine}, c.args...), " "), func(t *testing.T) {
			t.Parallel()
			url := serve(t, c.machine, c.args...)
			for _, script := range []bool{true, false} {
				b := browser.Start(t)
				b.Ask("Emulation.setScriptExecutionDisabled", map[string]any{"value": !script})
				b.Size(1280, 900, false)
				b.Open(url)
				if got := b.Eval("document.querySelector('.word').textContent"); got != c.verdict {
					t.Errorf("verdict %q, want %q", got, c.verdict)
				}
				text := b.Eval("document.body.textContent")
				for _, want := range c.has {
					if !strings.Contains(text, want) {
						t.Errorf("without %q", want)
					}
				}
				for _, no := range c.lacks {
					if strings.Contains(text, no) {
						t.Errorf("with %q", no)
					}
				}
				for selector, want := range c.counts {
					if got := b.Eval("document.querySelectorAll(%q).length", selector); got != want {
						t.Errorf("%s: %s, want %s", selector, got, want)
					}
				}
				b.WellMade(url)
			}
		})
	}
}

// TestHostileHost: names from the machine are shown as text.
func TestHostileHost(t *testing.T) {
	t.Parallel()
	a, err := machine.Load("../../fixtures/sysfs/hgx-h200-roce.txtar")
	must(t, err)
	const evil = `<script>document.title='x'</script><img src=x onerror=alert(1)>`
	a.Meta.Hostname = "<script>alert(1)</script>"
	for _, r := range a.Rounds {
		for i := range r.Entries {
			r.Entries[i].Data = bytes.ReplaceAll(r.Entries[i].Data, []byte("NVIDIA H200"), []byte(evil))
		}
	}
	file := filepath.Join(t.TempDir(), "evil.txtar")
	must(t, machine.Write(a, file))
	url := serve(t, file)
	page := browser.Start(t)
	page.Size(1280, 900, false)
	page.Open(url)
	for expression, want := range map[string]string{
		"document.querySelector('.host').textContent": "<script>alert(1)</script>",
		"document.title": "OK: <script>alert(1)</script>",
		"document.querySelectorAll('body script, img').length":                               "0",
		"document.querySelector('#d-paths tbody th').textContent":                            "0 " + evil,
		"document.querySelector('.gpu title').textContent.startsWith('GPU 0 <script>docum')": "true",
	} {
		if got := page.Eval("%s", expression); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
	page.WellMade(url)
}

// TestStormFires: a new alert appears on the open page without interaction.
func TestStormFires(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	b.Open(serve(t, "hgx-h200-roce-storm"))
	if !b.Await(browser.Timeout, "/Pending alerts.*RDMAPFCStormSource/s.test(document.querySelector('#findings').textContent)") {
		t.Errorf("the pending alert is missing: %s", b.Eval("document.querySelector('#findings').textContent"))
	}
	// Recorded every minute and evaluated every 15 s: the pending minute may start twice.
	if !b.Await(4*time.Minute, "document.querySelector('.word').textContent === 'Critical'") {
		t.Fatal("does not fire")
	}
	if got := b.Eval("document.querySelector('tr.critical th').textContent"); !strings.HasPrefix(got, "mlx5_3/1") {
		t.Errorf("port %s", got)
	}
	if got := b.Eval("document.title + document.getElementById('news').textContent"); got !=
		"Critical: hgx-h200-07Critical: hgx-h200-07" {
		t.Errorf("announced %q", got)
	}
}

// TestRefresh: the page keeps what somebody opened, rests while it is hidden, and marks itself as stale when the
// exporter is gone: in the title, and in a bar that stays in sight.
func TestRefresh(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	b.Open(serve(t, "downshift-one"))
	b.Eval("document.getElementById('d-collectors').open = true; document.querySelector('#d-collectors summary').focus(); document.getElementById('live').dataset.old = 'yes'")
	if !b.Await(25*time.Second, "!document.getElementById('live').dataset.old") {
		t.Fatal("is not refreshed")
	}
	if got := b.Eval("document.getElementById('d-collectors').open && document.activeElement === document.querySelector('#d-collectors summary')"); got != "true" {
		t.Error("what was open or had the focus is not")
	}
	b.Eval("Object.defineProperty(document, 'hidden', {value: true, configurable: true}); document.dispatchEvent(new Event('visibilitychange'))")
	before := len(b.Requests())
	time.Sleep(17 * time.Second)
	if after := len(b.Requests()); after != before {
		t.Errorf("%d requests while hidden", after-before)
	}
	b.Ask("Network.emulateNetworkConditions",
		map[string]any{"offline": true, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})
	b.Eval("Object.defineProperty(document, 'hidden', {value: false, configurable: true}); document.dispatchEvent(new Event('visibilitychange'))")
	if !b.Await(5*time.Second, "/^STALE \\d+[sm]: not refreshed, the exporter is unreachable$/.test(document.getElementById('news').textContent) && /^STALE \\d+[sm].* – dgx-h100/.test(document.title)") {
		t.Errorf("is not marked as stale: %s", b.Eval("document.title + document.getElementById('news').textContent"))
	}
	b.Eval("scrollTo(0, document.documentElement.scrollHeight)")
	if got := b.Eval("(r => scrollY > 100 && r.top >= 0 && r.bottom <= innerHeight)(document.getElementById('news').getBoundingClientRect())"); got != "true" {
		t.Error("the bar is out of sight at the end of the page")
	}
	b.Ask("Network.emulateNetworkConditions",
		map[string]any{"offline": false, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})
	if !b.Await(25*time.Second, "!document.title.includes('STALE') && document.getElementById('news').className === 'news unseen'") {
		t.Errorf("stays stale: %s", b.Eval("document.title"))
	}
}

// TestKeyboard: the first key skips the header, and all controls have a visible focus.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	b.Open(serve(t, "downshift-one"))
	key := func(name string, code int) {
		for _, kind := range []string{"keyDown", "keyUp"} {
			b.Ask("Input.dispatchKeyEvent", map[string]any{
				"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code,
				"text": map[string]string{"Enter": "\r"}[name],
			})
		}
	}
	key("Tab", 9)
	if got := b.Eval("document.activeElement.className"); got != "skip" {
		t.Errorf("first is %q", got)
	}
	key("Enter", 13)
	if !b.Await(5*time.Second, "document.activeElement.id === 'findings'") {
		t.Errorf("leads to %q", b.Eval("document.activeElement.outerHTML.slice(0, 80)"))
	}
	key("Tab", 9)
	if got := b.Eval("document.activeElement.textContent"); got != "Runbook" {
		t.Errorf("next is %q", got)
	}
	if got := b.Eval("getComputedStyle(document.activeElement).outlineWidth"); got != "3px" {
		t.Errorf("outline %s", got)
	}
}
