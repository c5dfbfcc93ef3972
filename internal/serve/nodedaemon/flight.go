package nodedaemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/page/nodepage"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/serve"
	"rdma_exporter/internal/state"
)

const (
	// incidentFolder is the directory of incident captures below the state directory.
	incidentFolder = "incidents"
	incidentsKept  = 10
	// incidentSame is the time within which an alert that fires again is the same incident, also after a restart.
	incidentSame = time.Hour
	// incidentNoted is the interval of saving that alerts are still firing.
	incidentNoted = 10 * time.Minute
	// incidentRounds is the number of rounds in a capture: the last ones, at least incidentEvery apart.
	incidentRounds = 8
	incidentEvery  = 10 * time.Second
	// incidentMax limits a capture in bytes: those of the largest known machines have 1 MiB.
	incidentMax = 16 << 20
	// incidentHistory is the range of the samples in a capture, historyMax the maximum size of their text in bytes: an
	// entry has at most 1 MiB.
	incidentHistory = 10 * time.Minute
	historyMax      = 900 << 10
)

// flightRecorder keeps a capture of the host when an alert that drains it starts firing, as evidence after a reboot. It
// has its own collectors and host access, and runs in the background, one capture at a time: neither rounds nor scrapes
// wait for it. While such an alert is pending it reads a round after each one of the daemon, so that the capture has
// the rounds before the alert fired.
type flightRecorder struct {
	file    *state.File[flightKept]
	begin   func(ctx context.Context) (*machine.Recording, error)
	history func(ctx context.Context, to time.Time) ([]byte, error)
	site    func(*capture.Archive) error // adds the configuration
	end     func() error                 // closes the resources of begin
	log     *slog.Logger
	wake    chan struct{}
	steps   sync.WaitGroup

	session *machine.Recording // the following are of the goroutine that runs step
	first   time.Time          // its first round
	last    time.Time          // its last round
	moved   time.Duration      // by dropped rounds
	noted   time.Time          // when the file was written last
	unsaved bool               // it could not be

	mu     sync.Mutex
	at     time.Time             // of the last round of the daemon
	armed  bool                  // an alert is pending
	due    []alerting.Alert      // that fire and are not in a capture yet
	firing map[string]seenFiring // by labels
	kept   []nodepage.Incident   // the newest first
	state  rounds.FileState
	tried  bool
}

// seenFiring is an alert with the last time that it was firing.
type seenFiring struct {
	Labels map[string]string `json:"labels"`
	Seen   time.Time         `json:"seen"`
}

// flightKept is the content of the state file in the directory of the captures.
type flightKept struct {
	Incidents []nodepage.Incident `json:"incidents"`
	Firing    []seenFiring        `json:"firing"`
}

// newFlightRecorder returns a recorder; nil for a replay, and without a usable directory.
func newFlightRecorder(
	ctx context.Context, c *machine.Config, m *machine.Machine, memory *expect.Memory, d *serve.Daemon,
	log *slog.Logger,
) *flightRecorder {
	if m.Player != nil {
		return nil
	}
	f, err := openFlight(ctx, filepath.Join(c.StateDir, incidentFolder), log)
	if err != nil {
		log.Warn("cannot use the incident directory, no incident captures are kept", "err", err)
		return nil
	}
	f.history = func(ctx context.Context, to time.Time) ([]byte, error) {
		return readHistory(ctx, d.Engine, to, d.Interval())
	}
	f.site = func(a *capture.Archive) error { return c.Site.Record(a, false) }
	var own *machine.Machine // opened once, so that the next capture does not repeat a read that hangs
	f.end = func() error {
		if own == nil {
			return nil
		}
		return own.Close()
	}
	f.begin = func(ctx context.Context) (*machine.Recording, error) {
		if own == nil {
			opened, err := live.Open(c.Paths)
			if err != nil {
				return nil, err
			}
			own = &machine.Machine{Host: &opened.Host, Close: opened.Close}
			own.GPUs, own.RTNL = m.GPUs, m.RTNL // shared: they serialise requests, and GPUs can be released
			own.Tracer = m.Tracer               // it has observed registrations since the start
		}
		known := memory.Data()
		o := c.Options(own, expect.NewMemory(known))
		o.Peers = nil // of the recorded events, as a replay has them
		o.SampleInterval, o.ModuleInterval, o.GPUInterval, o.ListenLLDP = 0, 0, 0, false
		on, err := c.Enabled(collector.All(o))
		if err != nil {
			return nil, err
		}
		return c.Record(ctx, own, on, known, slog.New(slog.DiscardHandler)), nil
	}
	return f
}

// openFlight locks the directory and reads its captures.
func openFlight(ctx context.Context, dir string, log *slog.Logger) (*flightRecorder, error) {
	file := &state.File[flightKept]{
		Dir: dir, Log: log, Context: ctx,
		Unread: "could not restore the alerts of earlier incidents, they may be captured again",
	}
	known, err := file.Open()
	if err != nil {
		return nil, err
	}
	f := &flightRecorder{
		file: file, log: log, wake: make(chan struct{}, 1), firing: map[string]seenFiring{}, end: func() error { return nil },
	}
	for _, s := range known.Firing {
		f.firing[labelsKey(s.Labels)] = s
	}
	left, err := filepath.Glob(filepath.Join(dir, command.Unfinished+"*"))
	for _, name := range left { // left by a process that was killed
		err = errors.Join(err, os.Remove(name))
	}
	if err == nil {
		f.kept, err = f.listCaptures(known.Incidents)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

// drains reports whether an alert takes the host out of service.
func drains(a *alerting.Alert) bool {
	return a.Labels["drain"] == "cordon" || a.Labels["drain"] == "evict"
}

// labelsKey returns a key for labels.
func labelsKey(labels map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, "%q=%q,", name, labels[name])
	}
	return b.String()
}

// note receives the result of a round of the daemon. It does not block.
func (f *flightRecorder) note(at time.Time, alerts []alerting.Alert) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.armed = at, false
	for i := range alerts {
		a := &alerts[i]
		if !drains(a) {
			continue
		}
		key := labelsKey(a.Labels)
		before, known := f.firing[key]
		fresh := !known || at.Sub(before.Seen).Abs() >= incidentSame
		switch {
		case a.State == alerting.StatePending:
			f.armed = f.armed || fresh
		default:
			if fresh {
				f.due = append(f.due, *a)
			}
			f.firing[key] = seenFiring{a.Labels, at.UTC()}
		}
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// start runs the recorder until ctx ends.
func (f *flightRecorder) start(ctx context.Context) {
	if f == nil {
		return
	}
	f.steps.Go(func() {
		for {
			select {
			case <-f.wake:
			case <-ctx.Done():
				return
			}
			f.step(ctx)
		}
	})
}

// step reads a round if an alert is pending or firing, and keeps the capture if an alert fires.
func (f *flightRecorder) step(ctx context.Context) {
	f.mu.Lock()
	at, armed, due := f.at, f.armed, f.due
	f.mu.Unlock()
	if !armed && len(due) == 0 {
		f.session = nil
		if f.isFiring() && at.Sub(f.noted).Abs() >= incidentNoted {
			f.save(at)
		}
		return
	}
	if len(due) == 0 && f.session != nil && time.Since(f.last) < f.roundInterval() {
		return
	}
	var file string
	err := access.Guard(func() (err error) {
		if err := f.readRound(ctx); err != nil || len(due) == 0 {
			return err
		}
		file, err = f.keepCapture(ctx, at, due)
		return err
	})
	if err != nil {
		f.session = nil
	}
	if ctx.Err() == nil && len(due) > 0 {
		f.finish(at, file, due, err)
	}
}

// roundInterval returns the interval of the rounds of a session: an alert may be pending for hours.
func (f *flightRecorder) roundInterval() time.Duration {
	if f.last.Sub(f.first) >= incidentRounds*incidentEvery {
		return time.Minute
	}
	return incidentEvery
}

// readRound reads a round of the session, and starts one if needed.
func (f *flightRecorder) readRound(ctx context.Context) (err error) {
	now := time.Now()
	if f.session == nil {
		if f.session, err = f.begin(ctx); err != nil {
			return err
		}
		f.first, f.moved = now, 0
	}
	f.last = now
	if err := f.session.Round(ctx, now.Sub(f.first).Truncate(time.Millisecond)-f.moved); err != nil {
		return err
	}
	moved := f.session.Recorder.Keep(incidentRounds)
	f.moved += moved
	f.session.Meta.Time = f.session.Meta.Time.Add(moved)
	return nil
}

// keepCapture ends the session and writes the capture.
func (f *flightRecorder) keepCapture(ctx context.Context, at time.Time, due []alerting.Alert) (string, error) {
	s := f.session
	f.session = nil
	text, err := f.formatCapture(ctx, s, at, due)
	if err == nil && len(text) > incidentMax {
		s.Meta.Time = s.Meta.Time.Add(s.Recorder.Keep(1))
		text, err = f.formatCapture(ctx, s, at, due)
	}
	switch {
	case err != nil:
		return "", err
	case len(text) > incidentMax:
		return "", fmt.Errorf("capture of %d bytes exceeds the limit of %d", len(text), incidentMax)
	}
	name := f.unusedName(at, due[0].Name)
	return name, command.WriteFile(name, text, nil)
}

// finish records the result, and removes the oldest captures.
func (f *flightRecorder) finish(at time.Time, file string, due []alerting.Alert, err error) {
	i := nodepage.Incident{Time: at.UTC(), File: file}
	for _, a := range due {
		i.Alerts = append(i.Alerts, strings.TrimSuffix(a.Name+" "+check.Where(a.Labels), " host"))
	}
	f.mu.Lock()
	f.due = f.due[len(due):]
	f.tried, f.state.Failed = true, err != nil
	var old []nodepage.Incident
	if err == nil {
		f.state.At = at
		f.kept = slices.Insert(f.kept, 0, i)
		n := min(len(f.kept), incidentsKept)
		f.kept, old = f.kept[:n:n], f.kept[n:]
	}
	f.mu.Unlock()
	if err != nil {
		f.log.Warn("incident capture failed", "alerts", i.Alerts, "err", command.OneLine(err))
		return
	}
	f.log.Info("incident captured", "alerts", i.Alerts, "file", file)
	for _, o := range old {
		command.LogError(f.log, "cannot remove an old incident capture", os.Remove(o.File))
	}
	f.save(at)
}

// isFiring reports whether an alert that drains the host is firing.
func (f *flightRecorder) isFiring() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.firing) > 0
}

// save writes the captures, and the firing alerts that are in a capture.
func (f *flightRecorder) save(at time.Time) {
	f.mu.Lock()
	maps.DeleteFunc(f.firing, func(_ string, s seenFiring) bool { return at.Sub(s.Seen).Abs() >= incidentSame })
	known := flightKept{Incidents: slices.Clone(f.kept)}
	for _, key := range slices.Sorted(maps.Keys(f.firing)) {
		if !slices.ContainsFunc(f.due, func(a alerting.Alert) bool { return labelsKey(a.Labels) == key }) {
			known.Firing = append(known.Firing, f.firing[key])
		}
	}
	failed := f.unsaved || f.state.Failed // already logged
	f.noted = at
	f.mu.Unlock()
	err := f.file.Write(known)
	if err != nil && !failed {
		f.log.Warn("cannot save the alerts of incidents, a restart may capture them again", "err", err)
	}
	f.unsaved = err != nil
}

// listIncidents returns the kept captures, the newest first.
func (f *flightRecorder) listIncidents() []nodepage.Incident {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.kept)
}

// lastCapture returns the result of the last capture; false before the first.
func (f *flightRecorder) lastCapture() (rounds.FileState, bool) {
	if f == nil {
		return rounds.FileState{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state, f.tried
}

// close unlocks the directory. The context of start has ended.
func (f *flightRecorder) close() {
	if f == nil {
		return
	}
	f.steps.Wait()
	if f.isFiring() {
		f.save(f.at)
	}
	command.LogError(f.log, "cannot close the incident directory", errors.Join(f.end(), f.file.Close()))
}
