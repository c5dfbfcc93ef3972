package ethernet

import (
	"strconv"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/snapshot/wire"
)

func emitEthernet(e *wire.Ethernet, s metric.Sink) {
	for i := range e.Netdevs {
		nd := &e.Netdevs[i]
		at := [...]string{nd.Device, strconv.Itoa(nd.Port), nd.Netdev}
		emitNetdevStats(s, nd, at[:])
		if nd.Pause != nil {
			metric.EmitNumber(s, counters.GlobalPauseEnabled, nd.Pause.RX, append(at[:], counters.Receive)...)
			metric.EmitNumber(s, counters.GlobalPauseEnabled, nd.Pause.TX, append(at[:], counters.Transmit)...)
		}
		emitFEC(s, nd, at[:])
		emitAnswers(s, nd, at[:])
		emitPFCSamples(s, nd.PFC, at[:])
	}
}

func emitNetdevStats(s metric.Sink, nd *wire.NetdevCounters, at []string) {
	if nd.Stats == nil {
		return
	}
	var labels [5]string
	for i := range nd.Stats.Counts {
		c := &nd.Stats.Counts[i]
		m := &counters.NetdevMetrics[c.What]
		if m.Ethernet && nd.LinkLayer != "Ethernet" || !nd.Stats.Exposes(c) || m.Desc == nil ||
			m.Sparse && c.Value == 0 {
			continue
		}
		l := append(labels[:0], at...)
		for _, name := range m.Desc.Labels[len(at):] {
			l = append(l, counters.LabelOf(c, name))
		}
		s.Emit(m.Desc, c.Value, l...)
	}
}

// answer is a count from ethtool netlink.
type answer struct {
	what  wire.NetdevStat
	label string
	value **uint64
}

// answers returns the counts of ethtool netlink that the driver may have in its own statistics as well.
func answers(nd *wire.NetdevCounters) []answer {
	out := make([]answer, 0, 6)
	if p := nd.Pause; p != nil {
		out = append(out, answer{wire.GlobalPauseFrames, counters.Receive, &p.RXFrames},
			answer{wire.GlobalPauseFrames, counters.Transmit, &p.TXFrames},
			answer{wire.PauseStormEvents, "error", &p.TXStormEvents})
	}
	if f := nd.FEC; f != nil {
		out = append(out, answer{wire.FECCorrectedBits, "", &f.CorrectedBits},
			answer{wire.FECCorrectedBlocks, "", &f.Corrected},
			answer{wire.FECUncorrectableBlocks, "", &f.Uncorrectable})
	}
	return out
}

// emitAnswers emits the counts of pause and FEC that are not in the driver's own statistics.
func emitAnswers(s metric.Sink, nd *wire.NetdevCounters, at []string) {
	for _, a := range answers(nd) {
		if *a.value == nil {
			continue
		}
		l := at
		if a.label != "" {
			l = append(at, a.label)
		}
		s.Emit(counters.NetdevMetrics[a.what].Desc, float64(**a.value), l...)
	}
}
