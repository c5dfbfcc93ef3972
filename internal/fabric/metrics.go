package fabric

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/mad/perf"
)

func desc(name string, kind exposition.Type, unit, source, help string, labels ...string) *exposition.Desc {
	return &exposition.Desc{
		Name: "rdma_fabric_" + name, Type: kind, Unit: unit, Source: source, Help: help, Labels: labels,
		Scope: exposition.ScopeFabric,
	}
}

// absentBeside returns a Desc that is absent where another metric has nothing to add: that is no gap.
func absentBeside(d *exposition.Desc, metric *exposition.Desc) *exposition.Desc {
	d.Beside = metric.Name
	return d
}

func ofPort(name, unit, source, help string) *exposition.Desc {
	return desc("port_"+name, exposition.Gauge, unit, source, help, "node_guid", "port")
}

func ofLink(name, unit, source, help string) *exposition.Desc {
	return desc("link_"+name, exposition.Gauge, unit, source, help, "node_guid", "port")
}

func ofLeaf(name, unit, help string) *exposition.Desc {
	return desc("leaf_"+name, exposition.Gauge, unit, "PortInfo, IBA 14.2.5.6, and remembered links",
		"Of a switch with links to hosts and to switches. "+help, "node_guid")
}

func counted(name, unit, help string) *exposition.Desc {
	return desc("port_"+name+"_total", exposition.Counter, unit,
		"PortCounters, IBA 16.1.3.5; PortCountersExtended, IBA 16.1.4.11", help, "node_guid", "port")
}

const fromPort = "PortInfo, IBA 14.2.5.6"

var (
	nodeInfo = desc("node_info", exposition.Gauge, "", "NodeInfo, NodeDescription, IBA 14.2.5.2", "1 for each node that answered the last sweep or is remembered from earlier ones.", "node_guid", "node", "node_type")
	chip     = desc("node_device_info", exposition.Gauge, "", "NodeInfo, IBA 14.2.5.3", "1 for each node that the last sweep reached, with the IDs of its chip. device_id is that of PCI: 0xd2f0 Quantum, 0xd2f2 Quantum-2.", "node_guid", "vendor_id", "device_id")
	reached  = desc("node_reachable", exposition.Gauge, "", "NodeInfo, IBA 14.2.5.3", "1 for a node that the last sweep reached; 0 for a remembered node that it did not reach.", "node_guid")
	linkInfo = desc("link_info", exposition.Gauge, "", "NodeInfo, IBA 14.2.5.3",
		"1 for each switch port that has or had a link, with the names of both ends. Ports of adapters have it where no switch is at the far end, and where their counters are queried. Series with end=\"1\" count each link once.",
		"node_guid", "port", "node", "neighbour_guid", "neighbour_port", "neighbour", "end")
	missing = absentBeside(desc("link_missing", exposition.Gauge, "", "PortInfo, and remembered links",
		"1 for each end of a remembered link that is gone; the port may have another link. Absent while the link is up or neither end answers, and once both ends are elsewhere. system: the host at the neighbour.",
		"node_guid", "port", "node", "neighbour_guid", "neighbour_port", "neighbour", "system", "end"), linkCount)
	linkMoved   = absentBeside(desc("link_moved", exposition.Gauge, "", "NodeInfo, IBA 14.2.5.3, and remembered links", "1 for a remembered link with one end connected elsewhere. moved: that end, NODE/PORT; now: the port at its far end.", "node_guid", "port", "neighbour_guid", "neighbour_port", "moved", "now"), linkCount)
	linkRewired = absentBeside(desc("link_rewired", exposition.Gauge, "", "NodeInfo, IBA 14.2.5.3, and remembered links", "1 for an earlier link with both ends connected elsewhere, until accepted. moved: the other end, NODE/PORT; now: the port at its far end.", "node_guid", "port", "neighbour_guid", "neighbour_port", "moved", "now"), linkCount)

	stateID    = ofPort("state_id", "", fromPort, "Logical state: 1 Down, 2 Init, 3 Armed, 4 Active.")
	physical   = ofPort("physical_state_id", "", fromPort, "Physical state: 1 Sleep, 2 Polling, 3 Disabled, 4 Training, 5 LinkUp, 6 LinkErrorRecovery, 7 Phy Test.")
	rateBytes  = ofPort("rate_bytes_per_second", "bytes", fromPort, "Data rate of the link. Absent while it is down. FDR10 is reported with the rate of QDR, as the kernel does.")
	widthLanes = ofPort("width_lanes", "lanes", fromPort, "Link width in lanes. Absent while the link is down.")
	fdr10      = absentBeside(ofPort("fdr10", "", "Mellanox ExtendedPortInfo", "1 for a link at FDR10; 0 for a link at QDR with FDR10 enabled at both ends. Absent for all other links."), linkCount)
	enRate     = ofLink("enabled_rate_bytes_per_second", "bytes", fromPort, "Expected data rate: the highest that both ends support and have enabled. Limits of the cable are not included.")
	enWidth    = ofLink("enabled_width_lanes", "lanes", fromPort, "Expected width: the most lanes that both ends support and have enabled.")
	supRate    = ofLink("supported_rate_bytes_per_second", "bytes", fromPort, "Highest data rate that both ends support.")
	supWidth   = ofLink("supported_width_lanes", "lanes", fromPort, "Most lanes that both ends support.")
	differing  = ofLink("settings_differ", "", fromPort, "1 for a link with a lower speed or width enabled at one end than at the other, although both support more. Absent for all other links.")

	waitRatio = ofPort("transmit_wait_ratio", "", "PortXmitWait, PortSamplesControl (tick), IBA 16.1.3.2", "Share of the time between the last two sweeps in which a switch port had data to send and sent none, for lack of credits or of its turn (0 to 1). Absent where the length of a tick is unknown.")
	loop      = desc("credit_loop_suspect", exposition.Gauge, "", "rdma_fabric_port_transmit_wait_ratio and the links", "1 for each port of a suspected credit loop: links between switches in a cycle, each waiting for more than half of the time, without a slow receiver or a full link behind them. loop: number of the cycle in this sweep; step: place in it.", "node_guid", "port", "loop", "step")
	loopCount = desc("credit_loops_suspected", exposition.Gauge, "", "rdma_fabric_port_transmit_wait_ratio and the links", "Suspected credit loops between the last two sweeps. Absent where no port has rdma_fabric_port_transmit_wait_ratio.")
	leafDown  = ofLeaf("downlink_bytes_per_second", "bytes", "Data rate of the links to hosts that are up.")
	leafUp    = ofLeaf("uplink_bytes_per_second", "bytes", "Data rate of the links to switches that are up.")
	leafAll   = ofLeaf("uplink_expected_bytes_per_second", "bytes", "Data rate of all expected links to switches, those of the site configuration or else the remembered ones, at the rate that both ends have enabled. A missing link counts as the average of those that are up.")
	leafLost  = ofLeaf("uplinks_missing", "", "Expected links to switches that are down or connected elsewhere: those of the site configuration, or else the remembered ones.")

	managers  = desc("subnet_managers", exposition.Gauge, "", "SMInfo, IBA 14.2.5.13", "Subnet managers that answer, by state.", "state")
	smState   = absentBeside(desc("subnet_manager_state_id", exposition.Gauge, "", "SMInfo, IBA 14.2.5.13", "State of the subnet manager at a node: 0 not active, 1 discovering, 2 standby, 3 master.", "node_guid"), managers)
	smRank    = absentBeside(desc("subnet_manager_priority", exposition.Gauge, "", "SMInfo, IBA 14.2.5.13", "Priority of the subnet manager at a node. The highest priority becomes master; among equals, the lowest GUID.", "node_guid"), managers)
	smActs    = absentBeside(desc("subnet_manager_activity_total", exposition.Counter, "", "SMInfo, IBA 14.2.5.13", "Activity count (ActCount) of the subnet manager at a node. opensm counts every datagram that it sends: each query raises the count.", "node_guid"), managers)
	unanswers = desc("unanswered", exposition.Gauge, "", "timeouts", "Queries of the last sweep without an answer. node: NodeInfo or the description behind a port with a link; port: PortInfo of a node that answers; counters: those of a port; subnet_manager: SMInfo at a port that announces one.", "request")

	nodeCount     = desc("nodes", exposition.Gauge, "", "NodeInfo, IBA 14.2.5.3", "Nodes that the last sweep reached.", "node_type")
	linkCount     = desc("links", exposition.Gauge, "", fromPort, "Links that the last sweep found.")
	began         = desc("sweep_timestamp_seconds", exposition.Gauge, "seconds", "", "Start of the last successful sweep.")
	sweepDuration = desc("sweep_duration_seconds", exposition.Gauge, "seconds", "", "Duration of the last successful sweep.")
	every         = desc("sweep_interval_seconds", exposition.Gauge, "seconds", "", "Interval between sweeps: --fabric.interval.")
	failed        = desc("sweep_failed", exposition.Gauge, "", "", "1 if the latest sweep failed: the local port cannot be opened, does not answer, has no link, or the node behind it does not answer.")
	requestsSent  = desc("requests_total", exposition.Counter, "", "", "Management datagrams sent, including retries.")
	timeouts      = desc("request_timeouts_total", exposition.Counter, "", "", "Management datagrams without an answer.")
)

// countedBy has the metric of each counter and its scale to the unit. Packet counters have no metric.
var countedBy = [perf.NumCounters]struct {
	desc  *exposition.Desc
	scale float64
}{
	perf.SymbolErrors:                 {counted("symbol_errors", "", "Minor link errors on one or more lanes. Saturates at 65535 on switches without 64-bit counters."), 1},
	perf.LinkErrorRecoveries:          {counted("link_error_recoveries", "", "Times the link recovered from an error by retraining."), 1},
	perf.LinkDowned:                   {counted("link_downed", "", "Times the link failed to recover and went down."), 1},
	perf.ReceiveErrors:                {counted("receive_errors", "", "Packets received with an error."), 1},
	perf.ReceiveRemotePhysicalErrors:  {counted("receive_remote_physical_errors", "", "Packets received with the end-bad-packet delimiter (EBP). The fault is upstream of the neighbour."), 1},
	perf.ReceiveSwitchRelayErrors:     {counted("receive_switch_relay_errors", "", "Packets that the switch could not forward, including multicast that returns to its source."), 1},
	perf.TransmitDiscards:             {counted("transmit_discards", "", "Packets dropped before sending: port down or congested."), 1},
	perf.TransmitConstraintErrors:     {counted("transmit_constraint_errors", "", "Packets not sent because of P_Key or raw filters."), 1},
	perf.ReceiveConstraintErrors:      {counted("receive_constraint_errors", "", "Packets received and dropped because of P_Key or raw filters."), 1},
	perf.LocalLinkIntegrityErrors:     {counted("local_link_integrity_errors", "", "Times the count of local physical errors exceeded its threshold."), 1},
	perf.ExcessiveBufferOverrunErrors: {counted("excessive_buffer_overrun_errors", "", "Times buffer overruns persisted over several flow control periods."), 1},
	perf.VL15Dropped:                  {counted("vl15_dropped", "", "Subnet management packets (VL15) dropped because of a lack of buffers."), 1},
	perf.TransmitWait:                 {counted("transmit_wait_ticks", "ticks", "Ticks during which data was waiting without flow control credit. The device defines the length of a tick."), 1},
	perf.TransmitData:                 {counted("transmit_bytes", "bytes", "Data sent. Absent on devices with 32-bit data counters, which saturate within seconds."), 4},
	perf.ReceiveData:                  {counted("receive_bytes", "bytes", "Data received. Absent on devices with 32-bit data counters, which saturate within seconds."), 4},
}

// speeds returns a Desc of a counter of PortExtendedSpeedsCounters.
func speeds(name, help string, labels ...string) *exposition.Desc {
	return desc("port_fec_"+name+"_total", exposition.Counter, "", "PortExtendedSpeedsCounters, IBA 16.1.4.12", help,
		append([]string{"node_guid", "port"}, labels...)...)
}

const endsText = " Absent once the counter has reached its end (32 bits)."

var (
	fecInfo = desc("port_fec_info", exposition.Gauge, "", "PortInfoExtended, IBA 14.2.5.19", "Forward error correction (FEC) in use, always 1. mode: none, FC, RS(528,514), RS(544,514) …; PLR is retransmission by the physical layer. Absent on nodes without the capability.", "node_guid", "port", "mode")
	details = desc("port_receive_error_details_total", exposition.Counter, "", "PortRcvErrorDetails, IBA 16.1.4.3", "Packets received with an error by cause: local_physical (this link), malformed_packet, buffer_overrun, dlid_mapping, vl_mapping, looping. Saturates at 65535. Absent while rdma_fabric_port_receive_errors_total is 0, and on nodes without the attribute.", "node_guid", "port", "cause")
	full    = desc("port_counter_saturated", exposition.Gauge, "", "PortCounters, IBA 16.1.3.5; PortExtendedSpeedsCounters, IBA 16.1.4.12", "1 for a counter of 32 bits or fewer that has reached its maximum and no longer counts until it is cleared. Absent while it counts. counter: the name of its metric without rdma_fabric_port_ and _total.", "node_guid", "port", "counter")
)

// fecBy has the metrics of each counter of PortExtendedSpeedsCounters: of the port, and of a lane.
var fecBy = map[string]struct{ port, lane *exposition.Desc }{
	"corrected_symbols":    {speeds("corrected_symbols", "Symbols (10 bits) received in error and corrected by RS-FEC."+endsText), speeds("lane_corrected_symbols", "Symbols (10 bits) received in error and corrected by RS-FEC, by lane."+endsText, "lane")},
	"corrected_blocks":     {speeds("corrected_blocks", "Blocks (codewords) received in error and corrected by FEC."+endsText), speeds("lane_corrected_blocks", "Blocks (codewords) received in error and corrected by FEC, by lane, with Fire code."+endsText, "lane")},
	"uncorrectable_blocks": {speeds("uncorrectable_blocks", "Blocks (codewords) received that FEC could not correct: packets are lost."), speeds("lane_uncorrectable_blocks", "Blocks (codewords) received that FEC could not correct, by lane, with Fire code.", "lane")},
	"sync_header_errors":   {port: speeds("sync_header_errors", "Blocks of 64b/66b received with an invalid sync header. Saturates at 65535.")},
	"unknown_blocks":       {port: speeds("unknown_blocks", "Blocks of 64b/66b received with a valid sync header and an unknown type. Saturates at 65535.")},
}

// Descs returns all metrics of fabric mode.
func Descs() []*exposition.Desc {
	out := []*exposition.Desc{
		nodeInfo, reached, linkInfo, missing, linkMoved, linkRewired, stateID, physical, rateBytes, widthLanes, fdr10, enRate,
		enWidth, supRate, supWidth,
		differing, managers, smState, smRank, smActs, unanswers, nodeCount, linkCount, began, sweepDuration, every,
		failed, requestsSent, timeouts,
		fecInfo, details, full, chip, waitRatio, loop, loopCount, leafDown, leafUp, leafAll, leafLost,
	}
	for _, name := range slices.Sorted(maps.Keys(fecBy)) {
		out = append(out, fecBy[name].port)
		if lane := fecBy[name].lane; lane != nil {
			out = append(out, lane)
		}
	}
	for _, c := range countedBy {
		if c.desc != nil {
			out = append(out, c.desc)
		}
	}
	return out
}

// smStates are the values of the label state.
var smStates = []struct {
	name  string
	state mad.SMState
}{
	{"master", mad.SMMaster},
	{"standby", mad.SMStandby},
	{"discovering", mad.SMDiscovering},
	{"not_active", mad.SMNotActive},
}

// emitter emits the metrics of one fabric.
type emitter struct {
	*exposition.Sink
	f *Fabric // the last sweep; nil if there was none or it is outdated
	m *Memory
	p *Picture // that of f
}

// all emits the remembered names and what the last sweep found.
func (s *emitter) all() {
	for _, guid := range sortedNodes(s.m.nodes) {
		n := s.m.nodes[guid]
		s.Emit(nodeInfo, 1, guid.String(), n.Description, n.Type.String())
	}
	for _, e := range slices.SortedFunc(maps.Keys(s.m.links), End.compare) {
		s.link(e)
	}
	for _, l := range s.m.Data().Links {
		s.elsewhere(&l)
	}
	if s.f != nil {
		s.found()
	}
}

func (s *emitter) found() {
	s.nodes()
	for _, guid := range sortedNodes(s.f.Nodes) {
		n := s.f.Nodes[guid]
		if n.VendorID != 0 {
			s.Emit(chip, 1, guid.String(), fmt.Sprintf("%#06x", n.VendorID), fmt.Sprintf("%#04x", n.DeviceID))
		}
		for number := 1; number <= n.NumPorts; number++ {
			s.port(n, End{guid, number})
		}
	}
	for _, l := range s.m.missing(s.f) {
		for _, e := range []End{l.A, l.B} {
			s.missing(&l, e)
		}
	}
	s.loops()
	s.leaves()
	s.subnetManagers()
	for _, q := range questions {
		s.Emit(unanswers, float64(s.f.Unanswered[q]), string(q))
	}
	s.Emit(linkCount, float64(len(s.f.Links)/2))
	s.Emit(sweepDuration, s.f.Took.Seconds())
}

func (s *emitter) nodes() {
	counts := map[mad.NodeType]int{}
	for _, n := range s.f.Nodes {
		counts[n.Type]++
	}
	for _, t := range []mad.NodeType{mad.Switch, mad.ChannelAdapter, mad.Router} {
		s.Emit(nodeCount, float64(counts[t]), t.String())
	}
	for _, guid := range sortedNodes(s.m.nodes) {
		there := 0.
		if s.f.Nodes[guid] != nil {
			there = 1
		}
		s.Emit(reached, there, guid.String())
	}
}

// reported reports whether a port has metrics: all ports of switches, and both ends of links without a switch. Adapters
// are otherwise covered by the exporters of their hosts.
func (s *emitter) reported(e End) bool {
	l := s.m.latest(e)
	return s.isSwitch(e) || l != nil && s.reports(l, e)
}

// reports reports whether a link has metrics at an end.
func (s *emitter) reports(l *KnownLink, e End) bool { return s.isSwitch(e) || !s.isSwitch(l.Other(e)) }

// first returns the end at which a link counts once.
func (s *emitter) first(l *KnownLink) End {
	if s.reports(l, l.A) {
		return l.A
	}
	return l.B
}

// place returns the value of the label end.
func (s *emitter) place(l *KnownLink, e End) string {
	if s.first(l) == e {
		return "1"
	}
	return "2"
}

func (s *emitter) isSwitch(e End) bool { return s.m.nodes[e.GUID].Type == mad.Switch }

// counts reports whether there are counters of a port.
func (s *emitter) counts(e End) bool {
	if s.f == nil {
		return false
	}
	p := s.f.Port(e)
	return p != nil && p.Counters != nil
}

// link emits the names of both ends, also for links that are gone. A port whose neighbour is connected elsewhere has
// none.
func (s *emitter) link(e End) {
	l := s.m.latest(e)
	to := l.Other(e)
	if s.m.latest(to) != l || !s.reports(l, e) && !s.counts(e) {
		return
	}
	s.Emit(linkInfo, 1, e.GUID.String(), strconv.Itoa(e.Port), s.m.nodes[e.GUID].Description, to.GUID.String(),
		strconv.Itoa(to.Port), s.m.nodes[to.GUID].Description, s.place(l, e))
}

// missing emits an end of a link that is gone.
func (s *emitter) missing(l *KnownLink, e End) {
	if !s.reports(l, e) {
		return
	}
	to, host := l.Other(e), ""
	if words := strings.Fields(s.m.nodes[to.GUID].Description); len(words) > 0 && !s.isSwitch(to) {
		host = words[0]
	}
	s.Emit(missing, 1, e.GUID.String(), strconv.Itoa(e.Port), s.m.nodes[e.GUID].Description, to.GUID.String(),
		strconv.Itoa(to.Port), s.m.nodes[to.GUID].Description, host, s.place(l, e))
}

// elsewhere emits a link one end of which, or both, is connected elsewhere.
func (s *emitter) elsewhere(l *KnownLink) {
	e := s.first(l)
	to := l.Other(e)
	at, far := s.m.latest(e).Other(e), s.m.latest(to).Other(to)
	link := []string{e.GUID.String(), strconv.Itoa(e.Port), to.GUID.String(), strconv.Itoa(to.Port)}
	switch {
	case at != to && far != e:
		s.Emit(linkRewired, 1, append(link, s.m.name(to), s.m.name(far))...)
	case at != to:
		s.Emit(linkMoved, 1, append(link, s.m.name(e), s.m.name(at))...)
	case far != e:
		s.Emit(linkMoved, 1, append(link, s.m.name(to), s.m.name(far))...)
	}
}

// port emits the metrics of a port that has or had a link.
func (s *emitter) port(n *Node, e End) {
	p := n.Ports[e.Port]
	if p == nil || !p.Info.Up() && !s.m.Had(e) {
		return
	}
	guid, number := e.GUID.String(), strconv.Itoa(e.Port)
	s.counters(p, guid, number)
	if share, ok := s.p.Waits[e]; ok {
		s.Emit(waitRatio, share, guid, number)
	}
	reported := s.reported(e)
	if reported || s.counts(e) {
		s.Emit(stateID, float64(p.Info.State), guid, number)
		if p.Info.Up() {
			s.positive(rateBytes, p.Info.Active.Rate(), guid, number)
			s.positive(widthLanes, float64(p.Info.Active.Widths.Lanes()), guid, number)
		}
	}
	if !reported {
		return
	}
	s.Emit(physical, float64(p.Info.PhysicalState), guid, number)
	if !p.Info.Up() {
		return
	}
	supported, enabled, ok := s.f.Common(e)
	if !ok {
		return
	}
	if is, known := s.f.FDR10(e); known {
		s.Emit(fdr10, map[bool]float64{true: 1}[is], guid, number)
	}
	s.positive(enRate, enabled.Rate(), guid, number)
	s.positive(enWidth, float64(enabled.Widths.Lanes()), guid, number)
	s.positive(supRate, supported.Rate(), guid, number)
	s.positive(supWidth, float64(supported.Widths.Lanes()), guid, number)
	if s.f.Differs(e) {
		s.Emit(differing, 1, guid, number)
	}
}

// positive leaves out unknown values.
func (s *emitter) positive(d *exposition.Desc, v float64, labels ...string) {
	if v > 0 {
		s.Emit(d, v, labels...)
	}
}

func (s *emitter) counters(p *Port, guid, number string) {
	if p.Counters == nil {
		return
	}
	for k, c := range countedBy {
		v, ok := p.Counters.Get(perf.Counter(k))
		if !ok || c.desc == nil {
			continue
		}
		s.Emit(c.desc, float64(v)*c.scale, guid, number)
		if p.Counters.Saturated(perf.Counter(k)) {
			s.saturated(c.desc, guid, number)
		}
	}
	if p.Details != nil {
		for i, n := range p.Details {
			s.Emit(details, float64(n), guid, number, perf.ReceiveErrorCauses[i])
		}
	}
	if p.FEC != nil {
		s.fec(p.FEC, guid, number)
	}
}

// saturated names a counter as its metric.
func (s *emitter) saturated(d *exposition.Desc, guid, number string) {
	name := strings.TrimSuffix(strings.TrimPrefix(d.Name, "rdma_fabric_port_"), "_total")
	s.Emit(full, 1, guid, number, name)
}

// fec emits counters that count. Of lanes at their end one series is emitted for all.
func (s *emitter) fec(f *FEC, guid, number string) {
	s.Emit(fecInfo, 1, guid, number, f.Mode.String())
	emitted := map[*exposition.Desc]bool{}
	for _, c := range f.Counts {
		d, at := fecBy[c.Name].port, []string{guid, number}
		if c.Lane >= 0 {
			d, at = fecBy[c.Name].lane, append(at, strconv.Itoa(c.Lane))
		}
		switch {
		case d == nil || emitted[d] && c.AtEnd():
		case c.AtEnd():
			emitted[d] = true
			s.saturated(d, guid, number)
		default:
			s.Emit(d, float64(c.Value), at...)
		}
	}
}

func (s *emitter) loops() {
	if len(s.p.Waits) == 0 {
		return
	}
	s.Emit(loopCount, float64(len(s.p.Loops)))
	for i, ends := range s.p.Loops {
		for step, e := range ends {
			s.Emit(loop, 1, e.GUID.String(), strconv.Itoa(e.Port), strconv.Itoa(i+1), strconv.Itoa(step+1))
		}
	}
}

func (s *emitter) leaves() {
	for _, l := range s.p.Leaves {
		guid := l.GUID.String()
		s.Emit(leafDown, l.Down, guid)
		s.Emit(leafUp, l.Up, guid)
		s.positive(leafAll, l.Expected, guid)
		s.Emit(leafLost, float64(l.Missing), guid)
	}
}

func (s *emitter) subnetManagers() {
	for _, x := range smStates {
		n := 0
		for _, m := range s.f.Managers {
			if m.Info.State == x.state {
				n++
			}
		}
		s.Emit(managers, float64(n), x.name)
	}
	for _, m := range s.f.Managers {
		if m.Node != 0 {
			s.Emit(smState, float64(m.Info.State), m.Node.String())
			s.Emit(smRank, float64(m.Info.Priority), m.Node.String())
			s.Emit(smActs, float64(m.Info.Activity), m.Node.String())
		}
	}
}
