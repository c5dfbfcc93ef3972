package coverage_test

import (
	"slices"
	"testing"

	"rdma_exporter/internal/coverage"
)

func needOf(name string, labels ...string) coverage.Need {
	return coverage.Need{Metric: name, Labels: labels}
}

func TestNeedsAreSimple(t *testing.T) {
	a, b, c := needOf("a"), needOf("b"), needOf("c")
	for name, tc := range map[string]struct {
		need coverage.Need
		want string
	}{
		"nothing":                         {coverage.All(), "()"},
		"nothing, again":                  {coverage.Any(), "()"},
		"one":                             {coverage.All(a), "a"},
		"all, flat, once each":            {coverage.All(b, coverage.All(a, b)), "(a & b)"},
		"any, flat, once each":            {coverage.Any(b, coverage.Any(a, b)), "(a | b)"},
		"any of nothing":                  {coverage.Any(a, coverage.Need{}), "()"},
		"all beside nothing":              {coverage.All(a, coverage.Need{}), "a"},
		"all with any of it":              {coverage.All(a, coverage.Any(a, b)), "a"},
		"all with any of others":          {coverage.All(a, coverage.Any(b, c)), "((b | c) & a)"},
		"any with more than another":      {coverage.Any(a, coverage.All(a, b)), "a"},
		"any with much more than another": {coverage.Any(coverage.All(a, b), coverage.All(a, b, c)), "(a & b)"},
		"any with other things":           {coverage.Any(coverage.All(a, b), c), "((a & b) | c)"},
		"labels are another thing":        {coverage.All(a, needOf("a", "x", "y")), "(a & a{x,y})"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.need.String(); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
	if got := coverage.All(coverage.Any(needOf("c"), needOf("a", "x")), needOf("b"), needOf("a")).Metrics(); !slices.Equal(
		got,
		[]string{"a", "b", "c"},
	) {
		t.Errorf("metrics %v", got)
	}
}
