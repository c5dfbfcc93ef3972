package rounds

import (
	"slices"
	"strconv"
	"time"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/exposition"
)

// AlertingState is the state of the alerting engine as of its last round.
type AlertingState struct {
	Rounds, Failures float64 // since the start
	Took             time.Duration
	Alertmanagers    []AlertmanagerState
	QueueCapacity    float64
	Degraded         bool
	Series           float64
	Objects          []account.Object // as of the last evaluation; empty before the first
}

// AlertmanagerState counts the alerts for one Alertmanager.
type AlertmanagerState struct {
	URL                           string
	Queued, Sent, Errors, Dropped float64
}

// alertingDescs are the metrics of the alerting engine, each with its value. They are absent if no rules are evaluated.
var alertingDescs = []struct {
	desc  *exposition.Desc
	value func(AlertingState) float64
}{
	{alertingDesc("rounds_total", exposition.Counter, "", "Rounds in which the rules were evaluated. If it does not increase, this exporter sends no alerts."), func(a AlertingState) float64 { return a.Rounds }},
	{alertingDesc("rule_failures_total", exposition.Counter, "", "Failed evaluations of rules, one per rule and round. The log names the rules."), func(a AlertingState) float64 { return a.Failures }},
	{alertingDesc("last_round_duration_seconds", exposition.Gauge, "seconds", "Wall time of the last round: collection, storage, evaluation."), func(a AlertingState) float64 { return seconds(a.Took) }},
	{alertingDesc("alertmanagers", exposition.Gauge, "", "Number of Alertmanagers that alerts are sent to; 0: no alerts are sent."), func(a AlertingState) float64 { return float64(len(a.Alertmanagers)) }},
	{alertingDesc("store_degraded", exposition.Gauge, "", "1 while samples and alerts are kept in memory because the state directory is unusable; tried again every minute. They are lost on restart."), func(a AlertingState) float64 { return boolNumber(a.Degraded) }},
	{alertingDesc("store_series", exposition.Gauge, "", "Series in the store of the alerting engine."), func(a AlertingState) float64 { return a.Series }},
}

// notificationDescs are the metrics of an Alertmanager. They are absent without one.
var notificationDescs = []struct {
	desc  *exposition.Desc
	value func(AlertmanagerState) float64
}{
	{notificationDesc("notifications_sent_total", exposition.Counter, "Alerts accepted by the Alertmanager. Firing alerts are sent once a minute."), func(a AlertmanagerState) float64 { return a.Sent }},
	{notificationDesc("notification_errors_total", exposition.Counter, "Alerts in requests that the Alertmanager did not accept, counted in each attempt. They are sent again after 10s, except those that it rejects."), func(a AlertmanagerState) float64 { return a.Errors }},
	{notificationDesc("notifications_dropped_total", exposition.Counter, "Alerts lost: the oldest of a full queue, and those that the Alertmanager rejected as invalid (400, 413, 422)."), func(a AlertmanagerState) float64 { return a.Dropped }},
	{notificationDesc("notification_queue_length", exposition.Gauge, "Alerts not accepted yet by the Alertmanager. Each one waits once, in its last state."), func(a AlertmanagerState) float64 { return a.Queued }},
}

var queueCapacity = alertingDesc("notification_queue_capacity", exposition.Gauge, "",
	"Maximum of rdma_alerting_notification_queue_length. Absent without an Alertmanager.")

func alertingDesc(name string, kind exposition.Type, unit, help string) *exposition.Desc {
	return &exposition.Desc{
		Name: "rdma_alerting_" + name, Of: "rdma_alerting_" + name, Type: kind, Unit: unit, Scope: exposition.ScopeExporter,
		Help: help, Source: "the exporter",
	}
}

func notificationDesc(name string, kind exposition.Type, help string) *exposition.Desc {
	d := alertingDesc(name, kind, "", help)
	d.Labels = []string{"alertmanager"}
	return d
}

func listAlertingDescs() (out []*exposition.Desc) {
	for _, d := range alertingDescs {
		out = append(out, d.desc)
	}
	for _, d := range notificationDescs {
		out = append(out, d.desc)
	}
	return append(out, queueCapacity, objectCount, objectInfo)
}

var (
	objectCount = &exposition.Desc{
		Name: "rdma_objects", Of: "rdma_objects", Type: exposition.Gauge, Scope: exposition.ScopeHost,
		Labels: []string{"kind", "class"}, Source: "the exporter",
		Help: "Objects of the host by kind and class, as of the last evaluation of the rules. kind: function (PCI function without its RDMA device), device, port, plane, bond_member, cage, gpu. class: healthy, faulty (it has an alert, or belongs to an object that has one), not_expected, unknown. Absent if no rules are evaluated.",
	}
	objectInfo = &exposition.Desc{
		Name: "rdma_object_info", Of: "rdma_objects", Type: exposition.Gauge, Scope: exposition.ScopeHost,
		Labels: []string{"kind", "name", "class", "compute"}, Source: "the exporter",
		Help: "Object of class faulty or unknown, always 1; absent for others. compute: jobs use it, so that the host is not ok while it is unknown. rdma_exporter check --verbose lists all objects with the reason.",
	}
)

func (s *Scheduler) emitObjects(objects []account.Object) {
	type cell struct {
		kind  account.Kind
		class account.Class
	}
	var kinds []account.Kind
	counts := map[cell]float64{}
	for _, o := range objects {
		if !slices.Contains(kinds, o.Kind) {
			kinds = append(kinds, o.Kind)
		}
		counts[cell{o.Kind, o.Class}]++
		if o.Class == account.Faulty || o.Class == account.Unknown {
			s.self.Emit(objectInfo, 1, string(o.Kind), o.Name, string(o.Class), strconv.FormatBool(o.Compute))
		}
	}
	for _, kind := range kinds {
		for _, class := range account.Classes {
			s.self.Emit(objectCount, counts[cell{kind, class}], string(kind), string(class))
		}
	}
}

func (s *Scheduler) emitAlerting() {
	if s.Alerting == nil {
		return
	}
	a, ok := s.Alerting()
	if !ok {
		return
	}
	emitEngine(s.self, a)
	s.emitObjects(a.Objects)
}

// emitEngine emits the metrics of the alerting engine and its Alertmanagers.
func emitEngine(sink *exposition.Sink, a AlertingState) {
	for _, d := range alertingDescs {
		sink.Emit(d.desc, d.value(a))
	}
	for _, am := range a.Alertmanagers {
		for _, d := range notificationDescs {
			sink.Emit(d.desc, d.value(am), am.URL)
		}
	}
	if len(a.Alertmanagers) > 0 {
		sink.Emit(queueCapacity, a.QueueCapacity)
	}
}

// AlertingFamilies returns the metrics of an alerting engine without a Scheduler, sorted by name; none before its first
// round.
func AlertingFamilies(a AlertingState, ok bool) []exposition.Family {
	if !ok {
		return nil
	}
	sink := exposition.NewSink(listAlertingDescs())
	sink.Begin()
	emitEngine(sink, a)
	return exposition.Merge(sink.End())
}
