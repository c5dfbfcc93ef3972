package fabric

import (
	"maps"
	"slices"
	"strconv"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/mad"
)

func desc(name string, kind exposition.Type, unit, source, help string, labels ...string) *exposition.Desc {
	return &exposition.Desc{Name: "rdma_fabric_" + name, Type: kind, Unit: unit, Source: source, Help: help, Labels: labels, Scope: exposition.ScopeFabric}
}

func ofPort(name, unit, source, help string) *exposition.Desc {
	return desc("port_"+name, exposition.Gauge, unit, source, help, "node_guid", "port")
}

func ofLink(name, unit, source, help string) *exposition.Desc {
	return desc("link_"+name, exposition.Gauge, unit, source, help, "node_guid", "port")
}

func counted(name, unit, help string) *exposition.Desc {
	return desc("port_"+name+"_total", exposition.Counter, unit, "PortCounters, IBA 16.1.3.5; PortCountersExtended, IBA 16.1.4.11", help, "node_guid", "port")
}

const fromPort = "PortInfo, IBA 14.2.5.6"

var (
	nodeInfo = desc("node_info", exposition.Gauge, "", "NodeInfo, NodeDescription, IBA 14.2.5.2", "1 for each node that answers, or is remembered, with its name.", "node_guid", "node", "node_type")
	reached  = desc("node_reachable", exposition.Gauge, "", "NodeInfo, IBA 14.2.5.3", "1 for a node that the last sweep has reached; 0 for one that is remembered and was not.", "node_guid")
	linkInfo = desc("link_info", exposition.Gauge, "", "NodeInfo, IBA 14.2.5.3", "1 for each port of a switch that has a link, or had one, with the names of both ends; of a link without a switch, for each port; of adapters whose counters are asked for, for their ports too. A link is counted once by those with end=\"1\".",
		"node_guid", "port", "node", "neighbour_guid", "neighbour_port", "neighbour", "end")
	missing = ofLink("missing", "", "PortInfo, and what is remembered", "1 for a port whose link is gone; absent for links that are there, and where no port of the link has answered.")

	state     = ofPort("state_id", "", fromPort, "Logical state: 1 Down, 2 Init, 3 Armed, 4 Active.")
	physical  = ofPort("physical_state_id", "", fromPort, "Physical state: 1 Sleep, 2 Polling, 3 Disabled, 4 Training, 5 LinkUp, 6 LinkErrorRecovery, 7 Phy Test.")
	rate      = ofPort("rate_bytes_per_second", "bytes", fromPort, "Data rate of the link; absent while it is down. A link at FDR10 has that of QDR, as the kernel counts.")
	width     = ofPort("width_lanes", "lanes", fromPort, "Lanes of the link; absent while it is down.")
	fdr10     = ofPort("fdr10", "", "ExtendedPortInfo of Mellanox", "1 for a link at FDR10; 0 for one at QDR whose both ends have FDR10 enabled; absent for others.")
	enRate    = ofLink("enabled_rate_bytes_per_second", "bytes", fromPort, "Highest data rate that both ends have enabled and support: what the link ought to have. What the cable can is not known.")
	enWidth   = ofLink("enabled_width_lanes", "lanes", fromPort, "Most lanes that both ends have enabled and support.")
	supRate   = ofLink("supported_rate_bytes_per_second", "bytes", fromPort, "Highest data rate that both ends support.")
	supWidth  = ofLink("supported_width_lanes", "lanes", fromPort, "Most lanes that both ends support.")
	differing = ofLink("settings_differ", "", fromPort, "1 for a link whose one end is set to a lower speed or width than the other, while both support more; absent for others.")

	managers  = desc("subnet_managers", exposition.Gauge, "", "SMInfo, IBA 14.2.5.13", "Subnet managers that answer, by their state.", "state")
	smState   = desc("subnet_manager_state_id", exposition.Gauge, "", "SMInfo, IBA 14.2.5.13", "State of the subnet manager at a node: 0 not active, 1 discovering, 2 standby, 3 master.", "node_guid")
	smRank    = desc("subnet_manager_priority", exposition.Gauge, "", "SMInfo, IBA 14.2.5.13", "Priority of the subnet manager at a node: the highest becomes the master, of equals that of the lowest GUID.", "node_guid")
	smActs    = desc("subnet_manager_activity_total", exposition.Counter, "", "SMInfo, IBA 14.2.5.13", "Activity count (ActCount) of the subnet manager at a node. opensm counts the datagrams that it sends, its answers too, so that asking for the count raises it.", "node_guid")
	unanswers = desc("unanswered", exposition.Gauge, "", "time-outs", "What the last sweep has asked for without an answer: node, behind a port with a link, or its name; port, of a node that answers; counters, of a port; subnet_manager, at a port that names one.", "request")

	nodes    = desc("nodes", exposition.Gauge, "", "NodeInfo, IBA 14.2.5.3", "Nodes that the last sweep has reached.", "node_type")
	links    = desc("links", exposition.Gauge, "", fromPort, "Links that the last sweep has found.")
	began    = desc("sweep_timestamp_seconds", exposition.Gauge, "seconds", "", "When the sweep began that these metrics are of.")
	took     = desc("sweep_duration_seconds", exposition.Gauge, "seconds", "", "How long it took.")
	every    = desc("sweep_interval_seconds", exposition.Gauge, "seconds", "", "How often the fabric is looked at: --fabric.interval.")
	failed   = desc("sweep_failed", exposition.Gauge, "", "", "1 if the sweep after that has failed: the own port cannot be opened, does not answer, or leads to nobody who does.")
	sent     = desc("requests_total", exposition.Counter, "", "", "Management datagrams sent, repeated ones too.")
	timeouts = desc("request_timeouts_total", exposition.Counter, "", "", "Of them without an answer.")
)

// countedBy are the metrics of the counters, with their scale to the unit. Those of packets have none.
var countedBy = [mad.NumCounters]struct {
	desc  *exposition.Desc
	scale float64
}{
	mad.SymbolErrors:                 {counted("symbol_errors", "", "Minor link errors on one or more lanes. Stops at 65535 where the switch has no counters of 64 bits."), 1},
	mad.LinkErrorRecoveries:          {counted("link_error_recoveries", "", "Times the link recovered from an error by retraining."), 1},
	mad.LinkDowned:                   {counted("link_downed", "", "Times the link failed to recover and went down."), 1},
	mad.ReceiveErrors:                {counted("receive_errors", "", "Packets received with an error."), 1},
	mad.ReceiveRemotePhysicalErrors:  {counted("receive_remote_physical_errors", "", "Packets received with a bad end (EBP): the fault is beyond the neighbour."), 1},
	mad.ReceiveSwitchRelayErrors:     {counted("receive_switch_relay_errors", "", "Packets that the switch could not forward; multicast that comes back counts as well."), 1},
	mad.TransmitDiscards:             {counted("transmit_discards", "", "Packets dropped before sending: port down or congested."), 1},
	mad.TransmitConstraintErrors:     {counted("transmit_constraint_errors", "", "Packets not sent because of P_Key or raw filters."), 1},
	mad.ReceiveConstraintErrors:      {counted("receive_constraint_errors", "", "Packets received and dropped because of P_Key or raw filters."), 1},
	mad.LocalLinkIntegrityErrors:     {counted("local_link_integrity_errors", "", "Times the count of local physical errors exceeded its threshold."), 1},
	mad.ExcessiveBufferOverrunErrors: {counted("excessive_buffer_overrun_errors", "", "Times buffer overruns persisted over several flow control periods."), 1},
	mad.VL15Dropped:                  {counted("vl15_dropped", "", "Subnet management packets dropped for want of buffers."), 1},
	mad.TransmitWait:                 {counted("transmit_wait_ticks", "ticks", "Ticks during which there was data to send and no credit. The length of a tick is up to the device."), 1},
	mad.TransmitData:                 {counted("transmit_bytes", "bytes", "Data sent; absent where the device counts it in 32 bits only, which are full within seconds."), 4},
	mad.ReceiveData:                  {counted("receive_bytes", "bytes", "Data received; absent where the device counts it in 32 bits only, which are full within seconds."), 4},
}

// Descs are all metrics of a fabric.
func Descs() []*exposition.Desc {
	out := []*exposition.Desc{
		nodeInfo, reached, linkInfo, missing, state, physical, rate, width, fdr10, enRate, enWidth, supRate, supWidth, differing,
		managers, smState, smRank, smActs, unanswers, nodes, links, began, took, every, failed, sent, timeouts,
	}
	for _, c := range countedBy {
		if c.desc != nil {
			out = append(out, c.desc)
		}
	}
	return out
}

// smStates are the values of the label.
var smStates = []struct {
	name  string
	state mad.SMState
}{{"master", mad.SMMaster}, {"standby", mad.SMStandby}, {"discovering", mad.SMDiscovering}, {"not_active", mad.SMNotActive}}

// emitter tells of one fabric.
type emitter struct {
	*exposition.Sink
	f *Fabric // the last sweep; nil where there was none, or it is not true any more
	m *Memory
}

// all tells the names of what is remembered, and what was found.
func (s *emitter) all() {
	for _, guid := range sortedNodes(s.m.nodes) {
		n := s.m.nodes[guid]
		s.Emit(nodeInfo, 1, guid.String(), n.Description, n.Type.String())
	}
	ends := slices.SortedFunc(maps.Keys(s.m.links), End.compare)
	for _, e := range ends {
		s.link(e)
	}
	if s.f != nil {
		s.found()
	}
}

func (s *emitter) found() {
	s.nodes()
	for _, guid := range sortedNodes(s.f.Nodes) {
		n := s.f.Nodes[guid]
		for number := 1; number <= n.NumPorts; number++ {
			s.port(n, End{guid, number})
		}
	}
	for _, e := range s.m.missing(s.f) {
		if s.told(e) {
			s.Emit(missing, 1, e.GUID.String(), strconv.Itoa(e.Port))
		}
	}
	s.subnetManagers()
	for _, q := range questions {
		s.Emit(unanswers, float64(s.f.Unanswered[q]), string(q))
	}
	s.Emit(links, float64(len(s.f.Links)/2))
	s.Emit(took, s.f.Took.Seconds())
}

func (s *emitter) nodes() {
	counts := map[mad.NodeType]int{}
	for _, n := range s.f.Nodes {
		counts[n.Type]++
	}
	for _, t := range []mad.NodeType{mad.Switch, mad.ChannelAdapter, mad.Router} {
		s.Emit(nodes, float64(counts[t]), t.String())
	}
	for _, guid := range sortedNodes(s.m.nodes) {
		there := 0.
		if s.f.Nodes[guid] != nil {
			there = 1
		}
		s.Emit(reached, there, guid.String())
	}
}

// told says whether a port is told of: one of a switch, and of links without one both. The other ends have exporters of their own.
func (s *emitter) told(e End) bool {
	to, linked := s.m.other(e)
	return s.m.nodes[e.GUID].Type == mad.Switch || linked && s.m.nodes[to.GUID].Type != mad.Switch
}

// counts says whether counters of a port are told.
func (s *emitter) counts(e End) bool {
	if s.f == nil {
		return false
	}
	p := s.f.Port(e)
	return p != nil && p.Counters != nil
}

// link tells the names of both ends, of links that are gone too.
func (s *emitter) link(e End) {
	told := s.told(e)
	if !told && !s.counts(e) {
		return
	}
	to, _ := s.m.other(e)
	end := "1"
	if !told || s.told(to) && to.compare(e) < 0 {
		end = "2"
	}
	s.Emit(linkInfo, 1, e.GUID.String(), strconv.Itoa(e.Port), s.m.nodes[e.GUID].Description, to.GUID.String(), strconv.Itoa(to.Port), s.m.nodes[to.GUID].Description, end)
}

// port tells of a port that has a link or had one.
func (s *emitter) port(n *Node, e End) {
	p := n.Ports[e.Port]
	if p == nil || !p.Info.Up() && !s.m.Had(e) {
		return
	}
	guid, number := e.GUID.String(), strconv.Itoa(e.Port)
	s.counters(p, guid, number)
	told := s.told(e)
	if told || s.counts(e) {
		s.Emit(state, float64(p.Info.State), guid, number)
	}
	if !told {
		return
	}
	s.Emit(physical, float64(p.Info.PhysicalState), guid, number)
	if !p.Info.Up() {
		return
	}
	s.positive(rate, p.Info.Active.Rate(), guid, number)
	s.positive(width, float64(p.Info.Active.Widths.Lanes()), guid, number)
	supported, enabled, ok := s.f.Common(e)
	if !ok {
		return
	}
	if is, told := s.f.FDR10(e); told {
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

// positive leaves out what was not told.
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
		if v, ok := p.Counters.Get(mad.Counter(k)); ok && c.desc != nil {
			s.Emit(c.desc, float64(v)*c.scale, guid, number)
		}
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
