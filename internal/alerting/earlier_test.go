package alerting_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/alerting"
)

// chainRules are rules that read each other, as the built-in ones do: a condition, what is left of it, its alert, and a
// verdict from the alerts.
const chainRules = `
groups:
  - name: chain
    rules:
      - record: port:down:suspect
        expr: max by (instance, job, device) (state{device!=""}) != 4
      - record: port:down:unexplained
        expr: port:down:suspect
      - alert: Down
        expr: port:down:unexplained
        for: 2m
        keep_firing_for: 5m
        labels: {severity: critical}
      - alert: Named
        expr: info{serial="old"}
        labels: {severity: info}
  - name: verdict
    rules:
      - record: instance:drain:state
        expr: max by (instance, job) (ALERTS{alertstate="firing",severity="critical"})
`

// runAs plays rounds of an exporter with its own process; the store stays.
func runAs(t *testing.T, dir, job, address, text string, log *bytes.Buffer, play func(e *alerting.Engine)) {
	t.Helper()
	e, err := alerting.New(alerting.Options{
		Dir: dir, Job: job, Instance: address, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Rules: fstest.MapFS{"r.yml": {Data: []byte(text)}}, Files: []string{"r.yml"},
	})
	if err != nil {
		t.Fatal(err)
	}
	play(e)
	closeEngine(t, e)
}

// activeIn lists the active alerts, as "Down pending since 0s", and what of the rules has a value.
func activeIn(t *testing.T, e *alerting.Engine, now time.Duration) (out []string) {
	t.Helper()
	for _, a := range e.Alerts() {
		out = append(out, fmt.Sprintf("%s %s since %s", a.Name, a.State, a.ActiveAt.Sub(t0())))
	}
	for _, q := range []string{`{__name__=~"port:down:.*|instance:.*"}`, "ALERTS", "ALERTS_FOR_STATE"} {
		for _, s := range queryAt(t, e, q, timeAt(now)) {
			out = append(out, strings.TrimSpace(s.Labels["__name__"]+" "+s.Labels["alertname"]+" "+s.Labels["alertstate"]))
		}
	}
	return out
}

// TestRepairedDuringRestart: a port is DOWN until the exporter stops. Repaired, nothing of it goes on, from the first
// round of the next process. Not repaired, its alert goes on with its times.
func TestRepairedDuringRestart(t *testing.T) {
	broken := func() []*dto.MetricFamily {
		return []*dto.MetricFamily{gauge("state", 1, "device", "mlx5_0"), gauge("info", 1, "serial", "old")}
	}
	well := []*dto.MetricFamily{gauge("state", 4, "device", "mlx5_0"), gauge("info", 1, "serial", "new")}
	for _, c := range []struct {
		before, away time.Duration
		still        bool
		// In the second round: that of the alert before, and the third of the new process.
		want []string
	}{
		{before: 45 * time.Second, away: 10 * time.Second},
		{before: 45 * time.Second, away: 4 * time.Minute},
		{before: 45 * time.Second, away: time.Hour},
		{before: 10 * time.Minute, away: 10 * time.Second},
		{before: 10 * time.Minute, away: 4 * time.Minute},
		{before: 10 * time.Minute, away: time.Hour},
		{before: 45 * time.Second, away: 4 * time.Minute, still: true, want: []string{
			"Down pending since 4m0s", "Named firing since 0s",
			"port:down:suspect", "port:down:unexplained", "ALERTS Down pending", "ALERTS Named firing",
			"ALERTS_FOR_STATE Down", "ALERTS_FOR_STATE Named",
		}},
		{before: 10 * time.Minute, away: 4 * time.Minute, still: true, want: []string{
			"Down firing since 0s", "Named firing since 0s",
			"instance:drain:state", "port:down:suspect", "port:down:unexplained", "ALERTS Down firing", "ALERTS Named firing",
			"ALERTS_FOR_STATE Down", "ALERTS_FOR_STATE Named",
		}},
		{before: 10 * time.Minute, away: 10 * time.Second, still: true, want: []string{
			"Down firing since 0s", "Named firing since 0s",
			"instance:drain:state", "port:down:suspect", "port:down:unexplained", "ALERTS Down firing", "ALERTS Named firing",
			"ALERTS_FOR_STATE Down", "ALERTS_FOR_STATE Named",
		}},
	} {
		t.Run(fmt.Sprintf("%s away %s still %t", c.before, c.away, c.still), func(t *testing.T) {
			t.Parallel()
			dir, log := t.TempDir(), &bytes.Buffer{}
			runAs(t, dir, "", instance, chainRules, log, func(e *alerting.Engine) {
				for now := time.Duration(0); now <= c.before; now += 15 * time.Second {
					stepTo(t, e, timeAt(now), broken()...)
				}
			})
			families := well
			if c.still {
				families = broken()
			}
			runAs(t, dir, "", instance, chainRules, log, func(e *alerting.Engine) {
				now := c.before + c.away
				stepTo(t, e, timeAt(now), families...)
				if got := activeIn(t, e, now); !c.still && len(got) != 0 {
					t.Errorf("first round: %q", got)
				}
				for range 10 {
					now += 15 * time.Second
					stepTo(t, e, timeAt(now), families...)
					if got := activeIn(t, e, now); now == c.before+c.away+15*time.Second && !slices.Equal(got, c.want) ||
						!c.still && len(got) != 0 {
						t.Fatalf("%s after the start: %q, want %q", now-c.before-c.away, got, c.want)
					}
				}
			})
		})
	}
}

// TestUnreadAfterRestart: series of metrics that the first round has not read go on until a round has read them: an
// alert on them keeps its time.
func TestUnreadAfterRestart(t *testing.T) {
	dir, log := t.TempDir(), &bytes.Buffer{}
	runAs(t, dir, "", instance, chainRules, log, func(e *alerting.Engine) {
		for now := time.Duration(0); now <= 45*time.Second; now += 15 * time.Second {
			stepTo(t, e, timeAt(now), gauge("state", 1, "device", "mlx5_0"))
		}
	})
	runAs(t, dir, "", instance, chainRules, log, func(e *alerting.Engine) {
		unread := []*dto.MetricFamily{gauge("other", 1)}
		for _, r := range []struct {
			now   time.Duration
			round []*dto.MetricFamily
			part  map[string]bool
			want  []string
		}{
			{time.Minute, unread, map[string]bool{"state": true}, []string{"Down pending since 15s"}},
			{75 * time.Second, []*dto.MetricFamily{gauge("state", 4, "device", "mlx5_1")}, nil, nil}, // mlx5_0 is gone
		} {
			if err := e.AppendPart(timeAt(r.now), slices.Values(r.round), r.part); err != nil {
				t.Fatal(err)
			}
			if err := e.Eval(t.Context(), timeAt(r.now)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range e.Alerts() {
				got = append(got, fmt.Sprintf("%s %s since %s", a.Name, a.State, a.ActiveAt.Sub(t0())))
			}
			if !slices.Equal(got, r.want) {
				t.Errorf("at %s: %q, want %q", r.now, got, r.want)
			}
		}
	})
}

// TestOtherInstance: what an exporter with another job or instance has stored is not evaluated, and still there when it
// is back.
func TestOtherInstance(t *testing.T) {
	down := []*dto.MetricFamily{gauge("state", 1, "device", "mlx5_0")}
	well := []*dto.MetricFamily{gauge("state", 4, "device", "mlx5_0")}
	for name, other := range map[string][2]string{
		"instance": {"rdma_exporter", "gpu-2:10879"}, "port": {"rdma_exporter", "gpu-1:9"}, "job": {"rdma", instance},
	} {
		t.Run(name, func(t *testing.T) {
			dir, log := t.TempDir(), &bytes.Buffer{}
			runAs(t, dir, "", instance, chainRules, log, func(e *alerting.Engine) {
				for now := time.Duration(0); now <= 10*time.Minute; now += 15 * time.Second {
					stepTo(t, e, timeAt(now), down...)
				}
			})
			if log.Len() > 0 {
				t.Errorf("first start logs %s", log)
			}
			runAs(t, dir, other[0], other[1], chainRules, log, func(e *alerting.Engine) {
				for now := 10*time.Minute + 10*time.Second; now < 14*time.Minute; now += 15 * time.Second {
					stepTo(t, e, timeAt(now), well...)
					if got := activeIn(t, e, now); len(got) != 0 {
						t.Fatalf("at %s: %q", now, got)
					}
				}
				from, to := e.Observed()
				if got := to.Sub(from); got < 3*time.Minute || got > 4*time.Minute {
					t.Errorf("observed %s", got)
				}
			})
			if got := strings.Count(log.String(), "not evaluated"); got != 1 {
				t.Errorf("%d lines: %s", got, log)
			}
			runAs(t, dir, "", instance, chainRules, log, func(e *alerting.Engine) {
				now := 14*time.Minute + 10*time.Second
				stepTo(t, e, timeAt(now), down...)
				stepTo(t, e, timeAt(now+15*time.Second), down...)
				if a := e.Alerts(); len(a) != 1 || a[0].State != alerting.StateFiring || !a[0].ActiveAt.Equal(t0()) {
					t.Errorf("back under its name: %+v", a)
				}
			})
		})
	}
}
