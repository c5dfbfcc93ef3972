package notify_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/alerting/notify"
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
			e, n := notifying(t, notify.Options{URLs: []string{bad.URL, good.URL}})
			for i := range rounds + 1 {
				// Would not return if it waited for a request.
				step(t, e, timeAt(time.Duration(i)*2*time.Minute), state("mlx5_0", 1))
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

// TestNobodyThere: nothing listens at the address of the Alertmanager.
func TestNobodyThere(t *testing.T) {
	e, n := notifying(t, notify.Options{URLs: []string{"http://" + port.Held(t)}})
	fire(t, e, 0)
	n.Close()
	if d := delivered(n); d.Sent != 0 || d.Errors == 0 || d.Dropped != 1 {
		t.Errorf("%+v", d)
	}
}
