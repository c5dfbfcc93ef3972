package page

import (
	"maps"
	"slices"

	"rdma_exporter/internal/exposition"
)

// Collector is the state of a collector.
type Collector struct {
	Name string `json:"name"`
	// It finished in time and without an error of its own.
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

// collectors reads the metrics on the exporter itself (internal/rounds).
func (f families) collectors() []Collector {
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

func (f families) alerting() *Alerting {
	return &Alerting{
		Rounds: f.value("rdma_alerting_rounds_total"), Failures: f.value("rdma_alerting_rule_failures_total"),
		Took: f.value("rdma_alerting_last_round_duration_seconds"), Alertmanagers: f.value("rdma_alerting_alertmanagers"),
		Sent:       f.value("rdma_alerting_notifications_sent_total"),
		SendErrors: f.value("rdma_alerting_notification_errors_total"),
		Queued:     f.value("rdma_alerting_notification_queue_length"),
		Degraded:   f.value("rdma_alerting_store_degraded") == 1, Series: f.value("rdma_alerting_store_series"),
	}
}

// Millis is the time of the last round.
func (a *Alerting) Millis() float64 { return 1000 * a.Took }
