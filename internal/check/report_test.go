package check_test

import (
	"bytes"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func rule(name, severity string) alerting.Rule {
	return alerting.Rule{Name: name, Labels: map[string]string{"severity": severity}, Judged: true, Metrics: []string{"rdma_port_state_id"}}
}

func alert(rules []alerting.Rule, i int, state alerting.State, labels map[string]string) alerting.Alert {
	all := map[string]string{"alertname": rules[i].Name, "severity": rules[i].Labels["severity"], "instance": "gpu-1:10879", "job": "rdma_exporter"}
	for name, value := range labels {
		all[name] = value
	}
	return alerting.Alert{
		Name: rules[i].Name, Rule: i, State: state, Labels: all, Value: 1, ActiveAt: now().Add(-90 * time.Second),
		Annotations: map[string]string{"summary": "Port <b> of\ngpu-1 is down.", "description": "Look: rdma link"},
	}
}

func TestVerdict(t *testing.T) {
	critical, warning, info, none := rule("C", "critical"), rule("W", "warning"), rule("I", "info"), rule("N", "none")
	ranged := rule("R", "critical")
	ranged.Range = time.Hour
	short := ranged
	short.Judged, short.Reason = false, alerting.ReasonTooShort
	blind := rule("B", "critical")
	blind.Judged, blind.Reason, blind.Missing = false, alerting.ReasonNoData, []string{"rdma_x"}
	firing, pending := alerting.StateFiring, alerting.StatePending

	tests := map[string]struct {
		rules    []alerting.Rule
		states   map[int]alerting.State
		err      error
		code     int
		verdict  string
		findings int
	}{
		"nothing active":             {rules: []alerting.Rule{critical, warning}, code: 0, verdict: "ok"},
		"warning":                    {rules: []alerting.Rule{critical, warning}, states: map[int]alerting.State{1: firing}, code: 1, verdict: "warning", findings: 1},
		"worst wins":                 {rules: []alerting.Rule{warning, critical}, states: map[int]alerting.State{0: firing, 1: firing}, code: 2, verdict: "critical", findings: 2},
		"pending without a range":    {rules: []alerting.Rule{critical}, states: map[int]alerting.State{0: pending}, code: 2, verdict: "critical", findings: 1},
		"pending with a range":       {rules: []alerting.Rule{ranged}, states: map[int]alerting.State{0: pending}, code: 0, verdict: "ok"},
		"firing with a range":        {rules: []alerting.Rule{ranged}, states: map[int]alerting.State{0: firing}, code: 2, verdict: "critical", findings: 1},
		"firing, observed too short": {rules: []alerting.Rule{short, info}, states: map[int]alerting.State{0: firing}, code: 0, verdict: "ok"},
		"kept after its data went":   {rules: []alerting.Rule{blind, info}, states: map[int]alerting.State{0: firing}, code: 2, verdict: "critical", findings: 1},
		"info alone":                 {rules: []alerting.Rule{info}, states: map[int]alerting.State{0: firing}, code: 0, verdict: "ok", findings: 1},
		"the watchdog is no finding": {rules: []alerting.Rule{none, critical}, states: map[int]alerting.State{0: firing}, code: 0, verdict: "ok"},
		"only a watchdog judged":     {rules: []alerting.Rule{none, blind}, states: map[int]alerting.State{0: firing}, code: 3, verdict: "unknown"},
		"some blind":                 {rules: []alerting.Rule{blind, warning}, code: 0, verdict: "ok"},
		"no rules":                   {code: 3, verdict: "unknown"},
		"the look failed":            {rules: []alerting.Rule{critical}, states: map[int]alerting.State{0: firing}, err: errors.New("no round"), code: 3, verdict: "unknown", findings: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := check.Input{Host: "gpu-1:10879", From: now(), To: now(), Rules: tc.rules, Err: tc.err}
			for i := range tc.rules {
				if state, ok := tc.states[i]; ok {
					in.Alerts = append(in.Alerts, alert(tc.rules, i, state, nil))
				}
			}
			r := check.New(in)
			if r.ExitCode != tc.code || r.Verdict != tc.verdict || len(r.Findings) != tc.findings {
				t.Errorf("exit %d, %s, %d findings; want %d, %s, %d", r.ExitCode, r.Verdict, len(r.Findings), tc.code, tc.verdict, tc.findings)
			}
		})
	}
}

func TestNotJudged(t *testing.T) {
	ok := rule("RDMATwo", "critical")
	blind := rule("RDMATwo", "info") // the other severity was judged: no gap
	blind.Judged, blind.Reason, blind.Missing = false, alerting.ReasonNoData, []string{"rdma_a"}
	alone := blind
	alone.Name, alone.Missing = "RDMABlind", []string{"rdma_b", "rdma_c"}
	short := rule("RDMATwo", "warning")
	short.Judged, short.Reason, short.Range = false, alerting.ReasonTooShort, 90*time.Minute
	failed := rule("RDMAFailed", "warning")
	failed.Judged, failed.Reason, failed.Err = false, alerting.ReasonFailed, errors.New("many matches")
	fresh := rule("RDMAFresh", "warning")
	fresh.Judged, fresh.Reason = false, alerting.ReasonNotEvaluated
	watchdog := rule("RDMAWatchdog", "none")
	watchdog.Judged, watchdog.Reason = false, alerting.ReasonNotEvaluated

	r := check.New(check.Input{From: now().Add(-75 * time.Second), To: now(), Rules: []alerting.Rule{ok, blind, alone, alone, short, failed, fresh, watchdog}})
	want := []check.NotJudged{
		{Alert: "RDMABlind", Reason: "no_data", Detail: "no rdma_b, rdma_c"},
		{Alert: "RDMAFailed", Reason: "evaluation_failed", Detail: "many matches"},
		{Alert: "RDMAFresh", Reason: "not_evaluated", Detail: "the rules have not been evaluated"},
		{Alert: "RDMATwo", Reason: "observed_too_short", Detail: "looks back 1h30m, observed 1m15s"},
	}
	if !slices.Equal(r.NotJudged, want) {
		t.Errorf("got  %v\nwant %v", r.NotJudged, want)
	}
	if r.Judged != 1 {
		t.Errorf("%d judged", r.Judged)
	}
}

func TestRender(t *testing.T) {
	rules := []alerting.Rule{
		rule("RDMACounterSaturated", "info"), rule("RDMAPortDown", "critical"), rule("RDMAPortDown", "warning"),
		rule("RDMACollectorFailing", "warning"), rule("RDMAReadStuck", "critical"),
	}
	rules[4].Judged, rules[4].Reason, rules[4].Missing = false, alerting.ReasonNoData, []string{"rdma_scrape_collector_stuck"}
	in := check.Input{Host: "gpu-1:10879", From: now().Add(-2 * time.Minute), To: now(), Rules: rules}
	ok := check.New(in)
	port := func(device string) map[string]string { return map[string]string{"device": device, "port": "1"} }
	in.Alerts = []alerting.Alert{
		alert(rules, 0, alerting.StatePending, port("mlx5_3")),
		alert(rules, 3, alerting.StateFiring, nil),
		alert(rules, 1, alerting.StatePending, port("mlx5_2")),
		alert(rules, 1, alerting.StateFiring, port("mlx5_1")),
		alert(rules, 1, alerting.StateFiring, port("mlx5_0")),
		alert(rules, 2, alerting.StateFiring, map[string]string{"device": "mlx5_8", "port": "1", "netdev": "eth8", "lane": "2"}),
	}
	in.Alerts[1].Value = math.NaN()
	in.Alerts[5].ActiveAt = now()
	faulty := check.New(in)
	in.Err = errors.New("collect: no answer by the deadline")
	failed := check.New(in)

	for name, r := range map[string]check.Report{"ok": ok, "faulty": faulty, "failed": failed} {
		var table, json bytes.Buffer
		if err := errors.Join(check.Table(&table, r), check.JSON(&json, r)); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", table.Bytes())
		golden(t, name+".json", json.Bytes())
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
	for name, err := range map[string]error{"table": check.Table(brokenWriter{}, r), "json": check.JSON(brokenWriter{}, r)} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
