package app

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/rounds"
)

// sriov is a recorded host with one physical function and four virtual ones.
const sriov = "sriov-vf"

// collected is the last round of a recorded host, and the report on all of its rounds.
func collected(t *testing.T, file string, c *config) (*rounds.Picture, check.Report) {
	t.Helper()
	c.replay, c.timeout, c.gpuMode = fixture(file), 10*time.Second, gpuFabric
	m, sched := openWith(t, c)
	j, err := newEvaluator(m, sched, slog.New(slog.DiscardHandler))
	must(t, err)
	t.Cleanup(func() { must(t, j.close()) })
	must(t, m.playRounds(func() error { return j.round(t.Context(), m.clock()) }))
	p, err := sched.Collect(t.Context(), nil)
	must(t, err)
	return p, j.report("", nil)
}

// metricsByDevice are the metrics of each device.
func metricsByDevice(p *rounds.Picture) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, f := range p.Families {
		i := slices.Index(f.Head.Desc.Labels, "device")
		for labels := range f.Samples() {
			if i >= 0 && labels[i] != "" {
				if out[labels[i]] == nil {
					out[labels[i]] = map[string]bool{}
				}
				out[labels[i]][f.Head.Desc.Name] = true
			}
		}
	}
	return out
}

// TestMetricsOfVirtualFunctions: a virtual function beside its physical one has exactly the metrics that rules read, with the same findings
// as with all metrics. The physical function has all.
func TestMetricsOfVirtualFunctions(t *testing.T) {
	all, findings := collected(t, sriov, &config{functions: functionsAll})
	some, same := collected(t, sriov, &config{functions: functionsRules})
	read, err := MetricsOfRules(nil)
	must(t, err)
	want, got := metricsByDevice(all), metricsByDevice(some)
	for device, metrics := range want {
		if device != "mlx5_0" {
			maps.DeleteFunc(metrics, func(name string, _ bool) bool { return !read[name] })
		}
		if !maps.Equal(got[device], metrics) {
			t.Errorf("%s has %v\nwant %v", device, slices.Sorted(maps.Keys(got[device])), slices.Sorted(maps.Keys(metrics)))
		}
	}
	if len(want) != 5 || len(want["mlx5_1"]) < 20 || len(want["mlx5_1"]) >= len(want["mlx5_0"])-15 {
		t.Errorf("%d devices, %d metrics of a virtual function, %d of the physical one", len(want), len(want["mlx5_1"]), len(want["mlx5_0"]))
	}
	names := func(r check.Report) (out []string) {
		for _, f := range slices.Concat(r.Findings, r.Pending) {
			out = append(out, f.Alert+" "+f.Labels["device"])
		}
		for _, n := range r.NotEvaluated {
			out = append(out, n.Alert+" "+n.Reason)
		}
		return out
	}
	if !slices.Equal(names(findings), names(same)) {
		t.Errorf("findings %v, with all metrics %v", names(same), names(findings))
	}
	if findings.Functions != nil || same.Functions == nil || same.Functions.Reduced != 4 {
		t.Errorf("functions %v, with all metrics %v", same.Functions, findings.Functions)
	}
}

// TestPartMetrics: the metrics that alerts require, as the engine finds them in the parsed rules, are among those of virtual functions.
func TestPartMetrics(t *testing.T) {
	read, err := MetricsOfRules(nil)
	must(t, err)
	m, sched := open(t, fixture(sriov))
	j, err := newEvaluator(m, sched, slog.New(slog.DiscardHandler))
	must(t, err)
	defer func() { must(t, j.close()) }()
	n := 0
	for _, r := range j.engine.Rules() {
		for _, name := range r.Metrics {
			if strings.HasPrefix(name, "rdma_") && !read[name] {
				t.Errorf("%s reads %s", r.Name, name)
			}
			n++
		}
	}
	if n < 100 {
		t.Errorf("%d metrics of rules", n)
	}
	if read, err = MetricsOfRules([]string{"testdata/none-*.yml", "testdata/rules/*.yml"}); err == nil {
		t.Errorf("rule files that do not exist: %v", read)
	}
}

// TestLimitsOfAHost: devices and series beyond the limits are left out, virtual functions first; check reports the alerts and the number.
func TestLimitsOfAHost(t *testing.T) {
	for name, tc := range map[string]struct {
		limits  rounds.Limits
		devices []string
		want    check.Functions
	}{
		"none":    {rounds.Limits{}, []string{"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_4"}, check.Functions{Reduced: 4}},
		"devices": {rounds.Limits{Devices: 2}, []string{"mlx5_0", "mlx5_1"}, check.Functions{Reduced: 1, Devices: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			p, r := collected(t, sriov, &config{functions: functionsRules, limits: tc.limits})
			if got := slices.Sorted(maps.Keys(metricsByDevice(p))); !slices.Equal(got, tc.devices) {
				t.Errorf("%v", got)
			}
			if r.Functions == nil || *r.Functions != tc.want {
				t.Errorf("%+v, want %+v", r.Functions, tc.want)
			}
			limited := slices.ContainsFunc(r.NotEvaluated, func(n check.NotEvaluated) bool {
				return n.Alert == "RDMAPortDown" && n.Reason == "limit" && n.Partly && strings.Contains(n.Detail, "device limit")
			})
			if limited != (tc.want.Devices > 0) {
				t.Errorf("not evaluated: %+v", r.NotEvaluated)
			}
		})
	}
}
