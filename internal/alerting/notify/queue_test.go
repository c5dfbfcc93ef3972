package notify

import (
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
)

// transport answers the requests of a client.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// accepted returns the answer of an Alertmanager that takes alerts.
func accepted(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// TestQueueIsBounded: each alert for a hanging Alertmanager waits once, and the oldest are dropped from a limit on,
// only for that one. The request that hangs holds a batch beside the queue until it is given up.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := make(chan struct{})
		hangs := func(r *http.Request) (*http.Response, error) {
			select {
			case <-back:
				return accepted(r)
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
		n := &Notifier{opts: Options{Logger: slog.New(slog.DiscardHandler)}, failing: map[string]string{}}
		for _, answer := range []transport{hangs, accepted} {
			n.senders = append(n.senders, newSender("", &http.Client{Transport: answer}, n.answered, n.skewed))
		}
		expect := func(when string, bad Deliveries, sent float64) {
			t.Helper()
			synctest.Wait() // requests that can be answered are
			if d := n.Deliveries(); d[0] != bad || d[1] != (Deliveries{Sent: sent}) {
				t.Errorf("%s: %+v, want %+v and %.0f sent by the other", when, d, bad, sent)
			}
		}
		send := func(from, to int) {
			var alerts []*rules.Alert
			for i := from; i < to; i++ {
				alerts = append(alerts, &rules.Alert{
					Labels: labels.FromStrings("device", fmt.Sprint("mlx5_", i)), ValidUntil: time.Now().Add(time.Minute),
				})
			}
			n.Notify(t.Context(), "", alerts...)
		}

		// The first 256 alerts are in the request.
		send(0, 1500)
		expect("first", Deliveries{Queued: 1500}, 1500)
		// Newer states of all wait, those in the request behind the others.
		send(0, 1500)
		expect("again", Deliveries{Queued: 1500}, 3000)
		send(1500, 2500)
		expect("more", Deliveries{Queued: QueueCapacity, Dropped: 500}, 4000)
		// The request is given up: newer states of its alerts wait already. The next one takes other alerts.
		time.Sleep(requestTimeout + retryDelay)
		expect("given up", Deliveries{Queued: QueueCapacity, Dropped: 500, Errors: 256}, 4000)
		// Beside the batch in the request the queue has space for as many, then it is full.
		send(2500, 2756)
		expect("beside a batch", Deliveries{Queued: QueueCapacity + 256, Dropped: 500, Errors: 256}, 4256)
		send(2756, 2757)
		expect("full", Deliveries{Queued: QueueCapacity + 256, Dropped: 501, Errors: 256}, 4257)
		// What it held finds no space.
		time.Sleep(requestTimeout)
		expect("given up again", Deliveries{Queued: QueueCapacity, Dropped: 757, Errors: 512}, 4257)

		close(back)
		n.Close()
		expect("at the end", Deliveries{Sent: QueueCapacity, Dropped: 757, Errors: 512}, 4257)
	})
}
