package alerting_test

import (
	"log/slog"
	"testing"

	"github.com/prometheus/prometheus/promql"

	"rdma_exporter/internal/evaluate"
	"rdma_exporter/test/machines"
)

// TestUnevaluatedRulesOfMachines: on recorded machines the rules that are not evaluated have no result.
func TestUnevaluatedRulesOfMachines(t *testing.T) {
	every := 12
	if testing.Short() {
		every = 100
	}
	for i, name := range machines.Names(t) {
		if i%every != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, sched := machines.Open(t, machines.Fixture(name))
			j, err := evaluate.New(m, sched, machines.Builtin(t), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			unevaluated := 0
			j.Engine.EvaluateAll(func(text string, result promql.Vector, err error) {
				if unevaluated++; len(result) > 0 || err != nil {
					t.Errorf("%s: %v, %v", text, result, err)
				}
			})
			for _, at := range m.Player.Times() {
				if err := j.Round(t.Context(), at); err != nil {
					t.Fatal(err)
				}
			}
			if rounds := len(m.Player.Times()); unevaluated < 100*rounds {
				t.Errorf("%d rules not evaluated in %d rounds", unevaluated, rounds)
			}
		})
	}
}
