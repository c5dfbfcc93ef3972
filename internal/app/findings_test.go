package app

import (
	"bytes"
	"testing"
	"testing/fstest"
	"time"

	"rdma_exporter/internal/alerting"
)

// TestFindingsAfterRestart: what an earlier run has left in the store is not judged, and nothing is told before this run has judged.
func TestFindingsAfterRestart(t *testing.T) {
	dir := t.TempDir()
	for run := range 2 {
		e, err := alerting.New(alerting.Options{
			Dir: dir, Instance: "gpu-1:9", Files: []string{"r.yml"},
			Rules: fstest.MapFS{"r.yml": {Data: []byte("groups: [{name: g, rules: [{alert: Up, expr: up == 1}]}]")}},
		})
		must(t, err)
		d := &daemon{config: &alertingConfig{}, engine: e}
		ask := func() error { return d.findings()(new(bytes.Buffer)) }
		if ask() == nil {
			t.Errorf("run %d: there are findings before a round", run)
		}
		now := time.Unix(1_700_000_000+15*int64(run), 0)
		must(t, e.Append(now, nil))
		if ask() == nil {
			t.Errorf("run %d: there are findings before a round is judged", run)
		}
		must(t, e.Eval(t.Context(), now))
		must(t, ask())
		must(t, e.Close())
	}
}
