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
	// queueCapacity bounds the alerts that wait for one Alertmanager: all that 250 rules on 8 ports can fire.
	queueCapacity = 2000
	// drainTime is what a queue gets at the end.
	drainTime = 5 * time.Second
	// giveUpTime is what requests get to end that have been given up.
	giveUpTime = time.Second
	// drainPoll is how often the end of a queue is looked for.
	drainPoll = 5 * time.Millisecond
)

// sender sends by one configuration, to the end. Another configuration has another sender: the library waits for requests while it takes
// one, and keeps the clients of one that looks the same, where all passwords look the same.
type sender struct {
	manager  *notifier.Manager
	registry *prometheus.Registry
	answered func(r *http.Request, resp *http.Response, err error)
	handed   atomic.Uint64   // alerts, each for each Alertmanager
	ended    chan struct{}   // closed when the manager has ended
	requests context.Context // ends when they are given up
	giveUp   context.CancelFunc
}

// newSender starts. answered is told of each request.
func newSender(conf *config.Config, groups map[string][]*targetgroup.Group, answered func(*http.Request, *http.Response, error)) (*sender, error) {
	s := &sender{registry: prometheus.NewRegistry(), answered: answered, ended: make(chan struct{})}
	// What the library would log with each request is logged when it starts and when it ends.
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
	targets <- nil // is taken when the first message is done with: from then on alerts go to the Alertmanagers
	return s, nil
}

// send hands alerts to the queues. It does not wait.
func (s *sender) send(alerts []*notifier.Alert) {
	s.handed.Add(uint64(len(alerts) * len(s.manager.Alertmanagers())))
	s.manager.Send(alerts...)
}

func (s *sender) do(ctx context.Context, client *http.Client, r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(ctx) // the library ends it when it has read the answer
	stop := context.AfterFunc(s.requests, cancel)
	context.AfterFunc(ctx, func() { stop() })
	resp, err := client.Do(r.WithContext(ctx))
	if s.requests.Err() == nil { // else it says nothing of the Alertmanager
		s.answered(r, resp, err)
	}
	return resp, err
}

// deliveries are those of this sender, until it ends: the library forgets them then.
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

// drain waits until nothing is on its way, and gives up what is after drainTime: lost alerts. An alert that has left its queue is in no
// count of the library before it is answered for.
func (s *sender) drain() (lost int) {
	lost = s.wait(drainTime)
	s.giveUp()
	if lost > 0 {
		s.wait(giveUpTime)
	}
	return lost
}

// wait waits until all alerts are answered for, and tells how many are not in time.
func (s *sender) wait(limit time.Duration) (left int) {
	for end := time.Now().Add(limit); ; time.Sleep(drainPoll) {
		d, err := s.deliveries()
		if left = int(float64(s.handed.Load()) - d.Sent - d.Dropped); err != nil || left <= 0 || time.Now().After(end) {
			return left
		}
	}
}

// stop ends what has been drained.
func (s *sender) stop() {
	s.manager.Stop()
	<-s.ended
}
