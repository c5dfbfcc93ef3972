package check_test

import (
	"maps"
	"slices"
	"testing"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/snapshot"
)

// ofSymptom returns a rule with an alert on a symptom.
func ofSymptom(name, symptom, severity string) alerting.Rule {
	r := newRule(name, severity)
	r.Labels["symptom"] = symptom
	return r
}

// TestExplains: a symptom that a finding explains is listed below that finding; symptoms of other objects are not.
func TestExplains(t *testing.T) {
	rules := []alerting.Rule{
		ofSymptom("RDMATransceiverHot", "transceiver_hot", "critical"), ofSymptom("RDMAPortDown", "port_down", "critical"),
		ofSymptom("RDMALinkErrors", "link_errors", "warning"),
		ofSymptom("RDMAPFCStormSource", "pfc_storm_source", "critical"),
		ofSymptom("RDMAPFCStormVictim", "pfc_storm_victim", "warning"),
	}
	of := func(device string) map[string]string { return map[string]string{"device": device, "port": "1"} }
	explained := func(symptom, device string) map[string]string {
		return map[string]string{"symptom": symptom, "reason": "r", "severity": "warning", "device": device, "port": "1"}
	}
	in := check.Input{
		Host: "gpu-1:10879",
		Judgement: alerting.Judgement{To: testTime(), Rules: rules, Alerts: []alerting.Alert{
			newAlert(rules, 0, alerting.StateFiring, of("hot")), newAlert(rules, 1, alerting.StateFiring, of("down")),
			newAlert(
				rules,
				3,
				alerting.StateFiring,
				map[string]string{"symptom": "pfc_storm_source", "device": "storm", "port": "1"},
			),
		}},
	}
	in.Symptoms = check.Symptoms{Explained: []map[string]string{
		explained("link_errors", "hot"), explained("link_errors", "down"), explained("link_errors", "other"),
		explained("pfc_storm_victim", "victim"),
	}}
	want := map[string][]string{
		"hot": {"RDMALinkErrors hot/1 r"}, "down": {"RDMALinkErrors down/1 r"}, "storm": {"RDMAPFCStormVictim victim/1 r"},
	}
	got := map[string][]string{}
	for _, f := range check.New(in).Findings {
		for _, e := range f.Explains {
			got[f.Labels["device"]] = append(got[f.Labels["device"]], e.Alert+" "+check.Where(e.Labels)+" "+e.Reason)
		}
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestFaultExplains: a symptom explains an unknown port only together with a fault: without one, the alert is pending
// or has no data. The reason of a port is its worst fault; a finding precedes the symptoms that it explains.
func TestFaultExplains(t *testing.T) {
	node := &snapshot.Node{InfiniBand: &snapshot.InfiniBand{Devices: []snapshot.Device{{
		Name: "mlx5_0", FunctionType: snapshot.Physical,
		Ports: []snapshot.Port{{Number: 1, State: new(uint64(1)), Role: "compute"}},
	}}}}
	rules := []alerting.Rule{
		ofSymptom("RDMAPortDown", "port_down", "critical"), newRule("RDMASlow", "warning"), newRule("RDMANote", "info"),
		newRule("RDMAWorse", "critical"),
	}
	at := func(device string) map[string]string { return map[string]string{"device": device, "port": "1"} }
	firing := func(rule int, device string) alerting.Alert {
		return newAlert(rules, rule, alerting.StateFiring, at(device))
	}
	symptom := map[string]string{"symptom": "port_down", "severity": "critical", "device": "mlx5_0", "port": "1"}
	const never = "DOWN, never ACTIVE"
	for name, c := range map[string]struct {
		alerts  []alerting.Alert
		verdict string
		class   account.Class
		reason  string
	}{
		"no alert":         {nil, "unknown", account.Unknown, never},
		"of severity info": {[]alerting.Alert{firing(2, "mlx5_0")}, "unknown", account.Unknown, never},
		"of another":       {[]alerting.Alert{firing(1, "mlx5_1")}, "warning", account.Faulty, "RDMAPortDown"},
		"of the port":      {[]alerting.Alert{firing(1, "mlx5_0")}, "warning", account.Faulty, "RDMASlow"},
		"the worst": {
			[]alerting.Alert{firing(1, "mlx5_0"), firing(3, "mlx5_0")}, "critical", account.Faulty, "RDMAWorse",
		},
	} {
		r := check.New(check.Input{
			Judgement: alerting.Judgement{To: testTime(), Rules: rules, Alerts: c.alerts},
			Seen:      check.Seen{Objects: account.Objects(node, nil)},
			Symptoms:  check.Symptoms{Explained: []map[string]string{symptom}},
		})
		if o := r.Objects[1]; r.Verdict != c.verdict || o.Class != c.class || o.Reason != c.reason {
			t.Errorf("%s: %s, port %s, %s; want %s, %s, %s", name, r.Verdict, o.Class, o.Reason, c.verdict, c.class, c.reason)
		}
	}
}
