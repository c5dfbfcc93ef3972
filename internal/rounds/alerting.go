package rounds

import (
	"time"

	"rdma_exporter/internal/exposition"
)

// AlertingState is the state of the alerting engine as of its last round.
type AlertingState struct {
	Rounds, Failures      float64 // since the start
	Took                  time.Duration
	Alertmanagers         float64
	Sent, Errors, Dropped float64 // alerts, once per Alertmanager
	Degraded              bool
	Series                float64
}

// alertingDescs are the metrics of the alerting engine, each with its value. They are absent if no rules are evaluated.
var alertingDescs = []struct {
	desc  *exposition.Desc
	value func(AlertingState) float64
}{
	{alertingDesc("rounds_total", exposition.Counter, "", "Rounds in which the rules were evaluated. If it does not increase, this exporter sends no alerts."), func(a AlertingState) float64 { return a.Rounds }},
	{alertingDesc("rule_failures_total", exposition.Counter, "", "Failed evaluations of rules, one per rule and round. The log names the rules."), func(a AlertingState) float64 { return a.Failures }},
	{alertingDesc("last_round_duration_seconds", exposition.Gauge, "seconds", "Wall time of the last round: collection, storage, evaluation."), func(a AlertingState) float64 { return seconds(a.Took) }},
	{alertingDesc("alertmanagers", exposition.Gauge, "", "Number of Alertmanagers that alerts are sent to; 0: no alerts are sent."), func(a AlertingState) float64 { return a.Alertmanagers }},
	{alertingDesc("notifications_sent_total", exposition.Counter, "", "Alerts accepted by an Alertmanager. Firing alerts are sent once a minute."), func(a AlertingState) float64 { return a.Sent }},
	{alertingDesc("notification_errors_total", exposition.Counter, "", "Alerts that an Alertmanager did not accept. Those that are still firing are sent again after one minute."), func(a AlertingState) float64 { return a.Errors }},
	{alertingDesc("notifications_dropped_total", exposition.Counter, "", "Alerts not delivered: errors, and alerts dropped because the queue was full."), func(a AlertingState) float64 { return a.Dropped }},
	{alertingDesc("store_degraded", exposition.Gauge, "", "1 if samples and alerts are kept in memory because the state directory is unusable. They are lost on restart."), func(a AlertingState) float64 { return number(a.Degraded) }},
	{alertingDesc("store_series", exposition.Gauge, "", "Series in the store of the alerting engine."), func(a AlertingState) float64 { return a.Series }},
}

func alertingDesc(name string, kind exposition.Type, unit, help string) *exposition.Desc {
	return &exposition.Desc{
		Name: "rdma_alerting_" + name, Of: "rdma_alerting_" + name, Type: kind, Unit: unit, Scope: exposition.ScopeExporter, Help: help, Source: "the exporter",
	}
}

func alertingList() (out []*exposition.Desc) {
	for _, d := range alertingDescs {
		out = append(out, d.desc)
	}
	return out
}

func (s *Scheduler) emitAlerting() {
	if s.Alerting == nil {
		return
	}
	if a, ok := s.Alerting(); ok {
		for _, d := range alertingDescs {
			s.self.Emit(d.desc, d.value(a))
		}
	}
}
