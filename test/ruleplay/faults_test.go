package ruleplay_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	promrules "github.com/prometheus/prometheus/rules"

	"rdma_exporter/rules"
	"rdma_exporter/test/ruleplay"
)

// becomes is what each alert that is not on faults yet becomes: a symptom, and reasons of it. Empty: none.
var becomes = map[string]string{
	"RDMAPortDown":                 "port_down port,administrative",
	"RDMAPlaneDegraded":            "port_down plane",
	"RDMABondMemberDown":           "port_down bond_member",
	"RDMADeviceMissing":            "device_missing gone",
	"RDMAGPULost":                  "device_missing gone",
	"RDMAStackNotLoaded":           "device_missing stack",
	"RDMAVerbsNodeMissing":         "device_missing verbs_node",
	"RDMADeviceFirmwareError":      "device_failed firmware,recovered",
	"RDMAReadStuck":                "device_failed unresponsive",
	"RDMACommandTimeouts":          "device_failed command_timeout",
	"RDMATransmitTimeout":          "device_failed transmit_timeout",
	"RDMALinkDownshifted":          "link_degraded rate",
	"RDMALinkWidthDegraded":        "link_degraded width",
	"RDMABondMemberDownshifted":    "link_degraded bond_member",
	"RDMALinkFlapping":             "link_flapping hour,once",
	"RDMALinkUnstable":             "link_flapping day",
	"RDMALinkSymbolErrors":         "link_errors symbols,symbols_again",
	"RDMALinkErrors":               "link_errors errors,elsewhere",
	"RDMALinkBERHigh":              "link_errors ber",
	"RDMALinkIntegrity":            "link_errors integrity",
	"RDMALaneBERHigh":              "link_errors lane",
	"RDMATransceiverHot":           "transceiver_hot",
	"RDMATransceiverLaneDark":      "transceiver_out_of_range lane_dark",
	"RDMAPCIeDegraded":             "pcie_degraded link",
	"RDMAPCIeLimitsPort":           "pcie_degraded slot",
	"RDMAPCIeErrors":               "pcie_errors fatal,recovered",
	"RDMAIOMMUFault":               "pcie_errors iommu",
	"RDMAPortNoSubnetManager":      "no_subnet_manager port",
	"RDMARetriesExceeded":          "retries_exceeded",
	"RDMARetransmissions":          "retransmissions",
	"RDMAPFCStormSource":           "pfc_storm_source storm",
	"RDMAPFCWatchdogFired":         "pfc_storm_source watchdog",
	"RDMAPFCShortStorms":           "pfc_storm_source short_storms",
	"RDMAPFCStormVictim":           "pfc_storm_victim",
	"RDMASlowReceiver":             "slow_receiver",
	"RDMALosslessPriorityDiscards": "discards lossless_priority",
	"RDMATransmitDiscards":         "discards transmit",
	"RDMATrafficOnLossyPriority":   "traffic_on_lossy_priority",
	"RDMAWatchdog":                 "",
	"RDMAHostMaintenance":          "",
	"RDMACounterSaturated":         "",
	"RDMACongestion":               "",
	"RDMAReceiverNotReady":         "",
	"RDMAIBBackpressure":           "",
	"RDMAKernelStuck":              "",
	"RDMAReplay":                   "",
}

// TestFaultsOfAlerts: whenever an alert is active, there is a fault of its symptom on its host, of the same severity,
// or a fault that explains it. FILES=pcie limits it to files with a name.
func TestFaultsOfAlerts(t *testing.T) {
	eachFile(t, func(t *testing.T, _ string, f *ruleplay.File) { faultsOfAlerts(t, f) })
}

func faultsOfAlerts(t *testing.T, f *ruleplay.File) {
	embedded, names, err := rules.Node()
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Tests {
		test := &f.Tests[i]
		end := time.Duration(0)
		for _, a := range test.Alerts {
			end = max(end, ruleplay.Duration(t, a.At))
		}
		if end == 0 {
			continue
		}
		p := ruleplay.New(t, embedded, names, ruleplay.Duration(t, f.Interval), test)
		missed := map[string]bool{}
		err := p.Until(t.Context(), end, func() {
			faults, err := p.Ask(t.Context(), `rdma:fault or rdma:explained`, p.Now)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range p.Alerts() {
				if !a.KeepFiringSince.IsZero() || a.Labels.Get("symptom") != "" {
					continue
				}
				symptom, known := becomes[a.Labels.Get("alertname")]
				symptom, reasons, _ := strings.Cut(symptom, " ")
				if !known {
					t.Errorf("%s becomes nothing", a.Labels.Get("alertname"))
				}
				found := symptom == ""
				for _, s := range faults {
					found = found || s.Metric.Get("symptom") == symptom &&
						(reasons == "" || slices.Contains(strings.Split(reasons, ","), s.Metric.Get("reason"))) &&
						(s.Metric.Get("instance") == a.Labels.Get("instance") || s.Metric.Get("instance") == "") &&
						(s.Metric.Get("severity") == a.Labels.Get("severity") || s.Metric.Get("severity") == "critical")
				}
				key := a.Labels.String()
				if !found && !missed[key] {
					missed[key] = true
					t.Errorf("%s, at %v: %s %v has no fault", test.Name, p.Now, key, a.State == promrules.StateFiring)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
