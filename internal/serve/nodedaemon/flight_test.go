package nodedaemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/machine"
	"rdma_exporter/test/alone"
	"rdma_exporter/test/disk"
	"rdma_exporter/test/locked"
	"rdma_exporter/test/machines"
)

// listCaptures returns the files of captures in a folder.
func listCaptures(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.txtar")
	must(t, err)
	return files
}

// newRecorder returns a recorder that captures a recorded machine into a folder.
func newRecorder(t *testing.T, dir string) (*flightRecorder, *locked.Buffer) {
	t.Helper()
	log := &locked.Buffer{}
	f, err := openFlight(t.Context(), dir, slog.New(slog.NewTextHandler(log, nil)))
	must(t, err)
	m, sched := machines.Open(t, machines.Fixture("no-rdma"))
	c := &machine.Config{Timeout: time.Minute}
	f.begin = func(ctx context.Context) (*machine.Recording, error) {
		return c.Record(ctx, m, sched.Collectors, expect.Data{}, slog.New(slog.DiscardHandler)), nil
	}
	f.history = func(context.Context, time.Time) ([]byte, error) { return nil, nil }
	f.site = func(*capture.Archive) error { return nil }
	return f, log
}

// newAlert returns an alert that drains the host.
func newAlert(name string, s alerting.State) alerting.Alert {
	return alerting.Alert{Name: name, State: s, Labels: map[string]string{"alertname": name, "drain": "evict"}}
}

// TestTenIncidents: of eleven incidents the newest ten are kept, also by the next run, which makes no further capture
// of alerts that are still firing.
func TestTenIncidents(t *testing.T) {
	dir, t0 := filepath.Join(t.TempDir(), incidentFolder), time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	f, _ := newRecorder(t, dir)
	var firing []alerting.Alert
	for i := range 11 {
		firing = append(firing, newAlert(fmt.Sprintf("Alert%02d", i), alerting.StateFiring))
		f.note(t0.Add(time.Duration(i)*time.Minute), firing)
		f.step(t.Context())
	}
	names := func(f *flightRecorder) (out []string) {
		for _, i := range f.listIncidents() {
			out = append(out, i.Alerts...)
			if _, err := capture.Load(i.File, nil); err != nil {
				t.Error(err)
			}
		}
		return out
	}
	want := []string{
		"Alert10", "Alert09", "Alert08", "Alert07", "Alert06", "Alert05", "Alert04", "Alert03", "Alert02", "Alert01",
	}
	if got := names(f); !slices.Equal(got, want) || len(listCaptures(t, dir)) != incidentsKept {
		t.Errorf("%v, %v", got, listCaptures(t, dir))
	}
	f.close()
	put(t, filepath.Join(dir, command.Unfinished+"1"), "half")
	f, _ = newRecorder(t, dir)
	defer f.close()
	f.note(t0.Add(40*time.Minute), firing)
	f.step(t.Context())
	if got := names(f); !slices.Equal(got, want) {
		t.Errorf("after a restart: %v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, command.Unfinished+"1")); err == nil {
		t.Error("what a killed process has left half done stays")
	}
}

// TestSameIncident: an alert makes one capture while it fires, and another one if it fires again after an hour; several
// alerts of one round share a capture.
func TestSameIncident(t *testing.T) {
	f, _ := newRecorder(t, filepath.Join(t.TempDir(), incidentFolder))
	defer f.close()
	t0 := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	a, b := newAlert("A", alerting.StateFiring), newAlert("B", alerting.StateFiring)
	pending, quiet := newAlert("C", alerting.StatePending), newAlert("D", alerting.StateFiring)
	quiet.Labels["drain"] = "no"
	for _, c := range []struct {
		after  time.Duration
		alerts []alerting.Alert
		want   int // captures
	}{
		{0, []alerting.Alert{quiet}, 0},
		{time.Minute, []alerting.Alert{pending}, 0},
		{2 * time.Minute, []alerting.Alert{a, b}, 1},
		{50 * time.Minute, []alerting.Alert{a}, 1},
		{100 * time.Minute, []alerting.Alert{a}, 1},
		{101 * time.Minute, []alerting.Alert{a, b}, 2}, // B was not seen for 99 minutes
		{150 * time.Minute, nil, 2},
		{155 * time.Minute, []alerting.Alert{a}, 2},
		{90 * time.Minute, []alerting.Alert{a}, 3}, // the clock was set back by more than an hour
		{230 * time.Minute, []alerting.Alert{a}, 4},
	} {
		f.note(t0.Add(c.after), c.alerts)
		f.step(t.Context())
		if got := len(f.listIncidents()); got != c.want {
			t.Errorf("after %s: %d captures, want %d", c.after, got, c.want)
		}
	}
}

// TestIncidentOnAFullDisk: a full disk is logged once and reported by the metric, no partial file is left, and the next
// capture is kept again.
func TestIncidentOnAFullDisk(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	dir, t0 := filepath.Join(t.TempDir(), incidentFolder), time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	f, log := newRecorder(t, dir)
	defer f.close()
	mend := disk.Full(t)
	for i := range 3 {
		f.note(t0.Add(time.Duration(i)*time.Minute), []alerting.Alert{newAlert("A", alerting.StateFiring)})
		f.step(t.Context())
	}
	mend()
	if s, tried := f.lastCapture(); !tried || !s.Failed {
		t.Errorf("%+v, %v", s, tried)
	}
	if l := log.String(); strings.Count(l, "\n") != 1 || !strings.Contains(l, "incident capture failed") {
		t.Errorf("log:\n%s", l)
	}
	if left, err := filepath.Glob(dir + "/" + command.Unfinished + "*"); err != nil ||
		len(left)+len(listCaptures(t, dir)) > 0 {
		t.Errorf("%v %v", left, listCaptures(t, dir))
	}
	f.note(t0.Add(5*time.Minute), []alerting.Alert{newAlert("B", alerting.StateFiring)})
	f.step(t.Context())
	if s, _ := f.lastCapture(); s.Failed || len(listCaptures(t, dir)) != 1 {
		t.Errorf("%+v, %v", s, listCaptures(t, dir))
	}
}

// TestIncidentThatCannotBeRead: an error in a capture costs that capture only.
func TestIncidentThatCannotBeRead(t *testing.T) {
	f, log := newRecorder(t, filepath.Join(t.TempDir(), incidentFolder))
	defer f.close()
	begin := f.begin
	f.begin = func(context.Context) (*machine.Recording, error) { return nil, errors.New("no host access") }
	f.note(time.Unix(1e9, 0), []alerting.Alert{newAlert("A", alerting.StatePending)})
	f.step(t.Context())
	if log.String() != "" {
		t.Errorf("of an alert that has not fired: %s", log)
	}
	f.note(time.Unix(1e9+15, 0), []alerting.Alert{newAlert("A", alerting.StateFiring)})
	f.step(t.Context())
	if !strings.Contains(log.String(), "no host access") || len(f.listIncidents()) > 0 {
		t.Errorf("%v\n%s", f.listIncidents(), log)
	}
	f.begin = begin
	f.history = func(context.Context, time.Time) ([]byte, error) { panic("history") }
	f.note(time.Unix(1e9+30, 0), []alerting.Alert{newAlert("B", alerting.StateFiring)})
	f.step(t.Context())
	if !strings.Contains(log.String(), "history") || len(f.listIncidents()) > 0 {
		t.Errorf("%v\n%s", f.listIncidents(), log)
	}
}

// TestCaptureHoldsNothingUp: while a capture waits for the machine, rounds, scrapes and the page go on, and the end of
// the program ends it.
func TestCaptureHoldsNothingUp(t *testing.T) {
	f, log := newRecorder(t, filepath.Join(t.TempDir(), incidentFolder))
	inside := make(chan struct{})
	f.begin = func(ctx context.Context) (*machine.Recording, error) {
		close(inside)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	ctx, stop := context.WithCancel(t.Context())
	f.start(ctx)
	t0 := time.Unix(1e9, 0)
	f.note(t0, []alerting.Alert{newAlert("A", alerting.StateFiring)})
	<-inside
	for i := range 3 {
		f.note(t0.Add(time.Duration(i)*15*time.Second), []alerting.Alert{newAlert("A", alerting.StateFiring)})
	}
	if s, tried := f.lastCapture(); tried || len(f.listIncidents()) > 0 {
		t.Errorf("%+v", s)
	}
	stop()
	f.close()
	if log.String() != "" {
		t.Errorf("log:\n%s", log)
	}
	f, _ = newRecorder(t, f.file.Dir)
	defer f.close()
	f.note(t0.Add(time.Minute), []alerting.Alert{newAlert("A", alerting.StateFiring)})
	f.step(t.Context())
	if len(f.listIncidents()) != 1 {
		t.Error("what was interrupted is not captured by the next run")
	}
}

// TestHistoryText: the series that have changed, one per line, up to the maximum size.
func TestHistoryText(t *testing.T) {
	t0 := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	at := func(values ...float64) (out []alerting.Point) {
		for i, v := range values {
			out = append(out, alerting.Point{At: t0.Add(time.Duration(i) * 15 * time.Second), Value: v})
		}
		return out
	}
	series := []alerting.Series{
		{Labels: map[string]string{"__name__": "rdma_a", "device": "mlx5_0", "instance": "i", "job": "j", "port": "1"}, Points: at(1, 1, 2)},
		{Labels: map[string]string{"__name__": "rdma_b", "instance": "i"}, Points: at(1, 1, 1)},
		{Labels: map[string]string{"__name__": "rdma_c", "instance": "i"}, Points: at(1)},
	}
	want := "# Samples of the rules that changed, from 2026-07-01T12:00:00Z to 2026-07-01T12:00:30Z, every 15s; - is no sample.\n" +
		"rdma_a{device=\"mlx5_0\",port=\"1\"} 1 1 2\nrdma_c{} 1 - -\n"
	if got := string(formatHistory(series, t0, t0.Add(30*time.Second), 15*time.Second)); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	large := slices.Repeat(series, historyMax/40)
	if got := formatHistory(large, t0, t0.Add(30*time.Second), 15*time.Second); len(got) > historyMax+10 ||
		!strings.HasSuffix(string(got), "\n# truncated\n") {
		t.Errorf("%d bytes: %.100s", len(got), got[len(got)-100:])
	}
}
