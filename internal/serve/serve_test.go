package serve

import (
	"log/slog"
	"os"
	"testing"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/verdict"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newDaemon returns a daemon without rounds.
func newDaemon(e *alerting.Engine, log *slog.Logger) *Daemon {
	return &Daemon{config: &Alerting{}, Engine: e, log: log, seen: lastResult{report: verdict.Seen}}
}

func put(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o644))
}
