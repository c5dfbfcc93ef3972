//go:build e2e

// Package browser opens pages in a headless Chromium, for tests.
package browser

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"rdma_exporter/test/program"
)

// Patience is the time limit of browser operations, apart from waits of the page.
const Patience = 30 * time.Second

// Tab is a page in a headless Chromium, controlled by the DevTools protocol over a pipe: JSON messages terminated by a zero byte.
type Tab struct {
	t       *testing.T
	to      io.Writer
	session string

	mu      sync.Mutex
	next    int
	answers map[int]chan message
	asked   []string // URLs
	wrong   []string // console errors and warnings, policy violations
	loaded  chan struct{}
}

type message struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Start starts a browser with an empty tab.
func Start(t *testing.T) *Tab {
	t.Helper()
	in, to, err := os.Pipe()
	must(t, err)
	from, out, err := os.Pipe()
	must(t, err)
	cmd := exec.Command(program.Installed(t, "chromium", "test/page/packages.sh"), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir())
	cmd.ExtraFiles = []*os.File{in, out} // 3 and 4
	must(t, cmd.Start())
	must(t, errors.Join(in.Close(), out.Close()))
	b := &Tab{t: t, to: to, answers: map[int]chan message{}, loaded: make(chan struct{}, 100)}
	ended := make(chan struct{})
	go b.listen(from, ended)
	t.Cleanup(func() {
		b.session = ""
		b.Ask("Browser.close", nil, nil)
		must(t, cmd.Wait())
		must(t, to.Close())
		<-ended
	})
	var target struct{ TargetID string }
	b.Ask("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.Ask("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Network", "Runtime", "Log", "Audits"} {
		b.Ask(domain+".enable", nil, nil)
	}
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// discard ignores an error.
func discard(error) {}

// listen reads answers and events until the browser ends.
func (b *Tab) listen(from *os.File, ended chan struct{}) {
	defer close(ended)
	defer from.Close()
	r := bufio.NewReader(from)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
			b.t.Errorf("message of the browser: %v", err)
			return
		}
		b.mu.Lock()
		if m.ID != 0 {
			b.answers[m.ID] <- m
		} else {
			b.event(m)
		}
		b.mu.Unlock()
	}
}

// event records requests and faults of the page. b.mu is held.
func (b *Tab) event(m message) {
	switch m.Method {
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		discard(json.Unmarshal(m.Params, &p))
		b.asked = append(b.asked, p.Request.URL)
	case "Page.loadEventFired":
		b.loaded <- struct{}{}
	case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Audits.issueAdded":
		b.wrong = append(b.wrong, string(m.Params))
	}
}

// Ask sends a command and waits for its answer.
func (b *Tab) Ask(method string, params, result any) {
	b.t.Helper()
	if err := b.ask(method, params, result); err != nil {
		b.t.Fatalf("%s: %s", method, err)
	}
}

// ask is Ask, with the error of the browser.
func (b *Tab) ask(method string, params, result any) error {
	b.t.Helper()
	raw, err := json.Marshal(params)
	must(b.t, err)
	answer := make(chan message, 1)
	b.mu.Lock()
	b.next++
	m := message{ID: b.next, SessionID: b.session, Method: method, Params: raw}
	b.answers[m.ID] = answer
	b.mu.Unlock()
	text, err := json.Marshal(m)
	must(b.t, err)
	_, err = b.to.Write(append(text, 0))
	must(b.t, err)
	select {
	case m = <-answer:
	case <-time.After(Patience):
		b.t.Fatalf("%s: no answer", method)
	}
	if m.Error != nil {
		return errors.New(m.Error.Message)
	}
	if result != nil {
		must(b.t, json.Unmarshal(m.Result, result))
	}
	return nil
}

// Open loads a page.
func (b *Tab) Open(url string) {
	b.t.Helper()
	for len(b.loaded) > 0 { // of the previous page
		<-b.loaded
	}
	b.Ask("Page.navigate", map[string]any{"url": url}, nil)
	select {
	case <-b.loaded:
	case <-time.After(Patience):
		b.t.Fatalf("%s does not load", url)
	}
}

// Size sets the size of the window.
func (b *Tab) Size(width, height int, phone bool) {
	b.t.Helper()
	b.Ask("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}, nil)
}

// Scheme is light or dark.
func (b *Tab) Scheme(name string) {
	b.t.Helper()
	b.Ask("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": name}}}, nil)
}

// Eval returns the value of an expression as text.
func (b *Tab) Eval(format string, args ...any) string {
	b.t.Helper()
	value, err := b.eval(fmt.Sprintf(format, args...))
	if err != nil {
		b.t.Fatalf("Runtime.evaluate: %s", err)
	}
	return value
}

// eval is Eval, with an error if the tab leaves its page meanwhile.
func (b *Tab) eval(expression string) (string, error) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails *struct{ Text string }
	}
	if err := b.ask("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r); err != nil {
		return "", err
	}
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails.Text)
	}
	return fmt.Sprint(r.Result.Value), nil
}

// Await waits until an expression is true, also on the page that follows.
func (b *Tab) Await(within time.Duration, expression string) bool {
	b.t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if value, err := b.eval(expression); err == nil && value == "true" {
			return true
		}
	}
	return false
}

// Requests are the URLs requested so far.
func (b *Tab) Requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.asked...)
}

// Faults are console errors and warnings, and policy violations, so far.
func (b *Tab) Faults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.wrong...)
}

// Shot is a PNG screenshot of a part of the page.
func (b *Tab) Shot(width, height int) []byte {
	b.t.Helper()
	var r struct{ Data []byte }
	b.Ask("Page.captureScreenshot", map[string]any{"format": "png", "clip": map[string]any{"x": 0, "y": 0, "width": width, "height": height, "scale": 1}}, &r)
	return r.Data
}
