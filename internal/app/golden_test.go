package app

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/blind"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/rules"
)

// play collects all rounds of a capture and returns the last picture.
func play(t *testing.T, file string) *rounds.Picture {
	t.Helper()
	return playIn(t, file, gpuFabric)
}

// playIn is play with --collector.gpu.mode.
func playIn(t *testing.T, file, gpuMode string) *rounds.Picture {
	t.Helper()
	m, sched := openIn(t, file, gpuMode)
	var p *rounds.Picture
	for _, at := range m.player.Times() {
		if err := m.seek(at); err != nil {
			t.Fatal(err)
		}
		var err error
		if p, err = sched.Collect(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// open opens a capture with all collectors, as the commands do.
func open(t testing.TB, file string) (*machine, *rounds.Scheduler) {
	t.Helper()
	return openIn(t, file, gpuFabric)
}

func openIn(t testing.TB, file, gpuMode string) (*machine, *rounds.Scheduler) {
	t.Helper()
	c := config{replay: file, timeout: 10 * time.Second, gpuMode: gpuMode}
	m, err := c.open(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.close(); err != nil {
			t.Error(err)
		}
	})
	known, err := c.remembered(m)
	if err != nil {
		t.Fatal(err)
	}
	unseen, err := unseenBy()
	must(t, err)
	return m, rounds.New(context.WithoutCancel(t.Context()), rounds.Options{
		Blind: func() *blind.Detector { return unseen }, Host: m.Host, Collectors: collector.All(c.options(m, expect.NewMemory(known))), Timeout: c.timeout, Now: m.Now, Logger: slog.New(slog.DiscardHandler),
	})
}

// unseenBy is what the rules need, read once: that takes longer than many a recording.
var unseenBy = sync.OnceValues(func() (*blind.Detector, error) {
	fsys, files, err := rules.Node()
	if err != nil {
		return nil, err
	}
	return detector(fsys, files)
})

// metricsOf is what a capture serves in the end.
func metricsOf(t *testing.T, file string) string {
	t.Helper()
	return varying.ReplaceAllString(string(exposition.AppendText(nil, play(t, file).Families)), "")
}

// varying are samples of the run, not of the machine.
var varying = regexp.MustCompile(`(?m)^(rdma_scrape_collector_duration_seconds|rdma_scrape_source_seconds_total|rdma_scrape_device_seconds_total|rdma_exporter_build_info).*\n`)

// inFullMode is the machine of which all figures of GPUs are served.
const inFullMode = "idle-gpu-gen1-ok"

// inNoFixture are metrics that no recorded machine has, with the reason.
var inNoFixture = map[string]string{
	"rdma_scrape_collector_stuck":                       "a recording does not hang; TestStuckReadCostsItsDevice",
	"rdma_scrape_over_budget":                           "a recording costs nothing; TestDevicesOverTheirBudget",
	"rdma_state_last_write_successful":                  "a replay keeps no state",
	"rdma_config_last_reload_successful":                "a replay has its configuration from the capture; TestReload",
	"rdma_config_last_reload_success_timestamp_seconds": "a replay has its configuration from the capture; TestReload",
	"rdma_port_retransmitted_bytes_total":               "EFA on Linux 7.3, ionic firmware",
	"rdma_device_registrations_total":                   "events are heard live only; test/kernel has it",
	"rdma_port_pfc_sampled_seconds_total":               "samples are taken live only; TestShortStorms",
	"rdma_port_pfc_stalled_seconds_total":               "samples are taken live only; TestShortStorms",
	"rdma_port_pfc_paused_sample_ratio":                 "samples are taken live only; TestShortStorms",
	"rdma_port_pfc_sample_interval_seconds":             "samples are taken live only; TestShortStorms",
	"rdma_port_pfc_samples_refused_total":               "samples are taken live only; collector's tests of the sampler",
	"rdma_gpu_xid_events_total":                         "events are heard live only; collector's tests",
	"rdma_gpu_last_xid":                                 "events are heard live only; collector's tests",
	"rdma_gpu_released_seconds":                         "a replay holds no GPU; TestRelease",
	"rdma_exporter_event_overruns_total":                "events are heard live only; test/netns has it",
}

// dropsSamples are the machines whose hardware names two counters alike.
var dropsSamples = map[string]bool{"odd-files": true}

// budgets are the design's limits of series by machine.
var budgets = map[string]int{"dgx-h100-ib": 1500, "hgx-h200-roce": 2500}

// TestGoldenMetricsOfAllMachines holds what every recorded machine serves: each metric declared is served by one of them, nothing is
// dropped, and the large ones keep their budget of series.
func TestGoldenMetricsOfAllMachines(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	t.Run("machines", func(t *testing.T) {
		for _, name := range machines(t) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				mode := gpuFabric
				if name == inFullMode {
					mode = gpuFull
				}
				families := playIn(t, fixture(name), mode).Families
				text := varying.ReplaceAll(exposition.AppendText(nil, families), nil)
				golden(t, "metrics/"+name+".prom", text)
				if drops := dropped.Match(text); drops != dropsSamples[name] {
					t.Errorf("drops samples: %v, want %v", drops, dropsSamples[name])
				}
				total := 0
				mu.Lock()
				defer mu.Unlock()
				for _, f := range families {
					seen[f.Head.Desc.Name] = true
					series := 0
					for _, p := range f.Points {
						series += p.Samples()
					}
					total += series
					if budgets[name] > 0 {
						t.Logf("%4d %s", series, f.Head.Desc.Name)
					}
				}
				if limit := budgets[name]; limit > 0 && total > limit {
					t.Errorf("%d series are more than %d", total, limit)
				}
			})
		}
	})
	descs := rounds.Descs
	for _, c := range collector.All(collector.Options{}) {
		descs = append(descs, c.Descs...)
	}
	for _, d := range descs {
		_, excused := inNoFixture[d.Name]
		excused = excused || strings.HasPrefix(d.Name, "rdma_alerting_") // of serve alone; TestServeAlerting
		if seen[d.Name] == excused {
			t.Errorf("%s: in a fixture: %v, listed as in none: %v", d.Name, seen[d.Name], excused)
		}
	}
}

var dropped = regexp.MustCompile(`reason="(undeclared|duplicate|bad_value)"`)
