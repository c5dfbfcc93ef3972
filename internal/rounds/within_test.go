package rounds

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/exposition"
)

// TestCollectWithin: an evaluation every 15 s reuses a scrape of the last half of the interval, with its read time.
func TestCollectWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{}
		s := scheduler(t, time.Second, c.collector("x"))
		begin := time.Now()
		if _, err := s.Collect(t.Context(), nil); err != nil { // a scrape
			t.Fatal(err)
		}
		for _, step := range []struct {
			after time.Duration
			read  time.Duration // since the start
			count int
		}{
			{7 * time.Second, 0, 1},
			{8 * time.Second, 8 * time.Second, 2},
		} {
			time.Sleep(step.after - time.Since(begin))
			p, err := s.CollectWithin(t.Context(), nil, 7500*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			if read := p.Read.Sub(begin); read != step.read || c.collections() != step.count || !p.At.Equal(time.Now()) {
				t.Errorf("after %s: read at %s, %d collections, want %s, %d",
					step.after, read, c.collections(), step.read, step.count)
			}
		}
	})
}

// TestObjectMetrics: each kind has a count of each class, and each object that is not healthy has a series.
func TestObjectMetrics(t *testing.T) {
	s := scheduler(t, 0, (&counting{}).collector("x"))
	s.Alerting = func() (AlertingState, bool) {
		return AlertingState{Objects: []account.Object{
			{Kind: account.Device, Name: "mlx5_0", Class: account.Healthy, Compute: true},
			{Kind: account.Port, Name: "mlx5_0/1", Class: account.Faulty, Compute: true},
			{Kind: account.Port, Name: "mlx5_1/1", Class: account.Unknown},
			{Kind: account.Port, Name: "mlx5_2/1", Class: account.NotExpected},
		}}, true
	}
	p, err := s.Collect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(exposition.AppendText(nil, p.Families))) {
		if strings.HasPrefix(line, "rdma_object") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	want := []string{
		`rdma_object_info{class="faulty",compute="true",kind="port",name="mlx5_0/1"} 1`,
		`rdma_object_info{class="unknown",compute="false",kind="port",name="mlx5_1/1"} 1`,
		`rdma_objects{class="healthy",kind="device"} 1`,
		`rdma_objects{class="faulty",kind="device"} 0`,
		`rdma_objects{class="not_expected",kind="device"} 0`,
		`rdma_objects{class="unknown",kind="device"} 0`,
		`rdma_objects{class="healthy",kind="port"} 0`,
		`rdma_objects{class="faulty",kind="port"} 1`,
		`rdma_objects{class="not_expected",kind="port"} 1`,
		`rdma_objects{class="unknown",kind="port"} 1`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestEngineState: the state of the engine is in every picture; without an engine there are no such metrics.
func TestEngineState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler(t, 0, (&counting{}).collector("x"))
		p, err := s.Collect(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		without := len(p.Families)
		s.Alerting = func() (AlertingState, bool) { return AlertingState{Rounds: 3}, true }
		if p, err = s.Collect(t.Context(), nil); err != nil || len(p.Families) != without+len(alertingDescs) {
			t.Errorf("%v: %d families, %d without an engine", err, len(p.Families), without)
		}
	})
}
