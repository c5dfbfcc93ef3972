package alerting_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/test/port"
)

// TestAlertmanagersThatFail: whatever one of two Alertmanagers does, rounds continue, the other receives every alert,
// and all alerts are counted.
func TestAlertmanagersThatFail(t *testing.T) {
	const rounds = 4 // in which the alert is sent
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request, end <-chan struct{})
		takes  bool // finally
		drops  bool // immediately
	}{
		"500": {answer: func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
			w.WriteHeader(http.StatusInternalServerError)
		}},
		"429": {answer: func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
			w.WriteHeader(http.StatusTooManyRequests)
		}},
		"400": {answer: func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
			w.WriteHeader(http.StatusBadRequest)
		}, drops: true},
		"closes": {answer: func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
			panic(http.ErrAbortHandler)
		}},
		"closes within its answer": {answer: func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "{")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, takes: true}, // it has answered 200
		"speaks no HTTP": {answer: func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = c.Write([]byte("\x16\x03\x01 no HTTP\r\n\r\n"))
			_ = c.Close()
		}},
		"slow": {answer: func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
			for range 5 {
				time.Sleep(5 * time.Millisecond)
				_, _ = io.WriteString(w, "{}")
				w.(http.Flusher).Flush()
			}
		}, takes: true},
		"answers a lot": {answer: func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
			_, _ = io.WriteString(w, strings.Repeat("x", 4<<20))
		}, takes: true},
		"redirects to itself": {answer: func(w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}},
		"redirects to nowhere": {answer: func(w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusPermanentRedirect)
		}},
		"hangs": {answer: func(_ http.ResponseWriter, _ *http.Request, end <-chan struct{}) { <-end }, takes: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := make(chan struct{})
			bad := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				c.answer(w, r, end)
			}))
			bad.Config.ErrorLog = log.New(io.Discard, "", 0)
			bad.Start()
			defer bad.Close()
			good := receive(t)
			e, n := notifying(t, alerting.NotifierOptions{URLs: []string{bad.URL, good.URL}})
			for i := range rounds + 1 {
				// Would not return if it waited for a request.
				step(t, e, at(time.Duration(i)*2*time.Minute), gauge("state", 1, "device", "mlx5_0"))
				if i > 0 {
					if a := good.last(t); a.Labels["device"] != "mlx5_0" {
						t.Errorf("round %d: the other one got %+v", i, a)
					}
				}
			}
			d := n.Deliveries()
			if d[0].Alertmanager != bad.URL || d[1].Alertmanager != good.URL || d[0].Queued > 1 || c.drops && d[0].Sent > 0 {
				t.Errorf("%+v: each alert waits once", d)
			}
			close(end) // a request that hung is answered
			n.Close()
			d = n.Deliveries()
			if d[1].Sent != rounds || d[1].Errors+d[1].Dropped+d[1].Queued > 0 {
				t.Errorf("the other one: %+v", d[1])
			}
			switch got := d[0]; {
			case got.Queued != 0, c.takes && (got.Sent == 0 || got.Dropped > 0),
				!c.takes && (got.Sent > 0 || got.Errors == 0 || got.Dropped == 0),
				!c.takes && !c.drops && got.Dropped != 1:
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestQueueIsBounded: each alert for a hanging Alertmanager waits once, and the oldest are dropped from a limit on,
// only for that one.
func TestQueueIsBounded(t *testing.T) {
	hang := make(chan struct{})
	bad := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-hang
	}))
	defer bad.Close()
	good := receive(t)
	e, n := notifying(t, alerting.NotifierOptions{URLs: []string{bad.URL, good.URL}})
	var devices []*dto.MetricFamily
	more := func(count int) {
		for range count {
			devices = append(devices, gauge("state", 1, "device", fmt.Sprintf("mlx5_%d", len(devices))))
		}
	}
	// The request that hangs holds a batch beside the queue. On a busy machine it is given up after 15s, and what it held
	// waits again: each alert is queued or dropped all the same.
	const batch = 256
	expect := 0
	for _, c := range []struct {
		at                  time.Duration
		more, firing, known int
	}{
		{at: 0, more: 1500},
		{at: 2 * time.Minute, firing: 1500, known: 1500},
		{at: 4 * time.Minute, firing: 1500, more: 1000, known: 1500},
		{at: 330 * time.Second, firing: 1500, known: 1500},
		{at: 6 * time.Minute, firing: 1000, known: 2500},
	} {
		more(c.more)
		step(t, e, at(c.at), devices...)
		// The queue of the other Alertmanager is empty before the next round.
		for expect += c.firing; n.Deliveries()[1].Sent < float64(expect); {
			time.Sleep(time.Millisecond)
		}
		d := n.Deliveries()[0]
		queued, dropped := int(d.Queued), int(d.Dropped)
		least := min(c.known, alerting.QueueCapacity)
		if queued+dropped != c.known || queued < least || queued > least+batch || c.known <= least && dropped > 0 {
			t.Errorf("%s: %+v, want %d to %d queued, the others of %d dropped", c.at, d, least, least+batch, c.known)
		}
	}
	close(hang)
	n.Close()
	d := n.Deliveries()
	if sent, dropped := int(d[0].Sent), int(d[0].Dropped); sent < alerting.QueueCapacity ||
		sent > alerting.QueueCapacity+batch || sent+dropped < 2500 || dropped > 500 || d[0].Queued != 0 || d[1].Dropped != 0 {
		t.Errorf("at the end: %+v", d)
	}
	if len(good.alerts) != expect {
		t.Errorf("the other one got %d of %d", len(good.alerts), expect)
	}
}

// TestNobodyThere: nothing listens at the address of the Alertmanager.
func TestNobodyThere(t *testing.T) {
	e, n := notifying(t, alerting.NotifierOptions{URLs: []string{"http://" + port.Held(t)}})
	fire(t, e, 0)
	n.Close()
	if d := delivered(n); d.Sent != 0 || d.Errors == 0 || d.Dropped != 1 {
		t.Errorf("%+v", d)
	}
}
