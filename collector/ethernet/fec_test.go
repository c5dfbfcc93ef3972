package ethernet

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot/wire"
)

func TestFECCode(t *testing.T) {
	modes := func(speed, lanes uint64) *host.LinkModes {
		m := &host.LinkModes{Speed: &speed}
		if lanes > 0 {
			m.Lanes = &lanes
		}
		return m
	}
	for _, c := range []struct {
		name   string
		active *uint64
		modes  *host.LinkModes
		want   string
	}{
		{"not reported", nil, modes(400_000, 4), ""},
		{"off", collectortest.N64(49), modes(10_000, 1), "none"},
		{"Fire code", collectortest.N64(51), modes(25_000, 1), "FC"},
		{"low latency", collectortest.N64(74), modes(100_000, 2), "RS(272,257)"},
		{"no code of FEC", collectortest.N64(12), nil, ""},
		{"25GBASE-R", collectortest.N64(50), modes(25_000, 1), "RS(528,514)"},
		{"25G, lanes unknown", collectortest.N64(50), modes(25_000, 0), "RS(528,514)"},
		{"50GBASE-R of one lane", collectortest.N64(50), modes(50_000, 1), "RS(544,514)"},
		{"50G of two lanes", collectortest.N64(50), modes(50_000, 2), "RS(528,514)"},
		{"100GBASE-R4", collectortest.N64(50), modes(100_000, 4), "RS(528,514)"},
		{"100GBASE-R2", collectortest.N64(50), modes(100_000, 2), "RS(544,514)"},
		{"100G, lanes unknown", collectortest.N64(50), modes(100_000, 0), "RS"},
		{"200GBASE-R8", collectortest.N64(50), modes(200_000, 8), "RS(544,514)"},
		{"400G, lanes unknown", collectortest.N64(50), modes(400_000, 0), "RS(544,514)"},
		{"no link modes", collectortest.N64(50), nil, "RS"},
		{"no speed", collectortest.N64(50), &host.LinkModes{}, "RS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fecCode(c.active, c.modes); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestEmitFEC(t *testing.T) {
	nd := &wire.NetdevCounters{FECCode: "RS(544,514)", FEC: &wire.FEC{
		LaneCorrected: []uint64{4, 6}, LaneUncorrectable: []uint64{0, 1}, LaneCorrectedBits: []uint64{8},
		Histogram: []wire.FECBin{
			{Blocks: 1000, Lanes: []uint64{400, 600}},
			{Low: 1, High: 1, Blocks: 30, Lanes: []uint64{10, 20}},
			{Low: 2, High: 3, Blocks: 5, Lanes: []uint64{1, 4}},
			{Low: 4, High: 15, Lanes: []uint64{0, 0}},
		},
	}}
	lines := func() []string {
		return collectortest.Samples(
			counters.FECDescs,
			func(s metric.Sink) { emitFEC(s, nd, []string{"mlx5_0", "1", "eth0"}) },
		)
	}
	const at = `{device="mlx5_0",`
	want := []string{
		`rdma_port_fec_info` + at + `mode="RS(544,514)",netdev="eth0",port="1"} 1`,
		`rdma_port_fec_corrected_symbols_total` + at + `netdev="eth0",port="1"} 40`,
		`rdma_port_fec_blocks_total` + at + `netdev="eth0",port="1",symbols="0"} 1000`,
		`rdma_port_fec_blocks_total` + at + `netdev="eth0",port="1",symbols="1"} 30`,
		`rdma_port_fec_blocks_total` + at + `netdev="eth0",port="1",symbols="2-3"} 5`,
		`rdma_port_fec_lane_corrected_bit_errors_total` + at + `lane="0",netdev="eth0",port="1"} 8`,
		`rdma_port_fec_lane_corrected_symbols_total` + at + `lane="0",netdev="eth0",port="1"} 12`,
		`rdma_port_fec_lane_corrected_symbols_total` + at + `lane="1",netdev="eth0",port="1"} 28`,
		`rdma_port_fec_lane_corrected_blocks_total` + at + `lane="0",netdev="eth0",port="1"} 4`,
		`rdma_port_fec_lane_corrected_blocks_total` + at + `lane="1",netdev="eth0",port="1"} 6`,
		`rdma_port_fec_lane_uncorrectable_blocks_total` + at + `lane="0",netdev="eth0",port="1"} 0`,
		`rdma_port_fec_lane_uncorrectable_blocks_total` + at + `lane="1",netdev="eth0",port="1"} 1`,
	}
	if got := lines(); !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	nd.FEC.Histogram[2].Lanes = nil // lanes of a part of the blocks
	got := strings.Join(lines(), "\n")
	if strings.Contains(got, "lane_corrected_symbols") ||
		!strings.Contains(got, `symbols_total{device="mlx5_0",netdev="eth0",port="1"} 40`) {
		t.Errorf("%s", got)
	}
}

// TestFECCodeRequests: the link modes, which take rtnl, are requested when the FEC in use changes and every ten
// minutes.
func TestFECCodeRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newEthRig(t, collectortest.EthTree("mlx5_0", "eth0"))
		speed := uint64(400_000)
		r.driver.modesHas = host.LinkModes{Speed: &speed}
		for _, step := range []struct {
			active uint64
			wait   time.Duration
			mode   string
			modes  int
		}{
			{50, 0, "RS(544,514)", 1},
			{50, shared.SlowInterval, "RS(544,514)", 1},
			{49, shared.SlowInterval, "none", 1},
			{50, shared.SlowInterval, "RS(544,514)", 2},
			{50, codeInterval, "RS(544,514)", 3},
		} {
			time.Sleep(step.wait)
			r.driver.fecHas = host.FEC{Active: collectortest.N64(step.active)}
			got, want := r.lines(), `rdma_port_fec_info{device="mlx5_0",mode="`+step.mode+`",netdev="eth0",port="1"} 1`
			if !slices.Contains(got, want) || r.driver.modes != step.modes {
				t.Errorf("%+v: %d requests, %s", step, r.driver.modes, got)
			}
		}
	})
}
