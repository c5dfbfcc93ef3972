package ethernet

import (
	"strconv"
	"time"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot/wire"
)

// Codes of rdma_port_fec_info.
const (
	fecNone  = "none"
	fecFC    = "FC"
	fecRS    = "RS"
	fecRS528 = "RS(528,514)"
	fecRS544 = "RS(544,514)"
	fecRS272 = "RS(272,257)"
)

// fecModes are the link mode bits of FEC, enum ethtool_link_mode_bit_indices. RS stands for both codes of IEEE 802.3.
var fecModes = map[uint64]string{49: fecNone, 50: fecRS, 51: fecFC, 74: fecRS272}

// fecCode returns the code in use on a link of a rate in bits per second and a number of lanes; empty: unknown.
// RS(528,514) is for 25 Gb/s per lane (IEEE 802.3 clauses 91 and 108), RS(544,514) for 50 Gb/s per lane and above, and
// for links of 200 Gb/s and above (clauses 119 and 134).
func fecCode(active *uint64, m *host.LinkModes) string {
	if active == nil {
		return ""
	}
	code := fecModes[*active]
	if code != fecRS || m == nil || m.Speed == nil {
		return code
	}
	const lane25G, lane50G, link200G = 25_000, 50_000, 200_000 // Mb/s
	speed := *m.Speed
	switch {
	case speed >= link200G || m.Lanes != nil && speed >= lane50G**m.Lanes:
		return fecRS544
	case m.Lanes != nil || speed <= lane25G:
		return fecRS528
	}
	return fecRS
}

// codeInterval is how long the code of RS-FEC is kept while the same FEC is active.
const codeInterval = 10 * shared.SlowInterval

// readCode sets the code in use. Speed and lanes, which distinguish the codes of RS-FEC, change with the link only.
func (nd *ethNetdev) readCode(r *reading.Reader, now time.Time) {
	active := nd.fec.Value.Active
	same := active != nil && nd.fecActive != nil && *active == *nd.fecActive
	nd.fecActive = active
	if same && nd.fecCode.Value != fecRS && !nd.fecCode.Due(now, codeInterval) {
		return
	}
	nd.fecCode.Keep(fecCode(active, nil), now)
	if nd.fecCode.Value == fecRS {
		if modes, _ := reading.Ask(r, source.LinkModes, nd.dir(), "linkmodes", nd.Name,
			r.Host.Ethtool.LinkModes); modes != nil {
			nd.fecCode.Value = fecCode(active, modes)
		}
	}
}

// emitFEC emits what only FEC_GET has: the code, statistics by lane, and the histogram.
func emitFEC(s metric.Sink, nd *wire.NetdevCounters, at []string) {
	f := nd.FEC
	if f == nil {
		return
	}
	if nd.FECCode != "" {
		s.Emit(counters.FECInfo, 1, append(at, nd.FECCode)...)
	}
	emitLanes(s, counters.FECLaneCorrectedBits, f.LaneCorrectedBits, at)
	emitLanes(s, counters.FECLaneCorrectedBlocks, f.LaneCorrected, at)
	emitLanes(s, counters.FECLaneUncorrectableBlocks, f.LaneUncorrectable, at)
	if len(f.Histogram) == 0 {
		return
	}
	total, lanes := counters.CorrectedSymbols(f.Histogram)
	s.Emit(counters.FECCorrectedSymbols, float64(total), at...)
	emitLanes(s, counters.FECLaneCorrectedSymbols, lanes, at)
	for _, b := range f.Histogram {
		if b.Blocks > 0 {
			s.Emit(counters.FECBlocks, float64(b.Blocks), append(at, binName(b))...)
		}
	}
}

func emitLanes(s metric.Sink, d *metric.Desc, lanes []uint64, at []string) {
	for i, n := range lanes {
		s.Emit(d, float64(n), append(at, strconv.Itoa(i))...)
	}
}

// binName returns the label of a bin: "3", or "4-7".
func binName(b wire.FECBin) string {
	low := strconv.FormatUint(b.Low, 10)
	if b.Low == b.High {
		return low
	}
	return low + "-" + strconv.FormatUint(b.High, 10)
}
