package dashboards

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/collector"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/web"
)

// TestEveryMetric: each metric of the product is on a dashboard, or README.md has the reason why not.
func TestEveryMetric(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Metrics on no dashboard")
	table, _, _ = strings.Cut(table, "\n## ")
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("`(rdma_\\w+)`").FindAllStringSubmatch(table, -1) {
		if listed[m[1]] {
			t.Errorf("%s is listed twice", m[1])
		}
		listed[m[1]] = true
	}
	drawn := map[string]bool{}
	for _, d := range load(t) {
		for _, expr := range d.queries() {
			for _, name := range regexp.MustCompile(`\brdma_\w+`).FindAllString(expr, -1) {
				drawn[name] = true
			}
		}
	}
	descs := slices.Concat(rounds.Descs, web.Descs, fabric.Descs())
	for _, c := range collector.All(collector.Options{}) { // two may have the same
		for _, d := range c.Descs {
			if !slices.Contains(descs, d) {
				descs = append(descs, d)
			}
		}
	}
	for _, d := range descs {
		shown := drawn[d.Name] || d.Type == exposition.Histogram && drawn[d.Name+"_bucket"]
		if shown == listed[d.Name] {
			t.Errorf("%s: on a dashboard %v, listed in README.md as on none %v", d.Name, shown, listed[d.Name])
		}
		delete(listed, d.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		t.Errorf("README.md lists %s, which does not exist", name)
	}
}
