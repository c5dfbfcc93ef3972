package dashboards

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// chosenAll is the landing dashboard with all hosts and fabrics.
var chosenAll = strings.NewReplacer("$cluster", ".*", "$job", "j", "$fabric_job", "f", "$hosts", ".*",
	"${datasource}", "d", "${__from}", "0", "${__to}", "0")

// evaluate returns the result of a query of the landing dashboard on series that stay as they are.
func evaluate(t *testing.T, title string, query int, series ...string) promql.Vector {
	t.Helper()
	panels := load(t)["fabric.json"].Panels
	i := slices.IndexFunc(panels, func(p panel) bool { return p.Title == title })
	s := promqltest.LoadedStorage(t, "load 1m\n"+strings.Join(series, " 1x20\n")+" 1x20\n")
	e := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, EnableAtModifier: true})
	q, err := e.NewInstantQuery(t.Context(), s, nil, chosenAll.Replace(panels[i].Targets[query].Expr), time.Unix(600, 0))
	if err != nil {
		t.Fatal(err)
	}
	v, err := q.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestFolded: of one cause there is one row. A pending alert is left out while one at least as severe fires of the same
// name at the same place, or of any name at the same switch.
func TestFolded(t *testing.T) {
	of := func(name, state, severity, scope, where string) string {
		return `ALERTS{job="j",instance="",alertname="` + name + `",alertstate="` + state + `",severity="` + severity +
			`",scope="` + scope + `",where="` + where + `"}`
	}
	down := of("RDMAPortDown", "firing", "critical", "leaf", "switch l1")
	for name, c := range map[string]struct {
		pending string
		rows    int
	}{
		"same name at the same switch":    {of("RDMAPortDown", "pending", "warning", "leaf", "switch l1"), 1},
		"another name at the same switch": {of("RDMALinkErrors", "pending", "warning", "leaf", "switch l1"), 1},
		"another switch":                  {of("RDMAPortDown", "pending", "warning", "leaf", "switch l2"), 2},
		"another name at the same port":   {of("RDMALinkErrors", "pending", "warning", "port", "switch l1"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			if v := evaluate(t, "Alerts", 0, down, c.pending); len(v) != c.rows {
				t.Errorf("%d rows, want %d: %v", len(v), c.rows, v)
			}
		})
	}
	t.Run("more severe", func(t *testing.T) {
		if v := evaluate(t, "Alerts", 0, of("RDMAPortDown", "firing", "warning", "port", "g1 mlx5_0/1"),
			of("RDMAPortDown", "pending", "critical", "port", "g1 mlx5_0/1")); len(v) != 2 {
			t.Errorf("a pending critical is hidden by a warning: %v", v)
		}
	})
}

// TestStaging: a GPU whose path is direct and whose job stages its data has lost GPUDirect, also while its job pauses.
// A GPU without a known path does not count, and where there is no other, the count is unknown.
func TestStaging(t *testing.T) {
	const gpu = `job="j",instance="x",gpu="0",UUID="u"`
	path := `rdma_gdr_gpu_direct{` + gpu + `,direction="transmit"}`
	for name, c := range map[string]struct {
		series []string
		want   float64
	}{
		"direct":          {[]string{path}, 0},
		"stages now":      {[]string{path, `rdma_gdr_gpu_transport{` + gpu + `,state="staging"}`}, 1},
		"stages in 5m":    {[]string{path, `gpu:rdma_gdr:staging{` + gpu + `,device="d"}`}, 1},
		"unknown by path": {[]string{`rdma_gdr_gpu_info{` + gpu + `}`}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			if v := evaluate(t, "Ports and GPUDirect", 2, c.series...); len(v) != 1 || v[0].F != c.want {
				t.Errorf("%v, want %v", v, c.want)
			}
		})
	}
}
