package rounds

import (
	"time"

	"rdma_exporter/internal/exposition"
)

// AlertingState is what the engine that judges the rules says of itself, as of its last round.
type AlertingState struct {
	Rounds, Failures      float64 // since the start
	Took                  time.Duration
	Alertmanagers         float64
	Sent, Errors, Dropped float64 // alerts, each for each Alertmanager
	Degraded              bool
	Series                float64
}

// alertingDescs are the metrics on the engine, each with its value; absent where no rules are judged.
var alertingDescs = []struct {
	desc  *exposition.Desc
	value func(AlertingState) float64
}{
	{alertingDesc("rounds_total", exposition.Counter, "", "Rounds in which the rules were judged. One that does not grow: no alert comes from this exporter."), func(a AlertingState) float64 { return a.Rounds }},
	{alertingDesc("rule_failures_total", exposition.Counter, "", "Rules that could not be judged, one for each round; the log names them."), func(a AlertingState) float64 { return a.Failures }},
	{alertingDesc("last_round_duration_seconds", exposition.Gauge, "seconds", "Wall time of the last round: collection, storing, judging."), func(a AlertingState) float64 { return seconds(a.Took) }},
	{alertingDesc("alertmanagers", exposition.Gauge, "", "Alertmanagers that alerts are sent to; 0: nobody is told."), func(a AlertingState) float64 { return a.Alertmanagers }},
	{alertingDesc("notifications_sent_total", exposition.Counter, "", "Alerts that an Alertmanager took, those that fire once a minute."), func(a AlertingState) float64 { return a.Sent }},
	{alertingDesc("notification_errors_total", exposition.Counter, "", "Alerts that an Alertmanager did not take. Those that still fire are sent again after a minute."), func(a AlertingState) float64 { return a.Errors }},
	{alertingDesc("notifications_dropped_total", exposition.Counter, "", "Alerts that were not delivered: errors, and those for which the queue was full."), func(a AlertingState) float64 { return a.Dropped }},
	{alertingDesc("store_degraded", exposition.Gauge, "", "1: samples and alerts are kept in memory, since the state directory cannot be used; a restart begins anew."), func(a AlertingState) float64 { return number(a.Degraded) }},
	{alertingDesc("store_series", exposition.Gauge, "", "Series of which the rules have samples."), func(a AlertingState) float64 { return a.Series }},
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
