//go:build !race

package alerting_test

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/promql"

	"rdma_exporter/internal/verdict"
	"rdma_exporter/test/machines"
)

// TestUnevaluatedRulesOfMachines: rules of which not all is evaluated have the same results on recorded machines.
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
			j, err := verdict.New(m, sched, machines.Builtin(t), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			unevaluated := 0
			j.Engine.EvaluateAll(func(text string, got, want promql.Vector, all bool) {
				if all {
					unevaluated++
				}
				if a, b := samplesOf(got), samplesOf(want); !slices.Equal(a, b) {
					t.Errorf("%s:\n%q\nwant\n%q", text, a, b)
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

// samplesOf returns the samples of a result, sorted.
func samplesOf(v promql.Vector) (out []string) {
	for _, s := range v {
		out = append(out, s.String())
	}
	slices.Sort(out)
	return out
}
