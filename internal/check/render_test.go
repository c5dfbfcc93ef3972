package check_test

import (
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
)

func tableOf(t *testing.T, r check.Report, s check.Style) string {
	t.Helper()
	var b strings.Builder
	if err := check.Table(&b, r, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPending: a pending alert has a row with its elapsed time and its effect on the verdict, and is not listed as not
// evaluated.
func TestPending(t *testing.T) {
	ranged, waiting := newRule("RDMARanged", "warning"), newRule("RDMAWaiting", "critical")
	ranged.Range, ranged.For = time.Minute, 15*time.Minute
	waiting.For = 5 * time.Minute
	rules := []alerting.Rule{ranged, waiting}
	for name, c := range map[string]struct {
		rule     int
		observed time.Duration
		code     int
		headline string
		row      string
	}{
		"with a range": {0, 10 * time.Minute, 0, "gpu-1: pending warning: <b>: port down\n1 pending warning.\n", "RDMARanged host, pending for 1m30s of 15m. Until then: no finding, exit code unchanged\n"},
		"may resolve":  {1, 10 * time.Minute, 1, "gpu-1: warning: <b>: port down\n1 pending critical.\n", "RDMAWaiting host, pending for 1m30s of 5m. Until then: a warning\n"},
		"cannot wait":  {1, 0, 2, "gpu-1: critical: <b>: port down\n1 critical.\n", "RDMAWaiting host, pending for 1m30s of 5m. Reported now, since the host was observed for less than that\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := check.New(check.Input{Host: "gpu-1:10879", Judgement: alerting.Judgement{
				From: testTime().Add(-c.observed), To: testTime(), Rules: append(rules, newRule("RDMAOther", "info")),
				Alerts: []alerting.Alert{newAlert(rules, c.rule, alerting.StatePending, nil)},
			}})
			got := tableOf(t, r, check.Style{Verbose: true})
			if r.ExitCode != c.code || !strings.HasPrefix(got, c.headline) || !strings.Contains(got, "\n          "+c.row) {
				t.Errorf("exit %d, want %d and %q, %q\n%s", r.ExitCode, c.code, c.headline, c.row, got)
			}
			if strings.Contains(got, "not evaluated") || strings.Contains(tableOf(t, r, check.Style{Short: true}), "pending: ") {
				t.Error(got)
			}
		})
	}
}

// TestBasis: the second line names the source of the samples.
func TestBasis(t *testing.T) {
	for want, in := range map[string]check.Input{
		"1 of 1 rule evaluated on the present state by a one-off evaluation.\n": {},
		"1 of 1 rule evaluated over 5m by a one-off evaluation.\n":              {Judgement: alerting.Judgement{From: testTime().Add(-5 * time.Minute)}},
		"1 of 1 rule evaluated over 2h by the running exporter.\n":              {Interval: time.Minute, Judgement: alerting.Judgement{From: testTime().Add(-2 * time.Hour)}},
		"1 of 1 rule evaluated by the running exporter.\n":                      {Interval: time.Minute},
		"1 of 1 rule evaluated over 10m of the capture.\nReplay of demo.\n":     {Replay: "demo", Judgement: alerting.Judgement{From: testTime().Add(-10 * time.Minute)}},
		"1 of 1 rule evaluated on the capture.\nReplay of demo.\n":              {Replay: "demo", Interval: time.Minute},
	} {
		t.Run(want, func(t *testing.T) {
			in.To, in.Rules = testTime(), []alerting.Rule{newRule("C", "critical")}
			if in.From.IsZero() {
				in.From = testTime()
			}
			if _, got, _ := strings.Cut(tableOf(t, check.New(in), check.Style{}), "\n"); got != want {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestCounts: findings are counted by severity; states without an alert are named.
func TestCounts(t *testing.T) {
	rules := []alerting.Rule{newRule("C", "critical"), newRule("W", "warning"), newRule("I", "info")}
	firing := func(i int) alerting.Alert { return newAlert(rules, i, alerting.StateFiring, nil) }
	for name, c := range map[string]struct {
		alerts []alerting.Alert
		filter check.Filter
		want   string
	}{
		"none":             {nil, check.Filter{}, "h: ok\n"},
		"info":             {[]alerting.Alert{firing(2)}, check.Filter{}, "h: ok, 1 info\n"},
		"all":              {[]alerting.Alert{firing(0), firing(1), firing(2)}, check.Filter{}, "h: critical: gpu-1 <b>: port down\n1 critical, 1 warning, 1 info.\n"},
		"left out":         {[]alerting.Alert{firing(2)}, check.Filter{Severity: "warning"}, "h: no finding of severity critical or warning\n"},
		"none is selected": {nil, check.Filter{Only: []string{"X"}}, "h: unknown: no RDMA device was read\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.filter.Apply(check.New(check.Input{
				Host: "h", Judgement: alerting.Judgement{From: testTime(), To: testTime(), Rules: rules, Alerts: c.alerts},
			}))
			if got := tableOf(t, r, check.Style{}); !strings.HasPrefix(got, c.want) {
				t.Errorf("want %q\n%s", c.want, got)
			}
		})
	}
}

// TestRemedyOfShortHistory: the remedy depends on whether the exporter or the command evaluates.
func TestRemedyOfShortHistory(t *testing.T) {
	long := newRule("RDMALong", "warning")
	long.Evaluated, long.Reason, long.Range = false, alerting.ReasonTooShort, time.Hour
	for want, in := range map[string]check.Input{
		"1 rule not evaluated: 1h of history required. Run the exporter, which keeps a history, or observe for longer: check --for 1h.\n": {},
		"1 rule not evaluated: 1h of history required. Wait until the exporter has run for 1h.\n":                                         {Interval: time.Minute},
		"1 rule not evaluated: 1h of history required.\n":                                                                                 {Replay: "demo"},
	} {
		t.Run(want, func(t *testing.T) {
			in.History, in.To, in.From, in.Rules = 2*time.Hour, testTime(), testTime(), []alerting.Rule{
				newRule("C", "critical"),
				long,
			}
			if got := tableOf(t, check.New(in), check.Style{Verbose: true}); !strings.Contains(got, "\n\n"+want) {
				t.Error(got)
			}
			if got := tableOf(t, check.New(in), check.Style{}); strings.Contains(got, "history") {
				t.Errorf("a note that stands on most hosts: %s", got)
			}
		})
	}
}

// TestDrainExplained: the states are explained in one line, in a form that the scripts in packaging do not read as an
// alert.
func TestDrainExplained(t *testing.T) {
	for name, c := range map[string]struct {
		alerts []check.DrainAlert
		want   string
	}{
		"no":     {nil, "h: no drain\n"},
		"cordon": {[]check.DrainAlert{{Alert: "A", Drain: "cordon"}}, "h: cordon\ncordon  A\ncordon: no new jobs, running jobs may finish.\n"},
		"evict": {
			[]check.DrainAlert{{Alert: "A", Drain: "cordon"}, {Alert: "B", Drain: "evict"}},
			"h: evict\ncordon  A\nevict   B\nevict: no new jobs, and a running job on this host cannot progress: stop it. cordon: no new jobs, running jobs may finish.\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			r := check.Report{Host: "h", HostVerdict: check.HostVerdict{Drain: name, DrainAlerts: c.alerts}}
			if err := check.Drain(&b, r, false); err != nil || b.String() != c.want {
				t.Errorf("%v\n%q\nwant\n%q", err, b.String(), c.want)
			}
		})
	}
}
