package alerting

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/notifier"
)

const (
	// queueCapacity limits the alerts queued for one Alertmanager: as many as 250 rules on 8 ports can fire.
	queueCapacity = 2000
	// drainTime is the time limit for emptying a queue at the end.
	drainTime = 5 * time.Second
	// giveUpTime is the time limit for cancelled requests.
	giveUpTime = time.Second
	// drainPoll is the polling interval for an empty queue.
	drainPoll = 5 * time.Millisecond
)

// sender sends with one configuration. A changed configuration gets a new sender: the library would block reloads until requests have
// ended, and would reuse the clients of a configuration that looks the same (secrets are masked).
type sender struct {
	manager  *notifier.Manager
	registry *prometheus.Registry
	answered func(r *http.Request, resp *http.Response, err error)
	handed   atomic.Uint64   // alerts, once per Alertmanager
	ended    chan struct{}   // closed when the manager has ended
	requests context.Context // ends when they are cancelled
	giveUp   context.CancelFunc
}

// newSender starts a sender. answered is called for each request.
func newSender(conf *config.Config, groups map[string][]*targetgroup.Group, answered func(*http.Request, *http.Response, error)) (*sender, error) {
	s := &sender{registry: prometheus.NewRegistry(), answered: answered, ended: make(chan struct{})}
	// The library would log each failed request. Only changes are logged.
	s.manager = notifier.NewManager(&notifier.Options{
		QueueCapacity: queueCapacity, DrainOnShutdown: true, Do: s.do, Registerer: s.registry,
	}, model.LegacyValidation, slog.New(slog.DiscardHandler))
	if err := s.manager.ApplyConfig(conf); err != nil {
		return nil, err
	}
	s.requests, s.giveUp = context.WithCancel(context.Background())
	targets := make(chan map[string][]*targetgroup.Group)
	go func() {
		defer close(s.ended)
		s.manager.Run(targets)
	}()
	targets <- groups
	targets <- nil // is received once the first message has been processed: from then on alerts go to the Alertmanagers
	return s, nil
}

// send queues alerts. It does not wait.
func (s *sender) send(alerts []*notifier.Alert) {
	s.handed.Add(uint64(len(alerts) * len(s.manager.Alertmanagers())))
	s.manager.Send(alerts...)
}

func (s *sender) do(ctx context.Context, client *http.Client, r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(ctx) // cancelled by the library once it has read the answer
	stop := context.AfterFunc(s.requests, cancel)
	context.AfterFunc(ctx, func() { stop() })
	resp, err := client.Do(r.WithContext(ctx))
	if s.requests.Err() == nil { // otherwise it is not the Alertmanager's fault
		s.answered(r, resp, err)
	}
	return resp, err
}

// deliveries are the counts of this sender. The library discards them when it ends.
func (s *sender) deliveries() (d Deliveries, err error) {
	d.Alertmanagers = len(s.manager.Alertmanagers())
	families, err := s.registry.Gather()
	if err != nil {
		return d, fmt.Errorf("count notifications: %w", err)
	}
	totals := map[string]*float64{
		"prometheus_notifications_sent_total": &d.Sent, "prometheus_notifications_errors_total": &d.Errors, "prometheus_notifications_dropped_total": &d.Dropped,
	}
	for _, f := range families {
		if total := totals[f.GetName()]; total != nil {
			for _, m := range f.GetMetric() {
				*total += m.GetCounter().GetValue()
			}
		}
	}
	return d, nil
}

// drain waits until nothing is queued or in flight, and drops the rest after drainTime: lost alerts. The library does not count an alert
// between leaving the queue and its answer.
func (s *sender) drain() (lost int) {
	lost = s.wait(drainTime)
	s.giveUp()
	if lost > 0 {
		s.wait(giveUpTime)
	}
	return lost
}

// wait waits until all alerts are answered, and returns the number of the remaining ones at the time limit.
func (s *sender) wait(limit time.Duration) (left int) {
	for end := time.Now().Add(limit); ; time.Sleep(drainPoll) {
		d, err := s.deliveries()
		if left = int(float64(s.handed.Load()) - d.Sent - d.Dropped); err != nil || left <= 0 || time.Now().After(end) {
			return left
		}
	}
}

// stop ends a drained sender.
func (s *sender) stop() {
	s.manager.Stop()
	<-s.ended
}
