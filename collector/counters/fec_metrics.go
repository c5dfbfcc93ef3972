package counters

import (
	"strconv"

	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
)

// FEC statistics of a port. Those by lane are separate metrics, so that a sum over a port counts nothing twice.
var (
	fecCorrectedBits       = NetdevDesc("rdma_port_fec_corrected_bit_errors_total", "Bits corrected by FEC: errors before FEC. Normal on links of 50 Gb/s per lane and above.", StatsSource+"; "+sourceFEC+", corrected bits")
	FECCorrectedSymbols    = NetdevDesc("rdma_port_fec_corrected_symbols_total", "Symbols corrected by FEC (10 bits with RS-FEC). On Ethernet from the histogram of blocks; a bin of several numbers counts with its lowest.", sourceFEC+", histogram (since Linux 6.18)")
	FECCorrectedBlocks     = NetdevDesc("rdma_port_fec_corrected_blocks_total", "Blocks (codewords) corrected by FEC.", StatsSource+"; "+sourceFEC+", corrected blocks")
	FECUncorrectableBlocks = NetdevDesc("rdma_port_fec_uncorrectable_blocks_total", "Blocks (codewords) that FEC could not correct: packets are lost.", StatsSource+"; "+sourceFEC+", uncorrectable blocks")
	FECBlocks              = NetdevDesc("rdma_port_fec_blocks_total", "Blocks (codewords) received, by the number of symbols that FEC corrected in them: 0, 1, or a range such as 2-3. RS(544,514) corrects up to 15, RS(528,514) and RS(272,257) up to 7: blocks close to that indicate a link that is about to lose packets."+AbsentWhenZero, sourceFEC+", histogram (since Linux 6.18)", "symbols")

	FECLaneCorrectedBits       = NetdevDesc("rdma_port_fec_lane_corrected_bit_errors_total", "Bits corrected by FEC, by lane. Absent where the driver has a total only.", sourceFEC+", corrected bits", "lane")
	FECLaneCorrectedSymbols    = NetdevDesc("rdma_port_fec_lane_corrected_symbols_total", "Symbols corrected by FEC, by lane. Absent where the driver has a total only.", sourceFEC+", histogram (since Linux 6.18)", "lane")
	FECLaneCorrectedBlocks     = NetdevDesc("rdma_port_fec_lane_corrected_blocks_total", "Blocks (codewords) corrected by FEC, by lane. Absent where the driver has a total only, as with RS-FEC of mlx5, whose blocks span all lanes.", sourceFEC+", corrected blocks", "lane")
	FECLaneUncorrectableBlocks = NetdevDesc("rdma_port_fec_lane_uncorrectable_blocks_total", "Blocks (codewords) that FEC could not correct, by lane. Absent where the driver has a total only.", sourceFEC+", uncorrectable blocks", "lane")

	FECInfo = metric.Asks(source.NetdevStats, metric.Port("rdma_port_fec_info",
		"Forward error correction (FEC) in use, always 1. mode: none, FC (Fire code, BASE-R), RS(528,514), RS(544,514), RS(272,257), or RS where the rate of a lane is unknown. Absent where the driver does not report it.",
		sourceFEC+", active; the code of RS-FEC from LINKMODES_GET, speed and lanes", "netdev", "mode"))
)

const sourceFEC = "ethtool netlink FEC_GET"

// CorrectedSymbols returns the symbols corrected in the blocks of a histogram: of the port, and by lane where each bin
// with blocks has the same lanes.
func CorrectedSymbols(bins []wire.FECBin) (total uint64, lanes []uint64) {
	lanes = make([]uint64, len(bins[0].Lanes))
	for _, b := range bins {
		total += b.Low * b.Blocks
		if len(b.Lanes) != len(lanes) {
			lanes = nil
		}
		for i := range lanes {
			lanes[i] += b.Low * b.Lanes[i]
		}
	}
	return total, lanes
}

// FECMetric are the metrics of a counter of PortExtendedSpeedsCounters: of the port, and of a lane.
type FECMetric struct {
	Port, Lane *metric.Desc
	Sparse     bool // left out while 0
}

// EachFEC calls emit for each counter that counts, with its lane if it has one, and full for each that has stopped at
// its highest value. Lanes beyond the width of the link are left out.
func EachFEC(
	metrics map[string]FECMetric, f *snapshot.IBFEC, lanes *uint64, emit func(d *metric.Desc, v float64, lane ...string),
	full func(name string),
) {
	for _, c := range f.Counts {
		m := metrics[c.Name]
		d, lane := m.Port, []string(nil)
		if c.Lane >= 0 {
			d, lane = m.Lane, []string{strconv.Itoa(c.Lane)}
		}
		switch {
		case d == nil || c.Lane >= 0 && (lanes == nil || uint64(c.Lane) >= *lanes) || m.Sparse && c.Value == 0:
		case mad.FECCount(c).AtEnd():
			full(c.Name)
		default:
			emit(d, float64(c.Value), lane...)
		}
	}
}

const (
	SourceSpeeds   = "PortExtendedSpeedsCounters, IBA 16.1.4.12"
	SourceExtended = "PortInfoExtended, IBA 14.2.5.19"
)

// FECDescs are the metrics of FEC on netdevs.
var FECDescs = []*metric.Desc{
	FECInfo, FECCorrectedSymbols, FECBlocks,
	FECLaneCorrectedBits, FECLaneCorrectedSymbols, FECLaneCorrectedBlocks, FECLaneUncorrectableBlocks,
}
