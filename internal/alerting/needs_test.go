package alerting_test

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"rdma_exporter/internal/alerting"
)

func TestNeeds(t *testing.T) {
	more := `
      - {record: 'r:kept', expr: 'c'}
      - {alert: Twice, expr: 'r:kept'}
      - {alert: Labels, expr: 'a{x="1",y!="",z!="1",v=~"1|2",w=~".*"}'}
      - {alert: Recorded, expr: 'r:rate{x="1"}', labels: {severity: info}}
      - {alert: Ours, expr: 'up == 0 and ALERTS{alertname="And"} and a'}
      - {alert: None, expr: 'a', labels: {severity: none}}
      - {alert: And, expr: 'b'}
      - record: 'r:errors'
        expr: label_replace(a, "counter", "a", "", "") or label_replace(b, "counter", "b", "", "") and c
      - {record: 'r:sum', expr: 'sum_over_time(r:errors[5m]) and d'}
      - {alert: OneOfSet, expr: 'r:sum{counter="b"}'}
      - {alert: AnotherOfSet, expr: 'r:sum{counter!="b"}'}
      - {alert: AllOfSet, expr: 'r:sum'}
      - {alert: NoneOfSet, expr: 'r:sum{counter="x"}'}
`
	alerts, err := alerting.Needs(
		fstest.MapFS{"r.yml": {Data: []byte(strings.TrimSuffix(manyRules, "\n") + more)}}, []string{"r.yml"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, a := range alerts {
		got[a.Name] = a.Need.String()
	}
	want := map[string]string{
		"Present": "a", "Range": "c_total", "Subquery": "c_total", "Recorded": "c_total",
		"Kept":     "a",       // the rule's own record was derived from a
		"And":      "b",       // two rules: the second requires less
		"Or":       "(a | b)", // one of them
		"Unless":   "a",
		"Absent":   "()",
		"Constant": "()", "UnlessLeft": "b",
		"Nested": "(a & b)",
		"Twice":  "(a | c)",
		"Labels": "a{v,x,y}", "Ours": "a",
		"OneOfSet": "(b & c & d)", "AnotherOfSet": "(a & d)", "AllOfSet": "(((b & c) | a) & d)",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if _, err := alerting.Needs(
		fstest.MapFS{"r.yml": {Data: []byte("groups: [{name: g, rules: [{alert: A, expr: 'a +'}]}]")}}, []string{"r.yml"},
	); err == nil {
		t.Error("no error of a rule that is none")
	}
}
