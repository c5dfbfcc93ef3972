package capture

import (
	"context"
	"reflect"
	"testing"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/kernellog"
)

func TestKernelLog(t *testing.T) {
	want := host.KernelLogReading{Lost: 3, Dropped: 1, Skipped: 7, Events: []host.KernelEvent{
		{Seq: 11, At: 2 * time.Second, Event: kernellog.Event{Kind: kernellog.ModuleError, Driver: "mlx5_core", PCIAddress: "0000:4d:00.0", Detail: "0, Cable error, High Temperature"}},
		{Seq: 40, At: 9 * time.Second, Event: kernellog.Event{Kind: kernellog.TransmitTimeout, Netdev: "eth1"}},
	}}
	got, err := decode[host.KernelLogReading]("x", encode(want))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{
		"11: 5 module_error\n", "x: 5 a b c d e f\n", "11: x a b c d e f\n", "lost: x\n", "skipped: perhaps\n",
	} {
		if _, err := decode[host.KernelLogReading]("x", []byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

type kernelLog host.KernelLogReading

func (l kernelLog) KernelLog(context.Context) (host.KernelLogReading, error) {
	return host.KernelLogReading(l), nil
}

// TestWholeKernelLog: lines are recorded on request only, and a replay does not read them.
func TestWholeKernelLog(t *testing.T) {
	const line = "NETDEV WATCHDOG: eth1 (x): transmit queue 1 timed out"
	const event = "lost: 0\ndropped: 0\nskipped: 0\n11: 0 transmit_timeout - - eth1 - -\n"
	source := kernelLog{Events: []host.KernelEvent{{
		Seq: 11, Event: kernellog.Event{Kind: kernellog.TransmitTimeout, Netdev: "eth1"}, Line: line,
	}}}
	for whole, want := range map[bool]string{false: event, true: event + "line: " + line + "\n"} {
		rec := NewRecorder(&host.Host{KernelLog: source})
		rec.WholeKernelLog = whole
		if _, err := rec.Host().KernelLog.KernelLog(t.Context()); err != nil {
			t.Fatal(err)
		}
		rec.EndRound(0)
		a := rec.Archive(Meta{Time: base})
		if got := string(a.Rounds[0].Entries[0].Data); got != want {
			t.Errorf("whole %v: %q, want %q", whole, got, want)
		}
		played, err := play(t, parse(t, format(t, a))).KernelLog(t.Context())
		if wanted := withoutLine(source); err != nil || !reflect.DeepEqual(played, wanted) {
			t.Errorf("whole %v: %+v, %v, want %+v", whole, played, err, wanted)
		}
	}
	if source.Events[0].Line != line {
		t.Error("the recorder changes the answer of the host")
	}
}

func withoutLine(l kernelLog) host.KernelLogReading {
	event := l.Events[0]
	event.Line = ""
	l.Events = []host.KernelEvent{event}
	return host.KernelLogReading(l)
}

// TestLongKernelLog: of a capture that another program made, the newest events are replayed, as of a running kernel.
func TestLongKernelLog(t *testing.T) {
	var log host.KernelLogReading
	for i := range host.MaxKernelEvents + 1 {
		log.Events = append(log.Events, host.KernelEvent{
			Seq: uint64(i), Event: kernellog.Event{Kind: kernellog.TransmitTimeout, Netdev: "eth1"},
		})
	}
	a := parse(t, header+"-- "+kernelLogPath+" --\n"+string(encode(log)))
	got, err := play(t, a).KernelLog(t.Context())
	if err != nil || !reflect.DeepEqual(got.Events, log.Events[1:]) {
		t.Errorf("%d events, %v", len(got.Events), err)
	}
}

// FuzzKernelLog: what is accepted is written again as the same.
func FuzzKernelLog(f *testing.F) {
	f.Add([]byte("lost: 3\ndropped: 1\nskipped: 7\n11: 2000000 module_error mlx5_core 0000:4d:00.0 - - module 0, Cable error, High Temperature\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decode[host.KernelLogReading]("x", data)
		if err != nil {
			return
		}
		if again, err := decode[host.KernelLogReading]("x", encode(r)); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%+v, %v; was %+v", again, err, r)
		}
	})
}
