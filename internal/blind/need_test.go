package blind_test

import (
	"slices"
	"testing"

	"rdma_exporter/internal/blind"
)

func m(name string, labels ...string) blind.Need { return blind.Need{Metric: name, Labels: labels} }

func TestNeedsAreSimple(t *testing.T) {
	a, b, c := m("a"), m("b"), m("c")
	for name, tc := range map[string]struct {
		need blind.Need
		want string
	}{
		"nothing":                         {blind.All(), "()"},
		"nothing, again":                  {blind.Any(), "()"},
		"one":                             {blind.All(a), "a"},
		"all, flat, once each":            {blind.All(b, blind.All(a, b)), "(a & b)"},
		"any, flat, once each":            {blind.Any(b, blind.Any(a, b)), "(a | b)"},
		"any of nothing":                  {blind.Any(a, blind.Need{}), "()"},
		"all beside nothing":              {blind.All(a, blind.Need{}), "a"},
		"all with any of it":              {blind.All(a, blind.Any(a, b)), "a"},
		"all with any of others":          {blind.All(a, blind.Any(b, c)), "((b | c) & a)"},
		"any with more than another":      {blind.Any(a, blind.All(a, b)), "a"},
		"any with much more than another": {blind.Any(blind.All(a, b), blind.All(a, b, c)), "(a & b)"},
		"any with other things":           {blind.Any(blind.All(a, b), c), "((a & b) | c)"},
		"labels are another thing":        {blind.All(a, m("a", "x", "y")), "(a & a{x,y})"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.need.String(); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
	if got := blind.All(blind.Any(m("c"), m("a", "x")), m("b"), m("a")).Metrics(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("metrics %v", got)
	}
}
