package nodepage

import (
	"maps"
	"slices"

	"rdma_exporter/internal/exposition"
)

// Collector is the state of a collector.
type Collector struct {
	Name string `json:"name"`
	// Success is set if the collector finished in time and without an error of its own.
	Success     bool               `json:"success"`
	Duration    float64            `json:"duration_seconds"`            // of its last collection
	Age         float64            `json:"age_seconds"`                 // of its last collection in this round
	Stuck       []string           `json:"stuck_devices,omitempty"`     // whose read has not returned from the kernel
	Late        []string           `json:"late_devices,omitempty"`      // not read in time, and not known to be blocked
	Quarantined float64            `json:"quarantined_items,omitempty"` // no longer read, since they failed twice
	Errors      map[string]float64 `json:"errors_total,omitempty"`      // since the start, by reason
}

// Alerting is the state of the engine that evaluates the rules.
type Alerting struct {
	Rounds        float64 `json:"rounds_total"`
	Failures      float64 `json:"rule_failures_total"`
	Took          float64 `json:"last_round_duration_seconds"`
	Alertmanagers float64 `json:"alertmanagers"` // 0: alerts are not sent
	Sent          float64 `json:"notifications_sent_total"`
	SendErrors    float64 `json:"notification_errors_total"`
	Queued        float64 `json:"notification_queue_length"` // not accepted yet
	Degraded      bool    `json:"store_degraded"`            // samples are kept in memory
	Series        float64 `json:"store_series"`
}

// listCollectors returns the collectors, from the metrics on the exporter itself (internal/rounds).
func (f families) listCollectors() []Collector {
	byName := map[string]*Collector{}
	of := func(name string) *Collector {
		if byName[name] == nil {
			byName[name] = &Collector{Name: name}
		}
		return byName[name]
	}
	f.each("rdma_scrape_collector_success", func(l []string, v float64) { of(l[0]).Success = v == 1 })
	f.each("rdma_scrape_collector_duration_seconds", func(l []string, v float64) { of(l[0]).Duration = v })
	f.each("rdma_scrape_collector_age_seconds", func(l []string, v float64) { of(l[0]).Age = v })
	f.each("rdma_scrape_collector_stuck", func(l []string, _ float64) {
		of(l[0]).Stuck = append(of(l[0]).Stuck, exposition.ValidLabel(l[1]))
	})
	f.each("rdma_scrape_collector_late", func(l []string, _ float64) {
		of(l[0]).Late = append(of(l[0]).Late, exposition.ValidLabel(l[1]))
	})
	f.each("rdma_scrape_quarantined_items", func(l []string, v float64) { of(l[0]).Quarantined += v })
	f.each("rdma_scrape_errors_total", func(l []string, v float64) {
		c := of(l[0])
		if c.Errors == nil {
			c.Errors = map[string]float64{}
		}
		c.Errors[l[2]] += v
	})
	out := []Collector{}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, *byName[name])
	}
	return out
}

// readAlerting returns the state of the engine, from the metrics on the exporter itself.
func (f families) readAlerting() *Alerting {
	return &Alerting{
		Rounds: f.sum("rdma_alerting_rounds_total"), Failures: f.sum("rdma_alerting_rule_failures_total"),
		Took: f.sum("rdma_alerting_last_round_duration_seconds"), Alertmanagers: f.sum("rdma_alerting_alertmanagers"),
		Sent:       f.sum("rdma_alerting_notifications_sent_total"),
		SendErrors: f.sum("rdma_alerting_notification_errors_total"),
		Queued:     f.sum("rdma_alerting_notification_queue_length"),
		Degraded:   f.sum("rdma_alerting_store_degraded") == 1, Series: f.sum("rdma_alerting_store_series"),
	}
}

// Millis returns the duration of the last round in milliseconds.
func (a *Alerting) Millis() float64 { return 1000 * a.Took }
