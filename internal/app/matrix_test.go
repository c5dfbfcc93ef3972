package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/rounds"
)

// settle is how long the matrix holds a machine's last round: longer than any rule waits.
const settle = 20 * time.Minute

// firing plays a capture, goes on with its last round until every rule has had its time, and returns what fires then, and what
// was above information in any round.
func firing(t *testing.T, file string) (last []alerting.Alert, loud map[string]bool) {
	t.Helper()
	m, sched := open(t, file)
	j, err := newJudge(m, sched, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.close(); err != nil {
			t.Error(err)
		}
	}()
	loud = map[string]bool{}
	times := m.player.Times()
	for at, end := m.player.Last(), m.player.Last().Add(settle); at.Before(end); {
		at = at.Add(time.Minute)
		times = append(times, at)
	}
	for _, at := range times {
		if err := j.round(t.Context(), at); err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		last = slices.DeleteFunc(j.engine.Alerts(), func(a alerting.Alert) bool { return a.State != alerting.StateFiring })
		for _, a := range last {
			if rank(a.Labels["severity"]) > rank("info") {
				loud[describe(a)] = true
			}
		}
	}
	return last, loud
}

// faulty are the fixtures that are to fire, and what on which device, port and member of a bond. All others are healthy and silent.
var faulty = map[string][]string{
	"demo": {"critical RDMAPFCStormSource mlx5_8/1/enp39s0np0", "critical RDMAPortDown mlx5_5/1", "info RDMACounterSaturated mlx5_2/1", "warning RDMALinkErrors mlx5_2/1"},
	"hgx-h200-roce-storm": {
		"critical RDMAPFCStormSource mlx5_3/1/enp94s0np0", "critical RDMAPFCStormVictim mlx5_4/1/enp154s0np0",
		"info RDMAPFCStormVictim mlx5_0/1/enp24s0np0", "info RDMAPFCStormVictim mlx5_2/1/enp79s0np0",
	},
	"slow-receiver":          {"warning RDMASlowReceiver mlx5_1/1/enp64s0np0"},
	"watchdog-fired":         {"critical RDMAPFCWatchdogFired mlx5_2/1/enp79s0np0"},
	"lossy-priority":         {"warning RDMATrafficOnLossyPriority mlx5_0/1/enp24s0np0"},
	"lossless-discards":      {"warning RDMALosslessPriorityDiscards mlx5_1/1/enp64s0np0"},
	"global-pause":           {"info RDMAGlobalPauseInsteadOfPFC mlx5_2/1/enp79s0np0"},
	"congested":              {"info RDMACongestion mlx5_0/1"},
	"notification-off":       {"warning RDMACongestionNotificationOff mlx5_1/1/enp64s0np0"},
	"retransmissions":        {"warning RDMARetransmissions mlx5_0/1"},
	"connections-lost":       {"info RDMAReceiverNotReady mlx5_2/1", "warning RDMARetriesExceeded mlx5_1/1"},
	"miscabled":              {"warning RDMAPortMiscabled mlx5_0/1/enp24s0np0", "warning RDMAPortMiscabled mlx5_1/1/enp64s0np0"},
	"firmware-health":        {"critical RDMADeviceFirmwareError mlx5_2"},
	"link-errors":            {"warning RDMALinkErrors mlx5_0/1"},
	"far-end-errors":         {"warning RDMALinkErrors mlx5_1/1"},
	"sm-on-compute":          {"info RDMASubnetManagerOnComputeHost"},
	"fec-uncorrectable":      {"warning RDMALinkErrors mlx5_1/1"},
	"transmit-discards":      {"warning RDMATransmitDiscards mlx5_0/1"},
	"plane-lost":             {"warning RDMAPlaneDegraded mlx5_1"},
	"flapping":               {"warning RDMALinkFlapping mlx5_0/1"},
	"short-flaps":            {"warning RDMALinkFlapping mlx5_1/1"},
	"sm-changing":            {"warning RDMASubnetManagerChanging"},
	"no-sm":                  {"critical RDMAPortNoSubnetManager"},
	"sm-gone":                {"critical RDMAPortNoSubnetManager"},
	"no-v2-gid":              {"warning RDMARoCEv2GIDMissing mlx5_1/1"},
	"mtu-odd":                {"warning RDMAMTUMismatch mlx5_6/1"},
	"roce-mtu-low":           {"info RDMARoCEMTULow mlx5_0/1", "info RDMARoCEMTULow mlx5_1/1", "info RDMARoCEMTULow mlx5_2/1"},
	"ib-backpressure":        {"info RDMAIBBackpressure mlx5_0/1"},
	"pkey-missing":           {"warning RDMAPKeyMissing mlx5_1/1"},
	"driver-mismatch":        {"warning RDMADriverMismatch"},
	"firmware-drift":         {"info RDMAFirmwareDrift"},
	"port-down":              {"critical RDMAPortDown mlx5_5/1"},
	"downshift-one":          {"critical RDMALinkDownshifted mlx5_5/1"},
	"downshift-all":          {"critical RDMALinkDownshifted"},
	"downshift-all-unpinned": {"warning RDMALinkDownshifted"},
	"downshift-all-answered": {"critical RDMALinkDownshifted"},
	"width-loss":             {"critical RDMALinkWidthDegraded mlx5_9/1"},
	"bond-member-down":       {"warning RDMABondMemberDown mlx5_bond_0/1/enp49s0f1np1"},
	"bond-member-slow":       {"warning RDMABondMemberDownshifted mlx5_bond_1/1/enp170s0f1np1"},
	"device-missing":         {"critical RDMADeviceMissing mlx5_11"},
	"asic-hot":               {"warning RDMADeviceHot mlx5_2"},
	"gen4-slot":              {"info RDMAPCIeLimitsPort mlx5_4"},
	"x8-slot":                {"info RDMAPCIeLimitsPort mlx5_4"},
	"pcie-width-loss":        {"critical RDMAPCIeDegraded mlx5_4"},
	"gpu-width-loss":         {"critical RDMAPCIeDegraded GPU 5"},
	"pcie-errors":            {"warning RDMAPCIeErrors mlx5_1"},
	"saturated":              {"info RDMACounterSaturated mlx5_3/1", "info RDMACounterSaturated mlx5_6/1"},
	"odd-files":              {"info RDMACounterSaturated mlx5_4/1"},

	"optics-hot":            {"warning RDMATransceiverHot mlx5_1/1/enp64s0np0"},
	"optics-hot-errors":     {"critical RDMATransceiverHot mlx5_1/1/enp64s0np0", "warning RDMALinkErrors mlx5_1/1"},
	"optics-no-limits":      {"info RDMATransceiverHot mlx5_2/1/enp79s0np0"},
	"optics-lane-dark":      {"warning RDMATransceiverLaneDark mlx5_2/1/enp79s0np0"},
	"optics-lane-imbalance": {"info RDMATransceiverLaneImbalance mlx5_0/1/enp24s0np0"},
	"optics-ageing":         {"warning RDMATransceiverBias mlx5_1/1/enp64s0np0"},
	"optics-readings": {
		"info RDMATransceiverPowerLow mlx5_1/1/enp64s0np0", "warning RDMATransceiverPowerHigh mlx5_1/1/enp64s0np0",
		"warning RDMATransceiverPowerLow mlx5_0/1/enp24s0np0",
		"warning RDMATransceiverVoltage mlx5_2/1/enp79s0np0",
	},
	"optics-fault":                  {"critical RDMAPortDown mlx5_0/1", "warning RDMATransceiverFault mlx5_0/1/enp24s0np0"},
	"optics-unplugged":              {"critical RDMAPortDown mlx5_1/1"},
	"optics-unreadable":             {"info RDMATransceiverUnreadable mlx5_1/1/enp64s0np0"},
	"twin-port-hot":                 {"warning RDMATransceiverHot mlx5_0/1/enp24s0np0"},
	"no-peermem-no-dmabuf":          {"warning RDMAGPUDirectUnavailable"},
	"peermem-not-loaded":            {"warning RDMAGPUDirectUnavailable"},
	"peermem-only-nccl222-new-ofed": {"warning RDMAGPUDirectUnavailable"},
	"locked-memory-low":             {"info RDMALockedMemoryLow"},
	"gdr-staging-live":              {"warning RDMAGPUDirectStaging"},
	"nccl-ib-disabled":              {"warning RDMATransportFallback"},
	"job-gid-mismatch":              {"warning RDMAJobGIDMismatch"},
	"acs-on":                        {"warning RDMAACSRedirect"},
	"iommu-on":                      {"warning RDMAIOMMUTranslating"},
	"pcie-settings-odd":             {"info RDMAPCIeSettings mlx5_1"},
	"gpus-apart":                    {"info RDMANUMAMisplaced"},
	"gpu-nvlink-down":               {"warning RDMAGPUFabricDegraded GPU 3"},
}

// describe is an alert as faulty has it: severity, name, and what it is about.
func describe(a alerting.Alert) string {
	about := a.Labels["device"]
	if a.Labels["gpu"] != "" {
		about = "GPU " + a.Labels["gpu"]
	}
	for _, l := range []string{"port", "netdev"} {
		if a.Labels[l] != "" {
			about += "/" + a.Labels[l]
		}
	}
	return strings.TrimSpace(a.Labels["severity"] + " " + a.Name + " " + about)
}

// TestDetectionMatrixOfAllMachines holds which alert fires on which recorded machine, in docs/detection-matrix.md.
func TestDetectionMatrixOfAllMachines(t *testing.T) {
	names := machines(t)
	cells := make([]map[string]string, len(names)) // alert → severity
	alerts := map[string]bool{}
	for _, r := range allRules(t) {
		alerts[r] = true
	}
	t.Run("fixtures", func(t *testing.T) {
		for i, name := range names {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				cell := map[string]string{}
				var got []string
				last, loud := firing(t, fixture(name))
				for _, a := range last {
					got = append(got, describe(a))
					if old := cell[a.Name]; old == "" || rank(a.Labels["severity"]) > rank(old) {
						cell[a.Name] = a.Labels["severity"]
					}
				}
				cells[i] = cell
				if strings.HasSuffix(name, "-ok") && len(loud) > 0 {
					t.Errorf("a healthy machine woke someone: %s", slices.Sorted(maps.Keys(loud)))
				}
				slices.Sort(got)
				want := append([]string{"none RDMAWatchdog"}, faulty[name]...)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("fires\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			})
		}
	})
	columns := slices.Sorted(maps.Keys(alerts))
	for _, a := range columns {
		if !slices.ContainsFunc(cells, func(c map[string]string) bool { return c[a] != "" }) && firesInNoFixture[a] == "" {
			t.Errorf("%s fires in no fixture", a)
		}
	}
	golden(t, "../../../docs/detection-matrix.md", matrix(names, columns, cells))
}

// firesInNoFixture are alerts on the exporter's own trouble, which a recording cannot have, and on what takes longer than one
// lasts; with the test that shows them.
var firesInNoFixture = map[string]string{
	"RDMACollectorFailing": "rules/tests/exporter.test.yml",
	"RDMALinkUnstable":     "rules/tests/link_changes.test.yml: it needs a day",
	"RDMAReadStuck":        "TestReadStuckAlert",
	"RDMAPortUnreadable":   "rules/tests/exporter.test.yml",
	"RDMAPFCShortStorms":   "TestShortStorms: samples are taken live only",
}

func rank(severity string) int {
	return slices.Index([]string{"", "none", "info", "warning", "critical"}, severity)
}

func allRules(t *testing.T) []string {
	m, sched := open(t, fixture("no-rdma"))
	j, err := newJudge(m, sched, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	var out []string
	for _, r := range j.engine.Rules() {
		out = append(out, r.Name)
	}
	return out
}

func matrix(names, columns []string, cells []map[string]string) []byte {
	var b strings.Builder
	b.WriteString("# Detection matrix\n\nWhich alert fires on which recorded machine (`fixtures/sysfs/`), with its severity. The last round of each is held until every\nrule has had its time. An empty row but for the watchdog is a machine that must stay silent. Written by `make update`.\n\n")
	fmt.Fprintf(&b, "| machine | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for i, n := range names {
		fmt.Fprintf(&b, "| %s |", n)
		for _, c := range columns {
			fmt.Fprintf(&b, " %s |", cmp.Or(cells[i][c], " "))
		}
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

var metricName = regexp.MustCompile(`\b(?:device:|gpu:|port:|instance:|lane:)?rdma_(?:port|device|scrape|driver|kernel|host|exporter|transceiver|gdr|gpu|pcie)_[a-z0-9_:]+`)

// TestRulesReadMetricsThatExist holds the rules against the Descs and each other.
func TestRulesReadMetricsThatExist(t *testing.T) {
	m, sched := open(t, fixture("no-rdma"))
	j, err := newJudge(m, sched, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	known := map[string]bool{"up": true, "ALERTS": true, "ALERTS_FOR_STATE": true}
	for _, d := range rounds.Descs {
		known[d.Name] = true
	}
	for _, c := range collector.All(collector.Options{}) {
		for _, d := range c.Descs {
			known[d.Name] = true
		}
	}
	for _, r := range j.engine.RecordingRules() {
		known[r.Name] = true
	}
	for _, r := range j.engine.Rules() {
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
