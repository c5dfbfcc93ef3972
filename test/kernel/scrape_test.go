//go:build e2e

package kernel

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const (
	patienceOfGuest = 8 * time.Minute
	pollInterval    = 100 * time.Millisecond
	scrapeTimeout   = 10 * time.Second // Prometheus' own default
)

// samples are the values of one scrape by series, in the exporter's notation.
type samples map[string]float64

// get makes a request like Prometheus.
func get(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", fmt.Sprint(scrapeTimeout.Seconds()))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	return io.ReadAll(resp.Body)
}

func scrape(ctx context.Context, url string) (samples, error) {
	text, err := get(ctx, url+"/metrics")
	if err != nil {
		return nil, err
	}
	return parse(text)
}

// parse reads the text format.
func parse(text []byte) (samples, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("scrape: %w", err)
	}
	s := samples{}
	for name, family := range families {
		for _, m := range family.Metric {
			s[series(name, m.Label)] = valueOf(m)
		}
	}
	return s, nil
}

func series(name string, labels []*dto.LabelPair) string {
	parts := make([]string, 0, len(labels))
	for _, l := range labels {
		parts = append(parts, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	slices.Sort(parts)
	return name + "{" + strings.Join(parts, ",") + "}"
}

// valueOf returns the value of a counter, gauge or untyped metric: the one that is not nil.
func valueOf(m *dto.Metric) float64 {
	return m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
}

// diff describes the differences between s and want; empty: none.
func (s samples) diff(want samples) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(want)) {
		got, ok := s[key]
		switch {
		case !ok:
			fmt.Fprintf(&b, "%s is missing, want %v\n", key, want[key])
		case got != want[key]:
			fmt.Fprintf(&b, "%s is %v, want %v\n", key, got, want[key])
		}
	}
	return b.String()
}

// eventually tries until try returns nil and fails the test with its last error when patience is over.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	within(t, patienceOfGuest, try)
}

func within(t *testing.T, patience time.Duration, try func() error) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("after %v: %v", patience, err)
		}
	}
}

// expect waits until the exporter exposes the wanted samples.
func (g *guest) expect(t *testing.T, want samples) {
	t.Helper()
	g.expectWithin(t, patienceOfGuest, want)
}

func (g *guest) expectWithin(t *testing.T, patience time.Duration, want samples) {
	t.Helper()
	within(t, patience, func() error { return g.differs(t, want) })
}

// differs returns an error if one scrape differs from the wanted samples.
func (g *guest) differs(t *testing.T, want samples) error {
	t.Helper()
	s, err := scrape(t.Context(), g.url)
	if err != nil {
		return err
	}
	if d := s.diff(want); d != "" {
		return fmt.Errorf("\n%s", d)
	}
	return nil
}

// own are metrics about failed reads and the engine.
var own = regexp.MustCompile(`^rdma_(scrape_(collector_(stuck|age)|errors)|alerting)_`)

// logOwn logs the metrics about the exporter if a step has failed.
func (g *guest) logOwn(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		return
	}
	s, err := scrape(context.Background(), g.url)
	if err != nil {
		t.Log(err)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if own.MatchString(key) && s[key] != 0 {
			t.Logf("%s %v", key, s[key])
		}
	}
}

// expectGone waits until the exporter no longer exposes the series.
func (g *guest) expectGone(t *testing.T, key string) {
	t.Helper()
	eventually(t, func() error {
		s, err := scrape(t.Context(), g.url)
		if err != nil {
			return err
		}
		if v, ok := s[key]; ok {
			return fmt.Errorf("%s is still %v", key, v)
		}
		return nil
	})
}

// watcher scrapes continuously and records failures.
type watcher struct {
	mu      sync.Mutex
	scrapes int
	slowest time.Duration
	faults  []string
}

// watch scrapes until the test ends; every scrape has to be answered in time and contain the series.
func watch(t *testing.T, url, key string) *watcher {
	w := &watcher{}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			start := time.Now()
			s, err := scrape(ctx, url)
			if _, ok := s[key]; err == nil && !ok {
				err = fmt.Errorf("no %s", key)
			}
			took := time.Since(start)
			if ctx.Err() == nil {
				w.add(took, err)
			}
			select {
			case <-time.After(max(pollInterval, took)): // half of the time is left to the test
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return w
}

func (w *watcher) add(took time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.scrapes++
	w.slowest = max(w.slowest, took)
	if err != nil {
		w.faults = append(w.faults, fmt.Sprintf("%s: %v", time.Now().Format("15:04:05.0"), err))
	}
}

func (w *watcher) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.scrapes
}

// check fails the test for every failed scrape so far.
func (w *watcher) check(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	t.Logf("%d scrapes, the slowest in %v", w.scrapes, w.slowest.Round(time.Millisecond))
	for _, f := range w.faults {
		t.Error(f)
	}
	w.faults = nil
}
