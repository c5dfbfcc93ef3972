package agent

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/umad"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/mad/perf"
)

// names of FEC modes, as the label mode has them.
var names = map[uint16]string{
	0: "none", 1: "FC", 2: "RS(528,514)", 3: "RS(271,257)", 4: "RS(544,514)", 8: "RS(277,257)", 9: "RS(163,155)",
	10: "RS adaptive", 11: "RS on demand", 13: "RS(544,514) PLR", 14: "RS(271,257) PLR",
}

// fill gives each counter of a port another number, and returns what a reader has to find: by name, and of the lanes in
// use.
func fill(r *rand.Rand, p *Port) map[string]uint64 {
	want := map[string]uint64{}
	set := func(name string, f field, read bool) {
		v := r.Uint64N(1<<f.width - 1)
		p.Counters[name] = v
		if read {
			want[name] = v
		}
	}
	for name, f := range always {
		set(name, f, true)
	}
	for name, f := range lanes[IsRS(p.FEC)] {
		for lane := range 12 {
			set(name+"/"+strconv.Itoa(lane), f, lane < p.Lanes && (IsRS(p.FEC) || p.FEC == 1 && name != "error_detection"))
		}
	}
	for name, f := range totals[IsRS(p.FEC)] {
		set(name, f, true)
	}
	return want
}

func byName(counts []mad.FECCount) map[string]uint64 {
	out := map[string]uint64{}
	for _, c := range counts {
		name := c.Name
		if c.Lane >= 0 {
			name += "/" + strconv.Itoa(c.Lane)
		}
		out[name] = c.Value
	}
	return out
}

func sweep(t *testing.T, a *Agent, known *fabric.Fabric) *fabric.Fabric {
	t.Helper()
	c := mad.NewClient(a.Open(), mad.Options{Timeout: time.Second})
	defer c.Close()
	f, err := fabric.Sweep(t.Context(), c, known, fabric.Options{Adapters: true})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func endOf(p Place) fabric.End { return fabric.End{GUID: fabric.GUID(p.GUID), Port: p.Port} }

// TestLayouts: each FEC mode and width has its own layout, at both ends of a link.
func TestLayouts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, mode := range slices.Sorted(maps.Keys(names)) {
		for _, width := range []int{1, 2, 4, 8, 12} {
			t.Run(fmt.Sprintf("%s, %dX", names[mode], width), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := New(3)
					want := map[Place]map[string]uint64{}
					for at, p := range a.Ports {
						p.FEC, p.Lanes = mode, width
						want[at] = fill(r, p)
					}
					f := sweep(t, a, nil)
					for at := range a.Ports {
						p := f.Port(endOf(at))
						if p == nil || p.FEC == nil {
							t.Fatalf("%v: no FEC", at)
						}
						if got := byName(p.FEC.Counts); p.FEC.Mode.String() != names[mode] || !maps.Equal(got, want[at]) {
							t.Errorf("%v: %s\n%v, want\n%v", at, p.FEC.Mode, got, want[at])
						}
					}
				})
			})
		}
	}
}

// TestMissing: an agent without a capability, one that rejects an attribute, and one whose datagram does not arrive
// whole cost the FEC of its ports, and nothing else. What an agent does not have is not queried.
func TestMissing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Agent)
		asked  [2]int // PortInfoExtended, PortExtendedSpeedsCounters; of 4 ports
	}{
		"no counters of RS-FEC":         {func(a *Agent) { a.Performance &^= PerformanceRSFEC }, [2]int{0, 0}},
		"CapabilityMask2 is not valid":  {func(a *Agent) { a.Port &^= PortMask2 }, [2]int{0, 0}},
		"no PortInfoExtended":           {func(a *Agent) { a.Port2 = 0 }, [2]int{0, 0}},
		"FEC is not known":              {func(a *Agent) { a.Extended = 2 }, [2]int{4, 0}},
		"a mode that is reserved":       {func(a *Agent) { setMode(a, 5) }, [2]int{4, 0}},
		"no mode":                       {func(a *Agent) { setMode(a, 0xffff) }, [2]int{4, 0}},
		"PortInfoExtended rejected":     {func(a *Agent) { a.Status[PortInfoExtended] = 3 << 2 }, [2]int{4, 0}},
		"counters rejected":             {func(a *Agent) { a.Status[SpeedsCounters] = 3 << 2 }, [2]int{4, 4}},
		"counters redirected":           {func(a *Agent) { a.Status[SpeedsCounters] = 2 }, [2]int{4, 4}},
		"counters shorter":              {func(a *Agent) { a.Cut[SpeedsCounters] = 216 }, [2]int{4, 4}},
		"a byte is missing":             {func(a *Agent) { a.Cut[SpeedsCounters] = 255 }, [2]int{4, 4}},
		"PortInfoExtended shorter":      {func(a *Agent) { a.Cut[PortInfoExtended] = 64 }, [2]int{4, 0}},
		"no length of a tick":           {func(a *Agent) { a.Extended, a.Status[SamplesControl] = 0, 3<<2 }, [2]int{4, 0}},
		"longer than the specification": {func(a *Agent) { a.Cut[SpeedsCounters] = 2048 }, [2]int{4, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := New(2)
				for _, p := range a.Ports {
					p.Counters["symbol_errors"], p.Counters["corrected_symbols"] = 7, 1000
				}
				c.change(a)
				f := sweep(t, a, nil)
				whole := name == "longer than the specification"
				for at := range a.Ports {
					p := f.Port(endOf(at))
					if v, ok := p.Counters.Get(perf.SymbolErrors); v != 7 || !ok || (p.FEC != nil) != whole {
						t.Errorf("%v: %d symbol errors, FEC %+v", at, v, p.FEC)
					}
				}
				if got := [2]int{a.Asked[PortInfoExtended], a.Asked[SpeedsCounters]}; got != c.asked ||
					f.Unanswered[fabric.AskCounters] != 0 {
					t.Errorf("asked %v, want %v; %v without an answer", got, c.asked, f.Unanswered)
				}
			})
		})
	}
}

func setMode(a *Agent, mode uint16) {
	for _, p := range a.Ports {
		p.FEC = mode
	}
}

// text returns the metrics of ports after a sweep.
func text(m *fabric.Monitor) string { return string(exposition.AppendText(nil, m.Families())) }

// TestCounterEnds: counters of 32 bits stand at their end, wrap (firmware that does not saturate) and are cleared; a
// port that trains with another FEC has another layout from the next sweep on.
func TestCounterEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(2)
		m := &fabric.Monitor{
			Open: func() (mad.Transport, error) { return a.Open(), nil }, Client: mad.Options{Timeout: time.Second},
			Interval: time.Minute, Full: time.Hour,
			Forget: time.Hour, Memory: fabric.NewMemory(fabric.Data{}), Logger: slog.New(slog.DiscardHandler),
		}
		next, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			m.Run(t.Context(), func(round func()) {
				for range next {
					round()
				}
			})
		}()
		const port = `{node_guid="0000:0000:0000:0001",port="2"}`
		p := a.Ports[Place{SwitchGUID, 2}]
		lane := func(name string, n int) string {
			return fmt.Sprintf(`%s{lane="%d",node_guid="0000:0000:0000:0001",port="2"}`, name, n)
		}
		full := func(name string) string {
			return fmt.Sprintf(`rdma_fabric_port_counter_saturated{counter="%s",node_guid="0000:0000:0000:0001",port="2"} 1`,
				name)
		}
		const symbols, lanesOf, blocks = "rdma_fabric_port_fec_corrected_symbols_total",
			"rdma_fabric_port_fec_lane_corrected_symbols_total", "rdma_fabric_port_fec_uncorrectable_blocks_total"
		for _, step := range []struct {
			name   string
			change func()
			with   []string
			not    []string
		}{
			{"counts", func() { p.Counters["corrected_symbols"], p.Counters["corrected_symbols/3"] = 1<<32-2, 9 }, []string{symbols + port + " 4.294967294e+09", lane(lanesOf, 3) + " 9"}, []string{"saturated"}},
			{"at its end", func() { p.Counters["corrected_symbols"] = 1<<32 - 1 }, []string{full("fec_corrected_symbols"), lane(lanesOf, 3) + " 9", blocks + port + " 0"}, []string{symbols + port}},
			{"a lane too", func() { p.Counters["corrected_symbols/3"] = 1<<32 - 1 }, []string{full("fec_lane_corrected_symbols"), lane(lanesOf, 2) + " 0"}, []string{lane(lanesOf, 3)}},
			{"cleared", func() { p.Counters["corrected_symbols"], p.Counters["corrected_symbols/3"] = 0, 0 }, []string{symbols + port + " 0", lane(lanesOf, 3) + " 0"}, []string{"saturated"}},
			{"before it wraps", func() { p.Counters["uncorrectable_blocks"] = 4e9 }, []string{blocks + port + " 4e+09"}, nil},
			{"wraps", func() { p.Counters["uncorrectable_blocks"] = 5 }, []string{blocks + port + " 5"}, []string{"saturated"}},
			{"16 bits", func() { p.Counters["sync_header_errors"] = 0xffff }, []string{full("fec_sync_header_errors")}, nil},
			{"another FEC", func() {
				p.Counters = map[string]uint64{"link_downed": 1, "corrected_blocks/1": 3}
				p.FEC = 1
			}, []string{
				lane("rdma_fabric_port_fec_lane_corrected_blocks_total", 1) + " 3",
				`rdma_fabric_port_fec_info{mode="FC",node_guid="0000:0000:0000:0001",port="2"} 1`,
			}, []string{symbols + port, lane(lanesOf, 1)}},
			{"PortInfoExtended is gone", func() { p.Counters["link_downed"], a.Status[PortInfoExtended] = 2, 3<<2 }, []string{"rdma_fabric_port_symbol_errors_total" + port + " 0"}, []string{`_fec_info{mode="FC"`}},
		} {
			a.Lock()
			step.change()
			a.Unlock()
			next <- struct{}{}
			synctest.Wait()
			got := text(m)
			for _, w := range step.with {
				if !strings.Contains(got, w+"\n") {
					t.Errorf("%s: no %s", step.name, w)
				}
			}
			for _, w := range step.not {
				if samples(got, w) {
					t.Errorf("%s: %s", step.name, w)
				}
			}
		}
		close(next)
		<-ended
	})
}

// samples reports whether a sample has a text.
func samples(metrics, part string) bool {
	for row := range strings.Lines(metrics) {
		if !strings.HasPrefix(row, "#") && strings.Contains(row, part) {
			return true
		}
	}
	return false
}

// TestHost: the exporter of a host reads the FEC of its port and of the switch port from the same agent.
func TestHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		a := New(2)
		subnet := umad.NewSubnet(func(string, int, ...uint8) (mad.Transport, error) { return a.Open(), nil })
		for _, mode := range []uint16{0, 1, 2, 4, 13} {
			for end, at := range map[string]Place{"own": Host(1), "far": {SwitchGUID, 1}} {
				p := a.Ports[at]
				p.FEC = mode
				clear(p.Counters)
				want := fill(r, p)
				agent := &host.Agent{LID: uint16(at.GUID), Port: 1}
				if end == "far" {
					agent.LID, agent.Far = SwitchGUID+1, true
				}
				got, err := subnet.PortFEC(context.Background(), "mlx5_0", 1, agent)
				if err != nil || got.Mode != names[mode] {
					t.Fatalf("%s, %s: %s, %v", names[mode], end, got.Mode, err)
				}
				counts := map[string]uint64{}
				for _, c := range got.Counts {
					if c.Lane < 0 {
						counts[c.Name] = c.Value
					} else if c.Lane < p.Lanes {
						counts[c.Name+"/"+strconv.Itoa(c.Lane)] = c.Value
					}
				}
				if !maps.Equal(counts, want) {
					t.Errorf("%s, %s: %v, want %v", names[mode], end, counts, want)
				}
			}
		}
		a.Cut[SpeedsCounters] = 200
		if got, err := subnet.PortFEC(context.Background(), "mlx5_0", 1, &host.Agent{
			LID: uint16(Host(1).GUID), Port: 1,
		}); err == nil || got.Counts != nil {
			t.Errorf("cut: %+v, %v", got, err)
		}
	})
}
