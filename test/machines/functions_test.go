//go:build !race

package machines_test

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/rulefiles"
	"rdma_exporter/internal/verdict"
	"rdma_exporter/test/machines"
)

// sriov is a recorded host with one physical function and four virtual ones.
const sriov = "sriov-vf"

// collected returns the last round of a recorded host, and the report on all of its rounds.
func collected(t *testing.T, file string, c *machine.Config) (*rounds.Picture, check.Report) {
	t.Helper()
	c.Replay, c.Timeout, c.GPUMode = machines.Fixture(file), 10*time.Second, "fabric"
	m, sched := machines.OpenWith(t, c)
	j, err := verdict.New(m, sched, machines.Builtin(t), slog.New(slog.DiscardHandler))
	must(t, err)
	t.Cleanup(func() { must(t, j.Close()) })
	must(t, m.PlayRounds(func() error { return j.Round(t.Context(), m.Clock()) }))
	p, err := sched.Collect(t.Context(), nil)
	must(t, err)
	return p, j.Report("", nil)
}

// metricsByDevice returns the metrics of each device.
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

// TestMetricsOfVirtualFunctions: a virtual function beside its physical one has exactly the metrics that rules read,
// with the same findings as with all metrics. The physical function has all.
func TestMetricsOfVirtualFunctions(t *testing.T) {
	all, findings := collected(t, sriov, &machine.Config{Functions: "all"})
	some, same := collected(t, sriov, &machine.Config{Functions: "rules"})
	read, err := machines.Builtin(t).Metrics()
	must(t, err)
	want, got := metricsByDevice(all), metricsByDevice(some)
	for device, metrics := range want {
		if device != "mlx5_0" {
			maps.DeleteFunc(metrics, func(name string, _ bool) bool {
				// The counter of the recording that is full is one that no rule reads.
				return !read[name] || name == "rdma_port_counter_saturated"
			})
		}
		if !maps.Equal(got[device], metrics) {
			t.Errorf("%s has %v\nwant %v", device, slices.Sorted(maps.Keys(got[device])), slices.Sorted(maps.Keys(metrics)))
		}
	}
	if len(want) != 5 || len(want["mlx5_1"]) < 20 || len(want["mlx5_1"]) >= len(want["mlx5_0"])-15 {
		t.Errorf("%d devices, %d metrics of a virtual function, %d of the physical one",
			len(want), len(want["mlx5_1"]), len(want["mlx5_0"]))
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

// TestPartMetrics: the metrics that alerts require, as the engine finds them in the parsed rules, are among those of
// virtual functions.
func TestPartMetrics(t *testing.T) {
	read, err := machines.Builtin(t).Metrics()
	must(t, err)
	m, sched := machines.Open(t, machines.Fixture(sriov))
	j, err := verdict.New(m, sched, machines.Builtin(t), slog.New(slog.DiscardHandler))
	must(t, err)
	defer func() { must(t, j.Close()) }()
	n := 0
	for _, r := range j.Engine.Rules() {
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
	if files, err := rulefiles.Read([]string{"testdata/none-*.yml", "testdata/rules/*.yml"}, ""); err == nil {
		t.Errorf("rule files that do not exist: %v", files)
	}
}

// TestLimitsOfAHost: devices and series beyond the limits are left out, virtual functions first; check reports the
// alerts and the number.
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
			p, r := collected(t, sriov, &machine.Config{Functions: "rules", Limits: tc.limits})
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

// TestIgnoredFaultsAreFaults: the machine that is silent because the operator says so is not silent by itself.
func TestIgnoredFaultsAreFaults(t *testing.T) {
	a := machines.Load(t, "ignored-ok")
	a.SetConfig(nil)
	got := map[string]bool{}
	alerts, _ := machines.Firing(t, machines.Written(t, a))
	for _, alert := range alerts {
		got[alert.Name+" "+alert.Labels["device"]] = true
	}
	for _, want := range []string{
		"RDMADeviceFailed mlx5_1", "RDMAHostMisconfigured ", "RDMALinkErrors mlx5_2",
		"RDMALinkFlapping mlx5_2", "RDMAWatchdog ",
	} {
		if !got[want] {
			t.Errorf("%s does not fire; %v do", want, got)
		}
	}
}
