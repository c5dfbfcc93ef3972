package pma

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
)

func TestEmitIBFEC(t *testing.T) {
	count := func(name string, lane int, v uint64) snapshot.FECCount {
		return snapshot.FECCount{Name: name, Lane: lane, Value: v}
	}
	p := snapshot.Port{
		Number: 1,
		Lanes:  collectortest.N64(2),
		FEC: &snapshot.IBFEC{Mode: "RS(544,514)", Counts: []snapshot.FECCount{
			count("sync_header_errors", -1, 0), count("unknown_blocks", -1, 3), count("corrected_symbols", 0, 44),
			count("corrected_symbols", 1, 1<<32-1),
			count("corrected_symbols", 2, 9), count("corrected_blocks", -1, 40), count("uncorrectable_blocks", -1, 0),
			count("corrected_symbols", -1, 1<<32-1),
			count("of a later version", -1, 1),
		}},
	}
	const at = `{device="mlx5_0",`
	want := []string{
		`rdma_port_counter_saturated{counter="fec_corrected_symbols",device="mlx5_0",port="1"} 1`,
		`rdma_port_fec_info` + at + `mode="RS(544,514)",port="1"} 1`,
		`rdma_port_fec_corrected_blocks_total` + at + `port="1"} 40`,
		`rdma_port_fec_uncorrectable_blocks_total` + at + `port="1"} 0`,
		`rdma_port_fec_lane_corrected_symbols_total` + at + `lane="0",port="1"} 44`,
		`rdma_port_fec_unknown_blocks_total` + at + `port="1"} 3`,
	}
	got := collectortest.Samples(append([]*metric.Desc{counterSaturated}, FECDescs...),
		func(s metric.Sink) { EmitFEC(s, &snapshot.Device{Name: "mlx5_0"}, &p, "1") })
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

// TestOwnFEC: the FEC is read each minute, served for three after a failure, and not read without link.
func TestOwnFEC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgentPort(t, 5)
		a.answers.Answer(tells(true, wire.Stat{Name: "symbol_error", Value: 5}))
		symbols := uint64(0)
		works := func(string, *host.Agent) (host.IBFEC, error) {
			symbols++
			return host.IBFEC{
				Mode: "RS(544,514)", Counts: []snapshot.FECCount{{Name: "corrected_symbols", Lane: -1, Value: symbols}},
			}, nil
		}
		broken := func(string, *host.Agent) (host.IBFEC, error) {
			return host.IBFEC{}, &access.Error{Op: "query", Path: "LID 17", Err: syscall.EIO}
		}
		a.answers.OfFEC = works
		for i, step := range []struct {
			wait   time.Duration
			fec    func(string, *host.Agent) (host.IBFEC, error)
			asked  int
			served string
			issue  bool
		}{
			{0, works, 1, "1", false},
			{15 * time.Second, works, 1, "1", false},
			{45 * time.Second, works, 2, "2", false},
			{time.Minute, broken, 3, "2", true},
			{time.Minute, broken, 3, "2", true}, // not queried for five minutes
			{2 * time.Minute, broken, 3, "", true},
			{2 * time.Minute, works, 4, "3", false},
		} {
			time.Sleep(step.wait)
			a.answers.OfFEC = step.fec
			out := a.read(t)
			served := ""
			if a.last.FEC != nil {
				served = fmt.Sprint(a.last.FEC.Counts[0].Value)
			}
			if a.answers.AskedFEC != step.asked || served != step.served || strings.Contains(out, "subnet io") != step.issue {
				t.Errorf("step %d: asked %d times, served %q, %s", i, a.answers.AskedFEC, served, out)
			}
		}
		a.p.State = collectortest.N64(1)
		time.Sleep(time.Minute)
		if a.read(t); a.last.FEC != nil || a.answers.AskedFEC != 4 {
			t.Errorf("without link: %+v, asked %d times", a.last.FEC, a.answers.AskedFEC)
		}
	})
}

// TestOwnSettings: the settings are read each minute beside the FEC, and their failure does not cost the counters.
func TestOwnSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgentPort(t, 5)
		a.answers.Answer(tells(true, wire.Stat{Name: "symbol_error", Value: 5}))
		a.answers.Settings = func() (host.IBPortSettings, error) {
			return host.IBPortSettings{MTU: collectortest.N64(4096)}, nil
		}
		mtu := func() any {
			if a.last.Settings == nil {
				return nil
			}
			return collectortest.Value(a.last.Settings.MTU)
		}
		want := uint64(4096)
		a.read(t)
		a.read(t)
		if got := mtu(); got != want || a.answers.AskedSettings != 1 {
			t.Errorf("%v, asked %d times", got, a.answers.AskedSettings)
		}
		time.Sleep(time.Minute)
		a.answers.Settings = func() (host.IBPortSettings, error) {
			return host.IBPortSettings{}, &access.Error{Op: "query", Path: "port 1", Err: syscall.EIO}
		}
		if out := a.read(t); !strings.Contains(out, "symbol_error") && a.last.Counters == nil ||
			!strings.Contains(out, "subnet io") {
			t.Errorf("%s", out)
		}
		if got := mtu(); got != want || a.answers.AskedSettings != 2 {
			t.Errorf("%v, asked %d times", got, a.answers.AskedSettings)
		}
		a.Agent.Mode = shared.CountersIfPermitted
		if out := a.read(t); strings.Contains(out, "subnet io") { // the files have no settings: their absence is no failure
			t.Error(out)
		}
		a.p.State = collectortest.N64(1)
		if a.read(t); mtu() != nil {
			t.Errorf("without link: %v", mtu())
		}
	})
}
