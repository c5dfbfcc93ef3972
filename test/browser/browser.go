//go:build e2e

// Package browser opens pages in a headless Chromium, for tests.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"rdma_exporter/test/program"
)

// Timeout is the time limit of browser operations, apart from waits of the page.
const Timeout = 30 * time.Second

// Tab is a page in a headless Chromium.
type Tab struct {
	t   *testing.T
	ctx context.Context // of the tab

	mu    sync.Mutex
	asked []string // URLs
	wrong []string // console errors and warnings, policy violations
}

// Start starts a browser with an empty tab.
func Start(t *testing.T) *Tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program.Installed(t, "chromium", "test/page/packages.sh")),
		chromedp.NoSandbox, chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-component-update", true))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	b := &Tab{t: t}
	b.ctx, _ = chromedp.NewContext(ctx, chromedp.WithListener(b.event)) // closed by Cancel
	t.Cleanup(func() {
		must(t, chromedp.Cancel(b.ctx))
		stop()
	})
	_, err := chromedp.Run(b.ctx, chromedp.Navigate("about:blank"))
	must(t, err)
	b.Ask("Audits.enable", nil)
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// event records requests and faults of the page.
func (b *Tab) event(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	case *runtime.EventExceptionThrown, *runtime.EventConsoleAPICalled, *log.EventEntryAdded, *audits.EventIssueAdded:
		text, err := json.Marshal(e)
		b.wrong = append(b.wrong, fmt.Sprint(string(text), err))
	}
}

// run runs an action of the tab, at most for Timeout.
func run[T any](b *Tab, action chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, Timeout)
	defer cancel()
	return chromedp.Run(ctx, action)
}

// Ask sends a command of the DevTools protocol and waits for its answer.
func (b *Tab) Ask(method string, params any) {
	b.t.Helper()
	call := chromedp.Func(func(ctx context.Context, t *chromedp.Target) error { return t.Call(ctx, method, params, nil) })
	if _, err := run(b, call); err != nil {
		b.t.Fatalf("%s: %s", method, err)
	}
}

// Open loads a page.
func (b *Tab) Open(url string) {
	b.t.Helper()
	if _, err := run(b, chromedp.Navigate(url)); err != nil {
		b.t.Fatalf("%s does not load: %s", url, err)
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
	value, err := run(b, chromedp.Evaluate[any](expression, chromedp.EvalAwaitPromise))
	return fmt.Sprint(value), err
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

// Requests are the URLs requested so far.
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

// Shot is a PNG screenshot of the top of the page, of the size of the window.
func (b *Tab) Shot() []byte {
	b.t.Helper()
	picture, err := run(b, chromedp.CaptureScreenshot())
	must(b.t, err)
	return picture
}

// Print is the page as PDF.
func (b *Tab) Print() []byte {
	b.t.Helper()
	pdf, err := run(b, chromedp.PrintToPDF(func(p *page.PrintToPDFParams) { p.PreferCSSPageSize = new(true) }))
	must(b.t, err)
	return pdf
}
