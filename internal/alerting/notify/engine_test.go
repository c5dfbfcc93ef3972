package notify_test

import (
	"os"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/alerting/notify"
)

const (
	instance = "gpu-1:10879"

	downRule = `
groups:
  - name: g
    rules:
      - alert: Down
        expr: max by (instance, job, device) (state) != 4
        for: 2m
        keep_firing_for: 5m
        labels: {severity: critical}
        annotations:
          summary: '{{ $labels.device }} is {{ $value }}'
`
)

// notifying returns an engine that sends its alerts to these Alertmanagers.
func notifying(t *testing.T, o notify.Options) (*alerting.Engine, *notify.Notifier) {
	t.Helper()
	return evaluating(t, o, downRule)
}

// evaluating returns an engine with the text of a rule file.
func evaluating(t *testing.T, o notify.Options, rules string) (*alerting.Engine, *notify.Notifier) {
	t.Helper()
	n, err := notify.New(o)
	if err != nil {
		t.Fatal(err)
	}
	e, err := alerting.New(alerting.Options{
		Scratch: t.TempDir(), Instance: instance, Notifier: n,
		Rules: fstest.MapFS{"r.yml": {Data: []byte(rules)}}, Files: []string{"r.yml"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, n
}

// timeAt returns a time after the first round; nothing depends on the wall clock.
func timeAt(d time.Duration) time.Time { return time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC).Add(d) }

// step appends and evaluates one round.
func step(t *testing.T, e *alerting.Engine, ts time.Time, families ...*dto.MetricFamily) {
	t.Helper()
	if err := e.Append(ts, slices.Values(families)); err != nil {
		t.Fatal(err)
	}
	if err := e.Eval(t.Context(), ts); err != nil {
		t.Fatal(err)
	}
}

// state returns the state of the port of a device: its alert is on any but 4.
func state(device string, value float64) *dto.MetricFamily {
	name, label, kind := "state", "device", dto.MetricType_GAUGE
	return &dto.MetricFamily{Name: &name, Type: &kind, Metric: []*dto.Metric{
		{Label: []*dto.LabelPair{{Name: &label, Value: &device}}, Gauge: &dto.Gauge{Value: &value}},
	}}
}

// fire makes the alert of an engine fire: the first of two rounds is at a different hour.
func fire(t *testing.T, e *alerting.Engine, hour int) {
	t.Helper()
	for i := range 2 {
		step(t, e, timeAt(time.Duration(hour)*time.Hour+time.Duration(i)*2*time.Minute), state("mlx5_0", 1))
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
