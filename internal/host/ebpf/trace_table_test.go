package ebpf

import (
	"encoding/binary"
	"reflect"
	"testing"
	"time"

	"rdma_exporter/internal/snapshot/accel"
)

// began returns a record of a registration as a program writes it.
func began(mechanism, pid uint32, id, size uint64, function, exporter, device string) []byte {
	b := make([]byte, beginSize)
	binary.NativeEndian.PutUint32(b, recordBegin)
	binary.NativeEndian.PutUint32(b[beginPID:], pid)
	binary.NativeEndian.PutUint64(b[beginID:], id)
	binary.NativeEndian.PutUint64(b[beginBytes:], size)
	binary.NativeEndian.PutUint32(b[beginMechanism:], mechanism)
	copy(b[beginFunction:], function)
	copy(b[beginExporter:], exporter)
	copy(b[beginDevice:], device)
	return b
}

func endedRegion(mechanism uint32, id uint64) []byte {
	b := make([]byte, endSize)
	binary.NativeEndian.PutUint32(b, recordEnd)
	binary.NativeEndian.PutUint32(b[endMechanism:], mechanism)
	binary.NativeEndian.PutUint64(b[endID:], id)
	return b
}

func happened(pid, event, port uint32, device string) []byte {
	b := make([]byte, asyncSize)
	binary.NativeEndian.PutUint32(b, recordAsync)
	binary.NativeEndian.PutUint32(b[asyncPID:], pid)
	binary.NativeEndian.PutUint32(b[asyncEvent:], event)
	binary.NativeEndian.PutUint32(b[asyncPort:], port)
	copy(b[asyncDevice:], device)
	return b
}

func tableOf(t *testing.T, records ...[]byte) *traceTable {
	t.Helper()
	table := newTraceTable()
	for _, b := range records {
		r, ok := decodeTrace(b)
		if !ok {
			t.Fatalf("no record: %x", b)
		}
		table.add(r, time.Unix(100, 0))
	}
	return table
}

func traceOf(table *traceTable) (out accel.Trace) {
	table.fill(&out)
	return out
}

func TestTraceTable(t *testing.T) {
	const pci = "0000:1a:00.0"
	gpu := accel.Registration{
		Device: "mlx5_0", Function: pci, Mechanism: "dmabuf", Exporter: "nv_dmabuf", PID: 7, Regions: 1, Bytes: 64,
	}
	host := accel.Registration{Device: "mlx5_0", Function: pci, Mechanism: "host", PID: 7, Regions: 1, Bytes: 32}
	two := gpu
	two.Regions, two.Bytes = 2, 64+16
	second := began(traceDMABUF, 7, 2, 16, pci, "nv_dmabuf", "mlx5_0")
	for name, c := range map[string]struct {
		records [][]byte
		want    []accel.Registration
	}{
		"one":             {[][]byte{began(traceDMABUF, 7, 1, 64, pci, "nv_dmabuf", "mlx5_0")}, []accel.Registration{gpu}},
		"sum":             {[][]byte{began(traceDMABUF, 7, 1, 64, pci, "nv_dmabuf", "mlx5_0"), second}, []accel.Registration{two}},
		"ended":           {[][]byte{began(traceDMABUF, 7, 1, 64, pci, "nv_dmabuf", "mlx5_0"), second, endedRegion(traceDMABUF, 2)}, []accel.Registration{gpu}},
		"all ended":       {[][]byte{second, endedRegion(traceDMABUF, 2)}, nil},
		"end of another":  {[][]byte{endedRegion(traceDMABUF, 9), began(traceDMABUF, 7, 1, 64, pci, "nv_dmabuf", "mlx5_0"), endedRegion(traceDMABUF, 9)}, []accel.Registration{gpu}},
		"same address":    {[][]byte{began(traceDMABUF, 7, 1, 64, pci, "nv_dmabuf", "mlx5_0"), began(traceHost, 7, 1, 32, pci, "", "mlx5_0")}, []accel.Registration{gpu, host}},
		"lost end":        {[][]byte{began(traceDMABUF, 8, 1, 4, pci, "udmabuf", "mlx5_0"), began(traceDMABUF, 7, 1, 64, pci, "nv_dmabuf", "mlx5_0")}, []accel.Registration{gpu}},
		"end of the kind": {[][]byte{began(traceDMABUF, 7, 1, 64, pci, "nv_dmabuf", "mlx5_0"), endedRegion(traceHost, 1)}, []accel.Registration{gpu}},
	} {
		if got := traceOf(tableOf(t, c.records...)).Registrations; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestTraceTablePrunes(t *testing.T) {
	table := tableOf(t, began(traceHost, 7, 1, 64, "", "", "mlx5_0"), began(traceHost, 8, 2, 16, "", "", "mlx5_0"))
	table.prune(func(pid int) bool { return pid == 7 })
	want := []accel.Registration{{Device: "mlx5_0", Mechanism: "host", PID: 8, Regions: 1, Bytes: 16}}
	if got := traceOf(table).Registrations; !reflect.DeepEqual(got, want) || len(table.live) != 1 {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestTraceTableIsBounded(t *testing.T) {
	table := newTraceTable()
	for i := range uint64(tracedRegions + 3) {
		table.add(traceRecord{kind: recordBegin, mechanism: traceHost, id: i, bytes: 1}, time.Time{})
	}
	if len(table.live) != tracedRegions || table.lost != 3 {
		t.Errorf("%d registrations, %d lost", len(table.live), table.lost)
	}
}

func TestTraceEvents(t *testing.T) {
	const fatal, active, limit = 1, 9, 15
	got := traceOf(tableOf(t, happened(7, fatal, 0, "mlx5_0"), happened(0, active, 1, "mlx5_0"),
		happened(7, fatal, 0, "mlx5_0"), happened(0, limit, 0xffff, "mlx5_0"), happened(0, 40, 0xffff, "mlx5_1")))
	want := []accel.AsyncTotal{
		{Device: "mlx5_0", Kind: "qp_fatal", Count: 2},
		{Device: "mlx5_0", Kind: "srq_limit_reached", Count: 1},
		{Device: "mlx5_0", Port: 1, Kind: "port_active", Count: 1},
		{Device: "mlx5_1", Kind: "event_40", Count: 1},
	}
	if !reflect.DeepEqual(got.Totals, want) {
		t.Errorf("%+v, want %+v", got.Totals, want)
	}
	event := accel.AsyncEvent{At: time.Unix(100, 0), Device: "mlx5_0", Kind: "qp_fatal", PID: 7}
	if !reflect.DeepEqual(got.Recent, []accel.AsyncEvent{event, event}) {
		t.Errorf("%+v", got.Recent)
	}
}

func TestTraceRecentIsBounded(t *testing.T) {
	table := newTraceTable()
	for i := range tracedRecent + 5 {
		table.add(traceRecord{kind: recordAsync, event: 1, pid: i}, time.Time{})
	}
	if got := traceOf(table).Recent; len(got) != tracedRecent || got[0].PID != 5 {
		t.Errorf("%d events, the first of process %d", len(got), got[0].PID)
	}
}

func FuzzDecodeTrace(f *testing.F) {
	f.Add(began(traceDMABUF, 7, 1, 64, "0000:1a:00.0", "nv_dmabuf", "mlx5_0"))
	f.Add(endedRegion(traceHost, 1))
	f.Add(happened(7, 1, 0, "mlx5_0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, ok := decodeTrace(b)
		if ok && (len(r.device) > deviceSize || r.kind < recordBegin || r.kind > recordAsync) {
			t.Errorf("%+v of %x", r, b)
		}
	})
}
