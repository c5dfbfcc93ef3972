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

// TestAlertmanagersThatFail: whatever one of two Alertmanagers does, rounds continue, the other receives every alert, and all alerts are
// counted.
func TestAlertmanagersThatFail(t *testing.T) {
	const rounds = 4 // in which the alert is sent
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request, end <-chan struct{})
		takes  bool // finally
	}{
		"500": {answer: func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
			w.WriteHeader(http.StatusInternalServerError)
		}},
		"429": {answer: func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
			w.WriteHeader(http.StatusTooManyRequests)
		}},
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
		"hangs": {answer: func(_ http.ResponseWriter, _ *http.Request, end <-chan struct{}) { <-end }},
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
				step(t, e, at(time.Duration(i)*2*time.Minute), gauge("state", 1, "device", "mlx5_0")) // would not return if it waited for a request
				if i > 0 {
					if a := good.last(t); a.Labels["device"] != "mlx5_0" {
						t.Errorf("round %d: the other one got %+v", i, a)
					}
				}
			}
			close(end) // a request that hung is answered
			n.Close()
			d := n.Deliveries()
			sent, dropped := float64(rounds), float64(rounds)
			if c.takes || name == "hangs" {
				sent, dropped = 2*rounds, 0
			}
			if d.Alertmanagers != 2 || d.Sent != sent || d.Dropped != dropped {
				t.Errorf("%+v, want %g sent, %g dropped", d, sent, dropped)
			}
		})
	}
}

// TestQueueIsBounded: alerts for a hanging Alertmanager are dropped from a limit on, and only for that one.
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
	const alerts, rounds = 500, 6
	for i := range alerts {
		devices = append(devices, gauge("state", 1, "device", fmt.Sprintf("mlx5_%d", i)))
	}
	for i := range rounds + 1 {
		step(t, e, at(time.Duration(i)*2*time.Minute), devices...)
		for got := 0; got < i*alerts; { // the queue of the other Alertmanager is empty before the next round
			<-good.came
			good.mu.Lock()
			got = len(good.alerts)
			good.mu.Unlock()
		}
	}
	d := n.Deliveries()
	if waiting := 2*rounds*alerts - d.Sent - d.Dropped; d.Dropped < 400 || waiting > 2000+2*256 || d.Sent < rounds*alerts-256 {
		t.Errorf("%+v: %g wait", d, waiting)
	}
	close(hang)
	n.Close()
	if d := n.Deliveries(); d.Sent+d.Dropped != 2*rounds*alerts {
		t.Errorf("at the end: %+v", d)
	}
	if len(good.alerts) != rounds*alerts {
		t.Errorf("the other one got %d of %d", len(good.alerts), rounds*alerts)
	}
}

// TestNobodyThere: nothing listens at the address of the Alertmanager.
func TestNobodyThere(t *testing.T) {
	e, n := notifying(t, alerting.NotifierOptions{URLs: []string{"http://" + port.Held(t)}})
	fire(t, e, 0)
	n.Close()
	if d := n.Deliveries(); d.Sent != 0 || d.Errors != 1 || d.Dropped != 1 {
		t.Errorf("%+v", d)
	}
}
