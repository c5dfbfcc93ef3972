package check_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/terminal"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func testTime() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func newRule(name, severity string) alerting.Rule {
	return alerting.Rule{
		Name: name, Labels: map[string]string{"severity": severity}, Evaluated: true, Metrics: []string{"rdma_port_state_id"},
	}
}

func newAlert(rules []alerting.Rule, i int, state alerting.State, labels map[string]string) alerting.Alert {
	all := map[string]string{
		"alertname": rules[i].Name, "severity": rules[i].Labels["severity"], "instance": "gpu-1:10879",
		"job": "rdma_exporter",
	}
	for name, value := range labels {
		all[name] = value
	}
	return alerting.Alert{
		Name: rules[i].Name, Rule: i, State: state, Labels: all, Value: 1, ActiveAt: testTime().Add(-90 * time.Second),
		Annotations: map[string]string{
			"summary": "gpu-1 <b>:\nport down", "description": "The link is down.",
			"evidence": "Host: gpu-1.\nDevice: mlx5_0, PCI 0000:0c:00.0.\nalone", "measured": "200 Gb/s", "limit": "400 Gb/s",
			"diagnose": "rdma link\x1b[2J", "action": "Replace the cable.", "drain_reason": "Jobs hang.",
			"runbook_url": "https://x/y",
		},
	}
}

func TestVerdict(t *testing.T) {
	critical, warning, info, none := newRule(
		"C",
		"critical",
	), newRule(
		"W",
		"warning",
	), newRule(
		"I",
		"info",
	), newRule(
		"N",
		"none",
	)
	ranged := newRule("R", "critical")
	ranged.Range = time.Hour
	waiting := newRule("L", "critical")
	waiting.For = 5 * time.Minute
	short := ranged
	short.Evaluated, short.Reason = false, alerting.ReasonTooShort
	unseen := coverage.Report{
		Gaps: []coverage.Gap{{Alert: "B", Reason: coverage.NotSupported, Metrics: []string{"rdma_x"}}}, Idle: []string{"G"},
	}
	gap, idle := newRule("B", "critical"), newRule("G", "critical")
	firing, pending := alerting.StateFiring, alerting.StatePending

	tests := map[string]struct {
		rules    []alerting.Rule
		states   map[int]alerting.State
		err      error
		code     int
		verdict  string
		findings int
	}{
		"nothing active":                {rules: []alerting.Rule{critical, warning}, code: 0, verdict: "ok"},
		"warning":                       {rules: []alerting.Rule{critical, warning}, states: map[int]alerting.State{1: firing}, code: 1, verdict: "warning", findings: 1},
		"worst wins":                    {rules: []alerting.Rule{warning, critical}, states: map[int]alerting.State{0: firing, 1: firing}, code: 2, verdict: "critical", findings: 2},
		"pending without a range":       {rules: []alerting.Rule{critical}, states: map[int]alerting.State{0: pending}, code: 2, verdict: "critical", findings: 1},
		"pending with a range":          {rules: []alerting.Rule{ranged}, states: map[int]alerting.State{0: pending}, code: 3, verdict: "unknown"},
		"pending with a range beside":   {rules: []alerting.Rule{ranged, info}, states: map[int]alerting.State{0: pending}, code: 0, verdict: "ok"},
		"pending for as long as it may": {rules: []alerting.Rule{waiting, info}, states: map[int]alerting.State{0: pending}, code: 1, verdict: "warning", findings: 1},
		"firing with a range":           {rules: []alerting.Rule{ranged}, states: map[int]alerting.State{0: firing}, code: 2, verdict: "critical", findings: 1},
		"firing, observed too short":    {rules: []alerting.Rule{short, info}, states: map[int]alerting.State{0: firing}, code: 2, verdict: "critical", findings: 1},
		"only what does not apply":      {rules: []alerting.Rule{idle}, code: 3, verdict: "unknown"},
		"kept after its data went":      {rules: []alerting.Rule{gap, info}, states: map[int]alerting.State{0: firing}, code: 2, verdict: "critical", findings: 1},
		"info alone":                    {rules: []alerting.Rule{info}, states: map[int]alerting.State{0: firing}, code: 0, verdict: "ok", findings: 1},
		"the watchdog is no finding":    {rules: []alerting.Rule{none, critical}, states: map[int]alerting.State{0: firing}, code: 0, verdict: "ok"},
		"only a watchdog evaluated":     {rules: []alerting.Rule{none, gap}, states: map[int]alerting.State{0: firing}, code: 3, verdict: "unknown"},
		"some not evaluated":            {rules: []alerting.Rule{gap, warning}, code: 0, verdict: "ok"},
		"no rules":                      {code: 3, verdict: "unknown"},
		"the evaluation failed":         {rules: []alerting.Rule{critical}, states: map[int]alerting.State{0: firing}, err: errors.New("no round"), code: 3, verdict: "unknown", findings: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := check.Input{
				Host:      "gpu-1:10879",
				Judgement: alerting.Judgement{From: testTime().Add(-10 * time.Minute), To: testTime(), Rules: tc.rules},
				Coverage:  unseen, Err: tc.err,
			}
			for i := range tc.rules {
				if state, ok := tc.states[i]; ok {
					in.Alerts = append(in.Alerts, newAlert(tc.rules, i, state, nil))
				}
			}
			r := check.New(in)
			if r.ExitCode != tc.code || r.Verdict != tc.verdict || len(r.Findings) != tc.findings {
				t.Errorf("exit %d, %s, %d findings; want %d, %s, %d",
					r.ExitCode, r.Verdict, len(r.Findings), tc.code, tc.verdict, tc.findings)
			}
		})
	}
}

func TestCoverage(t *testing.T) {
	ok, short := newRule("RDMATwo", "critical"), newRule("RDMATwo", "warning")
	short.Evaluated, short.Reason, short.Range = false, alerting.ReasonTooShort, 90*time.Minute
	fires := newRule("RDMAFires", "info")
	fires.Evaluated, fires.Reason, fires.Range = false, alerting.ReasonTooShort, time.Hour
	long := newRule("RDMALong", "warning")
	long.Evaluated, long.Reason, long.Range = false, alerting.ReasonTooShort, 25*time.Hour
	failed := newRule("RDMAFailed", "warning")
	failed.Evaluated, failed.Reason, failed.Err = false, alerting.ReasonFailed, errors.New("many matches")
	fresh := newRule("RDMAFresh", "warning")
	fresh.Evaluated, fresh.Reason = false, alerting.ReasonNotEvaluated
	watchdog := newRule("RDMAWatchdog", "none")
	watchdog.Evaluated, watchdog.Reason = false, alerting.ReasonNotEvaluated
	rules := []alerting.Rule{
		ok, short, fires, long, failed, fresh, watchdog,
		newRule(
			"RDMAOff",
			"info",
		), newRule("RDMADenied", "warning"), newRule("RDMADenied", "critical"), newRule("RDMAPart", "warning"),
		newRule("RDMAIdle", "warning"),
	}

	r := check.New(check.Input{
		Judgement: alerting.Judgement{
			From: testTime().Add(-75 * time.Second), To: testTime(), Rules: rules,
			Alerts: []alerting.Alert{newAlert(rules, 2, alerting.StateFiring, nil)},
		},
		History: 2 * time.Hour,
		Needs:   map[string]string{"module_eeprom": "the network namespace of the host"},
		Coverage: coverage.Report{
			Gaps: []coverage.Gap{
				{Alert: "RDMAOff", Reason: coverage.CollectorDisabled, Metrics: []string{"rdma_a"}, Collector: "pcie"},
				{Alert: "RDMADenied", Reason: coverage.Permission, Metrics: []string{"rdma_b", "rdma_c"}, Source: "module_eeprom"},
				{Alert: "RDMAPart", Reason: coverage.NotSupported, Metrics: []string{"rdma_d"}, Partly: true},
			},
			Idle: []string{"RDMAIdle"},
		},
	})
	want := []check.NotEvaluated{
		{Alert: "RDMADenied", Severity: "critical", Reason: "permission", Detail: "no permission to read module_eeprom, missing metrics: rdma_b, rdma_c", Needs: "the network namespace of the host", Metrics: []string{"rdma_b", "rdma_c"}},
		{Alert: "RDMAFailed", Severity: "warning", Reason: "evaluation_failed", Detail: "many matches"},
		{Alert: "RDMAFresh", Severity: "warning", Reason: "not_evaluated", Detail: "no evaluation has finished"},
		{Alert: "RDMALong", Severity: "warning", Reason: "history_too_short", Detail: "requires 25h of history, observed 1m15s", Needs: "25h"},
		{Alert: "RDMAOff", Severity: "info", Reason: "collector_disabled", Detail: "collector pcie is disabled", Needs: "--collector.pcie", Metrics: []string{"rdma_a"}},
		{Alert: "RDMAPart", Severity: "warning", Reason: "not_supported", Detail: "missing on some ports: rdma_d", Metrics: []string{"rdma_d"}, Partly: true},
		{Alert: "RDMATwo", Severity: "critical", Reason: "observed_too_short", Detail: "requires 1h30m of history, observed 1m15s", Needs: "1h30m"},
	}
	if !reflect.DeepEqual(r.NotEvaluated, want) {
		t.Errorf("got  %+v\nwant %+v", r.NotEvaluated, want)
	}
	const sum = "3 of 9 rules evaluated over 1m15s by a one-off evaluation (2 in part), 5 not evaluated, 1 not applicable"
	if got := r.Coverage(); got != sum {
		t.Errorf("%s\nwant %s", got, sum)
	}
	evaluated := []check.Evaluated{{"RDMAFires", "", "info"}, {"RDMAPart", "", "warning"}, {"RDMATwo", "", "critical"}}
	if !slices.Equal(r.Evaluated, evaluated) || !slices.Equal(r.NotApplicable, []string{"RDMAIdle"}) {
		t.Errorf("evaluated %v, not applicable %v", r.Evaluated, r.NotApplicable)
	}
}

// TestFilter: a filter selects the alerts of a report and sets the exit code.
func TestFilter(t *testing.T) {
	short := newRule("RDMAShort", "critical")
	short.Evaluated, short.Reason, short.Range = false, alerting.ReasonTooShort, time.Hour
	rules := []alerting.Rule{
		newRule("RDMAPortDown", "critical"), newRule("RDMALinkErrors", "warning"), newRule("RDMAInfo", "info"), short,
		newRule("RDMADeviceHot", "warning"),
	}
	firing := newAlert(rules, 1, alerting.StateFiring, nil)
	hot := coverage.Report{Gaps: []coverage.Gap{{Alert: "RDMADeviceHot", Reason: coverage.NotSupported}}}

	tests := map[string]struct {
		filter       check.Filter
		alerts       []alerting.Alert
		err          error
		code         int
		evaluated    int
		notEvaluated int
	}{
		"all":                           {alerts: []alerting.Alert{firing}, code: 1, evaluated: 3, notEvaluated: 2},
		"severity":                      {filter: check.Filter{Severity: "critical"}, alerts: []alerting.Alert{firing}, evaluated: 1, notEvaluated: 1},
		"severity of all":               {filter: check.Filter{Severity: "info"}, alerts: []alerting.Alert{firing}, code: 1, evaluated: 3, notEvaluated: 2},
		"only another":                  {filter: check.Filter{Only: []string{"RDMAPortDown"}}, alerts: []alerting.Alert{firing}, evaluated: 1},
		"only what is not evaluated":    {filter: check.Filter{Only: []string{"RDMADeviceHot"}}, code: 3, notEvaluated: 1},
		"strict":                        {filter: check.Filter{Strict: true}, code: 3, evaluated: 3, notEvaluated: 2},
		"strict, a warning":             {filter: check.Filter{Strict: true}, alerts: []alerting.Alert{firing}, code: 1, evaluated: 3, notEvaluated: 2},
		"strict, what nobody could see": {filter: check.Filter{Strict: true, Only: []string{"RDMAPortDown", "RDMADeviceHot"}}, evaluated: 1, notEvaluated: 1},
		"the evaluation failed":         {filter: check.Filter{Only: []string{"RDMAPortDown"}}, err: errors.New("no round"), code: 3, evaluated: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			whole := check.New(check.Input{
				Judgement: alerting.Judgement{
					From:   testTime(),
					To:     testTime(),
					Rules:  rules,
					Alerts: tc.alerts,
				}, Coverage: hot, Err: tc.err,
			})
			r := tc.filter.Apply(whole)
			if r.ExitCode != tc.code || len(r.Evaluated) != tc.evaluated || len(r.NotEvaluated) != tc.notEvaluated {
				t.Errorf("exit %d, evaluated %v, not %v; want %d, %d, %d",
					r.ExitCode, r.Evaluated, r.NotEvaluated, tc.code, tc.evaluated, tc.notEvaluated)
			}
			if r.Incomplete != (tc.code == 3 && tc.filter.Strict) {
				t.Errorf("incomplete: %t", r.Incomplete)
			}
			if len(whole.Evaluated) != 3 {
				t.Error("the whole report has changed")
			}
		})
	}
}

func TestRender(t *testing.T) {
	rules := []alerting.Rule{
		newRule("RDMACounterSaturated", "info"), newRule("RDMAPortDown", "critical"), newRule("RDMAPortDown", "warning"),
		newRule("RDMACollectorFailing", "warning"), newRule("RDMADeviceFailed", "critical"),
	}
	for _, name := range []string{"RDMALinkErrors", "RDMALinkFlapping"} {
		short := newRule(name, "warning")
		short.Evaluated, short.Reason, short.Range = false, alerting.ReasonTooShort, 70*time.Minute
		rules = append(rules, short)
	}
	long := newRule("RDMALinkFlapping", "warning")
	long.Evaluated, long.Reason, long.Range = false, alerting.ReasonTooShort, 25*time.Hour
	congested := newRule("RDMACongested", "warning")
	congested.Range, congested.For = 5*time.Minute, 15*time.Minute
	rules = append(rules, long, newRule("RDMAPCIeErrors", "critical"), newRule("RDMATransceiverHot", "critical"),
		newRule("RDMAPCIeDegraded", "critical"), newRule("RDMAGPUFabricDegraded", "warning"), congested)
	rules[0].For, rules[1].For = 15*time.Minute, 2*time.Minute
	in := check.Input{
		Exporter: "1.0.0 abc", Host: "gpu-1:10879", History: 2 * time.Hour,
		Judgement: alerting.Judgement{From: testTime().Add(-2 * time.Minute), To: testTime(), Rules: rules},
		Needs:     map[string]string{"module_eeprom": "CAP_NET_ADMIN"},
		Coverage: coverage.Report{
			Gaps: []coverage.Gap{
				{Alert: "RDMADeviceFailed", Reason: coverage.Failed, Metrics: []string{"rdma_scrape_collector_stuck"}, Collector: "infiniband"},
				{Alert: "RDMAPCIeErrors", Reason: coverage.NotSupported, Metrics: []string{"rdma_pcie_aer_errors_total"}},
				{Alert: "RDMATransceiverHot", Reason: coverage.Permission, Metrics: []string{"rdma_transceiver_state"}, Source: "module_eeprom"},
				{Alert: "RDMAPCIeDegraded", Reason: coverage.CollectorDisabled, Metrics: []string{"rdma_pcie_link_width_lanes"}, Collector: "pcie"},
			},
			Idle: []string{"RDMAGPUFabricDegraded"},
		},
	}
	ok := check.New(in)
	port := func(device string) map[string]string { return map[string]string{"device": device, "port": "1"} }
	in.Alerts = []alerting.Alert{
		newAlert(rules, 0, alerting.StatePending, port("mlx5_3")),
		newAlert(rules, 3, alerting.StateFiring, nil),
		newAlert(rules, 1, alerting.StatePending, port("mlx5_2")),
		newAlert(rules, 1, alerting.StateFiring, port("mlx5_1")),
		newAlert(rules, 1, alerting.StateFiring, port("mlx5_0")),
		newAlert(rules, 2, alerting.StateFiring, map[string]string{"device": "mlx5_8", "port": "1", "netdev": "eth8", "lane": "2"}),
		newAlert(rules, len(rules)-1, alerting.StatePending, port("mlx5_4")),
	}
	in.Alerts[1].Value = math.NaN()
	in.Alerts[5].ActiveAt = testTime()
	in.Alerts[4].Annotations["summary"] = "gpu-1 mlx5_0/1: 200 of 400 Gb/s (expected by siblings)"
	faulty := check.New(in)
	in.Err = errors.New("collect: no answer by the deadline")
	failed := check.New(in)

	in.Err, in.Interval = nil, 15*time.Second
	daemon := check.Filter{Strict: true, Severity: "warning"}.Apply(check.New(in))
	for name, r := range map[string]check.Report{"ok": ok, "faulty": faulty, "failed": failed, "daemon": daemon} {
		t.Run(name, func(t *testing.T) {
			var table, verbose, json bytes.Buffer
			if err := errors.Join(check.Table(&table, r, check.Style{}),
				check.Table(&verbose, r, check.Style{Style: terminal.Style{Colour: true, Width: 80}, Verbose: true}),
				check.JSON(&json, r)); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", table.Bytes())
			golden(t, name+"-verbose.txt", verbose.Bytes())
			golden(t, name+".json", json.Bytes())
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs:\n%s", path, got)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("pipe closed") }

func TestRenderErrors(t *testing.T) {
	r := check.New(check.Input{})
	for name, err := range map[string]error{
		"table": check.Table(brokenWriter{}, r, check.Style{}), "json": check.JSON(brokenWriter{}, r),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestHeadline: pending alerts are in the headline as watching, and change neither verdict nor exit code.
func TestHeadline(t *testing.T) {
	rules := []alerting.Rule{newRule("C", "critical"), newRule("W", "warning"), newRule("I", "info")}
	for i := range rules {
		rules[i].Range, rules[i].For = time.Minute, time.Minute
	}
	critical, warning, info := newAlert(
		rules,
		0,
		alerting.StatePending,
		nil,
	), newAlert(
		rules,
		1,
		alerting.StatePending,
		nil,
	),
		newAlert(
			rules,
			2,
			alerting.StatePending,
			nil,
		)
	other := newAlert(rules, 1, alerting.StatePending, map[string]string{"device": "mlx5_1"})
	for _, c := range []struct {
		name     string
		alerts   []alerting.Alert
		headline string
		line     string
	}{
		{"nothing", nil, "ok", ": ok\n"},
		{"critical", []alerting.Alert{critical}, "watching", ": pending critical: gpu-1 <b>: port down\n1 pending critical.\n"},
		{"both", []alerting.Alert{warning, critical, other}, "watching", ": pending critical: gpu-1 <b>: port down\n1 pending critical, 2 pending warnings.\n"},
		{"information alone", []alerting.Alert{info}, "ok", ": ok, 1 pending info\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := check.New(check.Input{
				Host: "h", Judgement: alerting.Judgement{From: testTime(), To: testTime(), Rules: rules, Alerts: c.alerts},
			})
			if r.Headline != c.headline || r.Verdict != "ok" || r.ExitCode != 0 || len(r.Findings) != 0 ||
				len(r.Pending) != len(c.alerts) {
				t.Errorf("%s, %s, %d, %d findings, %d pending", r.Headline, r.Verdict, r.ExitCode, len(r.Findings), len(r.Pending))
			}
			var b strings.Builder
			if err := check.Table(&b, r, check.Style{}); err != nil || !strings.Contains(b.String(), c.line) {
				t.Errorf("%v %q", err, b.String())
			}
		})
	}
}

// TestNoDevice: rules that are evaluated without RDMA devices do not make a host ok; findings keep their exit code.
func TestNoDevice(t *testing.T) {
	gpu := newRule("RDMAGPUXid", "warning")
	gpu.Metrics = []string{"rdma_gpu_xid_errors_total"}
	rules := []alerting.Rule{newRule("RDMADeviceFailed", "critical"), gpu, newRule("I", "info")}
	for name, c := range map[string]struct {
		firing []int
		filter check.Filter
		code   int
		want   string
	}{
		"no finding":         {nil, check.Filter{}, 3, "h: unknown: no RDMA device on this host\n"},
		"info":               {[]int{2}, check.Filter{}, 3, "h: unknown: no RDMA device on this host, 1 info\n"},
		"of a GPU":           {[]int{1}, check.Filter{}, 1, "h: warning: gpu-1 <b>: port down\n1 warning; no RDMA device on this host.\n"},
		"of a GPU, left out": {[]int{1}, check.Filter{Only: []string{"RDMADeviceFailed"}}, 3, "h: unknown: no RDMA device on this host\n"},
	} {
		t.Run(name, func(t *testing.T) {
			in := check.Input{
				Host: "h", Seen: check.Seen{NoDevice: &hostdata.NoDevice{}},
				Judgement: alerting.Judgement{From: testTime(), To: testTime(), Rules: rules},
			}
			for _, i := range c.firing {
				in.Alerts = append(in.Alerts, newAlert(rules, i, alerting.StateFiring, nil))
			}
			r := c.filter.Apply(check.New(in))
			if got := tableOf(t, r, check.Style{}); r.ExitCode != c.code || !strings.HasPrefix(got, c.want) ||
				!strings.Contains(got, "lspci") {
				t.Errorf("exit %d, want %d, %q\n%s", r.ExitCode, c.code, c.want, got)
			}
		})
	}
}

// TestFailedReads: failed reads are in the headline, and make the verdict unknown with --strict.
func TestFailedReads(t *testing.T) {
	for name, c := range map[string]struct {
		failed check.FailedReads
		filter check.Filter
		code   int
		want   string
	}{
		"ok":        {check.FailedReads{Devices: []string{"mlx5_0", "mlx5_1"}}, check.Filter{}, 0, "h: ok, reads of 2 devices failed\n"},
		"no device": {check.FailedReads{Others: []string{"gpu"}}, check.Filter{}, 0, "h: ok, reads failed\n"},
		"strict":    {check.FailedReads{Devices: []string{"mlx5_0"}}, check.Filter{Strict: true}, 3, "h: unknown (ok without --strict): rules that this host supports were not evaluated or are pending, reads of 1 device failed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			in := check.Input{
				Host: "h", Seen: check.Seen{Failed: &c.failed},
				Judgement: alerting.Judgement{From: testTime(), To: testTime(), Rules: []alerting.Rule{newRule("C", "critical")}},
			}
			r := c.filter.Apply(check.New(in))
			if got := tableOf(t, r, check.Style{}); r.ExitCode != c.code || !strings.HasPrefix(got, c.want) {
				t.Errorf("exit %d, want %d, %q\n%s", r.ExitCode, c.code, c.want, got)
			}
		})
	}
}

// TestUnknownObjects: an unknown compute object makes the verdict unknown, and the report names it with a remedy. Other
// objects, and objects that are not expected, do not.
func TestUnknownObjects(t *testing.T) {
	port := func(n int, class account.Class) account.Object {
		return account.Object{
			Kind: account.Port, Name: fmt.Sprintf("mlx5_%d/1", n), Class: class, Compute: true,
			Reason: "DOWN, never ACTIVE", Unused: class == account.Unknown,
		}
	}
	const unknown = "h: drain unknown, do not drain: "
	const settle = "No history shows that they were in use. If they are not cabled on purpose: rdma_exporter accept NAME. " +
		"To be alerted, pin them in --config.file (active: true)."
	for name, c := range map[string]struct {
		n     int
		class account.Class
		code  int
		drain string
		want  []string
	}{
		"healthy": {2, account.Healthy, check.ExitOK, "h: no drain\n", []string{"h: ok: nothing is wrong: 2 ports healthy"}},
		"not expected": {1, account.NotExpected, check.ExitOK, "h: no drain\n", []string{
			"h: ok: nothing is wrong: 1 port not expected (DOWN, never ACTIVE)",
		}},
		"unknown": {1, account.Unknown, check.ExitUnknown, unknown + "1 port unknown (DOWN, never ACTIVE)\n", []string{
			"h: unknown: 1 port unknown (DOWN, never ACTIVE)", "Unknown: mlx5_0/1 (DOWN, never ACTIVE). " + settle,
		}},
		"many": {18, account.Unknown, check.ExitUnknown, unknown + "18 ports unknown (DOWN, never ACTIVE)\n", []string{
			", mlx5_15/1, 2 more (DOWN, never ACTIVE). " + settle,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []account.Object
			for i := range c.n {
				objects = append(objects, port(i, c.class))
			}
			r := check.New(check.Input{
				Host: "h", Seen: check.Seen{Objects: objects},
				Judgement: alerting.Judgement{To: testTime(), Rules: []alerting.Rule{newRule("C", "critical")}},
				Recorded:  check.Recorded{Fit: new(1.0), Drain: new(0.0)}, // an unknown port has no rule
			})
			text := tableOf(t, r, check.Style{})
			var drain strings.Builder
			if err := check.Drain(&drain, r, false); err != nil {
				t.Fatal(err)
			}
			if unknown := c.code == check.ExitUnknown; drain.String() != c.drain || r.DrainExitCode() != c.code ||
				(r.Drain == "unknown") != unknown || (r.Fit == nil) != unknown || r.Fit != nil && !*r.Fit {
				t.Errorf("drain %s, exit %d, fit %v\n%swant\n%s", r.Drain, r.DrainExitCode(), r.Fit, &drain, c.drain)
			}
			for _, want := range c.want {
				if r.ExitCode != c.code || !strings.Contains(text, want) {
					t.Errorf("exit %d, want %d, %q\n%s", r.ExitCode, c.code, want, text)
				}
			}
			if c.code == check.ExitOK && strings.Contains(text, settle) {
				t.Error(text)
			}
			// A report on other alerts does not include it.
			if r := (check.Filter{Only: []string{"C"}}).Apply(r); r.ExitCode != check.ExitOK {
				t.Errorf("exit %d of another alert", r.ExitCode)
			}
		})
	}
}

// TestNotes: notes are left out together with the alerts that they belong to. Those on most healthy hosts stand apart.
func TestNotes(t *testing.T) {
	seen := check.Seen{
		Objects: []account.Object{{
			Kind: account.Port, Name: "mlx5_0/1", Class: account.Unknown, Reason: "state could not be read", Compute: true,
		}},
		Stack: &check.Stack{State: "no_device", Functions: []string{"0000:18:00.0"}},
		Rates: check.Rates{Ports: 8, Capable: 400e9},
	}
	const (
		port  = "Unknown: mlx5_0/1 (state could not be read)"
		stack = "RDMA stack not loaded, unknown whether it is expected: 1 PCI function with RDMA capability: 0000:18:00.0. To be alerted, pin the devices in --config.file (present: true)"
		rates = "Rates of 8 ports are inferred (the NIC supports 400 Gb/s): no alert if slow from the start. Pin them: rdma_exporter expect list"
	)
	for only, want := range map[string]string{
		"":                  port + "|" + stack + "||" + rates,
		"RDMAPortDown":      port + "||",
		"RDMADeviceMissing": stack + "||",
		"RDMALinkDegraded":  "||" + rates,
		"RDMAPCIeErrors":    "||",
	} {
		t.Run(only, func(t *testing.T) {
			r := check.New(check.Input{
				Host: "h", Seen: seen,
				Judgement: alerting.Judgement{To: testTime(), Rules: []alerting.Rule{newRule("C", "critical")}},
			})
			if only != "" {
				r = check.Filter{Only: []string{only}}.Apply(r)
			}
			if got := strings.Join(r.Notes(), "|") + "||" + strings.Join(r.Standing(), "|"); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
	for want, f := range map[string]*check.Functions{
		"||": nil,
		"||1 function beside physical ones (virtual functions, subfunctions) with identity, state and the counters of rules only (--device.functions)":                                                                                {Reduced: 1},
		"984 devices left out (--limit.devices), 12 series left out (--limit.series)||1016 functions beside physical ones (virtual functions, subfunctions) with identity, state and the counters of rules only (--device.functions)": {Reduced: 1016, Devices: 984, Series: 12},
	} {
		s := check.Seen{Functions: f}
		if got := strings.Join(s.Notes(), "|") + "||" + strings.Join(s.Standing(), "|"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for want, s := range map[string]check.Seen{
		"/sys/class/infiniband has no device, and no PCI function supports RDMA": {NoDevice: &hostdata.NoDevice{}},
		"RDMA devices belong to network namespaces (rdma system show), and another one may have those of 2 PCI functions.": {
			NoDevice: &hostdata.NoDevice{Functions: 2, Namespaced: true},
		},
		"": {NoDevice: &hostdata.NoDevice{Functions: 2}}, // the rule or the note on the stack
		`Reads failed: mlx5_0, collector gpu. Rules are not evaluated for what these reads would have returned, and faults there are not reported. First error: mlx5_0: io. All errors: log, "read failed"`: {
			Failed: &check.FailedReads{Devices: []string{"mlx5_0"}, Others: []string{"gpu"}, First: "mlx5_0: io"},
		},
	} {
		if got := strings.Join(s.Notes(), "|"); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s, want %s", got, want)
		}
	}
	one := check.Seen{Rates: check.Rates{Ports: 1}}
	if got := fmt.Sprint(one.Standing()); got != "[The rate of 1 port is inferred: no alert if slow from the start. Pin it: rdma_exporter expect list]" {
		t.Error(got)
	}
}

// TestOneFindingOfAnObject: an alert that fires at two severities on one object is one finding, at the worse severity.
func TestOneFindingOfAnObject(t *testing.T) {
	rules := []alerting.Rule{newRule("F", "info"), newRule("F", "warning")}
	of := func(device string) map[string]string { return map[string]string{"device": device} }
	r := check.New(check.Input{
		Host: "gpu-1:10879", Judgement: alerting.Judgement{To: testTime(), Rules: rules, Alerts: []alerting.Alert{
			newAlert(rules, 0, alerting.StateFiring, of("a")), newAlert(rules, 1, alerting.StateFiring, of("a")),
			newAlert(rules, 0, alerting.StateFiring, of("b")),
		}},
	})
	if len(r.Findings) != 2 || r.Findings[0].Severity != "warning" || r.Findings[0].Labels["device"] != "a" ||
		r.Findings[1].Labels["device"] != "b" {
		t.Errorf("%+v", r.Findings)
	}
}
