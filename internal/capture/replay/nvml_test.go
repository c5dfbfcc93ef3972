package replay

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/nvml"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/test/archives"
)

// gpuMachine has two GPUs, one of which is removed.
const gpuMachine = archives.Header + `-- nvml/gpu/0 --
uuid: GPU-7975f855-e9d0-915f-3654-32c90a1bfdf8
pcie_replays: 10
nvlink_errors_replay: 1
-- nvml/gpu/1 --
uuid: GPU-0975f855-e9d0-915f-3654-32c90a1bfdf8
-- nvml/system --
driver: 580.95.05
cuda: 13.0
-- +15s/nvml/gpu/0 --
uuid: GPU-7975f855-e9d0-915f-3654-32c90a1bfdf8
pcie_replays: 13
nvlink_errors_replay: 3
-- +15s/nvml/gpu/1 !ENOENT --
`

// gpus formats a reading of a replayed machine.
func gpus(t *testing.T, h *host.Host) string {
	t.Helper()
	v, errs, err := h.GPUs.ReadGPUs(t.Context(), false)
	if err != nil || len(errs) > 0 {
		t.Fatal(err, errs)
	}
	text := v.Driver + " " + v.CUDA
	for _, g := range v.GPUs {
		text += fmt.Sprintf(" %d:%s", g.Index, g.UUID[4:8])
		if g.PCIeReplays != nil {
			text += fmt.Sprintf(" %d %v", *g.PCIeReplays, g.NVLinkErrors)
		}
	}
	return text
}

func TestGPUsArePlayed(t *testing.T) {
	p := play(t, archives.Parse(t, gpuMachine))
	for _, c := range []struct {
		after time.Duration
		want  string
	}{
		{0, "580.95.05 13.0 0:7975 10 [{replay 1}] 1:0975"},
		{15 * time.Second, "580.95.05 13.0 0:7975 13 [{replay 3}]"},
		{30 * time.Second, "580.95.05 13.0 0:7975 13 [{replay 3}]"}, // the last recorded round, in which nothing increases
	} {
		seek(t, p, c.after)
		if got := gpus(t, p.Host()); got != c.want {
			t.Errorf("after %v: %s, want %s", c.after, got, c.want)
		}
	}
	risen := play(t, archives.Parse(t, strings.Replace(gpuMachine, "-- +15s/nvml/gpu/1 !ENOENT --\n", "", 1)+`-- +30s/nvml/gpu/0 --
uuid: GPU-7975f855-e9d0-915f-3654-32c90a1bfdf8
pcie_replays: 15
nvlink_errors_replay: 4
`))
	seek(t, risen, time.Minute)
	if got, want := gpus(t, risen.Host()), "580.95.05 13.0 0:7975 19 [{replay 6}] 1:0975"; got != want {
		t.Errorf("counters do not continue: %s, want %s", got, want)
	}
	if err := p.ReleaseGPUs(t.Context(), time.Minute, "root"); access.ReasonOf(err) != access.Unsupported {
		t.Error(err)
	}
}

func TestGPUsOfAMachineWithoutAre(t *testing.T) {
	for text, want := range map[string]access.Reason{
		"": access.Absent, "-- nvml/system !EBUSY --\n": access.IO, "-- nvml/system !ELIBACC --\n": access.IO,
	} {
		h := play(t, archives.Parse(t, archives.Header+text)).Host()
		if _, _, err := h.GPUs.ReadGPUs(t.Context(), true); access.ReasonOf(err) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
	h := play(t, archives.Parse(t, archives.Header+"-- nvml/system --\ndriver: 1\n-- nvml/gpu/0 --\npower: much\n"+
		"-- nvml/gpu/x --\npower: 1\n-- nvml/gpu/1 --\npower: 1\n")).Host()
	v, errs, err := h.GPUs.ReadGPUs(t.Context(), true)
	if err != nil || len(v.GPUs) != 1 || len(errs) != 2 {
		t.Errorf("%+v %v %v", v, errs, err)
	}
}

// asked records whether all figures were requested.
type asked struct {
	host.GPUs
	full bool
}

func (a *asked) ReadGPUs(ctx context.Context, full bool) (accel.NVML, []error, error) {
	a.full = a.full || full
	return a.GPUs.ReadGPUs(ctx, full)
}

func TestGPUsAreRecorded(t *testing.T) {
	a := archives.Parse(t, gpuMachine)
	p := play(t, a)
	inner := p.Host()
	wants := &asked{GPUs: inner.GPUs}
	inner.GPUs = wants
	rec := NewRecorder(inner)
	for _, r := range a.Rounds {
		seek(t, p, r.At)
		gpus(t, rec.Host())
		rec.EndRound(r.At)
	}
	archives.Differ(t, archives.Format(t, rec.Archive(a.Meta)), archives.Format(t, a))
	if !wants.full {
		t.Error("a capture lacks what is not of the fabric")
	}

	rec = NewRecorder(&host.Host{GPUs: failing{}})
	if _, _, err := rec.ReadGPUs(t.Context(), true); err == nil {
		t.Error("no error")
	}
	rec.EndRound(0)
	if e := rec.Archive(a.Meta).Rounds[0].Entries; len(e) != 1 || e[0].Path != "nvml/system" ||
		e[0].Errno != syscall.ELIBACC {
		t.Errorf("%+v", e)
	}
}

type failing struct{ nvml.NoNVML }

func (failing) ReadGPUs(context.Context, bool) (accel.NVML, []error, error) {
	return accel.NVML{}, nil, fmt.Errorf("cannot load: %w", syscall.ELIBACC)
}
