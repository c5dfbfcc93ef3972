package rollup_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"rdma_exporter/internal/alerting/rollup"
	"rdma_exporter/rules"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func textsOf(t *testing.T, set func() (fs.FS, []string, error)) (texts [][]byte) {
	t.Helper()
	files, names, err := set()
	must(t, err)
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		must(t, err)
		texts = append(texts, text)
	}
	return texts
}

// ofOthers are names that no rule here records: of Prometheus, of the operator.
var ofOthers = []string{"ALERTS", "ALERTS_FOR_STATE", "rdma:threshold", "job:rdma_expected_hosts:count"}

func isLeaf(group string) bool { return !rollup.IsGlobal(group) }

// groupsOf returns the groups of each record; alerts have no colon in their names.
func groupsOf(all []rollup.Names) map[string][]string {
	groups := map[string][]string{}
	for _, r := range all {
		if strings.Contains(r.Rule, ":") {
			groups[r.Rule] = append(groups[r.Rule], r.Group)
		}
	}
	return groups
}

// TestReads: global rules and their texts read recorded names only, rules of a leaf no name that only global rules
// record, and rules of a host none that only rules across hosts record.
func TestReads(t *testing.T) {
	all, err := rollup.Read(textsOf(t, rules.Both))
	must(t, err)
	node, err := rollup.Read(textsOf(t, rules.Node))
	must(t, err)
	recorded, ofNode := groupsOf(all), groupsOf(node)
	for _, r := range node {
		for _, n := range r.Reads {
			if strings.Contains(n, ":") && ofNode[n] == nil && !slices.Contains(ofOthers, n) {
				t.Errorf("%s of %s reads %s, which no rule of rules/node records", r.Rule, r.Group, n)
			}
		}
	}
	groups := map[string]bool{}
	for _, r := range all {
		groups[r.Group] = true
		for _, n := range r.Reads {
			by := recorded[n]
			switch {
			case slices.Contains(ofOthers, n):
			case rollup.IsGlobal(r.Group) && by == nil:
				t.Errorf("%s of %s reads %s: record it in symptoms.rules.yml or central/leaf.rules.yml", r.Rule, r.Group, n)
			case !rollup.IsGlobal(r.Group) && by != nil && !slices.ContainsFunc(by, isLeaf):
				t.Errorf("%s of %s, a group of the leaves, reads %s, which only %s record", r.Rule, r.Group, n, by)
			}
		}
	}
	for _, g := range rollup.Global() {
		if !groups[g] {
			t.Errorf("%s: no such group", g)
		}
	}
}

// TestGroups: each group is in one of both sets, with its rules.
func TestGroups(t *testing.T) {
	var halves [][]byte
	for _, text := range textsOf(t, rules.Both) {
		for _, wanted := range []func(string) bool{rollup.IsGlobal, isLeaf} {
			if half := rollup.Groups(text, wanted); half != nil {
				halves = append(halves, half)
			}
		}
	}
	got, err := rollup.Read(halves)
	must(t, err)
	want, err := rollup.Read(textsOf(t, rules.Both))
	must(t, err)
	if len(got) != len(want) {
		t.Errorf("%d rules in both sets, %d in all", len(got), len(want))
	}
	if got := rollup.Groups([]byte("groups:\n- name: a\n  rules: []\n"), rollup.IsGlobal); got != nil {
		t.Errorf("%s", got)
	}
}

// TestTravelling: names of expressions and of texts; not those that no leaf records, nor those that only leaves read.
func TestTravelling(t *testing.T) {
	got, err := rollup.Travelling([][]byte{[]byte(`groups:
- name: rdma-a
  rules:
  - {record: "a:rdma_a:sum", expr: rdma_a}
  - {record: "a:rdma_b:sum", expr: a:rdma_a:sum}
  - {record: "rdma:ports", expr: rdma_text}
- name: rdma-b
  interval: 1m
  rules:
  - {record: "a:rdma_text:sum", expr: rdma_text}
- name: rdma-faults
  rules:
  - {record: "g:rdma_c:sum", expr: 'a:rdma_b:sum unless rdma:threshold / rdma:ports'}
  - alert: A
    expr: g:rdma_c:sum
    annotations: {summary: '{{ range query (printf "a:rdma_text:sum{cluster=%q}" $labels.cluster) }}{{ end }}'}
`)})
	minute := model.Duration(time.Minute)
	series := []rollup.Series{{"a:rdma_b:sum", 0}, {"a:rdma_text:sum", minute}, {"rdma:ports", 0}}
	if err != nil || !slices.Equal(got, series) {
		t.Errorf("%v, want %v; %v", got, series, err)
	}
	list := string(rollup.RemoteWrite(got))
	if want := "regex: a:rdma_b:sum|a:rdma_text:sum|rdma:ports\n"; !strings.Contains(list, want) {
		t.Errorf("%s, want %s", list, want)
	}
	merged := rollup.Merge(got)
	if _, err := rollup.Read([][]byte{merged}); err != nil {
		t.Error(err)
	}
	want := `groups:
- name: rdma-merge
  rules:
  - record: a:rdma_b:sum
    expr: max without (prometheus, prometheus_replica, replica) (leaf:a:rdma_b:sum)
  - record: rdma:ports
    expr: sum without (prometheus) (max without (prometheus_replica, replica) (leaf:rdma:ports{prometheus!=""}))
- name: rdma-merge-1m
  interval: 1m
  rules:
  - record: a:rdma_text:sum
    expr: max without (prometheus, prometheus_replica, replica) (leaf:a:rdma_text:sum)
`
	if _, groups, _ := strings.Cut(string(merged), "\n"); groups != want {
		t.Errorf("%s, want %s", groups, want)
	}
}
