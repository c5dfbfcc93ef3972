package pma

import (
	"context"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// speedsDesc returns a Desc of an InfiniBand port that only PortExtendedSpeedsCounters has.
func speedsDesc(name, help string) *metric.Desc {
	return metric.Of(
		metric.InfinibandPorts,
		metric.Asks(source.Subnet, metric.Port(name, help+counters.AbsentWhenZero, counters.SourceSpeeds)),
	)
}

var (
	syncHeaderErrors = speedsDesc("rdma_port_fec_sync_header_errors_total", "Blocks of 64b/66b received with an invalid sync header, on all lanes of an InfiniBand port. Saturates at 65535.")
	unknownBlocks    = speedsDesc("rdma_port_fec_unknown_blocks_total", "Blocks of 64b/66b received with a valid sync header and an unknown type, on all lanes of an InfiniBand port. Saturates at 65535.")
)

var fecMetrics = map[string]counters.FECMetric{
	"corrected_symbols":    {Port: counters.FECCorrectedSymbols, Lane: counters.FECLaneCorrectedSymbols},
	"corrected_blocks":     {Port: counters.FECCorrectedBlocks, Lane: counters.FECLaneCorrectedBlocks},
	"uncorrectable_blocks": {Port: counters.FECUncorrectableBlocks, Lane: counters.FECLaneUncorrectableBlocks},
	"sync_header_errors":   {Port: syncHeaderErrors, Sparse: true},
	"unknown_blocks":       {Port: unknownBlocks, Sparse: true},
}

// FECDescs are the metrics that an InfiniBand port has beside an Ethernet port.
var FECDescs = []*metric.Desc{
	counters.FECInfo, counters.FECCorrectedSymbols, counters.FECCorrectedBlocks, counters.FECUncorrectableBlocks,
	counters.FECLaneCorrectedSymbols,
	counters.FECLaneCorrectedBlocks, counters.FECLaneUncorrectableBlocks, syncHeaderErrors, unknownBlocks,
}

// EmitFEC emits the FEC of an InfiniBand port. Its netdev is empty: the counters are those of the port.
func EmitFEC(s metric.Sink, d *snapshot.Device, p *snapshot.Port, port string) {
	if p.FEC == nil {
		return
	}
	metric.EmitIf(s, p.FEC.Mode != "", counters.FECInfo, d.Name, port, "", p.FEC.Mode)
	saturated := map[string]bool{}
	counters.EachFEC(fecMetrics, p.FEC, p.Lanes, func(desc *metric.Desc, v float64, lane ...string) {
		at := []string{d.Name, port, ""}
		if desc == syncHeaderErrors || desc == unknownBlocks {
			at = at[:2]
		}
		s.Emit(desc, v, append(at, lane...)...)
	}, func(name string) { saturated[name] = true })
	for name := range saturated {
		s.Emit(counterSaturated, 1, d.Name, port, "fec_"+name)
	}
}

// polled is what a local InfiniBand port answers each SlowInterval.
type polled[T any] struct {
	last  reading.Kept[*T]
	tried reading.Last
	err   error // of the last query
	// silent: failures are not reported.
	silent bool
}

// value queries the port if it is due. An answer is kept while queries fail, but not for longer than SettingsRetention.
func (q *polled[T]) value(r *reading.Reader, mode shared.MADCounters, query func() (T, error)) *T {
	now, interval := r.Now(), shared.SlowInterval
	if q.err != nil {
		interval = shared.AgentRetryAfter
	}
	if q.tried.Due(now, interval) {
		q.tried.Read(now)
		got, err := query()
		switch q.err = err; {
		case err == nil:
			q.last.Keep(&got, now)
		case mode == shared.CountersRecorded && access.IsAbsent(err):
			q.err = nil
		}
	}
	if q.err != nil && !q.silent {
		r.From(source.Subnet).Issue(q.err)
	}
	if !q.last.Within(now, shared.SettingsRetention) {
		return nil
	}
	return q.last.Value
}

// fec queries the FEC of a port if it is due: one datagram, or two if the agent has its errors. The agent may be
// queried.
func (a *Agent) fec(r *reading.Reader, port int) *snapshot.IBFEC {
	return a.errors.value(r, a.Mode,
		func() (snapshot.IBFEC, error) { return askOwn(a, r, port, a.agent.FECRequests(), host.Subnet.PortFEC) })
}

// portSettings queries the settings of a port if it is due.
func (a *Agent) portSettings(r *reading.Reader, port int) *snapshot.IBPortSettings {
	a.settings.silent = a.Mode == shared.CountersIfPermitted
	return a.settings.value(r, a.Mode, func() (snapshot.IBPortSettings, error) {
		return askOwn(a, r, port, host.PortSettingsRequests,
			func(s host.Subnet, ctx context.Context, device string, port int, _ *host.Agent) (snapshot.IBPortSettings, error) {
				return s.PortSettings(ctx, device, port)
			})
	})
}
