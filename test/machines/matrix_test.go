//go:build !race

package machines

import (
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/collector"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/verdict"
)

// healthyVariants are variants that are no fault although their names do not end in -ok.
var healthyVariants = []string{
	"bnxt-thor2", "gdr-ok-live",
	// What nobody acts on at once: counters, which the dashboards show.
	"congested", "ib-backpressure", "kernel-stuck", "odd-files", "saturated",
}

// TestFindingsOfMachines: on a machine that is -ok nothing fires above information at any time, on any other variant
// something fires. What, the golden holds.
func TestFindingsOfMachines(t *testing.T) {
	Each(t, func(t *testing.T, name string) {
		r := played(t, name)
		fired := len(r.findings)+len(r.earlier) > 0
		switch healthy := strings.HasSuffix(name, "-ok"); {
		case healthy && fired:
			t.Errorf("a healthy machine: %v fires, %v did", r.findings, r.earlier)
		case !healthy && !fired && IsVariant(t, name) && !slices.Contains(healthyVariants, name):
			t.Error("nothing fires: name it -ok if it is healthy")
		}
	})
}

// TestTextsOfMachines: what is said of each finding of each machine is complete, and in the form that programs rely on.
func TestTextsOfMachines(t *testing.T) {
	Each(t, func(t *testing.T, name string) {
		for _, f := range played(t, name).report.Findings {
			CheckTexts(t, name, f)
		}
	})
}

// TestEveryAlertFires: each alert of the node's rules fires on a recorded machine, by the goldens.
func TestEveryAlertFires(t *testing.T) {
	fires := map[string]bool{"RDMAWatchdog": true} // on all, and in no golden
	for _, g := range goldens(t) {
		for _, f := range slices.Concat(g.findings, g.earlier) {
			fires[strings.Fields(f)[1]] = true
		}
	}
	for _, a := range allRules(t) {
		if fires[a] == (firesInNoFixture[a] != "") {
			t.Errorf("%s fires on a machine: %v, listed as firing on none: %v", a, fires[a], firesInNoFixture[a] != "")
		}
	}
}

// firesInNoFixture are alerts on the exporter's own trouble, which a recording cannot have, and on what takes longer
// than one lasts; with the test that shows them.
var firesInNoFixture = map[string]string{
	"RDMAExporterDegraded/collector":     "rules/tests/exporter.test.yml",
	"RDMAExporterDegraded/cpu":           "rules/tests/exporter.test.yml: a recording waits for no CPU",
	"RDMAExporterDegraded/gpus_paused":   "rules/tests/exporter_state.test.yml: nobody asks a recording for its GPUs",
	"RDMAExporterDegraded/gpus_released": "rules/tests/exporter_state.test.yml: nobody asks a recording for its GPUs",
	"RDMAExporterDegraded/limit":         "rules/tests/exporter_state.test.yml",
	"RDMAExporterDegraded/notifications": "rules/tests/exporter_state.test.yml",
	"RDMAExporterDegraded/port":          "rules/tests/exporter.test.yml",
	"RDMAExporterDegraded/reload":        "rules/tests/exporter_state.test.yml",
	"RDMAExporterDegraded/state":         "rules/tests/exporter_state.test.yml: a recording writes no state",
	"RDMAExporterDegraded/store":         "rules/tests/exporter_state.test.yml",
	"RDMALinkFlapping/day":               "rules/tests/link_changes.test.yml: it needs a day",
	"RDMALinkWearing/optics":             "rules/tests/optics_drift.test.yml: it needs a day",
	"RDMAPFCStormSource/short_storms":    "TestShortStorms: samples are taken live only",
	"RDMADeviceFailed/unresponsive":      "TestReadStuckAlert",
	"RDMAReplay":                         "TestReplayFires: of serve alone",
	"RDMAMaintenance/host":               "TestMaintenance: an operator announces it",
	"RDMAPortDown/administrative":        "rules/tests/port_down.test.yml",
	"RDMADeviceFailed/recovered":         "rules/tests/device_firmware_error.test.yml",
	"RDMALinkErrors/elsewhere":           "rules/tests/link_errors.test.yml",
	"RDMARetriesExceeded/link_trouble":   "rules/tests/roce_retries.test.yml",
	"RDMARetriesExceeded/once":           "rules/tests/roce_retries.test.yml",
	"RDMARetriesExceeded/requests":       "rules/tests/efa.test.yml",
}

func allRules(t *testing.T) []string {
	m, sched := Open(t, Fixture("no-rdma"))
	j, err := verdict.New(m, sched, Builtin(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var out []string
	for _, r := range j.Engine.Rules() {
		out = append(out, coverage.Named(r.Name, r.Labels["reason"]))
	}
	return out
}

var metricName = regexp.MustCompile(`\b(?:device:|gpu:|port:|instance:|lane:)?rdma_(?:port|device|scrape|driver|kernel|host|exporter|transceiver|gdr|gpu|pcie)_[a-z0-9_:]+`)

// TestRulesReadMetricsThatExist holds the rules against the Descs and each other.
func TestRulesReadMetricsThatExist(t *testing.T) {
	m, sched := Open(t, Fixture("no-rdma"))
	j, err := verdict.New(m, sched, Builtin(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	known := map[string]bool{"up": true, "ALERTS": true, "ALERTS_FOR_STATE": true}
	known["port:rdma_port_down:switch"] = true // of rules/central
	for _, d := range rounds.Descs {
		known[d.Name] = true
	}
	for _, c := range collector.All(collector.Options{}) {
		for _, d := range c.Descs {
			known[d.Name] = true
		}
	}
	for _, r := range j.Engine.RecordingRules() {
		known[r.Name] = true
	}
	for _, r := range j.Engine.Rules() {
		for _, name := range r.Metrics {
			if !known[name] {
				t.Errorf("%s reads %s, which is no Desc and no recording rule", r.Name, name)
			}
		}
		for _, text := range r.Annotations {
			for _, name := range metricName.FindAllString(text, -1) {
				if !known[name] {
					t.Errorf("an annotation of %s reads %s, which is no Desc and no recording rule", r.Name, name)
				}
			}
		}
	}
}
