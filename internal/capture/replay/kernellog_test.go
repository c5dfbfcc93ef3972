package replay

import (
	"context"
	"reflect"
	"testing"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/kernellog"
	"rdma_exporter/test/archives"
)

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
		a := rec.Archive(capture.Meta{Time: archives.Start})
		if got := string(a.Rounds[0].Entries[0].Data); got != want {
			t.Errorf("whole %v: %q, want %q", whole, got, want)
		}
		played, err := play(t, archives.Parse(t, archives.Format(t, a))).KernelLog(t.Context())
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
	a := archives.Parse(t, archives.Header+"-- "+answer.KernelLogPath+" --\n"+string(answer.Encode(log)))
	got, err := play(t, a).KernelLog(t.Context())
	if err != nil || !reflect.DeepEqual(got.Events, log.Events[1:]) {
		t.Errorf("%d events, %v", len(got.Events), err)
	}
}
