//go:build !race

package machines

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"rdma_exporter/collector"
	"rdma_exporter/internal/rounds"
)

// inNoFixture are metrics that no recorded machine has, with the reason.
var inNoFixture = map[string]string{
	"rdma_scrape_collector_late":                        "a recording waits for no CPU; TestCPUWaitIsNotAStuckDevice",
	"rdma_scrape_collector_stuck":                       "a recording does not hang; TestStuckReadCostsItsDevice",
	"rdma_scrape_over_budget":                           "a recording costs nothing; TestDevicesOverTheirBudget",
	"rdma_transceiver_receive_power_baseline_dbm":       "forms over 5h; TestBaselinesOutliveTheProgram",
	"rdma_transceiver_bias_baseline_amperes":            "forms over 5h; TestBaselinesOutliveTheProgram",
	"rdma_exporter_limit":                               "of serve and commands; TestLimitsOfAHost",
	"rdma_exporter_limit_exceeded_by":                   "of serve and commands; TestLimitsOfAHost",
	"rdma_exporter_replay_info":                         "of serve alone; TestReplayFires",
	"rdma_state_last_write_successful":                  "a replay keeps no state",
	"rdma_incident_last_capture_successful":             "a replay keeps no state; TestFlightRecorder",
	"rdma_host_maintenance":                             "a replay keeps no state; TestMaintenance",
	"rdma_host_maintenance_end_timestamp_seconds":       "a replay keeps no state; TestMaintenance",
	"rdma_config_last_reload_successful":                "a replay has its configuration from the capture; TestReload",
	"rdma_config_last_reload_success_timestamp_seconds": "a replay has its configuration from the capture; TestReload",
	"rdma_port_fec_lane_corrected_bit_errors_total":     "no driver of the recordings; TestEmitFEC",
	"rdma_port_fec_lane_corrected_symbols_total":        "no driver of the recordings; TestEmitFEC, TestEmitIBFEC",
	"rdma_port_fec_sync_header_errors_total":            "the driver of mlx5 does not pass them on; TestEmitIBFEC",
	"rdma_port_fec_unknown_blocks_total":                "the driver of mlx5 does not pass them on; TestEmitIBFEC",
	"rdma_port_fec_lane_corrected_blocks_total":         "Fire code on mlx5, 25 Gb/s; TestEmitFEC",
	"rdma_port_fec_lane_uncorrectable_blocks_total":     "Fire code on mlx5, 25 Gb/s; TestEmitFEC",
	"rdma_objects":                                      "of serve alone, after an evaluation; TestObjectMetrics",
	"rdma_object_info":                                  "of serve alone, after an evaluation; TestObjectMetrics",
	"rdma_device_registrations_total":                   "events are heard live only; test/kernel has it",
	"rdma_port_pfc_sampled_seconds_total":               "samples are taken live only; TestShortStorms",
	"rdma_port_pfc_stalled_seconds_total":               "samples are taken live only; TestShortStorms",
	"rdma_port_pfc_paused_sample_ratio":                 "samples are taken live only; TestShortStorms",
	"rdma_port_pfc_sample_interval_seconds":             "samples are taken live only; TestShortStorms",
	"rdma_port_pfc_samples_refused_total":               "samples are taken live only; collector's tests of the sampler",
	"rdma_gpu_released_seconds":                         "a replay holds no GPU; TestGPURelease",
	"rdma_gpu_release_start_timestamp_seconds":          "a replay holds no GPU; TestGPURelease",
	"rdma_exporter_event_overruns_total":                "events are heard live only; test/netns has it",
}

// dropsSamples are the machines whose hardware names two counters alike.
var dropsSamples = map[string]bool{"odd-files": true}

// budgets are the design's limits of series by machine.
var budgets = map[string]int{"dgx-h100-ib": 1660, "hgx-h200-roce": 2500}

// TestGoldenOfMachines holds what each recorded machine serves and what fires on it: of a whole one all, of a variant
// what differs from its base.
func TestGoldenOfMachines(t *testing.T) {
	Each(t, func(t *testing.T, name string) {
		r := played(t, name)
		var b strings.Builder
		for _, f := range r.findings {
			fmt.Fprintf(&b, "# fires: %s\n", f)
		}
		for _, f := range r.earlier {
			fmt.Fprintf(&b, "# fired: %s\n", f)
		}
		variant := archive(t, name)
		if !variant.IsVariant() {
			b.WriteString(strings.Join(r.series, "\n") + "\n")
			Golden(t, "metrics/"+name+".prom", []byte(b.String()))
			return
		}
		base := baseSeries(t, name, variant)
		fmt.Fprintf(&b, "# differs from %s\n", variant.Meta.Base)
		for _, l := range OnlyIn(base, r.series) {
			b.WriteString("-" + l + "\n")
		}
		for _, l := range OnlyIn(r.series, base) {
			b.WriteString("+" + l + "\n")
		}
		Golden(t, "metrics/"+name+".diff", []byte(b.String()))
	})
}

// TestDescsOfMachines holds that nothing undeclared is served of a recorded machine, nothing is dropped, names and
// units are as Prometheus wants them, and the large ones keep their budget of series.
func TestDescsOfMachines(t *testing.T) {
	Each(t, func(t *testing.T, name string) {
		r := played(t, name)
		if drops := dropped.MatchString(r.text); drops != dropsSamples[name] {
			t.Errorf("drops samples: %v, want %v", drops, dropsSamples[name])
		}
		problems, err := promlint.New(strings.NewReader(r.text)).Lint()
		must(t, err)
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
		total := 0
		for _, family := range slices.Sorted(maps.Keys(r.count)) {
			total += r.count[family]
			if budgets[name] > 0 {
				t.Logf("%4d %s", r.count[family], family)
			}
		}
		if limit := budgets[name]; limit > 0 && total > limit {
			t.Errorf("%d series are more than %d", total, limit)
		}
	})
}

// TestEveryDescOfMachines: each metric of the collectors is in a golden, each of the exporter's own is served of some
// machine.
func TestEveryDescOfMachines(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"odd-files", "hgx-h200-roce", "no-rdma"} {
		for family := range played(t, name).count {
			seen[family] = true
		}
	}
	for _, g := range goldens(t) {
		for _, l := range g.lines {
			seen[sampleName.FindString(l)] = true
		}
	}
	descs := rounds.Descs
	for _, c := range collector.All(collector.Options{}) {
		descs = append(descs, c.Descs...)
	}
	for _, d := range descs {
		_, excused := inNoFixture[d.Name]
		excused = excused || strings.HasPrefix(d.Name, "rdma_alerting_") // of serve alone; TestServeAlerting
		if have := seen[d.Name] || seen[d.Name+"_bucket"]; have == excused {
			t.Errorf("%s: in a golden: %v, listed as in none: %v", d.Name, have, excused)
		}
	}
}

// goldenFile is the golden of a machine.
type goldenFile struct {
	machine  string
	findings []string // "critical RDMAPortDown mlx5_5/1"
	earlier  []string // as findings
	lines    []string // of series; those of a variant that its base has and it has not are left out
}

// goldens returns the committed ones of all machines.
func goldens(t *testing.T) (all []goldenFile) {
	t.Helper()
	files, err := filepath.Glob("testdata/metrics/*")
	must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		g := goldenFile{machine: strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))}
		for line := range strings.Lines(string(text)) {
			if finding, ok := strings.CutPrefix(line, "# fires: "); ok {
				g.findings = append(g.findings, strings.TrimSpace(finding))
			} else if finding, ok := strings.CutPrefix(line, "# fired: "); ok {
				g.earlier = append(g.earlier, strings.TrimSpace(finding))
			} else if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "-") {
				g.lines = append(g.lines, strings.TrimPrefix(line, "+"))
			}
		}
		all = append(all, g)
	}
	return all
}

// TestGoldensHaveMachines: what is no machine any more has no golden.
func TestGoldensHaveMachines(t *testing.T) {
	names := Names(t)
	for _, g := range goldens(t) {
		if i := slices.Index(names, g.machine); i < 0 {
			t.Errorf("testdata/metrics has a golden of %s twice, or no such machine is in %s", g.machine, fixtureDir)
		} else {
			names = slices.Delete(names, i, i+1)
		}
	}
	if len(names) > 0 {
		t.Errorf("no golden of %v: go test ./test/machines -run 'TestGoldenOfMachines/NAME$' -update writes it", names)
	}
}

var (
	sampleName = regexp.MustCompile(`^[a-z0-9_]+`)
	dropped    = regexp.MustCompile(`reason="(undeclared|duplicate|bad_value)"`)
)
