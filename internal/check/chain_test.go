package check_test

import (
	"maps"
	"slices"
	"testing"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
)

// TestSuspectsOfFindings: what is silent because a finding explains it is listed below that, and what another object
// has is not.
func TestSuspectsOfFindings(t *testing.T) {
	rules := []alerting.Rule{
		rule("RDMATransceiverHot", "critical"), rule("RDMAPortDown", "critical"), rule("RDMALinkErrors", "warning"),
		rule("RDMAPFCStormSource", "critical"), rule("RDMAPFCStormVictim", "warning"),
	}
	of := func(device string) map[string]string { return map[string]string{"device": device, "port": "1"} }
	series := func(name, device string) map[string]string {
		return map[string]string{"__name__": "port:" + name + ":suspect", "device": device, "port": "1"}
	}
	in := check.Input{Host: "gpu-1:10879", Judgement: alerting.Judgement{To: now(), Rules: rules, Alerts: []alerting.Alert{
		alert(rules, 0, alerting.StateFiring, of("hot")), alert(rules, 1, alerting.StateFiring, of("down")),
		alert(rules, 3, alerting.StateFiring, of("storm")),
	}}}
	in.Suspects = check.Suspects{
		Records: []string{
			"port:rdma_port_down:suspect", "port:rdma_link_errors:suspect", "port:rdma_pfc_storm_source:suspect",
			"port:rdma_pfc_storm_victim:suspect",
		},
		Series: []map[string]string{
			series("rdma_link_errors", "hot"), series("rdma_link_errors", "down"), series("rdma_link_errors", "other"),
			series("rdma_port_down", "down"),
			series("rdma_port_down", "hot"), series("rdma_pfc_storm_victim", "victim"),
		},
	}
	want := map[string][]string{
		"hot": {"RDMALinkErrors hot/1"}, "down": {"RDMALinkErrors down/1"}, "storm": {"RDMAPFCStormVictim victim/1"},
	}
	got := map[string][]string{}
	for _, f := range check.New(in).Findings {
		for _, s := range f.Suspects {
			got[f.Labels["device"]] = append(got[f.Labels["device"]], s.Alert+" "+check.Where(s.Labels))
		}
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%q, want %q", got, want)
	}
}
