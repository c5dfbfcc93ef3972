package alerting_test

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/rules"
)

const downRule = `
groups:
  - name: g
    rules:
      - alert: Down
        expr: max by (instance, job, device) (state) != 4
        for: 2m
        keep_firing_for: 5m
        labels: {severity: critical}
        annotations:
          summary: '{{ $labels.device }} is {{ $value }}{{ with query "info" }}, PCI {{ . | first | label "pci" }}{{ else }}, PCI unknown{{ end }}'
`

func TestAlertLifecycle(t *testing.T) {
	e := newTestEngine(t, downRule)
	for i := range 60 {
		now := time.Duration(i) * 15 * time.Second
		state := 4.0
		if now >= time.Minute && now < 6*time.Minute {
			state = 1
		}
		stepTo(t, e, timeAt(now), gauge("state", state, "device", "mlx5_0"))
		got := "none"
		if alerts := e.Alerts(); len(alerts) > 0 {
			a := alerts[0]
			got = string(a.State)
			if !a.KeepFiringSince.IsZero() {
				got = "kept"
			}
			if !a.ActiveAt.Equal(timeAt(time.Minute)) {
				t.Fatalf("at %s: active since %s", now, a.ActiveAt)
			}
			if a.State == alerting.StateFiring && !a.FiredAt.Equal(timeAt(3*time.Minute)) {
				t.Fatalf("at %s: fired at %s", now, a.FiredAt)
			}
		}
		want := "none"
		switch {
		case now < time.Minute:
		case now < 3*time.Minute:
			want = "pending"
		case now < 6*time.Minute:
			want = "firing"
		case now < 11*time.Minute:
			want = "kept"
		}
		if got != want {
			t.Fatalf("at %s: %s, want %s", now, got, want)
		}
	}
}

func TestAlertContent(t *testing.T) {
	e := newTestEngine(t, downRule)
	stepTo(t, e, timeAt(0), gauge("state", 1, "device", "mlx5_0"))
	if got, want := e.Alerts()[0].Annotations["summary"], "mlx5_0 is 1, PCI unknown"; got != want {
		t.Errorf("summary %q, want %q", got, want)
	}
	stepTo(t, e, timeAt(15*time.Second), gauge("state", 2, "device", "mlx5_0"), gauge("info", 1, "pci", "0000:18:00.0"))
	a := e.Alerts()[0]
	if got, want := a.Annotations["summary"], "mlx5_0 is 2, PCI 0000:18:00.0"; got != want {
		t.Errorf("summary %q, want %q", got, want)
	}
	if a.Value != 2 || a.Name != "Down" || e.Rules()[a.Rule].Name != "Down" {
		t.Errorf("alert %+v", a)
	}
	want := map[string]string{
		"alertname": "Down", "device": "mlx5_0", "instance": instance, "job": "rdma_exporter", "severity": "critical",
	}
	if fmt.Sprint(a.Labels) != fmt.Sprint(want) {
		t.Errorf("labels %v, want %v", a.Labels, want)
	}
}

// A restart does not reset the pending time, but the time without rounds does not count.
func TestRestartKeepsPending(t *testing.T) {
	dir := t.TempDir()
	down := gauge("state", 1, "device", "mlx5_0")
	e := openEngine(t, dir, downRule)
	for now := time.Duration(0); now <= 90*time.Second; now += 15 * time.Second {
		stepTo(t, e, timeAt(now), down)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = openEngine(t, dir, downRule)
	defer e.Close()
	if from, to := e.Observed(); !from.Equal(timeAt(0)) || !to.Equal(timeAt(90*time.Second)) {
		t.Errorf("observed from %s to %s", from, to)
	}
	stepTo(t, e, timeAt(3*time.Minute), down)
	stepTo(t, e, timeAt(3*time.Minute+15*time.Second), down)
	if got := e.Alerts()[0].State; got != alerting.StatePending {
		t.Errorf("%s right after the restart", got)
	}
	stepTo(t, e, timeAt(3*time.Minute+30*time.Second), down)
	if got := e.Alerts()[0].State; got != alerting.StateFiring {
		t.Errorf("%s after 90 s and 30 s of waiting", got)
	}
}

// A pause between two runs longer than the lookback starts a new span, however many runs followed.
func TestObservedOverRestarts(t *testing.T) {
	dir := t.TempDir()
	for _, run := range []struct{ begin, end, from time.Duration }{
		{0, 100 * time.Minute, 0}, // with blocks
		{150 * time.Minute, 152 * time.Minute, 150 * time.Minute},
		{153 * time.Minute, 154 * time.Minute, 150 * time.Minute},
		{158 * time.Minute, 158 * time.Minute, 150 * time.Minute},
		{164 * time.Minute, 165 * time.Minute, 164 * time.Minute},
	} {
		e := openEngine(t, dir, downRule)
		for now := run.begin; now <= run.end; now += 15 * time.Second {
			stepTo(t, e, timeAt(now))
		}
		if from, to := e.Observed(); !from.Equal(timeAt(run.from)) || !to.Equal(timeAt(run.end)) {
			t.Errorf("observed from %s to %s, want from %s to %s", from.Sub(t0()), to.Sub(t0()), run.from, run.end)
		}
		closeEngine(t, e)
	}
	e, err := alerting.New(alerting.Options{Dir: dir, Instance: "another name", Rules: fstest.MapFS{}})
	if err != nil {
		t.Fatal(err)
	}
	defer closeEngine(t, e)
	if from, to := e.Observed(); !from.Equal(to) || !to.Equal(timeAt(165*time.Minute)) {
		t.Errorf("another instance: observed from %s to %s", from, to)
	}
}

func TestTimeBackwards(t *testing.T) {
	dir := t.TempDir()
	e := openEngine(t, dir, downRule)
	stepTo(t, e, timeAt(time.Minute))
	for _, ts := range []time.Duration{0, time.Minute} {
		if err := e.Append(timeAt(ts), slices.Values([]*family(nil))); !errors.Is(err, alerting.ErrTimeBackwards) {
			t.Errorf("append at %s: %v", ts, err)
		}
	}
	err := e.Eval(t.Context(), timeAt(0))
	if !errors.Is(err, alerting.ErrTimeBackwards) || !strings.Contains(err.Error(), "2026-01-02T03:00:00Z") {
		t.Errorf("eval: %v", err)
	}
	stepTo(t, e, timeAt(2*time.Minute))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = openEngine(t, dir, downRule)
	defer e.Close()
	if err := e.Append(timeAt(time.Minute), slices.Values([]*family(nil))); !errors.Is(err, alerting.ErrTimeBackwards) {
		t.Errorf("append after a restart: %v", err)
	}
}

// A rule that cannot be evaluated is reported and does not affect others.
func TestRuleErrors(t *testing.T) {
	e := newTestEngine(t, `
groups:
  - name: g
    rules:
      - {alert: Broken, expr: a * on (job) b}
      - {alert: Fine, expr: up == 1}
`)
	a := gauge("a", 1, "x", "1")
	a.Metric = append(a.Metric, gauge("a", 1, "x", "2").Metric...)
	if err := e.Append(timeAt(0), slices.Values([]*family{a, gauge("b", 1)})); err != nil {
		t.Fatal(err)
	}
	err := e.Eval(t.Context(), timeAt(0))
	if err == nil || !strings.Contains(err.Error(), "evaluate rule Broken in r.yml") ||
		strings.Contains(err.Error(), "Fine") {
		t.Errorf("error %v", err)
	}
	if alerts := e.Alerts(); len(alerts) != 1 || alerts[0].Name != "Fine" {
		t.Errorf("alerts %+v", alerts)
	}
	if r := e.Rules()[0]; r.Evaluated || r.Reason != alerting.ReasonFailed || r.Err == nil {
		t.Errorf("rule %+v", r)
	}
}

func TestNewRefuses(t *testing.T) {
	good := fstest.MapFS{
		"r.yml": {Data: []byte(downRule)}, "bad.yml": {Data: []byte("groups: [{name: g, rules: [{alert: A, expr: 'up{'}]}]")},
	}
	tests := map[string]alerting.Options{
		"a directory and an instance": {Rules: good, Files: []string{"r.yml"}},
		"load rules bad.yml":          {Dir: t.TempDir(), Instance: "i", Rules: good, Files: []string{"r.yml", "bad.yml"}},
		"load rules none.yml":         {Dir: t.TempDir(), Instance: "i", Rules: good, Files: []string{"none.yml"}},
		"parse external URL":          {Dir: t.TempDir(), Instance: "i", ExternalURL: ":"},
		"open alerting store":         {Dir: path.Join(t.TempDir(), "a\x00b"), Instance: "i"},
	}
	for want, opts := range tests {
		t.Run(want, func(t *testing.T) {
			if _, err := alerting.New(opts); err == nil || !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
		})
	}
}

// The embedded rules evaluate a node that has lost a port, with all annotations.
func TestNodeRules(t *testing.T) {
	e := shipped(t, rules.Node)
	for now := time.Duration(0); now <= 150*time.Second; now += 15 * time.Second {
		stepTo(t, e, timeAt(now),
			gauge("rdma_port_state_id", 1, "device", "mlx5_0", "port", "1"),
			gauge("rdma_port_physical_state_id", 2, "device", "mlx5_0", "port", "1"),
			gauge("rdma_port_was_active", 1, "device", "mlx5_0", "port", "1"),
			gauge("rdma_port_info", 1, "device", "mlx5_0", "port", "1", "netdev", "ib0", "link_layer",
				"InfiniBand", "role", "compute"),
			gauge("rdma_scrape_collector_success", 1, "collector", "infiniband"))
	}
	var firing []string
	for _, a := range e.Alerts() {
		firing = append(firing, a.Name+" "+string(a.State)+" "+a.Labels["severity"])
		if a.Name == "RDMAPortDown" && !strings.Contains(a.Annotations["evidence"],
			"Since: 2026-01-02 03:00:00 UTC.\nPort: mlx5_0/1, netdev ib0, link layer InfiniBand, role compute.\nState: DOWN.\nPhysical state: Polling (no signal from the far end).\n") {
			t.Errorf("evidence:\n%s", a.Annotations["evidence"])
		}
	}
	want := "RDMAWatchdog firing none, RDMAPortDown firing critical"
	if got := strings.Join(firing, ", "); got != want {
		t.Errorf("alerts %s, want %s", got, want)
	}
}
