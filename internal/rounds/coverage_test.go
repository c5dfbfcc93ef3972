package rounds

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

// wanted is a metric that the collector of a test never emits.
var wanted = &exposition.Desc{Name: "wanted", Asks: "pma"}

// ofGPUs is a metric that is read through NVML.
var ofGPUs = &exposition.Desc{Name: "of_gpus", Of: "of_gpus", Asks: "nvml"}

// TestUnavailable: missing metrics in a round become series, with the reason from the collector's result and issues.
func TestUnavailable(t *testing.T) {
	issue := func(reason access.Reason) func(context.Context, *snapshot.Node) error {
		return func(_ context.Context, n *snapshot.Node) error {
			n.Issues = []snapshot.Issue{{Source: "pma", Reason: string(reason), Err: errors.New("x")}}
			return nil
		}
	}
	for name, tc := range map[string]struct {
		do   func(context.Context, *snapshot.Node) error
		off  bool
		want string
	}{
		"nothing said":  {func(context.Context, *snapshot.Node) error { return nil }, false, "not_supported"},
		"off":           {nil, true, "collector_disabled"},
		"fails":         {func(context.Context, *snapshot.Node) error { return errors.New("x") }, false, "failed"},
		"does not end":  {func(ctx context.Context, _ *snapshot.Node) error { time.Sleep(time.Hour); return nil }, false, "not_read_yet"},
		"not permitted": {issue(access.Permission), false, "permission"},
		"stuck":         {issue(access.Stuck), false, "failed"},
		"I/O":           {issue(access.IO), false, "failed"},
		"unsupported":   {issue(access.Unsupported), false, "not_supported"},
		"background":    {func(_ context.Context, n *snapshot.Node) error { n.Pending = []string{"pma"}; return nil }, false, "not_read_yet"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &counting{do: tc.do}
				on := []*collector.Collector{(&counting{}).collector("other")}
				if !tc.off {
					on = append(on, c.collector("c"))
				}
				s := scheduler(t, 0, on...)
				unseen := coverage.New([]coverage.Alert{{Name: "A", Need: coverage.Need{Metric: "wanted"}}},
					[]coverage.Metric{{Desc: wanted, Collectors: []string{"c"}}})
				s.Coverage = func() *coverage.Detector { return unseen }
				p, err := s.Collect(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if want := `rdma_detection_unavailable{alert="A",reason="` + tc.want + `"} 1`; !strings.Contains(textOf(p), want) ||
					len(p.Coverage.Gaps) != 1 {
					t.Errorf("lacks %s\n%v\n%s", want, p.Coverage, textOf(p))
				}
				if p, err = s.Collect(t.Context(), []string{"other"}); err != nil ||
					!tc.off && strings.Contains(textOf(p), "rdma_detection_unavailable{") {
					t.Errorf("a part of the collectors emits alerts that are not evaluated: %v", err)
				}
				time.Sleep(2 * time.Hour) // all background tasks end
			})
		})
	}
}

// TestPaused: an alert on GPUs does not apply without GPUs, and is not evaluated while they are released.
func TestPaused(t *testing.T) {
	for want, released := range map[string]*accel.GPURelease{
		"": nil, `rdma_detection_unavailable{alert="A",reason="paused"} 1`: {By: "root"},
	} {
		c := &counting{do: func(_ context.Context, n *snapshot.Node) error {
			n.GPUs = &accel.GPUs{Released: released}
			return nil
		}}
		s := scheduler(t, 0, c.collector("c"))
		d := coverage.New([]coverage.Alert{{Name: "A", Need: coverage.Need{Metric: "of_gpus"}}},
			[]coverage.Metric{{Desc: ofGPUs, Collectors: []string{"c"}}})
		s.Coverage = func() *coverage.Detector { return d }
		p, err := s.Collect(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(textOf(p), want) || len(p.Coverage.Idle) == 0 == (want == "") {
			t.Errorf("released %v: %+v\n%s", released, p.Coverage, textOf(p))
		}
	}
}
