package alerting_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"rdma_exporter/internal/alerting"
)

const manyRules = `
groups:
  - name: g
    rules:
      - {record: 'r:rate', expr: 'rate(c_total[10m] offset 5m)'}
      - {record: 'r:kept', expr: 'a or (r:kept and b)'}
      - {alert: Present, expr: a == 1}
      - {alert: Range, expr: 'increase(c_total[1h]) > 1'}
      - {alert: Subquery, expr: 'max_over_time(rate(c_total[5m] offset 1m)[30m:1m] offset 10m) > 1'}
      - {alert: Recorded, expr: 'avg_over_time(r:rate[5m]) > 1'}
      - {alert: Kept, expr: 'r:kept == 1'}
      - {alert: And, expr: 'a and b'}
      - {alert: Or, expr: 'a or b'}
      - {alert: Unless, expr: 'a unless b'}
      - {alert: UnlessLeft, expr: 'b unless a'}
      - {alert: Absent, expr: 'absent(b)'}
      - {alert: Constant, expr: 'vector(1)'}
      - {alert: Nested, expr: 'sum by (x) (-a * on (x) group_left label_replace(b, "x", "$1", "y", "(.*)")) > scalar(c_total)'}
`

func TestRules(t *testing.T) {
	e := newTestEngine(t, manyRules)
	want := func(when string, lines ...string) {
		t.Helper()
		for i, r := range e.Rules() {
			got := fmt.Sprintf("%s %s %v %s",
				r.Name, r.Range, r.Metrics, map[bool]alerting.Reason{true: "evaluated", false: r.Reason}[r.Evaluated])
			if got != lines[i] {
				t.Errorf("%s: got  %s\n%s  want %s", when, got, when, lines[i])
			}
		}
	}
	if r := e.Rules()[0]; r.Evaluated || r.Reason != alerting.ReasonNotEvaluated {
		t.Errorf("before the first evaluation: %+v", r)
	}
	stepTo(t, e, timeAt(0), gauge("a", 1), counter("c_total", 0))
	want("one evaluation",
		"Present 0s [a] evaluated",
		"Range 1h0m0s [c_total] observed_too_short",
		"Subquery 46m0s [c_total] observed_too_short",
		"Recorded 20m0s [c_total] observed_too_short",
		"Kept 0s [a b] evaluated",
		"And 0s [a b] evaluated",
		"Or 0s [a b] evaluated",
		"Unless 0s [a b] evaluated",
		"UnlessLeft 0s [a b] evaluated",
		"Absent 0s [b] evaluated",
		"Constant 0s [] evaluated",
		"Nested 0s [a b c_total] evaluated",
	)
	for now := time.Minute; now <= 50*time.Minute; now += time.Minute {
		stepTo(t, e, timeAt(now), gauge("b", 1), counter("c_total", 0))
	}
	want("50 minutes",
		"Present 0s [a] evaluated",
		"Range 1h0m0s [c_total] observed_too_short",
		"Subquery 46m0s [c_total] evaluated",
		"Recorded 20m0s [c_total] evaluated",
		"Kept 0s [a b] evaluated",
		"And 0s [a b] evaluated",
		"Or 0s [a b] evaluated",
		"Unless 0s [a b] evaluated",
		"UnlessLeft 0s [a b] evaluated",
		"Absent 0s [b] evaluated",
		"Constant 0s [] evaluated",
		"Nested 0s [a b c_total] evaluated",
	)
	// A pause longer than the lookback starts a new span.
	stepTo(t, e, timeAt(56*time.Minute), gauge("b", 1), counter("c_total", 0))
	if from, _ := e.Observed(); !from.Equal(timeAt(56 * time.Minute)) {
		t.Errorf("observed from %s", from)
	}
}

// TestAlertOnFaultsWithoutTheirLabels: an alert on faults without severity and reason is listed, as one of its rule.
func TestAlertOnFaultsWithoutTheirLabels(t *testing.T) {
	e := newTestEngine(t, `
groups:
  - name: g
    rules:
      - {record: 'rdma:finding', expr: 'a == 1', labels: {symptom: s, reason: one, severity: info}}
      - {record: 'rdma:finding', expr: 'a == 2', labels: {symptom: s, reason: two, severity: info}}
      - {record: 'rdma:fault', expr: 'rdma:finding'}
      - {alert: Faults, expr: 'count(rdma:fault{symptom="s"}) > 0'}
      - {alert: Fault, expr: 'rdma:fault{symptom="s"}'}
`)
	stepTo(t, e, timeAt(0), gauge("a", 2))
	var got []string
	for _, a := range e.Alerts() {
		got = append(got, fmt.Sprintf("%s %d %s", a.Name, a.Rule, e.Rules()[a.Rule].Labels["reason"]))
	}
	if want := []string{"Faults 0 one", "Fault 3 two"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
