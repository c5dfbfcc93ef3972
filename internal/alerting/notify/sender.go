package notify

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/prometheus/notifier"
)

const (
	// retryDelay follows a failed request. With requestTimeout, an Alertmanager that is back gets the alerts within 25s.
	retryDelay = 10 * time.Second
	// drainTime is the time limit for emptying the queues at the end.
	drainTime = 5 * time.Second
)

// sender sends the alerts to one Alertmanager, so that one that is slow or down delays no other.
type sender struct {
	url    string // of the flag
	report func(url string, reason error)
	clock  peerClock // used by run only

	mu      sync.Mutex
	client  *http.Client
	queue   queue
	sending []*notifier.Alert // the request in progress
	counts  Deliveries

	work    chan struct{} // the queue has got alerts
	renewed chan struct{} // the client is another one
	closing chan struct{} // each alert gets one more attempt
	ended   chan struct{}
	ctx     context.Context // of the requests
	giveUp  context.CancelFunc
}

// newSender starts a sender. report is called with the result of each request, and skewed with each change of the clock
// difference.
func newSender(
	url string, client *http.Client, report func(url string, reason error), skewed func(url string, ahead time.Duration),
) *sender {
	s := &sender{
		url: url, report: report, clock: peerClock{report: func(ahead time.Duration) { skewed(url, ahead) }},
		client: client, counts: Deliveries{Alertmanager: url},
		work: make(chan struct{}, 1), renewed: make(chan struct{}, 1), closing: make(chan struct{}),
		ended: make(chan struct{}),
	}
	s.ctx, s.giveUp = context.WithCancel(context.Background())
	go s.run()
	return s
}

// send queues alerts. It does not wait.
func (s *sender) send(alerts []*notifier.Alert) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Dropped += float64(s.queue.add(alerts))
	signal(s.work)
}

// use takes another client, for the alerts of a failed request immediately.
func (s *sender) use(client *http.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client.CloseIdleConnections()
	s.client = client
	signal(s.renewed)
}

func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default: // it has not been received yet
	}
}

func (s *sender) run() {
	defer close(s.ended)
	for {
		client, alerts := s.take()
		switch {
		case len(alerts) > 0:
			if !s.attempt(client, alerts) {
				return
			}
		case !s.idle():
			return
		}
	}
}

// idle waits for alerts, and reports whether there are any; at the end there are none.
func (s *sender) idle() bool {
	select {
	case <-s.work:
		return true
	case <-s.closing:
		return false
	}
}

// attempt sends alerts, and waits after a failure. It reports whether to continue.
func (s *sender) attempt(client *http.Client, alerts []*notifier.Alert) bool {
	ahead := s.clock.ahead()
	date, reason := post(s.ctx, client, s.url, later(alerts, ahead))
	if s.clock.note(date, ahead) && reason == nil {
		s.requeue()
		return true
	}
	s.settle(reason)
	if s.ctx.Err() != nil { // not the fault of the Alertmanager
		return false
	}
	s.report(s.url, reason)
	if reason == nil || isRejection(reason) {
		return true
	}
	select {
	case <-s.closing:
		return false
	default:
	}
	select {
	case <-time.After(retryDelay):
	case <-s.renewed:
	case <-s.closing:
	}
	return true
}

// take moves alerts from the queue into the next request.
func (s *sender) take() (*http.Client, []*notifier.Alert) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sending = s.queue.take()
	return s.client, s.sending
}

// requeue queues the alerts of a request again: their times were by another clock than that of the Alertmanager.
func (s *sender) requeue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Dropped += float64(s.queue.putBack(s.sending))
	s.sending = nil
}

// settle counts the alerts of a request, and queues them again if it failed.
func (s *sender) settle(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := float64(len(s.sending))
	switch {
	case reason == nil:
		s.counts.Sent += n
	case isRejection(reason):
		s.counts.Errors += n
		s.counts.Dropped += n
	default:
		s.counts.Errors += n
		s.counts.Dropped += float64(s.queue.putBack(s.sending))
	}
	s.sending = nil
}

func (s *sender) deliveries() Deliveries {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.counts
	d.Queued = float64(len(s.queue.order) + len(s.queue.missing(s.sending)))
	return d
}

// drain sends what is queued within drainTime, and drops the rest: lost alerts. It is called once.
func (s *sender) drain() (lost int) {
	limit := time.AfterFunc(drainTime, s.giveUp)
	defer limit.Stop()
	close(s.closing)
	<-s.ended
	s.giveUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client.CloseIdleConnections()
	lost = len(s.queue.order)
	s.counts.Dropped += float64(lost)
	s.queue = queue{}
	return lost
}
