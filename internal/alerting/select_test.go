package alerting_test

import (
	"strings"
	"testing"

	"rdma_exporter/internal/alerting"
)

func TestSelect(t *testing.T) {
	wanted := func(name string) bool { return name == "up" || strings.HasPrefix(name, "rdma_") }
	for expr, want := range map[string]string{
		"rdma_a":                                  `rdma_a{job="x",c=~"a|b"}`,
		"rdma_a{}":                                `rdma_a{job="x",c=~"a|b"}`,
		`rdma_a {d="}\"{", e='}'}`:                `rdma_a{job="x",c=~"a|b",d="}\"{",e="}"}`,
		`up{job=~".*rdma.*"} == 0`:                `up{job="x",c=~"a|b"} == 0`,
		"rate(rdma_a[5m] offset 1m)\n > 1":        "rate(rdma_a{job=\"x\",c=~\"a|b\"}[5m] offset 1m)\n > 1",
		"port:rdma_a:b or up_a":                   "port:rdma_a:b or up_a",
		`rdma_a{c="d"} and on (job) rdma_b`:       `rdma_a{job="x",c=~"a|b",c="d"} and on (job) rdma_b{job="x",c=~"a|b"}`,
		`label_replace(rdma_a,"b","rdma_","","")`: `label_replace(rdma_a{job="x",c=~"a|b"},"b","rdma_","","")`,
	} {
		got, err := alerting.Select(expr, `job="x", c=~"a|b"`, wanted)
		if err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", expr, got, err, want)
		}
	}
	for expr, matchers := range map[string]string{
		"rdma_a": "job", "rdma_a{": "", "rdma_b": `__name__="rdma_c"`, `{__name__="rdma_a"}`: `job="x"`,
	} {
		if got, err := alerting.Select(expr, matchers, wanted); err == nil {
			t.Errorf("%s with %s: %s", expr, matchers, got)
		}
	}
}
