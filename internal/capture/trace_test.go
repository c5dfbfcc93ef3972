package capture

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot"
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

func tracedAt(base time.Time) snapshot.Trace {
	return snapshot.Trace{
		Complete: 5234500 * time.Millisecond, Since: base.Add(-time.Hour), Begun: 812, Lost: 2, Host: true, Events: true,
		Missing: []string{"memory of nvidia_peermem: no kprobes"},
		Registrations: []snapshot.Registration{
			{Device: "mlx5_0", Function: "0000:1a:00.0", Mechanism: "dmabuf", Exporter: "nv_dmabuf", PID: 90211, Regions: 35, Bytes: 35 << 22},
			{Mechanism: "host", Regions: 1, Bytes: 4096},
		},
		Totals: []snapshot.AsyncTotal{{Device: "mlx5_0", Port: 1, Kind: "port_error", Count: 2}},
		Recent: []snapshot.AsyncEvent{
			{At: base.Add(-12500 * time.Millisecond), Device: "mlx5_0", Kind: "qp_fatal", PID: 90211},
		},
	}
}

// tracerOf observes always the same.
type tracerOf struct {
	host.Tracer
	found snapshot.Trace
	err   error
}

func (t tracerOf) Traced(context.Context) (snapshot.Trace, error) { return t.found, t.err }

func TestTraceIsRecordedAndPlayed(t *testing.T) {
	base := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	recorder := NewRecorder(&host.Host{Tracer: tracerOf{found: tracedAt(base)}, Now: func() time.Time { return base }})
	if _, err := recorder.Host().Tracer.Traced(t.Context()); err != nil {
		t.Fatal(err)
	}
	recorder.EndRound(0)
	a := recorder.Archive(Meta{})
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
	a := recorder.Archive(Meta{})
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

func TestTraceGarbled(t *testing.T) {
	for _, text := range []string{
		"x", "lost: many\n", "complete: 1e300\n", "age: x\n", "registration: pid=x\n", "registration: size=1\n",
		"event: age=x\n", "new: 1\n",
	} {
		if _, err := decodeTrace([]byte(text), time.Time{}); access.ReasonOf(err) != access.Malformed {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestProcessesAreNumbered: a process has one pseudonym in all entries, and archives that are anonymous already stay
// the same.
func TestProcessesAreNumbered(t *testing.T) {
	a := &Archive{Rounds: []Round{{Entries: []Entry{
		{Path: tracePath, Data: []byte(traceText)},
		{Path: "nvml/gpu/0", Data: []byte("uuid: GPU-114bfe49-de9f-d3f5-a17d-2e541a43fa27\nprocesses: 90211 90212\n")},
		{Path: processDir + "/4022", Data: []byte("command: wekanode\n")},
		{Path: processDir + "/90211", Data: []byte("command: python3\n")},
		{Path: "rdma/mlx5_0/holders", Data: []byte("4022: contexts=1 regions=2 bytes=8192\n0: contexts=1 regions=0 bytes=0\n")},
	}}}}
	Anonymise(a)
	for i, want := range map[int]string{
		0: strings.ReplaceAll(traceText, "90211", "1002"),
		4: "1001: contexts=1 regions=2 bytes=8192\n0: contexts=1 regions=0 bytes=0\n",
	} {
		if got := string(a.Rounds[0].Entries[i].Data); got != want {
			t.Errorf("%d:\n%s\nwant\n%s", i, got, want)
		}
	}
	if got := a.Rounds[0].Entries[2].Path + a.Rounds[0].Entries[3].Path; got != processDir+"/1001"+processDir+"/1002" {
		t.Error(got)
	}
	if got := string(a.Rounds[0].Entries[1].Data); !strings.Contains(got, "processes: 1002 1003\n") {
		t.Error(got)
	}
	before := format(t, a)
	Anonymise(a)
	differ(t, format(t, a), before)
}
