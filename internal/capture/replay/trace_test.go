package replay

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot/accel"
)

const traceText = `complete: 5234.5
age: 3600
begun: 812
lost: 2
observes: host events
missing: memory of nvidia_peermem: no kprobes
registration: pid=90211 device=mlx5_0 function=0000:1a:00.0 mechanism=dmabuf exporter=nv_dmabuf regions=35 bytes=146800640
registration: pid=0 mechanism=host regions=1 bytes=4096
events: device=mlx5_0 port=1 kind=port_error count=2
event: age=12.5 device=mlx5_0 kind=qp_fatal pid=90211
`

func tracedAt(base time.Time) accel.Trace {
	return accel.Trace{
		Complete: 5234500 * time.Millisecond, Since: base.Add(-time.Hour), Begun: 812, Lost: 2, Host: true, Events: true,
		Missing: []string{"memory of nvidia_peermem: no kprobes"},
		Registrations: []accel.Registration{
			{Device: "mlx5_0", Function: "0000:1a:00.0", Mechanism: "dmabuf", Exporter: "nv_dmabuf", PID: 90211, Regions: 35, Bytes: 35 << 22},
			{Mechanism: "host", Regions: 1, Bytes: 4096},
		},
		Totals: []accel.AsyncTotal{{Device: "mlx5_0", Port: 1, Kind: "port_error", Count: 2}},
		Recent: []accel.AsyncEvent{
			{At: base.Add(-12500 * time.Millisecond), Device: "mlx5_0", Kind: "qp_fatal", PID: 90211},
		},
	}
}

// tracerOf observes always the same.
type tracerOf struct {
	host.Tracer
	found accel.Trace
	err   error
}

func (t tracerOf) Traced(context.Context) (accel.Trace, error) { return t.found, t.err }

func TestTraceIsRecordedAndPlayed(t *testing.T) {
	base := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	recorder := NewRecorder(&host.Host{Tracer: tracerOf{found: tracedAt(base)}, Now: func() time.Time { return base }})
	if _, err := recorder.Host().Tracer.Traced(t.Context()); err != nil {
		t.Fatal(err)
	}
	recorder.EndRound(0)
	a := recorder.Archive(capture.Meta{})
	if got := string(a.Rounds[0].Entries[0].Data); got != traceText {
		t.Errorf("recorded:\n%s", got)
	}
	later := base.Add(24 * time.Hour)
	p, err := Play(a, later)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	got, err := p.Host().Tracer.Traced(t.Context())
	if err != nil || !reflect.DeepEqual(got, tracedAt(later)) {
		t.Errorf("%+v %v, want %+v", got, err, tracedAt(later))
	}
}

func TestTraceOfNothing(t *testing.T) {
	recorder := NewRecorder(&host.Host{Tracer: tracerOf{err: host.ErrNotTracing}, Now: time.Now})
	_, _ = recorder.Host().Tracer.Traced(t.Context())
	recorder.EndRound(0)
	a := recorder.Archive(capture.Meta{})
	if n := len(a.Rounds[0].Entries); n != 0 {
		t.Errorf("%d entries", n)
	}
	p, err := Play(a, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Host().Tracer.Traced(t.Context()); !errors.Is(err, host.ErrNotTracing) {
		t.Error(err)
	}
}
