//go:build e2e

// Package browser opens pages in a headless Chromium, for tests.
package browser

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// Timeout is the time limit of browser operations, apart from waits of the page.
const Timeout = 30 * time.Second

// Tab is a page in a headless Chromium.
type Tab struct {
	t       *testing.T
	browser *devtools
	session string // of the tab

	mu     sync.Mutex
	asked  []string                 // URLs
	wrong  []string                 // console errors and warnings, policy violations
	loaded map[string]chan struct{} // by loader: closed when its page is loaded
}

// Start starts a browser with an empty tab.
func Start(t *testing.T) *Tab {
	t.Helper()
	b := &Tab{t: t, loaded: map[string]chan struct{}{}}
	b.browser = launch(t, b.event)
	target := call[struct{ TargetID string }](b, "Target.createTarget", map[string]any{"url": "about:blank"})
	b.session = call[struct{ SessionID string }](b, "Target.attachToTarget",
		map[string]any{"targetId": target.TargetID, "flatten": true}).SessionID
	for _, domain := range []string{"Page", "Network", "Runtime", "Log", "Audits"} {
		b.Ask(domain+".enable", nil)
	}
	b.Ask("Page.setLifecycleEventsEnabled", map[string]any{"enabled": true})
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// event records requests and faults of the page, and what is loaded.
func (b *Tab) event(method string, params json.RawMessage) {
	switch method {
	case "Network.requestWillBeSent":
		var e struct{ Request struct{ URL string } }
		if b.parse(params, &e) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.asked = append(b.asked, e.Request.URL)
		}
	case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Audits.issueAdded":
		b.mu.Lock()
		defer b.mu.Unlock()
		b.wrong = append(b.wrong, string(params))
	case "Page.lifecycleEvent":
		var e struct{ LoaderID, Name string }
		if b.parse(params, &e) && e.Name == "load" {
			select {
			case <-b.loading(e.LoaderID):
			default:
				close(b.loading(e.LoaderID))
			}
		}
	}
}

func (b *Tab) parse(params json.RawMessage, into any) bool {
	err := json.Unmarshal(params, into)
	if err != nil {
		b.t.Errorf("event %s: %v", params, err)
	}
	return err == nil
}

// loading is closed when the page of a loader is loaded.
func (b *Tab) loading(loader string) chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.loaded[loader] == nil {
		b.loaded[loader] = make(chan struct{})
	}
	return b.loaded[loader]
}

// ask sends a command of the DevTools protocol and returns its result.
func ask[T any](b *Tab, method string, params any) (result T, err error) {
	text, err := b.browser.call(b.session, method, params)
	if err == nil {
		err = json.Unmarshal(text, &result)
	}
	return result, err
}

// call is ask; an error ends the test.
func call[T any](b *Tab, method string, params any) T {
	b.t.Helper()
	result, err := ask[T](b, method, params)
	if err != nil {
		b.t.Fatalf("%s: %s", method, err)
	}
	return result
}

// Ask sends a command of the DevTools protocol and waits for its answer.
func (b *Tab) Ask(method string, params any) {
	b.t.Helper()
	call[struct{}](b, method, params)
}

// Open loads a page.
func (b *Tab) Open(url string) {
	b.t.Helper()
	page := call[struct{ LoaderID, ErrorText string }](b, "Page.navigate", map[string]any{"url": url})
	if page.ErrorText != "" {
		b.t.Fatalf("%s does not load: %s", url, page.ErrorText)
	}
	if page.LoaderID == "" { // a place in the same page
		return
	}
	select {
	case <-b.loading(page.LoaderID):
	case <-time.After(Timeout):
		b.t.Fatalf("%s is not loaded in %s", url, Timeout)
	}
}

// Size sets the size of the window.
func (b *Tab) Size(width, height int, phone bool) {
	b.t.Helper()
	b.Ask("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone})
}

// Scheme is light or dark.
func (b *Tab) Scheme(name string) {
	b.t.Helper()
	b.Ask("Emulation.setEmulatedMedia",
		map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": name}}})
}

// Eval returns the value of an expression as text.
func (b *Tab) Eval(format string, args ...any) string {
	b.t.Helper()
	expression := fmt.Sprintf(format, args...)
	value, err := b.eval(expression)
	if err != nil {
		b.t.Fatalf("%s: %s", expression, err)
	}
	return value
}

// eval is Eval, with an error if the tab leaves its page meanwhile.
func (b *Tab) eval(expression string) (string, error) {
	got, err := ask[struct {
		Result           struct{ Value any }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}](b, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true})
	if e := got.ExceptionDetails; err == nil && e != nil {
		err = errors.New(e.Text + " " + e.Exception.Description)
	}
	return fmt.Sprint(got.Result.Value), err
}

// Await waits until an expression is true, also on the next page, and reports whether it became true.
func (b *Tab) Await(within time.Duration, expression string) bool {
	b.t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if value, err := b.eval(expression); err == nil && value == "true" {
			return true
		}
	}
	return false
}

// Requests returns the URLs requested so far.
func (b *Tab) Requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.asked)
}

// Faults are console errors and warnings, and policy violations, so far.
func (b *Tab) Faults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.wrong)
}

// Shot returns a PNG screenshot of the top of the page, of the size of the window.
func (b *Tab) Shot() []byte {
	b.t.Helper()
	return call[struct{ Data []byte }](b, "Page.captureScreenshot", map[string]any{"fromSurface": true}).Data
}

// Print returns the page as PDF.
func (b *Tab) Print() []byte {
	b.t.Helper()
	return call[struct{ Data []byte }](b, "Page.printToPDF", map[string]any{"preferCSSPageSize": true}).Data
}
