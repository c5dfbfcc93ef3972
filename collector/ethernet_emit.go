package collector

import (
	"strconv"

	"rdma_exporter/internal/snapshot"
)

func emitEthernet(e *snapshot.Ethernet, s Sink) {
	for i := range e.Netdevs {
		nd := &e.Netdevs[i]
		at := [...]string{nd.Device, strconv.Itoa(nd.Port), nd.Netdev}
		emitNetdevStats(s, nd, at[:])
		if nd.Pause != nil {
			emitNumber(s, globalPauseEnabled, nd.Pause.RX, append(at[:], receive)...)
			emitNumber(s, globalPauseEnabled, nd.Pause.TX, append(at[:], transmit)...)
		}
		emitFEC(s, nd, at[:])
		emitAnswers(s, nd, at[:])
		emitPFCSamples(s, nd.PFC, at[:])
	}
}

func emitNetdevStats(s Sink, nd *snapshot.NetdevCounters, at []string) {
	if nd.Stats == nil {
		return
	}
	var labels [5]string
	for i := range nd.Stats.Counts {
		c := &nd.Stats.Counts[i]
		m := &netdevMetrics[c.What]
		if m.ethernet && nd.LinkLayer != "Ethernet" || !nd.Stats.Exposes(c) || m.desc == nil ||
			m.sparse && c.Value == 0 {
			continue
		}
		l := append(labels[:0], at...)
		for _, name := range m.desc.Labels[len(at):] {
			l = append(l, labelOf(c, name))
		}
		s.Emit(m.desc, c.Value, l...)
	}
}

// labelOf is the value of a label beside the netdev.
func labelOf(c *snapshot.NetdevCount, name string) string {
	switch name {
	case "priority", "lane", "queue":
		return index(c.Index)
	}
	return c.Label
}

// index is the label of a priority, a lane or a queue; empty for a total.
func index(i int) string {
	if i < 0 {
		return ""
	}
	return strconv.Itoa(i)
}

// answer is a count from ethtool netlink.
type answer struct {
	what  snapshot.NetdevStat
	label string
	value **uint64
}

// answers are the counts of ethtool netlink that the driver may have in its own statistics as well.
func answers(nd *snapshot.NetdevCounters) []answer {
	out := make([]answer, 0, 6)
	if p := nd.Pause; p != nil {
		out = append(out, answer{snapshot.GlobalPauseFrames, receive, &p.RXFrames},
			answer{snapshot.GlobalPauseFrames, transmit, &p.TXFrames},
			answer{snapshot.PauseStormEvents, "error", &p.TXStormEvents})
	}
	if f := nd.FEC; f != nil {
		out = append(out, answer{snapshot.FECCorrectedBits, "", &f.CorrectedBits},
			answer{snapshot.FECCorrectedBlocks, "", &f.Corrected},
			answer{snapshot.FECUncorrectableBlocks, "", &f.Uncorrectable})
	}
	return out
}

// emitAnswers emits the counts of pause and FEC that are not in the driver's own statistics.
func emitAnswers(s Sink, nd *snapshot.NetdevCounters, at []string) {
	for _, a := range answers(nd) {
		if *a.value == nil {
			continue
		}
		l := at
		if a.label != "" {
			l = append(at, a.label)
		}
		s.Emit(netdevMetrics[a.what].desc, float64(**a.value), l...)
	}
}
