package notify_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/alerting/notify"
	"rdma_exporter/test/port"
)

// ledger is an Alertmanager that counts how often it accepted each state of each alert.
type ledger struct {
	now  atomic.Int64 // the round, in seconds: a firing alert that has expired by then is resolved for Alertmanager
	fail atomic.Pointer[http.HandlerFunc]

	mu     sync.Mutex
	states map[string]int // by "DEVICE firing" or "DEVICE resolved"
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if fail := l.fail.Load(); fail != nil {
		(*fail)(w, r)
		return
	}
	var alerts []posted
	if err != nil || json.Unmarshal(body, &alerts) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range alerts {
		is := " firing"
		if a.EndsAt.Unix() <= l.now.Load() {
			is = " resolved"
		}
		l.states[a.Labels["device"]+is]++
	}
}

// take returns the counts, and starts again.
func (l *ledger) take() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.states
	l.states = map[string]int{}
	return out
}

func (l *ledger) failing(h http.HandlerFunc) { l.fail.Store(&h) }

// start serves a ledger at an address.
func (l *ledger) start(t *testing.T, address string) *httptest.Server {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: listener, Config: &http.Server{Handler: l, ErrorLog: log.New(io.Discard, "", 0)}} //nolint:gosec // a test
	t.Cleanup(s.Close)
	return s
}

// outages are how an Alertmanager fails. down and up begin and end it.
var outages = map[string]func(t *testing.T, l *ledger) (o notify.Options, down, up func()){
	"connection refused": func(t *testing.T, l *ledger) (o notify.Options, down, up func()) {
		address := port.Held(t)
		s := l.start(t, address)
		s.Start()
		o.URLs = []string{"http://" + address}
		return o, s.Close, func() { l.start(t, address).Start() }
	},
	"500": func(t *testing.T, l *ledger) (notify.Options, func(), func()) {
		return answering(t, l, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	},
	"connection closed": func(t *testing.T, l *ledger) (notify.Options, func(), func()) {
		return answering(t, l, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	},
	"no answer": func(t *testing.T, l *ledger) (notify.Options, func(), func()) {
		return answering(t, l, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	},
	"unknown CA": func(t *testing.T, l *ledger) (o notify.Options, down, up func()) {
		s := l.start(t, "127.0.0.1:0")
		s.StartTLS()
		ca := filepath.Join(t.TempDir(), "ca.pem")
		own := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
		other := string(certificate(t, "other", time.Now().Add(time.Hour)).pem)
		o.URLs, o.HTTPFile = []string{s.URL}, filepath.Join(t.TempDir(), "am.yml")
		write(t, o.HTTPFile, "tls_config: {ca_file: "+ca+"}\n")
		up = func() { write(t, ca, own) }
		up()
		return o, func() { write(t, ca, other) }, up
	},
}

func answering(t *testing.T, l *ledger, h http.HandlerFunc) (o notify.Options, down, up func()) {
	s := l.start(t, "127.0.0.1:0")
	s.Start()
	o.URLs = []string{s.URL}
	return o, func() { l.failing(h) }, func() { l.fail.Store(nil) }
}

// Devices of TestOutage, by what their alerts do during the outage.
const (
	lastingAlerts = 300 // more than one request
	endingAlerts  = 60
	newAlerts     = 60
)

// devices returns the series of the three kinds before or after the outage begins.
func devices(before bool) (out []*dto.MetricFamily) {
	for kind, c := range map[string]struct {
		count         int
		before, after bool
	}{"lasting": {lastingAlerts, true, true}, "ending": {endingAlerts, true, false}, "new": {newAlerts, false, true}} {
		for i := range c.count {
			up := 4.0
			if before && c.before || !before && c.after {
				up = 1
			}
			out = append(out, state(fmt.Sprint(kind, i), up))
		}
	}
	return out
}

// TestOutage: one of two Alertmanagers is down while alerts start, last and end. It gets the last state of each alert
// once, within 15s of a failed request, and the other one is not affected.
func TestOutage(t *testing.T) {
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad, good := &ledger{states: map[string]int{}}, &ledger{states: map[string]int{}}
			var text lockedLog
			o, down, up := outage(t, bad)
			healthy := good.start(t, "127.0.0.1:0")
			healthy.Start()
			o.URLs, o.Logger = append(o.URLs, healthy.URL), slog.New(slog.NewTextHandler(&text, nil))
			e, n := evaluating(t, o, "groups: [{name: g, rules: [{alert: Down, expr: 'state != 4'}]}]")
			round := func(now time.Duration, before bool) {
				bad.now.Store(timeAt(now).Unix())
				good.now.Store(timeAt(now).Unix())
				step(t, e, timeAt(now), devices(before)...)
			}
			empty := func(which int) bool { return n.Deliveries()[which].Queued == 0 }
			round(0, true)
			await(t, 10*time.Second, func() bool { return empty(0) && empty(1) })
			if b, g := bad.take(), good.take(); len(b) != lastingAlerts+endingAlerts || len(g) != lastingAlerts+endingAlerts {
				t.Fatalf("before: %d and %d states", len(b), len(g))
			}

			down()
			// Seconds; sent again, and alerts of earlier rounds expire.
			for i, now := range []time.Duration{15, 90, 165, 240, 600} {
				round(now*time.Second, false)
				await(t, 5*time.Second, func() bool { return empty(1) })
				if states := good.take(); i > 0 && len(states) != lastingAlerts+endingAlerts+newAlerts ||
					slices.Max(values(states)) != 1 {
					t.Errorf("%ds: the other one got %d states, at most %d times", now, len(states), slices.Max(values(states)))
				}
			}
			await(t, 20*time.Second, func() bool { return n.Deliveries()[0].Errors > 0 })
			failed := time.Now()
			up()
			await(t, 15*time.Second, func() bool { return empty(0) })
			took := time.Since(failed)
			states := bad.take()
			want := map[string]int{}
			for i := range lastingAlerts {
				want[fmt.Sprint("lasting", i, " firing")] = 1
			}
			for i := range endingAlerts {
				want[fmt.Sprint("ending", i, " resolved")], want[fmt.Sprint("new", i, " firing")] = 1, 1
			}
			for which, count := range want {
				if states[which] != count {
					t.Errorf("%s: %d times", which, states[which])
				}
			}
			if len(states) != len(want) {
				t.Errorf("%d states, want %d", len(states), len(want))
			}
			n.Close()
			t.Logf("%d of %d alerts delivered %s after the failed request, each once",
				len(states), len(want), took.Round(100*time.Millisecond))
			if d := delivered(n); d.Dropped != 0 {
				t.Errorf("%+v", d)
			}
			if l := text.String(); strings.Count(l, "\n") != 2 ||
				!strings.Contains(l, "sending alerts to Alertmanager failed, retrying every 10s") ||
				!strings.Contains(l, "works again") {
				t.Errorf("log:\n%s", l)
			}
		})
	}
}

func values(of map[string]int) []int {
	out := []int{0}
	for _, v := range of {
		out = append(out, v)
	}
	return out
}

// await waits until a condition holds.
func await(t *testing.T, limit time.Duration, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after %s", limit)
		}
	}
}

// TestSlowAlertmanager: an Alertmanager that does not answer before the other one delays it not, and gets no alert
// twice.
func TestSlowAlertmanager(t *testing.T) {
	t.Parallel()
	var slow atomic.Int64
	answer := make(chan struct{})
	bad := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		slow.Add(1)
		<-answer
	}))
	defer bad.Close()
	good := receive(t)
	e, n := notifying(t, notify.Options{URLs: []string{bad.URL, good.URL}})
	fire(t, e, 0)
	good.last(t)
	if d := n.Deliveries()[0]; d.Sent+d.Errors > 0 {
		t.Errorf("an answer before there is one: %+v", d)
	}
	close(answer)
	await(t, 14*time.Second, func() bool { return n.Deliveries()[0].Sent == 1 })
	n.Close()
	if d := n.Deliveries()[0]; slow.Load() != 1 || d.Errors+d.Dropped > 0 {
		t.Errorf("%d requests, %+v", slow.Load(), d)
	}
}
