package notify

import (
	"slices"

	"github.com/prometheus/prometheus/notifier"
)

const (
	// QueueCapacity limits the alerts that wait for one Alertmanager: as many as 250 rules on 8 ports can fire.
	QueueCapacity = 2000
	// batchSize limits the alerts of one request, as in Prometheus.
	batchSize = 256
)

// queue holds alerts in the order of their arrival, each one once: a newer state replaces the one that waits.
// Prometheus' own queue drops the alerts of a failed request, and sends each state of a long outage in turn, of which
// Alertmanager takes the expired ones for resolved.
type queue struct {
	order  []uint64 // hashes of labels
	alerts map[uint64]*notifier.Alert
}

// add appends alerts, and returns how many of the oldest were dropped.
func (q *queue) add(alerts []*notifier.Alert) (dropped int) {
	if q.alerts == nil {
		q.alerts = map[uint64]*notifier.Alert{}
	}
	for _, a := range alerts {
		key := a.Hash()
		if q.alerts[key] == nil {
			q.order = append(q.order, key)
		}
		q.alerts[key] = a
	}
	return q.trim()
}

// take removes the alerts of one request.
func (q *queue) take() (out []*notifier.Alert) {
	n := min(len(q.order), batchSize)
	for _, key := range q.order[:n] {
		out = append(out, q.alerts[key])
		delete(q.alerts, key)
	}
	q.order = slices.Clone(q.order[n:])
	return out
}

// putBack inserts alerts at the front, except those with a newer state in the queue.
func (q *queue) putBack(alerts []*notifier.Alert) (dropped int) {
	var front []uint64
	for _, a := range q.missing(alerts) {
		q.alerts[a.Hash()] = a
		front = append(front, a.Hash())
	}
	q.order = append(front, q.order...)
	return q.trim()
}

// missing returns the alerts without a newer state in the queue.
func (q *queue) missing(alerts []*notifier.Alert) (out []*notifier.Alert) {
	for _, a := range alerts {
		if q.alerts[a.Hash()] == nil {
			out = append(out, a)
		}
	}
	return out
}

func (q *queue) trim() (dropped int) {
	dropped = max(len(q.order)-QueueCapacity, 0)
	for _, key := range q.order[:dropped] {
		delete(q.alerts, key)
	}
	q.order = q.order[dropped:]
	return dropped
}
