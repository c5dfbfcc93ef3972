package rounds

import (
	"runtime"

	"github.com/prometheus/common/version"

	"rdma_exporter/internal/exposition"
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
		Name: "rdma_scrape_collector_stuck", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "Whether the read of a device has not returned from the kernel. It is not started again until it does.", Labels: []string{"collector", "device"}, Source: "the exporter",
	}
	collectorQuarantined = &exposition.Desc{
		Name: "rdma_scrape_quarantined_items", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "Items of a device, files or requests, that failed twice and are left alone until the device registers again, its link changes, or six hours have passed.", Labels: []string{"collector", "device"}, Source: "the exporter",
	}
	scrapeErrors = &exposition.Desc{
		Name: "rdma_scrape_errors_total", Type: exposition.Counter, Scope: exposition.ScopeExporter,
		Help: "Items that could not be read, each of which cost its own sample. reason: absent, unsupported, invalid, gone, permission, stuck, back_off, malformed, io; failed for a whole collector; duplicate, bad_value, undeclared for dropped samples.", Labels: []string{"collector", "device", "reason"}, Source: "the exporter",
	}
	rtnlRequests = &exposition.Desc{
		Name: "rdma_scrape_rtnl_requests_total", Type: exposition.Counter, Scope: exposition.ScopeExporter,
		Help: "Requests that took the kernel's lock on network configuration (rtnl) and have returned.", Source: "the exporter",
	}
	rtnlSeconds = &exposition.Desc{
		Name: "rdma_scrape_rtnl_seconds_total", Type: exposition.Counter, Unit: "seconds", Scope: exposition.ScopeExporter,
		Help: "Wall time inside those requests, waiting for the lock included.", Source: "the exporter",
	}
	rtnlBackOff = &exposition.Desc{
		Name: "rdma_scrape_rtnl_back_off", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "Whether no such request is made at present, because one took more than a second.", Source: "the exporter",
	}
	configSuccessful = &exposition.Desc{
		Name: "rdma_config_last_reload_successful", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "Whether the last reading of --config.file succeeded; 0: what was in force before stays. Absent without such a file.", Source: "the exporter",
	}
	configTime = &exposition.Desc{
		Name: "rdma_config_last_reload_success_timestamp_seconds", Type: exposition.Gauge, Unit: "seconds", Scope: exposition.ScopeExporter,
		Help: "Time of the last reading of --config.file that succeeded, since 1970. Absent without such a file.", Source: "the exporter",
	}
	buildInfo = &exposition.Desc{
		Name: "rdma_exporter_build_info", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help: "Version of the exporter, always 1.", Labels: []string{"version", "revision", "goversion", "goarch"}, Source: "the exporter",
	}
)

// Descs are the metrics on the exporter itself.
var Descs = []*exposition.Desc{collectorSuccess, collectorDuration, collectorAge, collectorStuck, collectorQuarantined, scrapeErrors, rtnlRequests, rtnlSeconds, rtnlBackOff, configSuccessful, configTime, buildInfo}

func (s *Scheduler) selfFamilies(runners []*runner, results []*result) []exposition.Family {
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
			s.self.Emit(collectorStuck, number(d.Stuck), name, d.Device)
			if d.Device != "" {
				s.self.Emit(collectorQuarantined, float64(d.Quarantined), name, d.Device)
			}
		}
	}
	keys, totals := s.faults.counts()
	for i, k := range keys {
		s.self.Emit(scrapeErrors, totals[i], k.collector, k.device, k.reason)
	}
	if s.Host.RTNL != nil {
		rtnl := s.Host.RTNL.Stats()
		s.self.Emit(rtnlRequests, float64(rtnl.Requests))
		s.self.Emit(rtnlSeconds, rtnl.Seconds)
		s.self.Emit(rtnlBackOff, number(rtnl.BackOff))
	}
	s.emitConfig()
	s.self.Emit(buildInfo, 1, version.Version, version.GetRevision(), version.GoVersion, runtime.GOARCH)
	return s.self.End()
}

func (s *Scheduler) emitConfig() {
	if s.Config == nil {
		return
	}
	if c, ok := s.Config(); ok {
		s.self.Emit(configSuccessful, number(!c.Refused))
		s.self.Emit(configTime, float64(c.At.UnixMilli())/1000)
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
