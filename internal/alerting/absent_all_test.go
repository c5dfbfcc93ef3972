//go:build !race

package alerting

import (
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
)

// TestUnevaluatedRules: while series appear and end, alerts and records are those of an engine that
// evaluates each rule.
func TestUnevaluatedRules(t *testing.T) {
	const ruleText = `
groups:
  - name: records
    rules:
      - {record: "x:first", expr: "b and a"}
      - {record: "x:second", expr: "sum by (l) (x:first) or c > 100"}
      - {record: "x:own", expr: "d or x:own unless c"}
  - name: alerts
    rules:
      - {alert: And, expr: "a and on () b", for: 3m, keep_firing_for: 10m}
      - {alert: Or, expr: "a or b * 2"}
      - {alert: Unless, expr: "a unless on () b", for: 5m}
      - {alert: Past, expr: "max_over_time(c[1h]) unless c", keep_firing_for: 30m}
      - {alert: Absent, expr: "absent(b) and on () a"}
      - {alert: Zero, expr: "(count(d) or vector(0)) == 0"}
      - {alert: Scalar, expr: "a > on () group_left () scalar(b) or a"}
      - {alert: Record, expr: "x:second > 0", for: 1m}
      - {alert: Own, expr: "x:own offset 2m"}
      - {alert: Alerts, expr: 'count by (alertname) (ALERTS{alertname=~"And|Past", alertstate="firing"}) and on () d'}
      - {alert: Value, expr: 'c{l="2"} or d{l="1"}'}
      - {alert: Subquery, expr: "max_over_time((a and b)[30m:1m])", annotations: {text: '{{ query "b" | len }}'}}
`
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 0))
		fast, slow := newEngine(t, ruleText), newEngine(t, ruleText)
		evaluated, unevaluated := 0, 0
		slow.EvaluateAll(func(_ string, _, _ promql.Vector, all bool) {
			if all {
				unevaluated++
			}
		})
		left, names := 0, []string(nil)
		for n := range 6 * 60 {
			if left--; left < 0 {
				left, names = r.IntN(60), nil
				for _, name := range []string{"a", "b", "c", "d"} {
					if r.IntN(3) == 0 {
						names = append(names, name)
					}
				}
			}
			at := t1.Add(time.Minute * time.Duration(n))
			evaluateRound(t, fast, at, names...)
			evaluateRound(t, slow, at, names...)
			evaluated += 15
			if got, want := fast.Alerts(), slow.Alerts(); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, minute %d, %v:\n%+v\nwant\n%+v", seed, n, names, got, want)
			}
			const all = `{__name__=~".+"}`
			got, err := fast.Query(t.Context(), all, at)
			want, errWant := slow.Query(t.Context(), all, at)
			if err != nil || errWant != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, minute %d, %v: %v, %v\n%v\nwant\n%v", seed, n, names, err, errWant, got, want)
			}
		}
		blocks, err := filepath.Glob(fast.opts.Dir + "/01*")
		if unevaluated < evaluated/10 || len(blocks) == 0 {
			t.Errorf("seed %d: %d of %d not evaluated, %d blocks, %v", seed, unevaluated, evaluated, len(blocks), err)
		}
	}
}
