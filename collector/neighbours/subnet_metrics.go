package neighbours

import (
	"slices"
	"strconv"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/snapshot"
)

// ofSubnet returns a Desc of data queried over an InfiniBand port.
func ofSubnet(name, origin, help string, labels ...string) *metric.Desc {
	return metric.Of(
		neighbourInfo.Name+`{source="subnet"}`,
		metric.Asks(source.Subnet, metric.Port(name, help, origin, labels...)),
	)
}

const (
	sourceFar     = "PortCounters, IBA 16.1.3.5; PortCountersExtended, IBA 16.1.4.11"
	sourceManager = "SMInfo, IBA 14.2.5.13"
	sourceEnds    = "PortInfo, IBA 14.2.5.6"
)

var (
	farErrors = ofSubnet("rdma_port_neighbour_errors_total", sourceFar,
		"Errors counted by the port at the far end of an InfiniBand link, read each minute with --collector.neighbour.subnet. symbol_errors, link_error_recoveries and receive_errors concern data sent by this port, transmit_discards data for this port. Without 64-bit counters in the switch they saturate at 65535, link_error_recoveries and link_downed at 255.", "error")
	farWait = ofSubnet("rdma_port_neighbour_transmit_wait_ticks_total", sourceFar,
		"Ticks during which the far end of an InfiniBand link had data for this port but no credits: this host receives slowly. The length of a tick is switch-specific.")
	endRate = ofSubnet("rdma_port_link_end_rate_bytes_per_second", sourceEnds,
		"Highest data rate supported, enabled or active at one end of an InfiniBand link, read each minute with --collector.neighbour.subnet. end: own, neighbour. setting: supported, enabled, active. An end with an enabled rate below its supported rate and below the other end is configured too low. Limits of a card that does not support its full width at its highest speed (HDR100, NDR200) are not included. Absent where an end does not answer; active is absent while the link is down.", "end", "setting")
	endWidth = ofSubnet("rdma_port_link_end_width_lanes", sourceEnds,
		"Most lanes supported, enabled or active at one end of an InfiniBand link, as rdma_port_link_end_rate_bytes_per_second.", "end", "setting")
	managerInfo = ofSubnet("rdma_port_subnet_manager_info", sourceManager,
		"Master subnet manager of an InfiniBand port's subnet, always 1, with --collector.neighbour.subnet. port_guid: port GUID of the subnet manager. Absent while it does not answer.", "port_guid")
	managerState = ofSubnet("rdma_port_subnet_manager_state_id", sourceManager,
		"State of the subnet manager that configured an InfiniBand port: 0 not active, 1 discovering, 2 standby, 3 master.")
	managerPriority = ofSubnet("rdma_port_subnet_manager_priority", sourceManager,
		"Priority of the subnet manager that configured an InfiniBand port, 0 to 15. The highest priority becomes master, at equal priority the lowest GUID.")
	managerActivity = ofSubnet("rdma_port_subnet_manager_activity_total", sourceManager,
		"Activity count (ActCount) of the subnet manager that configured an InfiniBand port. opensm counts all datagrams that it sends: reading the count raises it.")

	farFEC = ofSubnet("rdma_port_neighbour_fec_info", counters.SourceExtended,
		"FEC in use at the far end of an InfiniBand link, as rdma_port_fec_info, read each minute with --collector.neighbour.subnet.", "mode")
	farSymbols = ofSubnet("rdma_port_neighbour_fec_corrected_symbols_total", counters.SourceSpeeds,
		"Symbols corrected by the far end of an InfiniBand link in the data sent by this port. Absent once the counter has reached its end (32 bits).")
	farLaneSymbols = ofSubnet("rdma_port_neighbour_fec_lane_corrected_symbols_total", counters.SourceSpeeds,
		"Symbols corrected by the far end of an InfiniBand link, by lane. Absent once the counter has reached its end (32 bits).", "lane")
	farBlocks = ofSubnet("rdma_port_neighbour_fec_corrected_blocks_total", counters.SourceSpeeds,
		"Blocks (codewords) corrected by the far end of an InfiniBand link in the data sent by this port. Absent once the counter has reached its end (32 bits).")
	farUncorrectable = ofSubnet("rdma_port_neighbour_fec_uncorrectable_blocks_total", counters.SourceSpeeds,
		"Blocks (codewords) sent by this port that the far end of an InfiniBand link could not correct: packets are lost.")

	subnetDescs = []*metric.Desc{
		endRate, endWidth, farErrors, farWait, farFEC, farSymbols, farLaneSymbols, farBlocks, farUncorrectable,
		managerInfo, managerState, managerPriority, managerActivity,
	}
)

// farFECMetrics are the metrics of the far end. Blocks of Fire code, which has no total of the port, have none.
var farFECMetrics = map[string]counters.FECMetric{
	"corrected_symbols":    {Port: farSymbols, Lane: farLaneSymbols},
	"corrected_blocks":     {Port: farBlocks},
	"uncorrectable_blocks": {Port: farUncorrectable},
}

// farCounters are the values of label error, by the names of sysfs.
var farCounters = []struct{ file, label string }{
	{"symbol_error", "symbol_errors"},
	{"link_error_recovery", "link_error_recoveries"},
	{"link_downed", "link_downed"},
	{"port_rcv_errors", "receive_errors"},
	{"port_xmit_discards", "transmit_discards"},
}

// subnets returns the answers of a device's ports.
func (r *neighbourReading) subnets() (out []snapshot.PortSubnet) {
	for i := range r.device.Ports {
		number := r.device.Ports[i].Number
		if a := r.ends[number]; a.counters != nil || a.manager != nil || a.settings != nil {
			out = append(out, snapshot.PortSubnet{
				Device: r.device.Name, Port: number, Counters: a.counters, FEC: a.fec, Lanes: a.lanes, Manager: a.manager,
				Settings: a.settings,
			})
		}
	}
	return slices.Clip(out)
}

func emitSubnets(s metric.Sink, subnets []snapshot.PortSubnet) {
	for i := range subnets {
		p := &subnets[i]
		port := strconv.Itoa(p.Port)
		for _, l := range p.Settings {
			s.Emit(endRate, l.Rate, p.Device, port, l.End, l.Setting)
			s.Emit(endWidth, float64(l.Lanes), p.Device, port, l.End, l.Setting)
		}
		for _, c := range farCounters {
			if v, ok := counters.StatOf(p.Counters, c.file); ok {
				s.Emit(farErrors, float64(v), p.Device, port, c.label)
			}
		}
		if v, ok := counters.StatOf(p.Counters, "port_xmit_wait"); ok {
			s.Emit(farWait, float64(v), p.Device, port)
		}
		if f := p.FEC; f != nil {
			metric.EmitIf(s, f.Mode != "", farFEC, p.Device, port, f.Mode)
			counters.EachFEC(farFECMetrics, f, p.Lanes, func(d *metric.Desc, v float64, lane ...string) {
				s.Emit(d, v, append([]string{p.Device, port}, lane...)...)
			}, func(string) {})
		}
		if m := p.Manager; m != nil {
			s.Emit(managerInfo, 1, p.Device, port, m.GUID)
			metric.EmitNumber(s, managerState, m.State, p.Device, port)
			metric.EmitNumber(s, managerPriority, m.Priority, p.Device, port)
			metric.EmitNumber(s, managerActivity, m.Activity, p.Device, port)
		}
	}
}
