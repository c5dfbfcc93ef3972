package replay

import (
	"context"
	"reflect"
	"testing"
	"time"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot/accel"
)

type processes []accel.Process

func (p processes) Processes(context.Context, []int, bool) ([]accel.Process, bool, error) {
	return p, false, nil
}

func TestProcessesRoundTrip(t *testing.T) {
	memlock := uint64(65536)
	want := []accel.Process{
		{PID: 9, Verbs: []string{"uverbs1"}, Unlimited: true, Env: map[string]string{}},
		{
			PID: 100, Command: "python3", GPUs: []int{0, 3}, Verbs: []string{"uverbs0", "uverbs1"}, NCCL: "2.22.3",
			HasNCCL: true, Plugin: true, LockedMemory: &memlock, Job: "slurm/77",
			Env:  map[string]string{"NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1", "SLURM_JOB_ID": "77"},
			Conf: map[string]string{"NCCL_IB_TC": "106"}, Topology: `<system><cpu numaid="0"></cpu></system>`,
		},
		{PID: 101, GPUs: []int{1}, Verbs: []string{"uverbs1"}, HasNCCL: true, Mover: true, Cut: true, DMABUFs: []accel.DMABUFs{{Exporter: "drm", Buffers: 1, Bytes: 4096}, {Exporter: "nv_dmabuf", Buffers: 3, Bytes: 12 << 20}}, Env: map[string]string{}, Conf: map[string]string{}},
	}
	src := &host.Host{Processes: processes(want)}
	rec := NewRecorder(src)
	if _, _, err := rec.Host().Processes.Processes(t.Context(), nil, false); err != nil {
		t.Fatal(err)
	}
	rec.EndRound(0)
	src.Processes = processes(want[1:])
	if _, _, err := rec.Host().Processes.Processes(t.Context(), nil, false); err != nil {
		t.Fatal(err)
	}
	rec.EndRound(15 * time.Second)
	text, err := capture.Format(rec.Archive(capture.Meta{Time: time.Unix(0, 0)}))
	if err != nil {
		t.Fatal(err)
	}
	a, err := capture.Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	p, err := Play(a, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for i, at := range p.Times() {
		if err := p.Seek(at); err != nil {
			t.Fatal(err)
		}
		got, refused, err := p.Host().Processes.Processes(t.Context(), nil, false)
		if err != nil || refused || !reflect.DeepEqual(got, want[i:]) {
			t.Errorf("round %d: %+v %v %v", i, got, refused, err)
		}
	}
}
