package job

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/test/machines"
	"rdma_exporter/test/ras"
)

// jobRound returns a round in which a process of a job uses mlx5_0. Its RAS service is at an address.
func jobRound(address, rank string) *snapshot.Node {
	p := accel.Process{PID: 4001, HasNCCL: true, Job: "slurm/77", Env: map[string]string{"NCCL_RAS_ADDR": address}}
	if name, value, ok := strings.Cut(rank, "="); ok {
		p.Env[name] = value
	}
	who := p.Workload()
	return &snapshot.Node{GDR: &accel.GDR{
		Processes: []accel.Process{p}, Jobs: []accel.JobInfo{{Workload: who}},
		PortJobs: []accel.DeviceJobs{
			{Device: "mlx5_0", Ports: []int{1}, Jobs: []accel.PortJob{{Workload: who, Processes: 1}}},
		},
	}}
}

func alertOn(device, severity string) []alerting.Alert {
	return []alerting.Alert{
		{Name: "RDMAPortDown", Labels: map[string]string{"device": device, "port": "1", "severity": severity}},
	}
}

// watched returns a watch over an empty tree, and the number of its queries.
func watched(t *testing.T) (w *Watch, queries *int) {
	t.Helper()
	w, queries = NewWatch(rooted.Paths{RootFS: machines.Tree(t, "no-rdma")}, slog.New(slog.DiscardHandler)), new(int)
	w.query = func(ctx context.Context, address string, job nccl.Local) (*nccl.Answer, error) {
		*queries++
		return nccl.Query(ctx, address, job)
	}
	return w, queries
}

func TestNCCLIsAskedOfFaultyJobs(t *testing.T) {
	at := ras.Service(t, "v2.28.9-recorded-hang.json")
	for name, c := range map[string]struct {
		rank   string
		alerts []alerting.Alert
		want   int
	}{
		"rank 0":           {"RANK=0", alertOn("mlx5_0", "critical"), 1},
		"rank 0 of srun":   {"SLURM_PROCID=0", alertOn("mlx5_0", "info"), 1},
		"another rank":     {"RANK=8", alertOn("mlx5_0", "critical"), 0},
		"no rank":          {"", alertOn("mlx5_0", "critical"), 0},
		"no alert":         {"RANK=0", nil, 0},
		"another port":     {"RANK=0", alertOn("mlx5_1", "critical"), 0},
		"a watchdog":       {"RANK=0", alertOn("mlx5_0", "none"), 0},
		"an alert of none": {"RANK=0", alertOn("", "critical"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w, queries := watched(t)
			w.Note(t.Context(), jobRound(at, c.rank), c.alerts, time.Now())
			w.Wait()
			if *queries != c.want {
				t.Errorf("%d queries, want %d", *queries, c.want)
			}
		})
	}
	var none *Watch
	none.Note(t.Context(), jobRound(at, "RANK=0"), alertOn("mlx5_0", "critical"), time.Now())
	none.Wait()
	none.Input(&check.Input{})
}

// TestNCCLWords: an answer is valid for 15m, and the next one is requested after 5m. That of another job is none.
func TestNCCLWords(t *testing.T) {
	w, queries := watched(t)
	at, start := ras.Service(t, "v2.30.7-hang.json"), time.Now()
	shown := func() string {
		var in check.Input
		w.Input(&in)
		return in.NCCL["slurm/77"]
	}
	for _, step := range []struct {
		after   time.Duration
		alerts  []alerting.Alert
		queries int
		shown   bool
	}{
		{0, alertOn("mlx5_0", "critical"), 1, true},
		{4 * time.Minute, alertOn("mlx5_0", "critical"), 1, true},
		{5 * time.Minute, alertOn("mlx5_0", "critical"), 2, true},
		{19 * time.Minute, nil, 2, true},
		{20 * time.Minute, nil, 2, false},
	} {
		w.Note(t.Context(), jobRound(at, "RANK=0"), step.alerts, start.Add(step.after))
		w.Wait()
		if *queries != step.queries || (shown() != "") != step.shown {
			t.Errorf("after %s: %d queries, %q; want %+v", step.after, *queries, shown(), step)
		}
		const want = "5 ranks RUNNING, INCOMPLETE, MISMATCH; 1 communicator of 2 ranks ABORT, ERROR, MISMATCH; "
		if step.shown && (!strings.HasPrefix(shown(), "2.30.7+cuda13.0 at ") || !strings.Contains(shown(), want) ||
			!strings.HasSuffix(shown(), "(evidence only).")) {
			t.Errorf("%q", shown())
		}
	}
	other := ras.Service(t, "v2.28.9-recorded-ok.json")
	w.Note(t.Context(), jobRound(other, "RANK=0"), alertOn("mlx5_0", "critical"), start.Add(time.Hour))
	w.Wait()
	if shown() != "" {
		t.Errorf("of another job: %q", shown())
	}
}
