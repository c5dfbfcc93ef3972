package app

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/rounds"
)

// play collects all rounds of a fixture and returns the last picture.
func play(t *testing.T, name string) *rounds.Picture {
	t.Helper()
	m, sched := machineOf(t, name)
	var p *rounds.Picture
	for _, at := range m.player.Times() {
		if err := m.seek(at); err != nil {
			t.Fatal(err)
		}
		var err error
		if p, err = sched.Collect(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// machineOf opens a fixture with all collectors, as the commands do.
func machineOf(t *testing.T, name string) (*machine, *rounds.Scheduler) {
	t.Helper()
	c := config{replay: fixture(name), timeout: 10 * time.Second}
	m, err := c.open(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.close(); err != nil {
			t.Error(err)
		}
	})
	return m, rounds.New(context.WithoutCancel(t.Context()), rounds.Options{
		Host: m.Host, Collectors: collector.All(collector.Options{}), Timeout: c.timeout, Now: m.Now, Logger: slog.New(slog.DiscardHandler),
	})
}

// varying are samples of the run, not of the machine.
var varying = regexp.MustCompile(`(?m)^(rdma_scrape_collector_duration_seconds|rdma_exporter_build_info).*\n`)

// TestGoldenMetrics holds what every recorded machine serves.
func TestGoldenMetrics(t *testing.T) {
	for _, name := range machines(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := exposition.AppendText(nil, play(t, name).Families)
			golden(t, "metrics/"+name+".prom", varying.ReplaceAll(text, nil))
		})
	}
}

// inNoFixture are metrics that no recorded machine has, with the reason.
var inNoFixture = map[string]string{
	"rdma_port_retransmitted_bytes_total": "EFA on Linux 7.3, ionic firmware",
}

// TestEveryDescIsInAGolden finds metrics that nothing ever shows.
func TestEveryDescIsInAGolden(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range machines(t) {
		for _, f := range play(t, name).Families {
			seen[f.Head.Desc.Name] = true
		}
	}
	descs := rounds.Descs
	for _, c := range collector.All(collector.Options{}) {
		descs = append(descs, c.Descs...)
	}
	for _, d := range descs {
		if _, excused := inNoFixture[d.Name]; seen[d.Name] == excused {
			t.Errorf("%s: in a fixture: %v, listed as in none: %v", d.Name, seen[d.Name], excused)
		}
	}
}

// TestNothingIsDropped: each sample of each fixture is declared, valid and there once.
func TestNothingIsDropped(t *testing.T) {
	for _, name := range machines(t) {
		text := string(exposition.AppendText(nil, play(t, name).Families))
		for _, reason := range []string{"undeclared", "duplicate", "invalid-sample"} {
			// odd-files has two names that become one.
			if strings.Contains(text, `reason="`+reason+`"`) && name != "odd-files" {
				t.Errorf("%s drops samples: %s", name, reason)
			}
		}
	}
}

// budgets are design limits of series by machine.
var budgets = map[string]int{"dgx-h100-ib": 1500, "hgx-h200-roce": 2500}

// TestSeriesBudget prints the series of the large machines by family and holds the budget.
func TestSeriesBudget(t *testing.T) {
	for name, limit := range budgets {
		total := 0
		for _, f := range play(t, name).Families {
			t.Logf("%s %4d %s", name, len(f.Points), f.Head.Desc.Name)
			total += len(f.Points)
		}
		if total > limit {
			t.Errorf("%s has %d series, more than %d", name, total, limit)
		}
	}
}
