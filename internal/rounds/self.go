package rounds

import (
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/common/version"

	"rdma_exporter/internal/exposition"
)

var (
	collectorSuccess = &exposition.Desc{
		Name: "rdma_scrape_collector_success", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "Whether the collector finished in time and without an error.", Labels: []string{"collector"},
		Source: "the exporter",
	}
	collectorDuration = &exposition.Desc{
		Name: "rdma_scrape_collector_duration_seconds",
		Type: exposition.Gauge, Unit: "seconds", Scope: exposition.ScopeExporter,
		Help: "Wall time of the collector's last finished collection.", Labels: []string{"collector"}, Source: "the exporter",
	}
	collectorAge = &exposition.Desc{
		Name: "rdma_scrape_collector_age_seconds", Type: exposition.Gauge, Unit: "seconds", Scope: exposition.ScopeExporter,
		Help: "Age of the collection in this scrape.", Labels: []string{"collector"}, Source: "the exporter",
	}
	collectorStuck = &exposition.Desc{
		Name: "rdma_scrape_collector_stuck", Beside: "rdma_scrape_collector_success", Type: exposition.Gauge,
		Scope:  exposition.ScopeExporter,
		Help:   "1 for a device with a read that has not returned from the kernel; absent for others. The device is not read again until it returns.",
		Labels: []string{"collector", "device"}, Source: "the exporter",
	}
	collectorLate = &exposition.Desc{
		Name: "rdma_scrape_collector_late", Beside: "rdma_scrape_collector_success", Type: exposition.Gauge,
		Scope:  exposition.ScopeExporter,
		Help:   "1 for a device that was not read in time while nothing is known to block in the kernel: this process waited for a CPU (rdma_exporter_cpu_wait_seconds_total), or had no time left to begin; absent for others.",
		Labels: []string{"collector", "device"}, Source: "the exporter",
	}
	cpuWait = &exposition.Desc{
		Name: "rdma_exporter_cpu_wait_seconds_total", Of: "rdma_exporter_cpu_wait_seconds_total",
		Type: exposition.Counter, Unit: "seconds", Scope: exposition.ScopeExporter,
		Help:   "Time in which this process was ready to run and waited for a CPU, at most one second per second: because of the load of the host, or of the CPU limit of its unit or container. Absent if the kernel has no scheduler statistics.",
		Source: "/proc/self/task/*/schedstat, cpu.pressure of the control group of the exporter",
	}
	collectorQuarantined = &exposition.Desc{
		Name: "rdma_scrape_quarantined_items", Beside: "rdma_device_info", Type: exposition.Gauge,
		Scope:  exposition.ScopeExporter,
		Help:   "Items of a device (files or requests) that failed twice. They are not read again until the device registers again, its link changes, or 6h have passed. Absent if there are none.",
		Labels: []string{"collector", "device"}, Source: "the exporter",
	}
	scrapeErrors = &exposition.Desc{
		Name: "rdma_scrape_errors_total", Type: exposition.Counter, Scope: exposition.ScopeExporter,
		Help:   "Items that could not be read. Each one affects only its own samples. A denied permission is counted once, when it starts. reason: absent, unsupported, invalid, gone, permission, stuck (blocked in the kernel), late (no answer in time for another reason: this process waited for a CPU, or a service did not answer), overloaded (too many events for the eBPF programs), back_off, malformed, io; panic: a bug in the exporter, see the log; failed: the whole collector; duplicate, bad_value, undeclared: dropped samples.",
		Labels: []string{"collector", "device", "reason"}, Source: "the exporter",
	}
	permissionDenied = &exposition.Desc{
		Name: "rdma_scrape_permission_denied", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help:   "1 while this process has no permission to read the source. The log names the file and the required permission.",
		Labels: []string{"source"}, Source: "the exporter",
	}
	sourceRequests = &exposition.Desc{
		Name: "rdma_scrape_source_requests_total", Type: exposition.Counter, Scope: exposition.ScopeExporter,
		Help:   "Files and messages requested from the kernel. lock: what a request blocks while it is in the kernel: none, device (its users), devlink (a recovery of the device), rtnl (all changes of network configuration).",
		Labels: []string{"source", "lock"}, Source: "the exporter",
	}
	sourceSeconds = &exposition.Desc{
		Name: "rdma_scrape_source_seconds_total", Type: exposition.Counter, Unit: "seconds", Scope: exposition.ScopeExporter,
		Help: "Wall time of requests that have returned.", Labels: []string{"source", "lock"}, Source: "the exporter",
	}
	deviceSeconds = &exposition.Desc{
		Name: "rdma_scrape_device_seconds_total", Type: exposition.Counter, Unit: "seconds", Scope: exposition.ScopeExporter,
		Help: "Wall time of reads of a device that have returned.", Labels: []string{"device"}, Source: "the exporter",
	}
	overBudget = &exposition.Desc{
		Name: "rdma_scrape_over_budget", Beside: "rdma_scrape_device_seconds_total", Type: exposition.Gauge,
		Scope:  exposition.ScopeExporter,
		Help:   "1 if reads of a device took more than 1% of the time, or all reads of the host (empty device) more than 3%; absent otherwise. Deferrable reads (facts that change only with the link or the configuration) are then postponed, and their last values are kept.",
		Labels: []string{"device"}, Source: "the exporter",
	}
	rtnlBackOff = &exposition.Desc{
		Name: "rdma_scrape_rtnl_back_off", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help:   "1 while no requests that take the kernel's network configuration lock (rtnl) are made, because one took more than 1s.",
		Source: "the exporter",
	}
	configSuccessful = &exposition.Desc{
		Name: "rdma_config_last_reload_successful", Of: "rdma_config_last_reload_successful", Type: exposition.Gauge,
		Scope:  exposition.ScopeExporter,
		Help:   "Whether the last load of --config.file, the rule files and the Alertmanager configuration succeeded; 0: the previous configuration is kept. Absent without such files.",
		Source: "the exporter",
	}
	configTime = &exposition.Desc{
		Name: "rdma_config_last_reload_success_timestamp_seconds", Type: exposition.Gauge, Unit: "seconds",
		Scope: exposition.ScopeExporter,
		Help:  "Time of the last successful load of these files. Absent without such files.", Source: "the exporter",
	}
	stateSuccessful = &exposition.Desc{
		Name: "rdma_state_last_write_successful", Of: "rdma_state_last_write_successful", Type: exposition.Gauge,
		Scope:  exposition.ScopeExporter,
		Help:   "Whether the last write of the state file succeeded; 0: the memory of links and devices is lost when the exporter ends.",
		Source: "the exporter",
	}
	incidentSuccessful = &exposition.Desc{
		Name: "rdma_incident_last_capture_successful", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help:   "Whether the last incident capture was written to the state directory. An alert with the label drain (cordon or evict) triggers one. Absent before the first since the start.",
		Source: "the exporter",
	}
	hostMaintenance = &exposition.Desc{
		Name: "rdma_host_maintenance", Of: "rdma_host_maintenance", Type: exposition.Gauge, Scope: exposition.ScopeHost,
		Help:   "Whether maintenance of the host is announced (rdma_exporter maintenance start). Absent without a state directory.",
		Source: "the exporter",
	}
	maintenanceEnd = &exposition.Desc{
		Name: "rdma_host_maintenance_end_timestamp_seconds", Of: "rdma_host_maintenance", Beside: "rdma_host_maintenance",
		Type: exposition.Gauge, Unit: "seconds", Scope: exposition.ScopeHost,
		Help: "End of the announced maintenance, as Unix time. Absent if there is none.", Source: "the exporter",
	}
	eventOverruns = &exposition.Desc{
		Name: "rdma_exporter_event_overruns_total", Type: exposition.Counter, Scope: exposition.ScopeExporter,
		Help:   "Overflows of the receive buffer for kernel events (ENOBUFS). Link transitions are still counted, but may include administrative ones.",
		Source: "the exporter",
	}
	detectionUnavailable = &exposition.Desc{
		Name: "rdma_detection_unavailable", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help:   "1 for an alert that is not evaluated on this host, or only for a part of it, because a metric that it requires is missing. Absent for others, and for alerts that do not apply to the host. fault: which of the faults of the alert (its label reason); empty: all. reason: paused: the GPUs are released on request (rdma_exporter gpu release); collector_disabled; limit: devices are left out (rdma_exporter_limit_exceeded_by); not_read_yet; permission: this process may not read it; failed: reading it fails; unknown: the deciding fact could not be read; not_supported: not exposed by the kernel, driver or hardware.",
		Labels: []string{"alert", "fault", "reason"}, Source: "the exporter, from the expressions of the rules",
	}
	replayInfo = &exposition.Desc{
		Name: "rdma_exporter_replay_info", Of: "rdma_exporter_replay_info", Type: exposition.Gauge,
		Scope:  exposition.ScopeExporter,
		Help:   "Recording served instead of this host (--replay), always 1: recorded host name and date. Absent without --replay.",
		Labels: []string{"hostname", "recorded"}, Source: "the exporter",
	}
	buildInfo = &exposition.Desc{
		Name: "rdma_exporter_build_info", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "Version of the exporter, always 1.", Labels: []string{"version", "revision", "goversion", "goarch"},
		Source: "the exporter",
	}
)

// Descs are the metrics about the exporter itself.
var Descs = slices.Clip(append([]*exposition.Desc{
	collectorSuccess, collectorDuration, collectorAge, collectorStuck, collectorLate, cpuWait, collectorQuarantined,
	scrapeErrors,
	permissionDenied, sourceRequests, sourceSeconds, deviceSeconds, overBudget, rtnlBackOff, configSuccessful, configTime,
	stateSuccessful, eventOverruns, detectionUnavailable, replayInfo, buildInfo, incidentSuccessful, hostMaintenance,
	maintenanceEnd, limitValue, limitExceeded,
}, listAlertingDescs()...))

func (s *Scheduler) selfFamilies(runners []*runner, results []*result, p *Picture, known bool) []exposition.Family {
	s.selfMu.Lock()
	defer s.selfMu.Unlock()
	s.self.Begin()
	if p.node.Reduced.Reduces() {
		s.self.Omit(p.node.Reduced.LeavesOut)
	}
	s.Limits.emit(s.self, p.LeftOut)
	now := s.Now()
	for i, r := range runners {
		name, res := r.c.Name, results[i]
		s.self.Emit(collectorSuccess, boolNumber(res != nil && res.err == nil), name)
		if res == nil {
			continue
		}
		s.self.Emit(collectorDuration, res.duration.Seconds(), name)
		s.self.Emit(collectorAge, max(0, now.Sub(res.at).Seconds()), name)
		for _, d := range res.node.Devices {
			if d.Stuck {
				s.self.Emit(collectorStuck, 1, name, d.Device)
			}
			if d.Late {
				s.self.Emit(collectorLate, 1, name, d.Device)
			}
			if d.Quarantined > 0 {
				s.self.Emit(collectorQuarantined, float64(d.Quarantined), name, d.Device)
			}
		}
	}
	keys, totals := s.faults.listTotals()
	for i, k := range keys {
		s.self.Emit(scrapeErrors, totals[i], k.collector, k.device, k.reason)
	}
	denials := s.faults.listDenials()
	for _, source := range slices.Sorted(maps.Keys(denials)) {
		s.self.Emit(permissionDenied, boolNumber(denials[source]), source)
	}
	for _, c := range s.Host.Meter.Costs() {
		s.self.Emit(sourceRequests, float64(c.Requests), c.Source.Name(), string(c.Lock))
		s.self.Emit(sourceSeconds, seconds(c.Took), c.Source.Name(), string(c.Lock))
	}
	if waited, ok := s.Host.CPU.Total(); ok {
		s.self.Emit(cpuWait, seconds(waited))
	}
	s.emitDevices(results)
	if s.Host.RTNL != nil {
		s.self.Emit(rtnlBackOff, boolNumber(s.Host.RTNL.Stats().BackOff))
	}
	s.emitFiles()
	if known {
		s.self.Emit(hostMaintenance, boolNumber(p.Maintenance != nil))
	}
	if p.Maintenance != nil {
		s.self.Emit(maintenanceEnd, float64(p.Maintenance.Until.Unix()))
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

func (s *Scheduler) emitFiles() {
	if s.Config != nil {
		if f, ok := s.Config(); ok {
			s.self.Emit(configSuccessful, boolNumber(!f.Failed))
			s.self.Emit(configTime, float64(f.At.UnixMilli())/1000)
		}
	}
	if s.State != nil {
		if f, ok := s.State(); ok {
			s.self.Emit(stateSuccessful, boolNumber(!f.Failed))
		}
	}
	if s.Incident != nil {
		if f, ok := s.Incident(); ok {
			s.self.Emit(incidentSuccessful, boolNumber(!f.Failed))
		}
	}
}

// emitDevices emits the cost of reads per device, summed over collectors.
func (s *Scheduler) emitDevices(results []*result) {
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

// seconds returns a duration in seconds, rounded to milliseconds.
func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1e3 }

func boolNumber(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
