package rounds

import (
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/common/version"

	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/maintenance"
)

var (
	collectorSuccess = &exposition.Desc{
		Name: "rdma_scrape_collector_success", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "Whether the collector finished in time and without an error of its own.", Labels: []string{"collector"}, Source: "the exporter",
	}
	collectorDuration = &exposition.Desc{
		Name: "rdma_scrape_collector_duration_seconds", Type: exposition.Gauge, Unit: "seconds", Scope: exposition.ScopeExporter,
		Help: "Wall time of the collector's last finished collection.", Labels: []string{"collector"}, Source: "the exporter",
	}
	collectorAge = &exposition.Desc{
		Name: "rdma_scrape_collector_age_seconds", Type: exposition.Gauge, Unit: "seconds", Scope: exposition.ScopeExporter,
		Help: "Age of the collection that this scrape serves.", Labels: []string{"collector"}, Source: "the exporter",
	}
	collectorStuck = &exposition.Desc{
		Name: "rdma_scrape_collector_stuck", Beside: "rdma_scrape_collector_success", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "1 where the read of a device has not returned from the kernel; absent for others. It is not started again until it does.", Labels: []string{"collector", "device"}, Source: "the exporter",
	}
	collectorQuarantined = &exposition.Desc{
		Name: "rdma_scrape_quarantined_items", Beside: "rdma_device_info", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "Items of a device, files or requests, that failed twice and are left alone until the device registers again, its link changes, or six hours have passed. Absent where there are none.", Labels: []string{"collector", "device"}, Source: "the exporter",
	}
	scrapeErrors = &exposition.Desc{
		Name: "rdma_scrape_errors_total", Type: exposition.Counter, Scope: exposition.ScopeExporter,
		Help: "Items that could not be read, each of which cost its own sample. What is not permitted counts when it starts. reason: absent, unsupported, invalid, gone, permission, stuck, back_off, malformed, io; panic, a fault of the exporter that the log has in full; failed for a whole collector; duplicate, bad_value, undeclared for dropped samples.", Labels: []string{"collector", "device", "reason"}, Source: "the exporter",
	}
	permissionDenied = &exposition.Desc{
		Name: "rdma_scrape_permission_denied", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "Whether this process may not read a source, 1 while it is so. The log names the file and what would permit it.", Labels: []string{"source"}, Source: "the exporter",
	}
	sourceRequests = &exposition.Desc{
		Name: "rdma_scrape_source_requests_total", Type: exposition.Counter, Scope: exposition.ScopeExporter,
		Help: "Files and messages asked for, by kind. lock: whom a request holds up while it is in the kernel: none, device (its own users), devlink (a recovery of the device), rtnl (all changes of network configuration).", Labels: []string{"source", "lock"}, Source: "the exporter",
	}
	sourceSeconds = &exposition.Desc{
		Name: "rdma_scrape_source_seconds_total", Type: exposition.Counter, Unit: "seconds", Scope: exposition.ScopeExporter,
		Help: "Wall time inside those requests that have returned.", Labels: []string{"source", "lock"}, Source: "the exporter",
	}
	deviceSeconds = &exposition.Desc{
		Name: "rdma_scrape_device_seconds_total", Type: exposition.Counter, Unit: "seconds", Scope: exposition.ScopeExporter,
		Help: "Wall time inside reads of a device that have returned.", Labels: []string{"device"}, Source: "the exporter",
	}
	overBudget = &exposition.Desc{
		Name: "rdma_scrape_over_budget", Beside: "rdma_scrape_device_seconds_total", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "1 where reads of a device took more than 1 % of the time, or those of the host (no device) more than 3 %; absent otherwise. Then what can wait, facts that change with the link or the configuration only, keeps its last values.", Labels: []string{"device"}, Source: "the exporter",
	}
	rtnlBackOff = &exposition.Desc{
		Name: "rdma_scrape_rtnl_back_off", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "Whether no request that takes the kernel's lock on network configuration (rtnl) is made at present, because one took more than a second.", Source: "the exporter",
	}
	configSuccessful = &exposition.Desc{
		Name: "rdma_config_last_reload_successful", Of: "rdma_config_last_reload_successful", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "Whether the last reading of --config.file, of rule files and of the Alertmanagers' configuration succeeded; 0: what was in force before stays. Absent without such files.", Source: "the exporter",
	}
	configTime = &exposition.Desc{
		Name: "rdma_config_last_reload_success_timestamp_seconds", Type: exposition.Gauge, Unit: "seconds", Scope: exposition.ScopeExporter,
		Help: "Time of the last reading of those files that succeeded, since 1970. Absent without such files.", Source: "the exporter",
	}
	stateSuccessful = &exposition.Desc{
		Name: "rdma_state_last_write_successful", Of: "rdma_state_last_write_successful", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "Whether the state file could be written last; 0: what is remembered of links and devices ends with the exporter.", Source: "the exporter",
	}
	incidentSuccessful = &exposition.Desc{
		Name: "rdma_incident_last_capture_successful", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "Whether the capture of the last incident, an alert whose label drain is cordon or evict, could be kept in the state directory. Absent before the first since the start.", Source: "the exporter",
	}
	hostMaintenance = &exposition.Desc{
		Name: "rdma_host_maintenance", Of: "rdma_host_maintenance", Type: exposition.Gauge, Scope: exposition.ScopeHost,
		Help: "Whether maintenance of the host is announced (rdma_exporter maintenance start). Absent without a state directory.", Source: "the exporter",
	}
	maintenanceEnd = &exposition.Desc{
		Name: "rdma_host_maintenance_end_timestamp_seconds", Of: "rdma_host_maintenance", Beside: "rdma_host_maintenance", Type: exposition.Gauge, Unit: "seconds", Scope: exposition.ScopeHost,
		Help: "End of the maintenance that is announced, since 1970. Absent where none is.", Source: "the exporter",
	}
	eventOverruns = &exposition.Desc{
		Name: "rdma_exporter_event_overruns_total", Type: exposition.Counter, Scope: exposition.ScopeExporter,
		Help: "Times that the kernel's events came faster than the exporter took them (ENOBUFS). Transitions of links are counted all the same, but those made by hand then may be among them.", Source: "the exporter",
	}
	detectionUnavailable = &exposition.Desc{
		Name: "rdma_detection_unavailable", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help:   "1 for an alert of the rules that cannot be judged on this host, or not for all of it, because a metric that it needs is not there; absent for others, and for what does not apply to the host. reason: collector_disabled; not_read_yet; permission, this process may not read it; failed, reading it fails; unknown, the metric says that the fact that decides could not be read; not_supported, the kernel, the driver or the hardware does not tell.",
		Labels: []string{"alert", "reason"}, Source: "the exporter, from the expressions of the rules",
	}
	replayInfo = &exposition.Desc{
		Name: "rdma_exporter_replay_info", Of: "rdma_exporter_replay_info", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "Recording that is served instead of this host (--replay), always 1: the host that was recorded, and the day. Absent where a host is served.", Labels: []string{"hostname", "recorded"}, Source: "the exporter",
	}
	buildInfo = &exposition.Desc{
		Name: "rdma_exporter_build_info", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "Version of the exporter, always 1.", Labels: []string{"version", "revision", "goversion", "goarch"}, Source: "the exporter",
	}
)

// Descs are the metrics on the exporter itself.
var Descs = slices.Clip(append([]*exposition.Desc{
	collectorSuccess, collectorDuration, collectorAge, collectorStuck, collectorQuarantined, scrapeErrors, permissionDenied, sourceRequests, sourceSeconds, deviceSeconds, overBudget, rtnlBackOff, configSuccessful, configTime, stateSuccessful, eventOverruns, detectionUnavailable, replayInfo, buildInfo, incidentSuccessful, hostMaintenance, maintenanceEnd,
}, alertingList()...))

func (s *Scheduler) selfFamilies(runners []*runner, results []*result, announced *maintenance.Notice, told bool) []exposition.Family {
	s.selfMu.Lock()
	defer s.selfMu.Unlock()
	s.self.Begin()
	now := s.Now()
	for i, r := range runners {
		name, res := r.c.Name, results[i]
		s.self.Emit(collectorSuccess, number(res != nil && res.err == nil), name)
		if res == nil {
			continue
		}
		s.self.Emit(collectorDuration, res.duration.Seconds(), name)
		s.self.Emit(collectorAge, max(0, now.Sub(res.at).Seconds()), name)
		for _, d := range res.node.Devices {
			if d.Stuck {
				s.self.Emit(collectorStuck, 1, name, d.Device)
			}
			if d.Quarantined > 0 {
				s.self.Emit(collectorQuarantined, float64(d.Quarantined), name, d.Device)
			}
		}
	}
	keys, totals := s.faults.counts()
	for i, k := range keys {
		s.self.Emit(scrapeErrors, totals[i], k.collector, k.device, k.reason)
	}
	denials := s.faults.denials()
	for _, source := range slices.Sorted(maps.Keys(denials)) {
		s.self.Emit(permissionDenied, number(denials[source]), source)
	}
	for _, c := range s.Host.Meter.Costs() {
		s.self.Emit(sourceRequests, float64(c.Requests), c.Source.Name(), string(c.Lock))
		s.self.Emit(sourceSeconds, seconds(c.Took), c.Source.Name(), string(c.Lock))
	}
	s.devices(results)
	if s.Host.RTNL != nil {
		s.self.Emit(rtnlBackOff, number(s.Host.RTNL.Stats().BackOff))
	}
	s.emitFiles()
	if told {
		s.self.Emit(hostMaintenance, number(announced != nil))
	}
	if announced != nil {
		s.self.Emit(maintenanceEnd, float64(announced.Until.Unix()))
	}
	s.emitAlerting()
	if s.Host.Events != nil {
		s.self.Emit(eventOverruns, float64(s.Host.Events.Overruns()))
	}
	if s.Replay != nil {
		s.self.Emit(replayInfo, 1, s.Replay.Hostname, s.Replay.Date)
	}
	s.self.Emit(buildInfo, 1, version.Version, version.GetRevision(), version.GoVersion, runtime.GOARCH)
	return s.self.End()
}

// unavailable tells what is blind. It looks at all families of a round, so that it comes after them.
func (s *Scheduler) unavailable(gaps []coverage.Gap) []exposition.Family {
	s.selfMu.Lock()
	defer s.selfMu.Unlock()
	s.gaps.Begin()
	for _, g := range gaps {
		s.gaps.Emit(detectionUnavailable, 1, g.Alert, string(g.Reason))
	}
	return s.gaps.End()
}

func (s *Scheduler) emitFiles() {
	if s.Config != nil {
		if f, ok := s.Config(); ok {
			s.self.Emit(configSuccessful, number(!f.Failed))
			s.self.Emit(configTime, float64(f.At.UnixMilli())/1000)
		}
	}
	if s.State != nil {
		if f, ok := s.State(); ok {
			s.self.Emit(stateSuccessful, number(!f.Failed))
		}
	}
	if s.Incident != nil {
		if f, ok := s.Incident(); ok {
			s.self.Emit(incidentSuccessful, number(!f.Failed))
		}
	}
}

// devices tells what the reads of each device cost. Collectors read the same devices.
func (s *Scheduler) devices(results []*result) {
	clear(s.seen)
	s.seen[""], s.names = true, s.names[:0]
	for _, res := range results {
		if res == nil {
			continue
		}
		for _, d := range res.node.Devices {
			if !s.seen[d.Device] {
				s.seen[d.Device], s.names = true, append(s.names, d.Device)
			}
		}
	}
	for i, spent := range s.Host.Budget.Spent(s.names...) {
		s.self.Emit(deviceSeconds, seconds(spent.Total), s.names[i])
		if spent.Over {
			s.self.Emit(overBudget, 1, s.names[i])
		}
	}
}

// seconds is a duration to the millisecond: more digits cost more than they tell.
func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1e3 }

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
