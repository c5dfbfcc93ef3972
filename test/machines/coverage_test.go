//go:build !race

package machines_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/rulefiles"
	"rdma_exporter/rules"
	"rdma_exporter/test/machines"
)

// TestDescsNameMetrics: what a Desc says of its absence is of metrics, labels and sources that there are.
func TestDescsNameMetrics(t *testing.T) {
	descs := map[string]*exposition.Desc{}
	for _, m := range rulefiles.Readable() {
		descs[m.Desc.Name] = m.Desc
	}
	for name, d := range descs {
		for _, selector := range []string{d.Of, d.Never, d.Beside} {
			metric, matcher, labelled := strings.Cut(strings.TrimSuffix(selector, `"}`), "{")
			if selector == "" {
				continue
			}
			other := descs[metric]
			if other == nil {
				t.Errorf("%s: there is no %s", name, metric)
				continue
			}
			if label, _, ok := strings.Cut(matcher, `="`); labelled && (!ok || !slices.Contains(other.Labels, label)) {
				t.Errorf("%s: %s has no such label", name, selector)
			}
		}
		if d.Beside != "" && descs[d.Beside] != nil && descs[d.Beside].Beside == name {
			t.Errorf("%s and %s stand for each other", name, d.Beside)
		}
		for of, n := d, 0; of != nil && of.Of != "" && !strings.HasPrefix(of.Of, of.Name); n++ {
			if n > len(descs) {
				t.Fatalf("%s: what it is of goes in a circle", name)
			}
			metric, _, _ := strings.Cut(of.Of, "{")
			of = descs[metric]
		}
		if _, ok := source.Named(d.Asks); d.Asks != "" && !ok {
			t.Errorf("%s: there is no source %s", name, d.Asks)
		}
		for _, l := range d.AskedLabels {
			if !slices.Contains(d.Labels, l) {
				t.Errorf("%s has no label %s", name, l)
			}
		}
	}
}

// TestNeedsAreDescs: whatever an alert needs is a metric of which it is known when it is absent for a reason.
func TestNeedsAreDescs(t *testing.T) {
	files, names, err := rules.Node()
	must(t, err)
	alerts, err := alerting.Needs(files, names)
	must(t, err)
	known := map[string]*exposition.Desc{}
	for _, m := range rulefiles.Readable() {
		known[m.Desc.Name] = m.Desc
	}
	if len(alerts) == 0 {
		t.Error("no alerts")
	}
	for _, a := range alerts {
		if len(a.Need.Metrics()) == 0 {
			t.Errorf("%s needs nothing", a.Name)
		}
		for _, m := range a.Need.Metrics() {
			switch d := known[m]; {
			case d == nil:
				t.Errorf("%s needs %s, which is no Desc", a.Name, m)
			case d.Scope != exposition.ScopeExporter && d.Asks == "" && d.Of == "" && d.Beside == "":
				t.Errorf("%s needs %s, whose Desc does not say what its absence means: Asks, Of or Beside", a.Name, m)
			}
		}
	}
}

// gapsOf returns the gaps in the last round of a capture, as "ALERT reason", and the alerts that do not apply.
func gapsOf(t *testing.T, file string) (gaps, idle []string) {
	t.Helper()
	p := machines.Play(t, file)
	for _, g := range p.Coverage.Gaps {
		gaps = append(gaps, fmt.Sprintf("%s %s", coverage.Named(g.Alert, g.Fault), g.Reason))
	}
	i := slices.IndexFunc(p.Families,
		func(f exposition.Family) bool { return f.Head.Desc.Name == "rdma_detection_unavailable" })
	if n := len(gaps); n > 0 && (i < 0 || len(p.Families[i].Points) != n) {
		t.Errorf("%d gaps, and they are not the metric's", n)
	}
	return gaps, p.Coverage.Idle
}

// TestHealthyIsSeen: a healthy InfiniBand host that can be read has rules that are not evaluated only for data that its
// kernel and hardware do not expose.
func TestHealthyIsSeen(t *testing.T) {
	gaps, idle := gapsOf(t, machines.Fixture("dgx-h100-ib"))
	want := []string{
		// The kernel of the recording has no sensors of the HCAs and shows no modules of InfiniBand ports, its GPU driver
		// reports no recovery action, its firmware keeps AER for itself, and it has no links of udev in /dev/char.
		"RDMADeviceHot/critical_limit not_supported",
		"RDMADeviceMissing/verbs_node not_supported",
		"RDMAGPUXid/recovery_action not_supported",
		"RDMATransceiverFault/fault not_supported",
		"RDMATransceiverFault/unreadable not_supported",
		"RDMATransceiverHot/alarm not_supported",
		"RDMATransceiverHot/errors not_supported",
		"RDMATransceiverHot/no_limit not_supported",
		"RDMATransceiverHot/warning_limit not_supported",
		"RDMATransceiverOutOfRange/bias not_supported",
		"RDMATransceiverOutOfRange/cold not_supported",
		"RDMATransceiverOutOfRange/lane_dark not_supported",
		"RDMATransceiverOutOfRange/lane_imbalance not_supported",
		"RDMATransceiverOutOfRange/power_high not_supported",
		"RDMATransceiverOutOfRange/power_low not_supported",
		"RDMATransceiverOutOfRange/voltage not_supported",
	}
	slices.Sort(gaps)
	if !slices.Equal(gaps, want) {
		t.Errorf("not evaluated:\n%s\nwant\n%s", strings.Join(gaps, "\n"), strings.Join(want, "\n"))
	}
	// It has no priority with flow control.
	for _, name := range []string{
		"RDMAPFCStormSource/storm", "RDMAPFCStormVictim/paused", "RDMASlowReceiver/pauses", "RDMARetriesExceeded/requests",
	} {
		if !slices.Contains(idle, name) {
			t.Errorf("%s applies to a host without PFC", name)
		}
	}
	if gaps, idle := gapsOf(t, machines.Fixture("no-rdma")); len(gaps) > 0 || !slices.Contains(idle, "RDMAPortDown/port") {
		t.Errorf("a host without RDMA: not evaluated: %v, does not apply %v", gaps, idle)
	}
}

// rewrite copies a fixture with each entry whose path matches put through f.
func rewrite(t *testing.T, name, path string, f func(e *capture.Entry)) string {
	t.Helper()
	a, re, changed := machines.Load(t, name), regexp.MustCompile(path), 0
	for _, r := range a.Rounds {
		for i := range r.Entries {
			if re.MatchString(r.Entries[i].Path) {
				f(&r.Entries[i])
				changed++
			}
		}
	}
	if changed == 0 {
		t.Fatalf("%s has no entry %s", name, path)
	}
	return machines.Written(t, a)
}

func refuse(e *capture.Entry) {
	*e = capture.Entry{Path: e.Path, Kind: capture.Error, Errno: syscall.EPERM}
}

// shorten is configuration space as every process may read it.
func shorten(e *capture.Entry) { e.Data = e.Data[:64] }

// TestRefusedIsGap: what the process may not read is a gap that names the source, and no other alert is not evaluated:
// it.
func TestRefusedIsGap(t *testing.T) {
	for name, tc := range map[string]struct {
		fixture, path string
		change        func(*capture.Entry)
		source        string
		alerts        []string
	}{
		"modules": {"optics-hot", `^ethtool/[^/]+/eeprom/`, refuse, "module_eeprom", []string{
			"RDMATransceiverFault/fault",
			"RDMATransceiverFault/unreadable",
			"RDMATransceiverHot/alarm",
			"RDMATransceiverHot/errors",
			"RDMATransceiverHot/no_limit",
			"RDMATransceiverHot/warning_limit",
			"RDMATransceiverOutOfRange/bias",
			"RDMATransceiverOutOfRange/cold",
			"RDMATransceiverOutOfRange/lane_dark",
			"RDMATransceiverOutOfRange/lane_imbalance",
			"RDMATransceiverOutOfRange/power_high",
			"RDMATransceiverOutOfRange/power_low",
			"RDMATransceiverOutOfRange/voltage",
		}},
		"configuration space": {"dgx-h100-ib", `/config$`, shorten, "pci_config", []string{
			"RDMAHostMisconfigured/acs",
			"RDMAHostMisconfigured/pcie_settings",
		}},
		"counters": {"dgx-h100-ib", `/ports/1/counters/(symbol_error|port_xmit_wait|link_downed|port_rcv_[er].*|link_error_recovery)$`, refuse, "pma", []string{
			"RDMALinkErrors/elsewhere",
		}},
		"kernel log": {"dgx-h100-ib", `^kernel/log$`, refuse, "kernel_log", []string{
			"RDMADeviceFailed/command_timeout", "RDMADeviceFailed/stopped", "RDMADeviceFailed/transmit_timeout",
			"RDMADeviceHot/reported", "RDMAHostMisconfigured/module",
			"RDMAPCIeErrors/fatal", "RDMAPCIeErrors/iommu", "RDMAPCIeErrors/recovered",
		}},
		"flow control": {"hgx-h200-roce", `^dcb/`, refuse, "dcb", []string{
			"RDMADiscards/lossless_priority",
			"RDMAPFCStormSource/short_storms",
			"RDMAPortMisconfigured/global_pause",
			"RDMAPortMisconfigured/roce_mtu",
			"RDMATrafficOnLossyPriority/priority",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := gapsOf(t, machines.Fixture(tc.fixture))
			p := machines.Play(t, rewrite(t, tc.fixture, tc.path, tc.change))
			var got []string
			for _, g := range p.Coverage.Gaps {
				if g.Reason == coverage.Permission {
					got = append(got, coverage.Named(g.Alert, g.Fault))
					if g.Source != tc.source {
						t.Errorf("%s: source %q", g.Alert, g.Source)
					}
				} else if !slices.Contains(before, fmt.Sprintf("%s %s", coverage.Named(g.Alert, g.Fault), g.Reason)) {
					t.Errorf("%s %s %v", g.Alert, g.Reason, g.Metrics)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, tc.alerts) {
				t.Errorf("not permitted %v, want %v", got, tc.alerts)
			}
		})
	}
}
