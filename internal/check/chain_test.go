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

// TestSuspectsExplain: the condition of an alert explains an unknown port only beside a fault: without one, its alert
// is pending or has no data. The reason of a port is its worst fault, a finding before what it suppresses.
func TestSuspectsExplain(t *testing.T) {
	node := &snapshot.Node{InfiniBand: &snapshot.InfiniBand{Devices: []snapshot.Device{{
		Name: "mlx5_0", FunctionType: snapshot.Physical,
		Ports: []snapshot.Port{{Number: 1, State: new(uint64(1)), Role: "compute"}},
	}}}}
	rules := []alerting.Rule{
		rule("RDMAPortDown", "critical"), rule("RDMASlow", "warning"), rule("RDMANote", "info"),
		rule("RDMAWorse", "critical"),
	}
	at := func(device string) map[string]string { return map[string]string{"device": device, "port": "1"} }
	firing := func(rule int, device string) alerting.Alert {
		return alert(rules, rule, alerting.StateFiring, at(device))
	}
	suspect := at("mlx5_0")
	suspect["__name__"] = "port:rdma_port_down:suspect"
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
			Judgement: alerting.Judgement{To: now(), Rules: rules, Alerts: c.alerts},
			Seen:      check.Seen{Objects: account.Objects(node, nil)},
			Suspects:  check.Suspects{Series: []map[string]string{suspect}},
		})
		if o := r.Objects[1]; r.Verdict != c.verdict || o.Class != c.class || o.Reason != c.reason {
			t.Errorf("%s: %s, port %s, %s; want %s, %s, %s", name, r.Verdict, o.Class, o.Reason, c.verdict, c.class, c.reason)
		}
	}
}
