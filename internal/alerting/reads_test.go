package alerting_test

import (
	"maps"
	"slices"
	"testing"
	"testing/fstest"

	"rdma_exporter/internal/alerting"
)

// TestReads: expressions, also right of unless, and texts; not records, nor names without the prefix.
func TestReads(t *testing.T) {
	fsys := fstest.MapFS{"a.yml": {Data: []byte(`
groups:
  - name: a
    rules:
      - {record: "port:rdma_d:sum", expr: "sum(rdma_a{x=\"1\"}) unless absent(rdma_b)"}
      - alert: A
        expr: port:rdma_c:sum + up > rate({__name__="rdma_e"}[5m])
        annotations: {summary: "{{ with query (printf \"max(rdma_f{%s})\" .) }}{{ end }}"}
`)}}
	got, err := alerting.Reads(fsys, []string{"a.yml"}, "rdma_")
	if want := []string{"rdma_a", "rdma_b", "rdma_e", "rdma_f"}; err != nil ||
		!slices.Equal(slices.Sorted(maps.Keys(got)), want) {
		t.Errorf("%v, want %v; %v", got, want, err)
	}
}
