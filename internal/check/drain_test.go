package check_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
)

// TestReturn: a host is fit for jobs if no alert drains it and its links have been without errors for CleanFor. All
// reasons against it are listed.
func TestReturn(t *testing.T) {
	const (
		fit   = "gpu-1: fit for service: no alert drains it, links without errors for 2h6m\n"
		unfit = "gpu-1: not fit for service\nreason: "
	)
	clean := new(check.CleanFor.Seconds())
	of := func(state, name, drain string) check.Finding {
		return check.Finding{
			Alert: name, Severity: "critical", Drain: drain, State: state,
			Labels: map[string]string{"device": "mlx5_0", "port": "1"}, Summary: "gpu-1 mlx5_0/1:\nlink down",
		}
	}
	cordon := []check.DrainAlert{{Alert: "RDMAPortDown", Drain: "cordon"}}
	for name, c := range map[string]struct {
		report check.Report
		want   string
		code   int
	}{
		"fit": {check.Report{HostVerdict: check.HostVerdict{Fit: new(true), Drain: "no", CleanSeconds: clean}}, fit, 0},
		"clean for a second less": {
			check.Report{HostVerdict: check.HostVerdict{Fit: new(true), Drain: "no", CleanSeconds: new(*clean - 1)}},
			unfit + "links without errors for 2h5m59s, required 2h6m\n", 2,
		},
		"an error now": {
			check.Report{HostVerdict: check.HostVerdict{Fit: new(true), Drain: "no", CleanSeconds: new(0.0)}},
			unfit + "links without errors for 0s, required 2h6m\n", 2,
		},
		"no link observed": {
			check.Report{HostVerdict: check.HostVerdict{Fit: new(true), Drain: "no"}},
			unfit + "links not observed: no port of this host is in use\n", 2,
		},
		"pending alerts": {
			check.Report{
				HostVerdict: check.HostVerdict{Drain: "no", CleanSeconds: clean},
				Findings: []check.Finding{
					of("pending", "RDMAPortDown", "evict"), of("pending", "RDMASlow", "no"), of("firing", "RDMAHot", "cordon"),
				},
				Pending: []check.Finding{of("pending", "RDMALinkErrors", "cordon"), of("pending", "RDMACongested", "no")},
			},
			unfit + "pending, drains the host when it fires: RDMAPortDown mlx5_0/1 gpu-1 mlx5_0/1: link down\n" +
				"reason: pending, drains the host when it fires: RDMALinkErrors mlx5_0/1 gpu-1 mlx5_0/1: link down\n", 2,
		},
		"fitness not recorded": {
			check.Report{HostVerdict: check.HostVerdict{Drain: "no", CleanSeconds: clean}},
			unfit + "state incomplete: a read is stuck, or a port cannot be read. See rdma_exporter check --verbose\n", 2,
		},
		"maintenance": {
			check.Report{HostVerdict: check.HostVerdict{Fit: new(false), Drain: "no", CleanSeconds: clean}},
			unfit + "maintenance is announced\n", 2,
		},
		"maintenance of a faulty host": {
			check.Report{
				HostVerdict: check.HostVerdict{Fit: new(false), Drain: "no", DrainAlerts: cordon, CleanSeconds: clean},
				Findings:    []check.Finding{of("firing", "RDMAPortDown", "cordon")},
			},
			unfit + "not repaired: RDMAPortDown mlx5_0/1 gpu-1 mlx5_0/1: link down\n", 2,
		},
		"not repaired": {
			check.Report{
				HostVerdict: check.HostVerdict{Fit: new(false), Drain: "cordon", DrainAlerts: cordon},
				Findings:    []check.Finding{of("firing", "RDMAPortDown", "cordon"), of("firing", "RDMASlow", "no")},
			},
			unfit + "not repaired: RDMAPortDown mlx5_0/1 gpu-1 mlx5_0/1: link down\n" +
				"reason: links not observed: no port of this host is in use\n", 2,
		},
		"not repaired, left out by severity": {
			check.Report{HostVerdict: check.HostVerdict{
				Fit: new(false), Drain: "cordon", DrainAlerts: cordon, CleanSeconds: clean,
			}},
			unfit + "not repaired: RDMAPortDown\n", 2,
		},
		"unknown": {
			check.Report{
				Error:       "cannot load\nthe rules",
				HostVerdict: check.HostVerdict{Drain: "unknown", DrainAlerts: cordon, CleanSeconds: clean},
			},
			unfit + "state unknown: cannot load the rules\n", 3,
		},
		"nothing recorded": {
			check.New(check.Input{Judgement: alerting.Judgement{To: testTime(), Rules: []alerting.Rule{newRule("C", "critical")}}}),
			unfit + "state unknown: no verdict is recorded for these alerts\n", 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.report.Host = "gpu-1:10879"
			var b strings.Builder
			if code, err := check.Return(&b, c.report); err != nil || code != c.code || b.String() != c.want {
				t.Errorf("exit %d, %v\n%swant %d\n%s", code, err, b.String(), c.code, c.want)
			}
		})
	}
	if code, err := check.Return(brokenWriter{}, check.Report{}); err == nil || code != check.ExitUnknown {
		t.Errorf("exit %d, %v", code, err)
	}
}

// TestHostVerdict: the verdict is the recorded one. Only a one-off evaluation, which cannot wait, counts a pending
// alert as firing, unless the alert is new or nothing is recorded.
func TestHostVerdict(t *testing.T) {
	// By recorded drain: none, no, cordon, evict. RDMARecorded is the alert that is recorded.
	recorded := []string{
		"unknown <nil> []", "no true []", "cordon false [{RDMARecorded cordon}]", "evict false [{RDMARecorded evict}]",
	}
	pendingCordon := []string{
		"unknown <nil> []", "cordon false [{RDMAAlert cordon}]",
		"cordon false [{RDMAAlert cordon} {RDMARecorded cordon}]", "evict false [{RDMAAlert cordon} {RDMARecorded evict}]",
	}
	codes := map[string]int{"no": check.ExitOK, "cordon": check.ExitCritical, "evict": check.ExitCritical, "unknown": 3}
	for name, c := range map[string]struct {
		interval time.Duration
		state    alerting.State
		wait     time.Duration // the `for` of the rule; observed for 5m
		drain    string
		want     []string
	}{
		"one-off, pending cordon":           {0, alerting.StatePending, 0, "cordon", pendingCordon},
		"one-off, pending evict":            {0, alerting.StatePending, 0, "evict", pendingCordon},
		"one-off, pending, no drain":        {0, alerting.StatePending, 0, "no", recorded},
		"one-off, pending, without a label": {0, alerting.StatePending, 0, "", recorded},
		"one-off, pending, not long enough": {0, alerting.StatePending, 6 * time.Minute, "cordon", pendingCordon},
		"one-off, pending, new":             {0, alerting.StatePending, 5 * time.Minute, "cordon", recorded},
		"one-off, firing":                   {0, alerting.StateFiring, 0, "evict", recorded},
		"daemon, pending cordon":            {15 * time.Second, alerting.StatePending, 0, "cordon", recorded},
		"daemon, pending evict":             {15 * time.Second, alerting.StatePending, 0, "evict", recorded},
		"daemon, pending, waits":            {15 * time.Second, alerting.StatePending, time.Minute, "evict", recorded},
		"daemon, firing":                    {15 * time.Second, alerting.StateFiring, 0, "evict", recorded},
	} {
		t.Run(name, func(t *testing.T) {
			rules := []alerting.Rule{newRule("RDMAAlert", "critical")}
			rules[0].For = c.wait
			for i, want := range c.want {
				in := check.Input{Interval: c.interval, Judgement: alerting.Judgement{
					From: testTime().Add(-5 * time.Minute), To: testTime(), Rules: rules,
					Alerts: []alerting.Alert{newAlert(rules, 0, c.state, map[string]string{"drain": c.drain})},
				}}
				if i > 0 {
					in.Recorded = check.Recorded{Drain: new(float64(i - 1)), Fit: new(0.0)}
				}
				if i == 1 {
					in.Fit = new(1.0)
				}
				if i > 1 {
					in.Draining = map[string]float64{"RDMARecorded": float64(i - 1)}
				}
				v := check.New(in).HostVerdict
				fit := "<nil>"
				if v.Fit != nil {
					fit = fmt.Sprint(*v.Fit)
				}
				if got := fmt.Sprint(v.Drain, " ", fit, " ", v.DrainAlerts); got != want || v.DrainExitCode() != codes[v.Drain] {
					t.Errorf("recorded %v: %s, exit %d, want %s", in.Recorded.Drain, got, v.DrainExitCode(), want)
				}
			}
		})
	}
}

// TestRecordedVerdict: the verdict as JSON, with an alert that is both recorded and pending, and with states that this
// version does not know.
func TestRecordedVerdict(t *testing.T) {
	rules := []alerting.Rule{newRule("RDMAAlert", "critical")}
	pending := func(drain string) []alerting.Alert {
		return []alerting.Alert{newAlert(rules, 0, alerting.StatePending, map[string]string{"drain": drain})}
	}
	recorded := func(drain float64, alert float64) check.Recorded {
		return check.Recorded{
			Fit: new(0.0), Drain: &drain, CleanSeconds: new(90.0), Draining: map[string]float64{"RDMAAlert": alert},
		}
	}
	for name, c := range map[string]struct {
		recorded check.Recorded
		alerts   []alerting.Alert
		want     string
	}{
		"recorded": {
			recorded(1, 1), nil,
			`{"fit":false,"drain":"cordon","drain_alerts":[{"alert":"RDMAAlert","drain":"cordon"}],"links_clean_seconds":90}`,
		},
		"pending for an evict": {
			recorded(0, 0), pending("evict"),
			`{"fit":false,"drain":"cordon","drain_alerts":[{"alert":"RDMAAlert","drain":"cordon"}],"links_clean_seconds":90}`,
		},
		"has been worse": {
			recorded(2, 2), pending("cordon"),
			`{"fit":false,"drain":"evict","drain_alerts":[{"alert":"RDMAAlert","drain":"evict"}],"links_clean_seconds":90}`,
		},
		"above the states": {
			recorded(3, 3), pending("evict"),
			`{"fit":false,"drain":"unknown","drain_alerts":[{"alert":"RDMAAlert","drain":"unknown"}],"links_clean_seconds":90}`,
		},
		"below the states": {
			recorded(-1, -1), nil,
			`{"fit":false,"drain":"unknown","drain_alerts":[{"alert":"RDMAAlert","drain":"unknown"}],"links_clean_seconds":90}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := check.New(check.Input{
				Judgement: alerting.Judgement{
					From:   testTime(),
					To:     testTime(),
					Rules:  rules,
					Alerts: c.alerts,
				}, Recorded: c.recorded,
			})
			got, err := json.Marshal(r.HostVerdict)
			if err != nil || string(got) != c.want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, c.want)
			}
			if name == "above the states" && r.DrainExitCode() != check.ExitUnknown {
				t.Errorf("exit %d", r.DrainExitCode())
			}
		})
	}
}

// TestDrainOfAlerts: the verdict of a report on some alerts is the worst of these alerts, in any order.
func TestDrainOfAlerts(t *testing.T) {
	alerts := []check.DrainAlert{
		{Alert: "RDMAA", Drain: "evict"},
		{Alert: "RDMAB", Drain: "cordon"},
		{Alert: "RDMAC", Drain: "evict"},
		{Alert: "RDMAD", Drain: "cordon"},
	}
	for _, c := range []struct {
		drain, only string
		want        string
		code        int
	}{
		{"evict", "RDMAA RDMAB", "evict [{RDMAA evict} {RDMAB cordon}]", check.ExitCritical},
		{"evict", "RDMAB RDMAC", "evict [{RDMAB cordon} {RDMAC evict}]", check.ExitCritical},
		{"evict", "RDMAB RDMAD", "cordon [{RDMAB cordon} {RDMAD cordon}]", check.ExitCritical},
		{"cordon", "RDMAD", "cordon [{RDMAD cordon}]", check.ExitCritical},
		{"evict", "RDMAOther", "no []", check.ExitOK},
		{"no", "RDMAB RDMAOther", "no [{RDMAB cordon}]", check.ExitOK}, // maintenance
		{"unknown", "RDMAA", "unknown [{RDMAA evict}]", check.ExitUnknown},
	} {
		t.Run(c.drain+" "+c.only, func(t *testing.T) {
			whole := check.Report{HostVerdict: check.HostVerdict{Drain: c.drain, DrainAlerts: alerts}}
			r := check.Filter{Only: strings.Fields(c.only)}.Apply(whole)
			if got := fmt.Sprint(r.Drain, " ", r.DrainAlerts); got != c.want || r.DrainExitCode() != c.code {
				t.Errorf("%s, exit %d, want %s, exit %d", got, r.DrainExitCode(), c.want, c.code)
			}
			if fmt.Sprint(whole.DrainAlerts) != "[{RDMAA evict} {RDMAB cordon} {RDMAC evict} {RDMAD cordon}]" {
				t.Errorf("the whole report has changed: %v", whole.DrainAlerts)
			}
		})
	}
}
